"""Writes of one turn of the event loop, sent in one go.

uvicorn writes an answer's head and its body by themselves, and every write is a call of the
system's in which other threads take the interpreter: half of them are half of the wait.
"""

import asyncio
from typing import Any

MOST_BYTES = 64 * 1024
"""Held back at most; more is sent at once, so that a client who takes nothing is noticed."""


class Gathered:
    """A transport; all but what is written goes straight to the one that it stands for."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size > MOST_BYTES:
            self.flush()

    def flush(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def write_eof(self) -> None:
        self.flush()
        self._transport.write_eof()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        self._parts, self._size = [], 0
        self._transport.abort()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
