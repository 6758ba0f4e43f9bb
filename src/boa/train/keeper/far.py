"""Pieces of state over a network, from keepers of other nodes: only what is asked for, checksummed.

A request is a line of JSON (key, generation, segment, first byte, number of bytes); the answer
comes in chunks, each with its length and checksum before it. A length of 0 ends it where it cannot
be answered. The key is the keeper's; who has not got it is told nothing. A request without a
segment is to release the generation, and is answered by nothing but the end.
"""

import hmac
import json
import socket
import struct
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

if __package__:
    from boa.train.keeper.stripes import Stripes
else:
    from stripes import Stripes  # type: ignore[import-not-found, no-redef]

CHUNK = 4 << 20
PATIENCE_S = 60.0
"""For the other side to say the next thing,"""
ASKING_S = 5.0
"""and to say what it wants, which it knows when it connects."""
_HEAD = struct.Struct("!II")
_MOST_ASKED = 4096


class Broken(OSError):
    """Bytes that are not those that were asked for."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    key: str


@dataclass(frozen=True, slots=True)
class _Request:
    key: str
    generation: str
    segment: int | None
    first: int
    count: int


def fetch(address: Address, generation: str, segment: int, first: int, into: memoryview) -> None:
    """Fill it with bytes of a segment, from `first` on. OSError: they could not be had."""
    with socket.create_connection((address.host, address.port), PATIENCE_S) as connection:
        _ask(connection, _Request(address.key, generation, segment, first, len(into)))
        done = 0
        while done < len(into):
            length, checksum = _HEAD.unpack(_received(connection, bytearray(_HEAD.size)))
            if not 0 < length <= len(into) - done:
                raise Broken(f"segment {segment} of {address.host} is not there any more")
            chunk = into[done : done + length]
            if zlib.crc32(_received(connection, chunk)) != checksum:
                raise Broken(f"what {address.host} sent was damaged on its way")
            done += length


def release(address: Address, generation: str) -> None:
    """Tell it that this generation is on the disk."""
    with socket.create_connection((address.host, address.port), PATIENCE_S) as connection:
        _ask(connection, _Request(address.key, generation, None, 0, 0))
        _received(connection, bytearray(_HEAD.size))


def answer(
    connection: socket.socket,
    key: str,
    find: Callable[[str, int], Stripes | None],
    release: Callable[[str], None],
) -> None:
    """One request. `find`: the segment that holds something of a generation, if there is one."""
    connection.settimeout(ASKING_S)
    request = _request(connection)
    connection.settimeout(PATIENCE_S)
    if request is not None and not hmac.compare_digest(request.key.encode(), key.encode()):
        request = None
    if request is not None and request.segment is None:
        connection.sendall(_HEAD.pack(0, 0))  # first: it may be all that the keeper waits for
        release(request.generation)
        return
    found = None
    if request is not None and request.segment is not None:
        found = find(request.generation, request.segment)
    end = 0 if request is None else request.first + request.count
    if request is None or found is None or end > found.size:
        connection.sendall(_HEAD.pack(0, 0))
        return
    for at in range(request.first, end, CHUNK):
        chunk = found.read(at, min(CHUNK, end - at))
        connection.sendall(_HEAD.pack(len(chunk), zlib.crc32(chunk)))
        connection.sendall(chunk)


def _ask(connection: socket.socket, request: _Request) -> None:
    connection.sendall(json.dumps(asdict(request)).encode() + b"\n")


def _request(connection: socket.socket) -> _Request | None:
    """None: it is none."""
    line = bytearray()
    while not line.endswith(b"\n"):
        more = connection.recv(_MOST_ASKED)
        if not more or len(line) + len(more) > _MOST_ASKED:
            return None
        line += more
    try:
        request = _Request(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None
    numbers: list[Any] = [request.segment or 0, request.first, request.count]
    whole = all(type(number) is int and number >= 0 for number in numbers)
    words = isinstance(request.key, str) and isinstance(request.generation, str)
    return request if whole and words else None


def _received(connection: socket.socket, into: bytearray | memoryview) -> memoryview:
    view, done = memoryview(into), 0
    while done < len(view):
        count = connection.recv_into(view[done:])
        if count == 0:
            raise Broken("the other keeper has closed the connection")
        done += count
    return view
