"""Who may ask: every request passes here first.

With a token, whoever has it. Without, only processes of this machine: a web page that a browser on
it has open is kept out by its Origin, by what the browser says of where the request comes from
(Sec-Fetch-Site), and by the Host it believes to talk to.
"""

import hmac
import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from boa.api.hosts import is_loopback
from boa.errors import BoaError
from boa.server.http.errors import Forbidden, HeadTooLarge, Unauthorized, error_answer

OPEN = frozenset({"/", "/api/v1/health", "/api/openapi.json"})
"""Nothing secret, nothing that changes anything."""
ASSETS = "/assets/"
FAVICONS = ("/favicon.svg", "/favicon.ico")
"""The dashboard's program is the same for everybody; what it shows is asked for with the token."""
OURS = ("same-origin", "none")
"""Sec-Fetch-Site of requests by our own page, or by the user's own hand. `same-site` is not among
them: a page at another port of this machine is of the same site."""
HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")


class Guard:
    def __init__(self, app: ASGIApp, token: str | None, head_bytes: int) -> None:
        self._app, self._head_bytes = app, head_bytes
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                check_size(scope, self._head_bytes)
                self._check(scope["method"], scope["path"], Headers(scope=scope))
            except BoaError as problem:
                await error_answer(problem)(scope, receive, send)
                return
        try:
            await self._app(scope, receive, send)
        except ClientDisconnect:
            return  # in the middle of its request: there is nobody to be told, and nothing wrong

    def _check(self, method: str, path: str, headers: Headers) -> None:
        check_host(headers)
        check_origin(headers)
        check_site(method, path, headers)
        if self._token is None:
            check_local(headers)
        elif not is_open(path) and not is_report(path):  # a report has a token of its own
            check_token(headers, self._token)


def check_size(scope: Scope, most: int) -> None:
    """Refuse a large head that came in one piece; one in many is cut off by its connection."""
    asked = len(scope["path"]) + len(scope["query_string"])
    if asked + sum(len(name) + len(value) for name, value in scope["headers"]) > most:
        raise HeadTooLarge(most)


def check_token(headers: Headers, token: bytes) -> None:
    given = bearer(headers)
    if given is None or not hmac.compare_digest(given, token):
        raise Unauthorized(given is not None)


def bearer(headers: Headers) -> bytes | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip().encode("latin-1") if kind.lower() == "bearer" and token else None


def check_origin(headers: Headers) -> None:
    origin = headers.get("origin")
    if origin is not None and not _names(origin, headers.get("host")):
        raise Forbidden(f"Origin: got {origin[:60]!r}; expected the server's own, or none at all")


def _names(origin: str, host: str | None) -> bool:
    try:
        return bool(host) and urlsplit(origin).netloc == host
    except ValueError:  # no address at all
        return False


def check_host(headers: Headers) -> None:
    """A name or an address, and a port: no user, no blanks, nothing that two readers of it could
    take for two hosts."""
    host = headers.get("host")
    if host and not HOST.fullmatch(host):
        raise Forbidden(f"Host: got {host[:60]!r}; expected a name or an address, and its port")


def check_site(method: str, path: str, headers: Headers) -> None:
    """A link from elsewhere may lead to the page itself, which is the same for everybody."""
    site = headers.get("sec-fetch-site")
    if site is None or site in OURS:
        return
    leads = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    if (method, path) == ("GET", "/") and leads == ("navigate", "document"):
        return
    raise Forbidden(
        f"Sec-Fetch-Site: got {site[:60]!r}; expected same-origin or none: another site's page may "
        "not ask here"
    )


def check_local(headers: Headers) -> None:
    """A name that was made to point here (DNS rebinding) is not one of ours."""
    host = headers.get("host", "")
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        name = None
    if name is None or not is_loopback(name):
        raise Forbidden(
            f"Host: got {host[:60]!r}; expected localhost or 127.0.0.1: a server without a token "
            "answers to its own machine only"
        )


def is_open(path: str) -> bool:
    name = path.removeprefix(ASSETS)
    return path in OPEN or path in FAVICONS or (name != path and "/" not in name)


def is_report(path: str) -> bool:
    return path.startswith("/api/v1/jobs/") and path.endswith("/report")
