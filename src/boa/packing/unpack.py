"""A package made into a folder: new, whole, and with nothing in it that could lead out of it."""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from boa.packing.archive import MOST_UNPACKED, PIECE, BadPackage, Contents, Entry, Sink, read
from boa.plain_file import open_plain

CLOSED = 0o700


def unpack(
    compressed: Iterable[bytes],
    folder: str,
    digest: str,
    *,
    most: int = MOST_UNPACKED,
    owner: tuple[int, int] | None = None,
) -> Contents:
    """Into a folder that is not there yet, for its owner alone. `owner`: user and group that it
    is to belong to; None: who we are. Raises BadPackage, and leaves nothing, where it is another
    than `digest` names, or none."""
    os.mkdir(folder, CLOSED)
    try:
        with _Folder(folder, owner) as made:
            found = read(compressed, made.begin, most=most)
        if found.digest != digest:
            raise BadPackage(f"it is another one ({found.digest[:12]}…)")
        if owner is not None:
            os.chown(folder, *owner)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return found


def pieces_of(path: str | Path) -> Iterator[bytes]:
    """A package on the disk, in pieces."""
    with open_plain(path) as file:
        while piece := file.read(PIECE):
            yield piece


class _Folder:
    """Where entries go; one file is open at a time. Names were checked, and nobody else can reach
    the folder before it is whole, so that nothing in it is ever a link."""

    def __init__(self, path: str, owner: tuple[int, int] | None) -> None:
        self._path, self._owner = path, owner
        self._open = -1

    def __enter__(self) -> "_Folder":
        return self

    def __exit__(self, *_: object) -> None:
        self._finish()

    def begin(self, entry: Entry) -> Sink | None:
        self._finish()
        path = os.path.join(self._path, *entry.path.split("/"))
        self._make(path if entry.is_folder else os.path.dirname(path))
        if entry.is_folder:
            return None
        mode = 0o700 if entry.executable else 0o600
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._open = os.open(path, flags, mode)
        os.fchmod(self._open, mode)
        if self._owner is not None:
            os.fchown(self._open, *self._owner)
        return self._write

    def _write(self, piece: bytes) -> None:
        left = memoryview(piece)
        while left:
            left = left[os.write(self._open, left) :]

    def _make(self, folder: str) -> None:
        if len(folder) <= len(self._path) or os.path.isdir(folder):
            return
        self._make(os.path.dirname(folder))
        os.mkdir(folder, CLOSED)
        if self._owner is not None:
            os.chown(folder, *self._owner, follow_symlinks=False)

    def _finish(self) -> None:
        if self._open >= 0:
            os.close(self._open)
            self._open = -1
