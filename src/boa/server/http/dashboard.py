"""The dashboard at `/`: what `make web` has put into `static/`, held in memory and packed once.

Nothing is looked up on the disk after that, so no request can ask for a file that is not ours.
"""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from boa.server.http.guard import FAVICONS
from boa.server.http.page import page

STATIC = Path(__file__).parents[1] / "static"
"""Where the build goes. A source tree that was not built, and a wheel made without Node, have none.
"""
HEADERS = {
    "Content-Security-Policy": "; ".join(
        [
            "default-src 'self'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ]
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Encoding",
}
ASK_AGAIN = "no-cache"
FOREVER = "public, max-age=31536000, immutable"
"""Cache-Control of files whose names change with what is in them."""
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
UNKNOWN = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """A file as it is sent. `packed` is its gzip, where that is smaller."""

    body: bytes
    packed: bytes | None
    media_type: str
    caching: str

    @classmethod
    def of(cls, body: bytes, media_type: str, caching: str) -> "SentFile":
        packed = gzip.compress(body, mtime=0)
        smaller = packed if len(packed) < len(body) else None
        return cls(body=body, packed=smaller, media_type=media_type, caching=caching)

    def answer(self, request: Request) -> Response:
        headers = {**HEADERS, "Cache-Control": self.caching}
        body = self.body
        if self.packed is not None and takes_gzip(request.headers.get("accept-encoding", "")):
            body, headers["Content-Encoding"] = self.packed, "gzip"
        headers["ETag"] = mark = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        if mark in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=self.media_type)


def takes_gzip(accepted: str) -> bool:
    for choice in accepted.lower().split(","):
        name, _, weight = choice.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def is_built(folder: Path) -> bool:
    return (folder / "index.html").is_file()


def load(folder: Path) -> dict[str, SentFile]:
    """By path of the request; empty where nothing was built."""
    index = folder / "index.html"
    if not is_built(folder):
        return {}
    held = {"/": _read(index, ASK_AGAIN)}
    for file in sorted((folder / "assets").glob("*")):
        if file.is_file():
            held[f"/assets/{file.name}"] = _read(file, FOREVER)
    for path in FAVICONS:
        if (folder / path[1:]).is_file():
            held[path] = _read(folder / path[1:], ASK_AGAIN)
    return held


def _read(file: Path, caching: str) -> SentFile:
    return SentFile.of(file.read_bytes(), TYPES.get(file.suffix, UNKNOWN), caching)


def routes(folder: Path, version: str) -> list[Route]:
    """Read now: a service keeps the dashboard that it began with, whatever is built meanwhile."""
    plain = SentFile.of(page(version).encode(), TYPES[".html"], ASK_AGAIN)
    held: Mapping[str, SentFile] = load(folder) or {"/": plain}

    async def answer(request: Request) -> Response:
        found = held.get(request.scope["path"])
        if found is None:
            raise HTTPException(404)
        return found.answer(request)

    return [Route(path, answer) for path in ("/", "/assets/{name}", *FAVICONS)]
