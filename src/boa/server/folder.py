"""The data folder: one service at a time, and the one database that it was made with.

Runs and checkpoints go by job numbers, and those are the database's: with another database, a new
job 1 would find the logs and the checkpoint of an old one.
"""

import fcntl
import logging
import os
import re
from pathlib import Path

from boa.atomic_file import replace_file
from boa.errors import FileError, InputError
from boa.plain_file import read_plain
from boa.private_files import is_open, private_folder, tighten

LOCK, OWNER = "lock", "owner"
KEPT = (
    *("runs", "checkpoints", "what-if", "cloud.json", "ray.json", LOCK, OWNER),
    *("boa.db", "boa.db-wal", "boa.db-shm", "boa.db.lock"),
)
"""Names in it, which earlier versions may have left open to others."""
MOST_BYTES = 4096
_NAME = re.compile(r"[\x21-\x7e]+")
_log = logging.getLogger("boa.server")


class DataFolder:
    """Made if it is not there, and locked until `close`, or until its process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
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
            raise InputError("--data", str(path), "a folder of its own", problem) from None
        self._close_to_others(ours)

    def _close_to_others(self, ours: bool) -> None:
        """A folder that was there before, with other things in it, is somebody's: only told of."""
        if ours:
            for left in tighten([self.path, *(self.path / name for name in KEPT)]):
                _log.warning("%s is open to other users, and not ours to close to them", left)
        elif is_open(self.path):
            _log.warning(
                "--data %s is open to other users: chmod 700 it, or name a folder of its own",
                self.path,
            )

    def check_owner(self, database: str | None) -> None:
        """`database`: what the database calls itself; None: it is new."""
        owner = self._owner()
        if owner and owner != database:
            problem = f"{self.path} belongs to another database"
            expected = "the database that it was made with (--db), or another folder"
            raise InputError("--data", str(self.path), expected, problem)

    def belongs_to(self, database: str) -> None:
        """Write it down, once."""
        if self._owner() == database:
            return
        path = self.path / OWNER
        if path.is_file() or not os.path.lexists(path):  # what is odd was told of when it was read
            replace_file(path, database, durable=True, private=True)

    def close(self) -> None:
        os.close(self._lock)

    def _owner(self) -> str:
        """Empty where nobody is named, or nobody can be told from what is there."""
        path = self.path / OWNER
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
