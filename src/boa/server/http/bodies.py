"""Bodies of requests: bounded before they are read, JSON, one error each."""

import json
from typing import Any, NoReturn

from starlette.requests import Request

from boa.server.http.errors import Malformed, TooLarge

MAX_BODY = 1024**2


async def read_json(request: Request, limit: int = MAX_BODY) -> Any:
    """The JSON in a request's body; numbers that JSON lacks are refused."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Malformed(f"said to be {kind[:60] or 'of no type'!r} (Content-Type)")
    return parse(await read(request, limit), constants=False)


async def read(request: Request, limit: int) -> bytes:
    """Not a byte more than the limit, whatever the request says of its length."""
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said) > limit:
        raise TooLarge(limit)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise TooLarge(limit)
        parts.append(part)
    return b"".join(parts)


def parse(body: bytes, *, constants: bool) -> Any:
    """`constants`: NaN and Infinity are let through."""
    try:
        return json.loads(body, parse_constant=None if constants else _refuse)
    except (ValueError, RecursionError) as broken:
        said = "nested too deep" if isinstance(broken, RecursionError) else str(broken)
        raise Malformed(f"not JSON ({' '.join(said.split())[:100]})") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON's")
