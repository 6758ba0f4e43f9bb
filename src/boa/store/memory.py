"""A data folder's own memory of its store: how far that was, and the highest numbers given out.

It is written after every commit and before anything is done about it. So a store that lacks what
somebody was told of is known by it, and no number is ever given out twice, whatever happens to the
database. Two places in one file are written in turn, each with a checksum: a write that a power cut
tears leaves the one before.
"""

import json
import logging
import os
import stat
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from boa.atomic_file import to_disk
from boa.model.access import TokenRecord
from boa.plain_file import read_plain
from boa.store import revoked

FILE = "store.mark"
PLACE = 512
"""Bytes of one of the two places: a sector of the disk."""
_log = logging.getLogger("boa.store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A store as it was after a commit."""

    opened: int
    """How often it had been opened; rises also where an older copy is put back."""
    commits: int
    """How often the service that opened it then had written."""
    nonce: str
    """The random name of that opening."""
    job: int
    """Highest number of a job, of a node and of an event that there was."""
    node: int
    event: int

    @property
    def age(self) -> tuple[int, int]:
        """Larger: later."""
        return self.opened, self.commits


class FolderMemory:
    """The file in a data folder, open until `close`. What is damaged or odd is as if it were not
    there, and told of in the log."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / FILE
        self._places = _places(self._path)
        self._failing = False
        self._file = self._opened()

    @property
    def mark(self) -> Mark | None:
        return _newest(self._places)

    def remember(self, mark: Mark) -> None:
        """On the disk before it returns. Where that fails it is told of once, and tried again with
        the next: what was committed is so all the same."""
        place = 0 if self._places[0] is None or self._places[0] != self.mark else 1
        try:
            if self._file is None:
                self._file = self._opened()
            if self._file is not None:
                os.pwrite(self._file, _written(mark), place * PLACE)
                os.fdatasync(self._file)
        except OSError as trouble:
            if not self._failing:
                _log.error("%s cannot be written: %s", self._path, trouble.strerror)
            self._failing = True
            return
        self._failing = False
        self._places[place] = mark

    def take_back(self, tokens: Iterable[TokenRecord]) -> None:
        """Remember those of them that were revoked."""
        revoked.remember(self._folder, [one.digest for one in tokens if one.revoked_at is not None])

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _opened(self) -> int | None:
        """A file with room for both places."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            file = os.open(self._path, flags, 0o600)
        except OSError as trouble:
            _log.error("%s cannot be opened: %s", self._path, trouble.strerror)
            return None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            _log.error("%s is no plain file", self._path)
            return None
        with suppress(OSError):  # a full disk: the first mark tells of it
            if os.fstat(file).st_size < 2 * PLACE:
                os.pwrite(file, bytes(2 * PLACE - os.fstat(file).st_size), os.fstat(file).st_size)
                os.fsync(file)
                to_disk(self._path.parent)
        return file


def read_mark(folder: Path) -> Mark | None:
    """The newest mark in a folder; None: there is none, or none that can be made out."""
    return _newest(_places(folder / FILE))


def told_by(jobs: set[int], folder: Path, mark: Mark | None) -> set[int]:
    """Numbers that tell of jobs, of those that runs go by. The mark is on the disk before a
    number is told to anybody: one beyond it is a stray, unless a part of the mark is damaged."""
    data = b"" if mark is None else read_plain(folder / FILE, most=2 * PLACE)
    whole = all(_read(place) or not place.strip(b"\0") for place in (data[:PLACE], data[PLACE:]))
    return {job for job in jobs if mark is None or not whole or job <= mark.job}


def _newest(places: list[Mark | None]) -> Mark | None:
    known = [mark for mark in places if mark is not None]
    return max(known, key=lambda mark: mark.age, default=None)


def _places(path: Path) -> list[Mark | None]:
    try:
        data = read_plain(path, most=2 * PLACE)
    except FileNotFoundError:
        return [None, None]
    except OSError as trouble:
        _log.warning("%s cannot be read: %s", path, trouble.strerror)
        return [None, None]
    found = [_read(data[:PLACE]), _read(data[PLACE:])]
    if data.strip(b"\0") and found == [None, None]:
        _log.warning("%s is damaged: how far the store was is not known from it", path)
    return found


def _written(mark: Mark) -> bytes:
    text = json.dumps(asdict(mark), separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text.ljust(PLACE - 10))


def _read(place: bytes) -> Mark | None:
    checksum, _, text = place.partition(b" ")
    text = text.strip(b" \n\0")
    try:
        if int(checksum, 16) != zlib.crc32(text):
            return None
        return Mark(**json.loads(text))
    except (ValueError, TypeError):
        return None
