"""HTTP/1.1 over plain sockets, with connections kept between requests.

It is all that a client of one's own service needs, and loads in no time, which counts for commands
that ask one question and end. TLS and proxies are left to httpx (`boa.client.secured`).
"""

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from typing import NoReturn, TypeAlias

from boa.client.transport import BadAddress, HttpAnswer, HttpRequest, TimedOut, TransportTrouble

KEPT_S = 4.0
"""How long an idle connection is trusted: servers close them after five seconds."""
PIECE = 65_536
LONGEST_LINE = 65_536
MOST_HEADERS = 100
BROKE_OFF = "the connection broke off"
Head: TypeAlias = tuple[int, bytes, dict[str, str]]
"""Status, version and headers."""


class _Connection:
    def __init__(self, address: tuple[str, int], timeout: float) -> None:
        try:
            self.socket = socket.create_connection(address, timeout)
        except TimeoutError:
            raise TimedOut(connected=False) from None
        except UnicodeError:  # a name that no name can be
            raise BadAddress from None
        except OSError as problem:
            raise TransportTrouble(_reason(problem)) from None
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.idle_since: float | None = None
        """When it was last used; None: it is new."""

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def usable(self) -> bool:
        """Whether the other side still holds it, and has not said anything unasked."""
        if self.idle_since is not None and time.monotonic() - self.idle_since > KEPT_S:
            return False
        self.socket.settimeout(0.0)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False


class Sockets:
    """Requests to one server; several threads may send at once. `check`: looks at every new
    connection before anything is sent, and raises TransportTrouble where nothing may be."""

    def __init__(
        self, host: str, port: int, check: Callable[[socket.socket], None] = lambda _: None
    ) -> None:
        self._address, self._check = (host, port), check
        bare = f"[{host}]" if ":" in host else host
        self._host = f"{bare}:{port}"
        self._idle: list[_Connection] = []

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def send(self, request: HttpRequest) -> Iterator[HttpAnswer]:
        connection, (status, version, headers) = self._asked(request)
        body = _Body()
        try:
            with _told():
                _describe(body, status, version, headers)
            yield HttpAnswer(status, headers, body.pieces(connection.file))
        finally:
            if body.over and body.keep:
                connection.idle_since = time.monotonic()
                self._idle.append(connection)
            else:
                connection.close()

    def _asked(self, request: HttpRequest) -> tuple[_Connection, Head]:
        """The head of the answer, and what its body comes on. Who only asks may ask again where a
        kept connection's end crossed the question."""
        while True:
            connection = self._connection(request.connect_s)
            is_new = connection.idle_since is None
            try:
                with _told():
                    _write(connection.socket, self._host, request)
                    connection.socket.settimeout(request.read_s)
                    return connection, _head(connection.file)
            except TransportTrouble as problem:
                connection.close()
                if is_new or request.method != "GET" or isinstance(problem, TimedOut):
                    raise
            except BaseException:
                connection.close()
                raise

    def _connection(self, timeout: float) -> _Connection:
        while self._idle:
            kept = self._idle.pop()
            if kept.usable():
                kept.socket.settimeout(timeout)
                return kept
            kept.close()
        made = _Connection(self._address, timeout)
        try:
            self._check(made.socket)
        except BaseException:
            made.close()
            raise
        return made


class _Body:
    """How long an answer's body is, and how much of it was read."""

    length: int | None = None
    """Bytes; None: until the connection is closed."""
    chunked = False
    keep = False
    """Whether the connection can be used again after it."""
    over = False

    def pieces(self, file: BufferedReader) -> Iterator[bytes]:
        with _told():
            if self.chunked:
                yield from self._chunks(file)
            elif self.length is None:
                while piece := file.read1(PIECE):
                    yield piece
            else:
                yield from _exactly(file, self.length)
            self.over = True

    def _chunks(self, file: BufferedReader) -> Iterator[bytes]:
        while size := int(_line(file).partition(b";")[0], 16):
            yield from _exactly(file, size)
            if _line(file):
                _broke_off()
        while _line(file):  # trailers
            pass


def _exactly(file: BufferedReader, size: int) -> Iterator[bytes]:
    while size > 0:
        piece: bytes = file.read1(min(size, PIECE))
        if not piece:
            _broke_off()
        size -= len(piece)
        yield piece


@contextmanager
def _told() -> Iterator[None]:
    """Errors of a connection, as TransportTrouble."""
    try:
        yield
    except TimeoutError:
        raise TimedOut(connected=True) from None
    except (OSError, ValueError):  # or it is no HTTP
        raise TransportTrouble(BROKE_OFF) from None


def _broke_off() -> NoReturn:
    raise TransportTrouble(BROKE_OFF)


def _write(to: socket.socket, host: str, request: HttpRequest) -> None:
    body = request.body
    headers = {"Host": host, "Accept": "*/*", **request.headers}
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
    if body is not None or request.method != "GET":
        headers["Content-Length"] = str(len(body or b""))
    lines = [
        f"{request.method} {request.target} HTTP/1.1",
        *(f"{k}: {v}" for k, v in headers.items()),
    ]
    to.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))


def _head(file: BufferedReader) -> Head:
    """Status, version and headers; what is said in between ("100 Continue") is passed over."""
    while True:
        version, _, rest = _line(file).partition(b" ")
        if not version.startswith(b"HTTP/1."):
            _broke_off()
        status = int(rest[:3])
        headers: dict[str, str] = {}
        for _ in range(MOST_HEADERS):
            line = _line(file)
            if not line:
                break
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        else:
            _broke_off()
        if status >= 200:
            return status, version, headers


def _describe(body: _Body, status: int, version: bytes, headers: Mapping[str, str]) -> None:
    body.chunked = "chunked" in headers.get("transfer-encoding", "").lower()
    if status in (204, 304):
        body.length = 0
    elif "content-length" in headers and not body.chunked:
        body.length = int(headers["content-length"])
    ends = body.chunked or body.length is not None
    says = headers.get("connection", "").lower()
    body.keep = ends and version == b"HTTP/1.1" and "close" not in says


def _line(file: BufferedReader) -> bytes:
    line = file.readline(LONGEST_LINE)
    if not line.endswith(b"\n"):
        _broke_off()
    return line.rstrip(b"\r\n")


def _reason(problem: OSError) -> str:
    if isinstance(problem, ConnectionRefusedError):
        return "connection refused"
    return (problem.strerror or str(problem) or type(problem).__name__).lower()
