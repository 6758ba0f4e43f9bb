"""Who may ask: every request passes here first.

With a token, whoever has it, as far as its role goes. Without, only processes of this machine: a
web page that a browser on it has open is kept out by its Origin, by what the browser says of where
the request comes from (Sec-Fetch-Site), and by the Host it believes to talk to.
"""

import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from boa.api.hosts import is_loopback
from boa.errors import BoaError
from boa.model.access import Caller
from boa.server.http.access import CALLER, STILL, Access, address_of, check_role
from boa.server.http.errors import Forbidden, HeadTooLarge, NoSuchPath, error_answer
from boa.server.http.permissions import needed
from boa.server.http.refusals import Refusals, kind_of

OPEN = frozenset({"/", "/api/v1/health", "/api/openapi.json"})
"""Nothing secret, nothing that changes anything."""
ASSETS = "/assets/"
FAVICONS = ("/favicon.svg", "/favicon.ico")
"""The dashboard's program is the same for everybody; what it shows is asked for with the token."""
OURS = ("same-origin", "none")
"""Sec-Fetch-Site of requests by our own page, or by the user's own hand. `same-site` is not among
them: a page at another port of this machine is of the same site."""
HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
REPORT = re.compile(r"/api/v1/jobs/[^/]+/report")
REFUSED = (401, 403)


class Guard:
    """`refusals`: where refused requests are counted."""

    def __init__(self, app: ASGIApp, access: Access, head_bytes: int, refusals: Refusals) -> None:
        self._app, self._head_bytes = app, head_bytes
        self._access, self._refusals = access, refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in REFUSED:
                self._count(scope, message["status"])
            await send(message)

        try:
            check_size(scope, self._head_bytes)
            self._check(scope, Headers(scope=scope))
        except BoaError as problem:
            await error_answer(problem)(scope, receive, watched)
            return
        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            return  # in the middle of its request: there is nobody to be told, and nothing wrong

    def _check(self, scope: Scope, headers: Headers) -> None:
        method, path = scope["method"], scope["path"]
        check_path(path)
        check_host(headers)
        check_origin(headers)
        check_site(method, path, headers)
        address = address_of(scope)
        if not self._access.wanted:
            check_local(headers)
            scope[CALLER] = Caller(address=address)
        elif not is_open(path) and not is_report(path):  # a report has a token of its own
            caller = scope[CALLER] = self._access.caller(headers, address)
            check_role(caller, *needed(method, path))
            scope[STILL] = lambda: self._access.still(headers, address, caller)

    def _count(self, scope: Scope, status: int) -> None:
        caller: Caller | None = scope.get(CALLER)
        by = Caller(role="viewer", address=address_of(scope)) if caller is None else caller
        role = "" if caller is None else caller.role
        self._refusals.add(
            kind_of(status, by.name, role, by.address, scope["method"], scope["path"])
        )


def check_size(scope: Scope, most: int) -> None:
    """Refuse a large head that came in one piece; one in many is cut off by its connection."""
    asked = len(scope["path"]) + len(scope["query_string"])
    if asked + sum(len(name) + len(value) for name, value in scope["headers"]) > most:
        raise HeadTooLarge(most)


def check_path(path: str) -> None:
    """Nothing here has a name with a line break in it, and routes take a path with one at its end
    for the path without: it would get there by another rule than its own."""
    if not path.isprintable():
        raise NoSuchPath(path)


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
    return REPORT.fullmatch(path) is not None
