"""Lines of a pod's log: output of several workers in one stream, and how much came before each.

RANK:OFFSET|TEXT    a line of a worker's, whose output before it has so many bytes
RANK:OFFSET>TEXT    the same, but the worker's line goes on
!up                 all workers are up
!end JSON           how it ended, for kubelets that forget to tell

So the service can tell workers apart, go on where it left off, and tell what the container runtime
writes into the same log. Written in the pod, without the rest of the package.
"""

import os
import re

LONGEST = 8000
"""Bytes of a worker's line in one of ours: runtimes cut lines of 16 KiB."""
MOST = 16 * 1024
"""No line of ours is longer."""
UP, END = b"!up", b"!end "
_FRAME = re.compile(rb"([0-9]{1,9}):([0-9]{1,18})([|>])")


class Frames:
    """Takes the place of a worker's log file: all goes to standard output."""

    def __init__(self, rank: int) -> None:
        self.rank, self.seen = rank, 0

    def write(self, data: bytes) -> None:
        if data:
            self._put(b"".join(self._framed(data)))

    def _framed(self, data: bytes) -> "list[bytes]":
        found = []
        *lines, rest = data.split(b"\n")
        for line in lines:
            last = max(len(line) - 1, 0) // LONGEST * LONGEST
            found += self._cut(line[:last])
            found.append(self._frame(b"|", line[last:]))
            self.seen += 1
        return found + self._cut(rest)

    def _cut(self, text: bytes) -> "list[bytes]":
        return [self._frame(b">", text[at : at + LONGEST]) for at in range(0, len(text), LONGEST)]

    def _frame(self, kind: bytes, text: bytes) -> bytes:
        frame = b"%d:%d%b%b\n" % (self.rank, self.seen, kind, text)
        self.seen += len(text)
        return frame

    def _put(self, data: bytes) -> None:
        put(data)


def put(data: bytes) -> None:
    """Into the pod's log."""
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        return  # nobody reads it: no reason to end a job


class Unframed:
    """Reads such a stream, in whatever pieces it comes."""

    def __init__(self) -> None:
        self._begun = b""
        self._overlong = False
        """In the midst of a line that cannot be ours."""
        self.up = False
        """Whether the workers have been up."""
        self.end = ""
        """How it ended, once that is told."""

    def feed(self, data: bytes) -> "list[tuple[int, int, bytes]]":
        """Output by worker, of all lines that are whole: rank, bytes before it, the bytes."""
        found: list[tuple[int, int, list[bytes]]] = []
        following = -1
        for line in self._lines(data):
            self.up = self.up or line == UP
            if line.startswith(END):
                self.end = line[len(END) :].decode("utf-8", "replace")
            match = _FRAME.match(line)
            if match is None:
                continue
            rank, first = int(match[1]), int(match[2])
            if not found or found[-1][0] != rank or following != first:
                found.append((rank, first, []))
            text = line[match.end() :] + (b"\n" if match[3] == b"|" else b"")
            found[-1][2].append(text)
            following = first + len(text)
        return [(rank, first, b"".join(texts)) for rank, first, texts in found]

    def _lines(self, data: bytes) -> "list[bytes]":
        """Those that are whole now, without what is too long; that is not kept."""
        *lines, begun = (self._begun + data).split(b"\n")
        if self._overlong and lines:
            del lines[0]
            self._overlong = False
        self._overlong = self._overlong or len(begun) > MOST
        self._begun = b"" if self._overlong else begun
        return [line for line in lines if len(line) <= MOST]
