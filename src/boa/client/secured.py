"""The same through httpx: for addresses with TLS, and where a proxy may stand in between."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from boa.client.transport import BadAddress, HttpAnswer, HttpRequest, TimedOut, TransportTrouble
from boa.errors import InputError


class Secured:
    """Requests to the server at `origin`; `trust_env`: by way of the proxies that are set."""

    def __init__(self, origin: str, *, trust_env: bool) -> None:
        self._origin = origin
        verify = believed() if origin.startswith("https:") else False
        self._http = httpx.Client(trust_env=trust_env, verify=verify)

    def close(self) -> None:
        self._http.close()

    @contextmanager
    def send(self, request: HttpRequest) -> Iterator[HttpAnswer]:
        headers = dict(request.headers)
        if request.body is not None:
            headers.setdefault("Content-Type", "application/json")
        with (
            _told(),
            self._http.stream(
                request.method,
                self._origin + request.target,
                headers=headers,
                content=request.body,
                timeout=httpx.Timeout(request.connect_s, read=request.read_s),
            ) as answer,
        ):
            yield HttpAnswer(answer.status_code, answer.headers, answer.iter_bytes())


def believed() -> ssl.SSLContext:
    """Authorities that certificates are checked by: the system's, and those in $BOA_CA_FILE."""
    context = ssl.create_default_context()
    if file := os.environ.get("BOA_CA_FILE"):
        try:
            context.load_verify_locations(cafile=file)
        except (OSError, ssl.SSLError):
            raise InputError("BOA_CA_FILE", file, "a file with certificates (PEM)") from None
    return context


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except httpx.ReadTimeout:
        raise TimedOut(connected=True) from None
    except httpx.TimeoutException:
        raise TimedOut(connected=False) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        raise BadAddress from None
    except httpx.TransportError as problem:
        raise TransportTrouble(_reason(problem)) from None


def _reason(problem: Exception) -> str:
    text = str(problem)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        why = text.partition("verify failed: ")[2].partition(" (_ssl")[0]
        return f"its certificate is not believed ({why}); BOA_CA_FILE may name whom to believe"
    if "refused" in text.lower():
        return "connection refused"
    if isinstance(problem, httpx.RemoteProtocolError | httpx.ReadError):
        return "the connection broke off"
    return text.partition("] ")[2].lower() or text or type(problem).__name__
