"""Artifacts: a folder per job that it leaves results in, listed and read without trust, and kept
for a while after its end.

DATA/artifacts/JOB is the job's own to write to: whatever stands there may be a link, a pipe, or be
replaced while it is looked at. Only plain files are told of and opened, and no link is followed.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from boa.errors import InputError
from boa.model.cluster import JobId
from boa.packing.archive import BadPackage, checked_path
from boa.plain_file import NotPlain, open_plain, remove_folder
from boa.units import DAY_S, Seconds

MOST_LISTED = 10_000
MOST_FOLDERS = 64
"""Folders above a file that is told of; who nests deeper would have us open thousands at once."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NoSuchArtifact(InputError):
    status = 404

    def __init__(self, job: JobId, path: str) -> None:
        expected = f"a file that boa artifacts ls {job} lists"
        super().__init__("path", path[:200], expected, "it has no such file")


@dataclass(frozen=True, slots=True)
class Artifact:
    path: str
    """Relative to the job's folder."""
    size: int
    modified_at: Seconds
    """Unix seconds of the wall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    files: tuple[Artifact, ...]
    """By path, the first so many."""
    size: int
    """Bytes of all of them, also of those that are not listed."""
    more: int = 0
    """Files that are not listed."""
    odd: int = 0
    """Things that are no plain files, or have names that cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long artifacts of ended jobs are kept, and how much of them."""

    keep_s: Seconds = 30 * DAY_S
    max_bytes: int | None = None
    """None: no limit but the disk's."""

    def kept_until(self, ended_at: Seconds | None) -> Seconds | None:
        """None while the job goes on."""
        return None if ended_at is None else ended_at + self.keep_s


class ArtifactFolders:
    """Safe to use from any thread."""

    def __init__(self, root: Path, retention: Retention | None = None) -> None:
        self.root, self.retention = root, retention or Retention()

    def listing(self, job: JobId) -> Listing:
        """Empty where there are none, or no more."""
        found: list[Artifact] = []
        size = more = odd = 0
        for path, status in self._walk(job):
            if path is None or not stat.S_ISREG(status.st_mode):
                odd += 1
                continue
            size += status.st_size
            if len(found) < MOST_LISTED:
                found.append(Artifact(path, status.st_size, status.st_mtime))
            else:
                more += 1
        found.sort(key=lambda one: one.path)
        return Listing(files=tuple(found), size=size, more=more, odd=odd)

    def open(self, job: JobId, path: str) -> BinaryIO:
        """Raises NoSuchArtifact, also of what is no plain file."""
        try:
            if path.count("/") > MOST_FOLDERS:
                raise NotPlain(path[:200])
            checked_path(path)
            file = open_plain(self.root / job / path, folders=path.count("/") + 1)
        except (OSError, NotPlain, BadPackage, ValueError):
            raise NoSuchArtifact(job, path) from None
        status = os.fstat(file.fileno())
        with suppress(OSError):
            owner = os.lstat(self.root / job).st_uid
            if status.st_nlink > 1 and status.st_uid != owner:  # another's, linked in here
                file.close()
                raise NoSuchArtifact(job, path)
        return file

    def sweep(
        self,
        active: Collection[JobId],
        ended_at: Callable[[JobId], Seconds | None],
        now: Seconds,
    ) -> list[JobId]:
        """Remove what is kept no longer: the oldest ends first. `ended_at`: when a job ended, by
        the service's clock; None of one that nobody knows, which is left alone. Gives those."""
        ended = [
            (end, job)
            for job in self._jobs()
            if job not in active and (end := ended_at(job)) is not None
        ]
        sizes = {job: self.listing(job).size for _, job in ended} if self._is_bounded else {}
        gone = []
        for job in to_remove(ended, sizes, now, self.retention):
            with suppress(OSError):
                remove_folder(self.root / job)
                gone.append(job)
        return gone

    @property
    def _is_bounded(self) -> bool:
        return self.retention.max_bytes is not None

    def _jobs(self) -> list[JobId]:
        try:
            return [name for name in os.listdir(self.root) if name.isdecimal()]
        except OSError:
            return []

    def _walk(self, job: JobId) -> Iterator[tuple[str | None, os.stat_result]]:
        """Everything below a job's folder but folders, of which those are told that are nested too
        deep; None of what cannot be told."""
        waiting = [""]
        while waiting:
            below = waiting.pop()
            with suppress(OSError), self._opened(job, below) as where:
                inside = []
                for name in sorted(os.listdir(where)):
                    path = f"{below}/{name}" if below else name
                    try:
                        status = os.stat(name, dir_fd=where, follow_symlinks=False)
                    except OSError:  # gone since
                        continue
                    if not stat.S_ISDIR(status.st_mode):
                        yield _told(path), status
                    elif path.count("/") >= MOST_FOLDERS:
                        yield None, status
                    else:
                        inside.append(path)
                waiting += reversed(inside)

    @contextmanager
    def _opened(self, job: JobId, below: str) -> Iterator[int]:
        """A folder of a job's, by a way without links."""
        where = os.open(self.root / job, _FOLDER)
        try:
            for name in below.split("/") if below else ():
                above, where = where, os.open(name, _FOLDER, dir_fd=where)
                os.close(above)
            yield where
        finally:
            os.close(where)


def to_remove(
    ended: list[tuple[Seconds, JobId]], sizes: dict[JobId, int], now: Seconds, kept: Retention
) -> list[JobId]:
    """Jobs whose artifacts are kept no longer: past their time, or, the oldest first, beyond what
    all may take together. Pure."""
    gone: list[JobId] = []
    left: list[JobId] = []
    for end, job in sorted(ended):
        (gone if now - end > kept.keep_s else left).append(job)
    if kept.max_bytes is not None:
        total = sum(sizes.get(job, 0) for job in left)
        for job in left:
            if total <= kept.max_bytes:
                break
            total -= sizes.get(job, 0)
            gone.append(job)
    return gone


def _told(path: str) -> str | None:
    try:
        return checked_path(path)
    except (BadPackage, ValueError):
        return None
