"""The data folder: one service at a time, and the one database that it was made with.

Runs and checkpoints go by job numbers, and those are the database's: with another database, a new
job 1 would find the logs and the checkpoint of an old one. What belongs to jobs that the database
does not know is moved to quarantine/WHEN, as it lay here.
"""

import errno
import fcntl
import logging
import os
import re
import shutil
import time
from collections.abc import Container, Iterator
from pathlib import Path

from boa.api.tokens import new_token, weakness_of
from boa.atomic_file import free_name, replace_file
from boa.engines import users
from boa.errors import FileError, InputError
from boa.plain_file import read_plain
from boa.private_files import is_open, private_folder, tighten
from boa.store import memory, revoked, snapshots

LOCK, OWNER, TOKEN = "lock", "owner", "token"
RESTORED, QUARANTINE = "store.restored", "quarantine"
RUNS, MARKERS, CHECKPOINTS = "runs", "runs/.runs", "checkpoints"
ARTIFACTS, PACKAGES = "artifacts", "packages"
KEPT = (
    *(RUNS, CHECKPOINTS, ARTIFACTS, PACKAGES, "what-if", "cloud.json", "ray.json"),
    *("kubernetes.json", "kubernetes.id"),
    *(LOCK, OWNER, TOKEN),
    *("boa.db", "boa.db-wal", "boa.db-shm", "boa.db.lock", memory.FILE, revoked.FILE),
    *(snapshots.FOLDER, QUARANTINE, RESTORED, "report.key", "secret.key"),
)
"""Names in it, which earlier versions may have left open to others."""
PASSED = ("runs", "checkpoints", ARTIFACTS)
"""Folders of these that have folders of jobs in them."""
MOST_BYTES = 4096
_NAME = re.compile(r"[\x21-\x7e]+")
_JOB = re.compile(r"([1-9][0-9]{0,17})(\.[0-9]+)?")
"""Names of a job's runs, their markers and its checkpoint."""
_log = logging.getLogger("boa.server")


class DataFolder:
    """Made if it is not there, and locked until `close`, or until its process ends."""

    def __init__(self, path: Path, *, passable: bool = False) -> None:
        """`passable`: jobs run as others, who go through it to folders of their own."""
        self.path, self._passable = path, passable
        try:
            ours = not path.exists() or (path / LOCK).exists() or not any(path.iterdir())
            private_folder(path)
            self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as trouble:
            problem = (trouble.strerror or str(trouble)).lower()
            raise FileError(f"--data {path}", problem, "a folder that can be written") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            problem = "in use by another boa serve"
            expected = "a folder of its own, or that service to be ended first"
            raise InputError("--data", str(path), expected, problem) from None
        self._close_to_others(ours)

    def _close_to_others(self, ours: bool) -> None:
        """A folder that was there before, with other things in it, is somebody's: only told of."""
        to_pass = [self.path, *(self.path / name for name in PASSED)] if self._passable else []
        kept = [self.path, *(self.path / name for name in KEPT)]
        for folder in to_pass if ours else to_pass[1:]:
            users.passable(folder)
        if ours:
            for left in tighten(path for path in kept if path not in to_pass):
                _log.warning("%s is open to other users, and not ours to close to them", left)
        elif is_open(self.path) and not self._passable:
            _log.warning(
                "--data %s is open to other users: chmod 700 it, or name a folder of its own",
                self.path,
            )

    @property
    def owner(self) -> str:
        """The name that its database has; empty where nobody is named."""
        return owner_in(self.path)

    def jobs(self) -> set[int]:
        """Numbers of the jobs that there are runs or checkpoints of."""
        return jobs_in(self.path)

    def move_away(self, jobs: Container[int], where: Path) -> int:
        """Put runs, logs and checkpoints of these jobs into a folder of the quarantine. Gives how
        many jobs there were any of."""
        moved = set()
        for number, path in sorted(_of_jobs(self.path)):
            if number in jobs:
                moved.add(number)
                _move(path, where / path.relative_to(self.path))
        return len(moved)

    def new_quarantine(self) -> Path:
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        return free_name(self.path / QUARANTINE / stamp)

    def belongs_to(self, database: str) -> None:
        """Write it down, once."""
        if self.owner == database:
            return
        path = self.path / OWNER
        if path.is_file() or not os.path.lexists(path):  # what is odd was told of when it was read
            replace_file(path, database, durable=True, private=True)

    def token(self) -> str:
        """The service's own token: made once, and the same ever after. One that others could read,
        or that is damaged, is replaced."""
        path = self.path / TOKEN
        try:
            found = read_plain(path, most=MOST_BYTES).decode("ascii", "replace").strip()
        except FileNotFoundError:
            found = ""
        except OSError as trouble:
            _log.warning("%s cannot be read: %s. It is made anew", path, trouble.strerror)
            found = ""
        if found and is_open(path):
            _log.warning("%s was open to other users: it is made anew", path)
        elif found and weakness_of(found) is None and found.isprintable():
            return found
        elif found:
            _log.warning("%s is damaged: it is made anew", path)
        made = new_token()
        try:
            replace_file(path, made + "\n", durable=True, private=True)
        except OSError as trouble:
            problem = (trouble.strerror or str(trouble)).lower()
            raise FileError(str(path), problem, "a file that can be written") from None
        return made

    def close(self) -> None:
        os.close(self._lock)


def owner_in(folder: Path) -> str:
    """The name of a data folder's database; empty where nobody is named, or nobody can be told from
    what is there."""
    path = folder / OWNER
    try:
        found = read_plain(path, most=MOST_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as trouble:
        _log.warning("%s cannot be read: %s", path, trouble.strerror)
        return ""
    if not _NAME.fullmatch(found):
        _log.warning("%s is damaged: it names no database", path)
        return ""
    return found


def jobs_in(folder: Path) -> set[int]:
    """Numbers of the jobs that a data folder has runs or checkpoints of. A stray name, a marker
    alone among them, says nothing of a job: there is nothing that another could inherit."""
    return {number for number, path in _of_jobs(folder) if _has_a_run(path)}


def _has_a_run(path: Path) -> bool:
    """Whether it has checkpoints or artifacts, or a folder of an attempt in it."""
    try:
        with os.scandir(path) as entries:
            return path.parent.name in (CHECKPOINTS, ARTIFACTS) or any(
                entry.name.isdecimal() and entry.is_dir(follow_symlinks=False) for entry in entries
            )
    except OSError:  # a file, or gone
        return False


def _of_jobs(folder: Path) -> Iterator[tuple[int, Path]]:
    """Everything in there that goes by a job's number."""
    for name in (MARKERS, RUNS, CHECKPOINTS, ARTIFACTS):
        try:
            with os.scandir(folder / name) as entries:
                for entry in entries:
                    match = _JOB.fullmatch(entry.name)
                    if match and (match[2] is not None) == (name == MARKERS):
                        yield int(match[1]), folder / name / entry.name
        except (FileNotFoundError, NotADirectoryError):
            continue


def _move(path: Path, to: Path) -> None:
    """By a rename, also where the folder above is a link to another disk."""
    private_folder(to.parent)
    try:
        os.rename(path, to)
    except OSError as trouble:
        if trouble.errno != errno.EXDEV:
            raise
        beside = path.parent / f".{QUARANTINE}" / to.relative_to(to.parents[1]).parent.name
        private_folder(beside)
        shutil.move(path, free_name(beside / path.name))
