"""The format of packages, read strictly: a ustar archive of folders and plain files, in gzip.

The reader knows what we need of tar and refuses the rest: links, devices, sparse files, extended
headers, paths that lead out of the folder. It holds one piece of one file in memory at a time, and
stops at the first byte beyond a limit, whatever headers promise.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

BLOCK = 512
PIECE = 64 * 1024
GZIP = 31
"""zlib's number for gzip's own header and checksum."""
MAX_FILES = 20_000
MOST_UNPACKED = 2 * 1024**3
"""Bytes of any package once it is unpacked: code, not disk images."""
FILE, OLD_FILE, FOLDER = b"0", b"\0", b"5"
MAGIC = b"ustar\0"
KINDS = {
    b"1": "a hard link",
    b"2": "a link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"x": "an extended header (pack with --format=ustar)",
    b"g": "an extended header (pack with --format=ustar)",
    b"L": "a long name (pack with --format=ustar)",
    b"S": "a sparse file",
}
EXECUTABLE = 0o111


class BadPackage(ValueError):
    """No package of ours: says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    """Relative, with / in between."""
    size: int
    executable: bool = False
    is_folder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """A package that was read from end to end."""

    digest: str
    """SHA-256 of the archive before it was compressed, in hexadecimal: its name."""
    files: int
    size: int
    """Bytes of all files."""


Sink = Callable[[bytes], None]
Begin = Callable[[Entry], Sink | None]
"""Told of every entry; takes the pieces of its content, or None: nobody wants them."""


def read(compressed: Iterable[bytes], begin: Begin, *, most: int = MOST_UNPACKED) -> Contents:
    """Read a package to its end. `most`: bytes of the archive once it is unpacked. Raises
    BadPackage, at the latest when all was told."""
    stream = _Stream(compressed, most)
    seen: dict[str, bool] = {}
    files = size = 0
    while (header := stream.take(BLOCK)) != bytes(BLOCK):
        entry = _entry(header)
        if entry is None:  # the folder itself, as tar names it
            continue
        _check_new(entry, seen)
        if len(seen) > MAX_FILES:
            raise BadPackage(f"more than {MAX_FILES:,} files and folders")
        sink = begin(entry)
        for piece in stream.pieces(entry.size):
            if sink is not None:
                sink(piece)
        stream.pad(entry.size)
        files, size = files + (not entry.is_folder), size + entry.size
    stream.end()
    return Contents(digest=stream.digest, files=files, size=size)


def checked_path(path: str) -> str:
    """The path as it is kept. Raises BadPackage of one that could lead out of the folder, or that
    no system could make."""
    parts = path.split("/")
    if not path or path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise BadPackage(f"{path[:80]!r} leads out of the folder, or nowhere")
    if not path.isprintable() or any(len(part.encode()) > 255 for part in parts):
        raise BadPackage(f"{path[:80]!r} is no name of a file")
    return path


def _entry(header: bytes) -> Entry | None:
    name, mode, size, kind = header[:100], header[100:108], header[124:136], header[156:157]
    if sum(header[:148]) + 8 * 32 + sum(header[156:]) != _number(header[148:156]):
        raise BadPackage("no ustar archive, or a damaged one")
    if header[257:263] != MAGIC:
        raise BadPackage("no ustar archive (pack with --format=ustar)")
    prefix = header[345:500].partition(b"\0")[0]
    name = name.partition(b"\0")[0]
    try:
        path = (prefix + b"/" + name if prefix else name).decode("utf-8")
    except UnicodeDecodeError:
        raise BadPackage("a name in it is not UTF-8") from None
    if kind not in (FILE, OLD_FILE, FOLDER):
        what = KINDS.get(kind, f"of an unknown kind ({kind!r})")
        raise BadPackage(f"{path[:80]!r} is {what}; a package has folders and plain files alone")
    is_folder = kind == FOLDER
    if is_folder:
        path = path.removesuffix("/")
    length = _number(size)
    if is_folder and length:
        raise BadPackage(f"{path[:80]!r} is a folder with content of its own")
    if is_folder and path == ".":
        return None
    path = path.removeprefix("./")
    executable = bool(_number(mode) & EXECUTABLE) and not is_folder
    return Entry(checked_path(path), length, executable, is_folder)


def _number(field: bytes) -> int:
    text = field.rstrip(b"\0 ").lstrip(b" ")
    if not text:
        return 0
    if not all(48 <= digit <= 55 for digit in text):  # base 256 is for what we would not take
        raise BadPackage("no ustar archive, or a damaged one")
    return int(text, 8)


def _check_new(entry: Entry, seen: dict[str, bool]) -> None:
    """No name twice, and nothing below a file."""
    if entry.path in seen:
        if not (entry.is_folder and seen[entry.path]):
            raise BadPackage(f"{entry.path[:80]!r} is in it twice")
        return
    parts = entry.path.split("/")
    for end in range(1, len(parts)):
        above = "/".join(parts[:end])
        if not seen.setdefault(above, True):
            raise BadPackage(f"{entry.path[:80]!r} is below a file")
    seen[entry.path] = entry.is_folder


class _Stream:
    """The archive in the gzip, by the byte, and its hash."""

    def __init__(self, compressed: Iterable[bytes], most: int) -> None:
        self._most, self._hash = most, hashlib.sha256()
        self._pieces, self._kept, self._taken = self._inflated(compressed), b"", 0

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def take(self, size: int) -> bytes:
        return b"".join(self.pieces(size))

    def pieces(self, size: int) -> Iterator[bytes]:
        if size > self._most - self._taken:
            raise BadPackage(f"more than {self._most:,} bytes once it is unpacked")
        while size > 0:
            if not self._kept:
                self._kept = next(self._pieces, b"")
            if not self._kept:
                raise BadPackage("it breaks off")
            piece, self._kept = self._kept[:size], self._kept[size:]
            size -= len(piece)
            self._taken += len(piece)
            yield piece

    def pad(self, size: int) -> None:
        """To the next block."""
        if any(self.take(-size % BLOCK)):
            raise BadPackage("something stands between two files")

    def end(self) -> None:
        """Only nothing may follow."""
        for piece in (self._kept, *self._pieces):
            self._taken += len(piece)
            if self._taken > self._most or any(piece):
                raise BadPackage("something follows after its end")

    def _inflated(self, compressed: Iterable[bytes]) -> Iterator[bytes]:
        inflate = zlib.decompressobj(GZIP)
        try:
            for data in compressed:
                while data:
                    if inflate.eof:
                        raise BadPackage("something follows after its end")
                    piece = inflate.decompress(data, PIECE)
                    data = inflate.unconsumed_tail or inflate.unused_data
                    if piece:
                        self._hash.update(piece)
                        yield piece
            while piece := inflate.decompress(inflate.unconsumed_tail, PIECE):
                self._hash.update(piece)
                yield piece
        except zlib.error:
            raise BadPackage("no gzip, or a damaged one") from None
        if not inflate.eof:
            raise BadPackage("it breaks off")
