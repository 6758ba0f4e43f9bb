"""Memory without a name, as files that have none: read and written, never mapped.

To map what is as large as a model costs more than to copy it: its pages have to be put into the
tables of the process one by one, and be taken out again when it ends. Only one may write to a file
at a time, so the memory is dealt out over several, and who writes keeps to the grain.
"""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

if __package__:
    from boa.train.keeper.large_pages import PAGE, collapse
else:
    from large_pages import PAGE, collapse  # type: ignore[import-not-found, no-redef]

GRAIN = 16 << 20
"""Bytes that lie in one file."""
FILES = 16
Buffer: TypeAlias = bytes | bytearray | memoryview


class Span(NamedTuple):
    at: int
    """Its first byte, among those that were asked for."""
    file: int
    offset: int
    length: int


class Stripes:
    """Bytes 0 to `size`, over some files in turn. Several threads may use them."""

    def __init__(self, files: Sequence[int], size: int) -> None:
        """The files are its own from now on."""
        self.files, self.size = tuple(files), size

    @classmethod
    def made(cls, size: int) -> "Stripes":
        """Without pages yet."""
        return cls([os.memfd_create("boa", os.MFD_CLOEXEC) for _ in range(FILES)], size)

    def fill(self, at: int, count: int) -> None:
        """Have pages for these bytes from the system, large ones if it can be. OSError: there are
        no more."""
        for _, file, offset, length in self.spans(at, count):
            os.posix_fallocate(file, offset, length)
            if offset % PAGE == 0 and length % PAGE == 0:
                collapse(file, offset, length)

    def write(self, at: int, content: Buffer) -> None:
        for done, file, offset, length in self.spans(at, len(content)):
            left = memoryview(content)[done : done + length]
            while left:
                count = os.pwrite(file, left, offset)
                left, offset = left[count:], offset + count

    def read_into(self, at: int, buffer: bytearray | memoryview) -> None:
        """OSError: it ends before."""
        for done, file, offset, length in self.spans(at, len(buffer)):
            left = memoryview(buffer)[done : done + length]
            while left:
                count = os.preadv(file, [left], offset)
                if count == 0:
                    raise OSError(f"{offset + len(left)} bytes of memory are not there")
                left, offset = left[count:], offset + count

    def read(self, at: int, count: int) -> bytearray:
        found = bytearray(count)
        self.read_into(at, found)
        return found

    def close(self) -> None:
        files, self.files = self.files, ()
        for file in files:
            os.close(file)

    def spans(self, at: int, count: int) -> "Iterator[Span]":
        """These bytes, in pieces that lie in one file each. OSError: they are not all here."""
        if at < 0 or at + count > self.size:
            raise OSError(f"bytes {at} to {at + count} of {self.size}")
        first, end = at, at + count
        while at < end:
            grain, within = divmod(at, GRAIN)
            length = min(GRAIN - within, end - at)
            file = self.files[grain % len(self.files)]
            yield Span(at - first, file, grain // len(self.files) * GRAIN + within, length)
            at += length
