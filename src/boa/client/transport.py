"""Requests, answers, and what can go wrong between them: the ground of every transport."""

import codecs
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class TransportTrouble(Exception):
    """No answer came; says why."""


class TimedOut(TransportTrouble):
    """Nothing came for too long; `connected`: there was a connection at least."""

    def __init__(self, connected: bool) -> None:
        self.connected = connected
        super().__init__("no answer in time")


class BadAddress(TransportTrouble):
    """The address can be none."""


class HttpRequest(NamedTuple):
    method: str
    target: str
    """Path and query, ready to be sent."""
    headers: Mapping[str, str]
    body: bytes | None
    connect_s: float
    """How long a connection, or room in it, is waited for."""
    read_s: float
    """How long the answer may be silent."""


class HttpAnswer:
    """A server's answer; `pieces` of its body come as they are read."""

    def __init__(self, status: int, headers: Mapping[str, str], pieces: Iterator[bytes]) -> None:
        self.status, self.headers, self.pieces = status, headers, pieces
        """Names of headers are in small letters."""

    def read(self) -> bytes:
        return b"".join(self.pieces)

    def lines(self) -> Iterator[str]:
        """Lines of text, without their ends."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        kept = ""
        for piece in self.pieces:
            *whole, kept = (kept + decode(piece)).split("\n")
            yield from (line.removesuffix("\r") for line in whole)
        if kept := kept + decode(b"", True):
            yield kept


class Transport(Protocol):
    """Raises TransportTrouble, also from the pieces of an answer."""

    def send(self, request: HttpRequest) -> AbstractContextManager[HttpAnswer]: ...

    def close(self) -> None: ...
