"""Requests over HTTP, and what can go wrong with them as our own errors."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx

from boa.api.answers import PATIENCE_S
from boa.api.hosts import is_loopback
from boa.errors import BoaError, InputError, NoServer, Refused

DEFAULT_URL = "http://127.0.0.1:8420"
CHANGE_S = PATIENCE_S + 10.0
"""How long a change is waited for at least: the service is to be the one who gives it up, for it
can say what came of it."""
Parameters = Mapping[str, str | int | float | bool | None]


class Wire:
    def __init__(self, url: str | None, token: str | None, timeout: float) -> None:
        self.url = (url or os.environ.get("BOA_SERVER") or DEFAULT_URL).rstrip("/")
        token = token or os.environ.get("BOA_TOKEN") or None
        host = _host(self.url)
        self._timeout = timeout
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1/",
            headers={} if token is None else {"Authorization": f"Bearer {_plain(token)}"},
            timeout=timeout,
            trust_env=not is_loopback(host),  # no proxy stands between a machine and itself
            verify=self.url.startswith("https:"),  # certificates take a while to load
        )

    def close(self) -> None:
        self._http.close()

    def ask(
        self, method: str, path: str, parameters: Parameters | None = None, body: Any = None
    ) -> Any:
        """The answer's JSON, or the error it stands for."""
        wait_s = self._timeout if method == "GET" else max(self._timeout, CHANGE_S)
        with self._trouble(wait_s):
            answer = self._http.request(
                method,
                path,
                params=_given(parameters),
                json=body,
                timeout=httpx.Timeout(self._timeout, read=wait_s),
            )
            return self._checked(answer)

    @contextmanager
    def stream(
        self,
        path: str,
        parameters: Parameters | None = None,
        headers: Mapping[str, str] | None = None,
        quiet_s: float = 0.0,
    ) -> Iterator[httpx.Response]:
        """An answer in pieces; `quiet_s`: how long it may say nothing, where that is longer."""
        wait_s = max(self._timeout, quiet_s)
        timeout = httpx.Timeout(self._timeout, read=wait_s)
        with (
            self._trouble(wait_s),
            self._http.stream(
                "GET", path, params=_given(parameters), headers=headers, timeout=timeout
            ) as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                answer.read()
                self._checked(answer)
            yield answer

    @contextmanager
    def _trouble(self, read_s: float) -> Iterator[None]:
        """`read_s`: how long an answer was waited for."""
        try:
            yield
        except httpx.ReadTimeout:
            raise NoServer(self.url, f"no answer within {read_s:g} s") from None
        except httpx.TimeoutException:
            raise NoServer(self.url, f"no answer within {self._timeout:g} s") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise _bad_url(self.url) from None
        except httpx.TransportError as problem:
            raise NoServer(self.url, _reason(problem)) from None

    def _checked(self, answer: httpx.Response) -> Any:
        try:
            document = answer.json()
        except ValueError:
            document = None
        if answer.is_success and document is not None:
            return document
        raise self._refusal(answer, document)

    def _refusal(self, answer: httpx.Response, document: Any) -> BoaError:
        try:
            said = document["error"]
            return Refused(
                said["message"],
                status=answer.status_code,
                exit_code=said["exit_code"],
                field=said.get("field", ""),
                expected=said.get("expected", ""),
            )
        except (TypeError, KeyError):
            kind = answer.headers.get("content-type", "nothing")
            why = f"something else answers there ({answer.status_code}, {kind})"
            return NoServer(self.url, why)


def _given(parameters: Parameters | None) -> dict[str, str | int | float | bool]:
    return {name: value for name, value in (parameters or {}).items() if value is not None}


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https"):
        raise _bad_url(url)
    return host


def _bad_url(url: str) -> InputError:
    return InputError("BOA_SERVER", url, f"an address such as {DEFAULT_URL}")


def _plain(token: str) -> str:
    if not token.isascii() or not token.isprintable():
        raise InputError("BOA_TOKEN", "…", "printable ASCII characters", "has other characters")
    return token


def _reason(problem: Exception) -> str:
    text = str(problem)
    if "refused" in text.lower():
        return "connection refused"
    if isinstance(problem, httpx.RemoteProtocolError | httpx.ReadError):
        return "the connection broke off"
    return text.partition("] ")[2].lower() or text or type(problem).__name__


def events_of(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Data of server-sent events; comments and names are left out."""
    data: list[str] = []
    for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield json.loads("\n".join(data))
            data = []
