"""Clients of their own making, over real sockets, for a service with limits."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from boa.server.http.limits import Limits
from fakes import FakeService

SOON_S = 300.0
HEALTH = b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Caller(socket.socket):
    """A client of its own making."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.settimeout(SOON_S)
        self.connect(("127.0.0.1", httpx.URL(url).port or 0))

    def ask(self, words: bytes) -> bytes:
        """The beginning of the answer."""
        self.sendall(words)
        return self.recv(65_536)

    def ask_health(self) -> int:
        """The status of a whole answer."""
        answer = self.ask(HEALTH)
        while not answer.endswith(b"}"):
            answer += self.recv(65_536)
        return status(answer)

    def rest(self) -> bytes:
        """All there is until the other side closes."""
        got = b""
        with suppress(ConnectionResetError):
            while part := self.recv(65_536):
                got += part
        return got

    def reset(self) -> None:
        """Gone without a word, as a killed client is."""
        self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def said(answer: bytes) -> str:
    """The words of an error."""
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"])


@contextmanager
def served(folder: Path, **limits: Any) -> Iterator[tuple[FakeService, str]]:
    service = FakeService(folder, limits=Limits(**limits))
    with service.serving() as url:
        yield service, url
