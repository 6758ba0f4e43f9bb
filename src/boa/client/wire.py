"""Requests over HTTP, and what can go wrong with them as our own errors."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from boa._version import __version__
from boa.api import PATIENCE_S
from boa.api.hosts import is_loopback
from boa.client.credentials import Credentials
from boa.client.transport import (
    BadAddress,
    HttpAnswer,
    HttpRequest,
    TimedOut,
    Transport,
    TransportTrouble,
)
from boa.errors import BoaError, InputError, NoServer, Refused

DEFAULT_URL = "http://127.0.0.1:8420"
CHANGE_S = PATIENCE_S + 10.0
"""How long a change is waited for at least: the service is to be the one who gives it up, for it
can say what came of it."""
API = "/api/v1"
HTTP_PORT = 80
PROXIES = ("http_proxy", "all_proxy")
OK, NOT_OK, UNAUTHORIZED = 200, 300, 401
USUAL_MOST = 1024**2
"""Bytes that a service takes of most requests."""
BROKE_OFF = "broke off"
Parameters = Mapping[str, str | int | float | bool | None]


class Wire:
    def __init__(self, url: str | None, token: str | None, timeout: float) -> None:
        self.url = (url or os.environ.get("BOA_SERVER") or DEFAULT_URL).rstrip("/")
        self._timeout = timeout
        self._headers = {"User-Agent": f"boa/{__version__}"}
        self._transport, self._path, self.credentials = _transport(self.url, token)

    def close(self) -> None:
        self._transport.close()

    def ask(
        self, method: str, path: str, parameters: Parameters | None = None, body: Any = None
    ) -> Any:
        """The answer's JSON, or the error it stands for."""
        wait_s = self._timeout if method == "GET" else max(self._timeout, CHANGE_S)
        request = self._request(method, f"{API}/{path}", parameters, body, wait_s)
        try:
            with self._trouble(wait_s), self._sent(request) as answer:
                return self._checked(answer)
        except NoServer as problem:
            size = len(request.body or b"")
            if size <= USUAL_MOST or BROKE_OFF not in str(problem):
                raise
            # Services that are sent too much answer and hang up, often before anybody listens.
            expected = f"at most {USUAL_MOST:,} bytes, for most requests"
            raise InputError("the body", None, expected, f"is too large ({size:,} bytes)") from None

    def put(self, path: str, parameters: Parameters, data: bytes) -> Any:
        """Send bytes as they are; the answer's JSON, or the error it stands for."""
        wait_s = max(self._timeout, CHANGE_S)
        headers = {"Content-Type": "application/octet-stream"}
        request = self._request("PUT", f"{API}/{path}", parameters, None, wait_s, headers)
        request = request._replace(body=data)
        with self._trouble(wait_s), self._sent(request) as answer:
            return self._checked(answer)

    @contextmanager
    def stream(
        self,
        path: str,
        parameters: Parameters | None = None,
        headers: Mapping[str, str] | None = None,
        quiet_s: float = 0.0,
        root: str = API,
    ) -> Iterator[HttpAnswer]:
        """An answer in pieces; `quiet_s`: how long it may say nothing, where that is longer."""
        wait_s = max(self._timeout, quiet_s)
        request = self._request("GET", f"{root}/{path}", parameters, None, wait_s, headers)
        with self._trouble(wait_s), self._sent(request) as answer:
            if answer.status != OK:
                self._checked(answer)
            yield answer

    @contextmanager
    def _sent(self, request: HttpRequest) -> Iterator[HttpAnswer]:
        """The answer; after a refusal, asked again with the token that is told by now."""
        with self._transport.send(request) as answer:
            if answer.status != UNAUTHORIZED or not self.credentials.found_another():
                yield answer
                return
        self._transport.close()  # who is at the other end was not looked at for this token
        headers = {**request.headers, **self.credentials.headers}
        with self._transport.send(request._replace(headers=headers)) as answer:
            yield answer

    def _request(
        self,
        method: str,
        path: str,
        parameters: Parameters | None,
        body: Any,
        read_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> HttpRequest:
        query = urlencode(_given(parameters))
        return HttpRequest(
            method=method,
            target=quote(f"{self._path}{path}", safe="/%") + (f"?{query}" if query else ""),
            headers={**self._headers, **self.credentials.headers, **(headers or {})},
            body=None if body is None else _as_json(body),
            connect_s=self._timeout,
            read_s=read_s,
        )

    @contextmanager
    def _trouble(self, read_s: float) -> Iterator[None]:
        """`read_s`: how long an answer was waited for."""
        try:
            yield
        except TimedOut as over:
            waited = read_s if over.connected else self._timeout
            raise NoServer(self.url, f"no answer within {waited:g} s") from None
        except BadAddress:
            raise _bad_url(self.url) from None
        except TransportTrouble as problem:
            raise NoServer(self.url, str(problem)) from None

    def _checked(self, answer: HttpAnswer) -> Any:
        try:
            document = json.loads(answer.read())
        except ValueError:
            document = None
        if OK <= answer.status < NOT_OK and document is not None:
            return document
        raise self._refusal(answer, document)

    def _refusal(self, answer: HttpAnswer, document: Any) -> BoaError:
        try:
            said = document["error"]
            return Refused(
                said["message"],
                status=answer.status,
                exit_code=said["exit_code"],
                field=said.get("field", ""),
                expected=said.get("expected", ""),
            )
        except (TypeError, KeyError):
            kind = answer.headers.get("content-type", "nothing")
            why = f"something else answers there ({answer.status}, {kind})"
            return NoServer(self.url, why)


def _as_json(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as problem:
        said = " ".join(str(problem).split())[:100]
        expected = "finite numbers, Unicode text, and what JSON has for the rest"
        raise InputError("the body", None, expected, f"is no JSON ({said})") from None


def _transport(url: str, token: str | None) -> tuple[Transport, str, Credentials]:
    """A transport to the server at an address, the path that is part of the address, and who asks.

    No token is looked for where a request goes through others in the clear.
    """
    parts = _parts(url)
    host = parts.hostname or ""
    is_ours = is_loopback(host)  # no proxy stands between a machine and itself
    if parts.scheme == "http" and parts.username is None and (is_ours or not _proxies()):
        from boa.client.sockets import Sockets

        credentials = Credentials(url, token, sought=True)
        port = parts.port or HTTP_PORT
        return Sockets(host, port, credentials.check), parts.path, credentials
    from boa.client.secured import Secured

    credentials = Credentials(url, token, sought=parts.scheme == "https")
    origin = f"{parts.scheme}://{parts.netloc}"
    return Secured(origin, trust_env=not is_ours), parts.path, credentials


def _proxies() -> bool:
    named = (os.environ[name] for name in os.environ if name.lower() in PROXIES)
    return any(named)


def _given(parameters: Parameters | None) -> dict[str, str]:
    """Those that are given, as they stand in a query."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (parameters or {}).items()
        if value is not None
    }


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https"):
        raise _bad_url(url)
    return parts


def _bad_url(url: str) -> InputError:
    return InputError("BOA_SERVER", url, f"an address such as {DEFAULT_URL}")


def events_of(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Data of server-sent events; comments and names are left out."""
    data: list[str] = []
    for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield json.loads("\n".join(data))
            data = []
