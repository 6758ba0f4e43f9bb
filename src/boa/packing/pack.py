"""A folder made into a package: the same bytes, and so the same name, for the same files."""

import hashlib
import os
import stat
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from boa.errors import FileError, InputError
from boa.packing.archive import BLOCK, GZIP, MAX_FILES, PIECE, BadPackage, Entry, checked_path
from boa.packing.ignoring import FILE, Ignored

LEVEL = 6
MAX_IGNORE_BYTES = 1024**2
MAX_NAME, MAX_PREFIX = 100, 155
"""Bytes of a path that ustar has room for: so many after a /, and so many before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    digest: str
    data: bytes
    """The package itself."""
    files: int
    size: int
    """Bytes of its files before they were packed."""
    largest: tuple[str, ...] = ()
    """Its largest files, for who has to leave some out."""


def pack(folder: str | Path, *, most: int, field: str = "workdir") -> Package:
    """`most`: bytes that the package may have. Raises InputError, naming `field` and what to do."""
    entries = list(_entries(Path(folder), field))
    largest = tuple(e.path for e in sorted(entries, key=lambda e: -e.size)[:3])
    digest, deflate = hashlib.sha256(), zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
    parts: list[bytes] = []
    packed = 0
    for piece in _archive(Path(folder), entries):
        digest.update(piece)
        parts.append(deflate.compress(piece))
        packed += len(parts[-1])
        if packed > most:
            raise _too_large(folder, most, largest, field)
    parts.append(deflate.flush())
    data = b"".join(parts)
    if len(data) > most:
        raise _too_large(folder, most, largest, field)
    size, files = sum(e.size for e in entries), sum(not e.is_folder for e in entries)
    return Package(digest=digest.hexdigest(), data=data, files=files, size=size, largest=largest)


def _too_large(folder: str | Path, most: int, largest: tuple[str, ...], field: str) -> InputError:
    expected = (
        f"a folder of at most {most / 1024**2:g} MB when it is packed: name what is not code in "
        f"{FILE} (its largest files: {', '.join(largest)})"
    )
    return InputError(field, str(folder), expected, f"{folder} is too large to be packed")


def _entries(folder: Path, field: str) -> Iterator[Entry]:
    """All that is packed, sorted by path."""
    if not folder.is_dir():
        raise InputError(field, str(folder), "a folder that is there", f"{folder} is no folder")
    found, ignored = 0, Ignored(_patterns(folder))
    waiting = [""]
    entries: list[Entry] = []
    while waiting:
        below = waiting.pop()
        for path, status in _listed(folder, below, field):
            is_folder = stat.S_ISDIR(status.st_mode)
            if ignored(path, is_folder=is_folder):
                continue
            found += 1
            _check(folder, path, status, found, field)
            if is_folder:
                waiting.append(path)
                entries.append(Entry(path, 0, is_folder=True))
            else:
                runs = bool(status.st_mode & stat.S_IXUSR)
                entries.append(Entry(path, status.st_size, executable=runs))
    return iter(sorted(entries, key=lambda entry: entry.path))


def _listed(folder: Path, below: str, field: str) -> list[tuple[str, os.stat_result]]:
    """Paths in a folder of it; links to files of the same folder stand for what they lead to."""
    try:
        with os.scandir(folder / below) as entries:
            return [_seen(folder, f"{below}/{e.name}" if below else e.name, e) for e in entries]
    except OSError as trouble:
        problem = (trouble.strerror or str(trouble)).lower()
        raise FileError(str(folder / below), problem, "a folder that can be read") from None


def _seen(folder: Path, path: str, entry: "os.DirEntry[str]") -> tuple[str, os.stat_result]:
    status = entry.stat(follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        return path, status
    target = (folder / path).resolve()
    if target.is_file() and target.is_relative_to(folder.resolve()):
        return path, target.stat()
    return path, status


def _check(folder: Path, path: str, status: os.stat_result, found: int, field: str) -> None:
    expected = f"folders and plain files of its own; what is to stay behind goes into {FILE}"
    if found > MAX_FILES:
        most = f"at most {MAX_FILES:,} files: name what is not code in {FILE}"
        raise InputError(field, str(folder), most, f"{folder} has too many files to be packed")
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        is_link = stat.S_ISLNK(status.st_mode)
        what = "a link that leads to no file of it" if is_link else "no plain file"
        raise InputError(field, str(folder), expected, f"{path} in it is {what}")
    try:
        checked_path(path)
        _split(path)
    except (BadPackage, ValueError):
        shorter = f"names that can be packed (shorter, without line ends), or {FILE}"
        raise InputError(field, str(folder), shorter, f"{path!r} cannot be packed") from None


def _patterns(folder: Path) -> list[str]:
    path = folder / FILE
    try:
        with path.open("rb") as file:
            return file.read(MAX_IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as trouble:
        problem = (trouble.strerror or str(trouble)).lower()
        raise FileError(str(path), problem, "a file of patterns, one a line") from None


def _archive(folder: Path, entries: list[Entry]) -> Iterator[bytes]:
    for entry in entries:
        yield _header(entry)
        if not entry.is_folder:
            yield from _content(folder / entry.path, entry.size)
            yield bytes(-entry.size % BLOCK)
    yield bytes(2 * BLOCK)


def _content(path: Path, size: int) -> Iterator[bytes]:
    """So many bytes: it may grow meanwhile, but not shrink."""
    try:
        with path.open("rb") as file:
            while size > 0:
                piece = file.read(min(size, PIECE))
                if not piece:
                    raise FileError(str(path), "became shorter", "a file that stays as it is")
                size -= len(piece)
                yield piece
    except OSError as trouble:
        problem = (trouble.strerror or str(trouble)).lower()
        raise FileError(str(path), problem, "a file that can be read") from None


def _split(path: str) -> tuple[bytes, bytes]:
    """Prefix and name, as ustar has them."""
    encoded = path.encode("utf-8")
    if len(encoded) <= MAX_NAME:
        return b"", encoded
    for at, letter in enumerate(encoded):
        if letter == ord("/") and at <= MAX_PREFIX and len(encoded) - at - 1 <= MAX_NAME:
            return encoded[:at], encoded[at + 1 :]
    raise ValueError(path)


def _header(entry: Entry) -> bytes:
    """Without owner and time: the same for everybody."""
    prefix, name = _split(entry.path)
    mode = 0o755 if entry.executable or entry.is_folder else 0o644
    fields = (
        name.ljust(100, b"\0"),
        b"%07o\0" % mode,
        b"0000000\0" * 2,
        b"%011o\0" % entry.size,
        b"00000000000\0",
        b" " * 8,
        tarfile.DIRTYPE if entry.is_folder else tarfile.REGTYPE,
        bytes(100),
        b"ustar\0" + b"00",
        bytes(64),
        b"0000000\0" * 2,
        prefix.ljust(155, b"\0"),
        bytes(12),
    )
    block = b"".join(fields)
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]
