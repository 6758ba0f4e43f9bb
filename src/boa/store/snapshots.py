"""Copies of a SQLite store that are taken every so often, and put back when it is damaged.

SQLite itself writes them (`VACUUM INTO`), beside the service, from one moment's state. A copy is a
draft until it is whole and on the disk.
"""

import logging
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from boa.atomic_file import draft_of, free_name, to_disk
from boa.errors import BoaError
from boa.private_files import private_file, private_folder
from boa.store.sqlite import read_only
from boa.units import SECONDS_PER_HOUR, Seconds

FOLDER = "snapshots"
FIRST_S: Seconds = 60.0
"""Seconds of the wall after the start: services of a minute have none taken."""
DRAFT_S: Seconds = 86_400.0
"""Age of drafts that nobody is at any more."""
_NAME = re.compile(r"boa-\d{8}-\d{6}(-\d+)?\.db")
_log = logging.getLogger("boa.store")


class SnapshotTrouble(BoaError):
    """A copy could not be taken; those that there are stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    path: Path
    at: Seconds
    """Moment at which it was whole, by the wall."""
    bytes: int


def snapshots(folder: Path) -> list[Snapshot]:
    """The newest first; none where there is no folder, or none that we may look into."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append(
                        Snapshot(path=Path(entry.path), at=status.st_mtime, bytes=status.st_size)
                    )
    except OSError:
        return []
    return sorted(found, key=lambda one: (one.at, one.path.name), reverse=True)


def take(store: Path, folder: Path, now: Seconds) -> Snapshot:
    """A copy of the store as it is. Raises SnapshotTrouble, and leaves nothing behind then."""
    name = time.strftime("boa-%Y%m%d-%H%M%S.db", time.gmtime(now))
    whole = free_name(folder / name)
    draft = draft_of(whole)
    try:
        private_folder(folder)
        draft.unlink(missing_ok=True)
        private_file(draft)
        _write(store, draft)
        to_disk(draft)
        os.utime(draft, (now, now))
        os.rename(draft, whole)
        to_disk(folder)
        return Snapshot(path=whole, at=now, bytes=whole.stat().st_size)
    except (OSError, sqlite3.Error) as trouble:
        reason = getattr(trouble, "strerror", None) or str(trouble)
        raise SnapshotTrouble(f"no snapshot of {store} could be taken: {reason}") from None
    finally:
        draft.unlink(missing_ok=True)
        draft.with_name(draft.name + "-journal").unlink(missing_ok=True)


def _write(store: Path, draft: Path) -> None:
    connection = sqlite3.connect(read_only(store), uri=True, isolation_level=None)
    try:
        connection.execute("VACUUM INTO ?", (str(draft),))
    finally:
        connection.close()
    copy = sqlite3.connect(read_only(draft, immutable=True), uri=True)
    try:
        said = copy.execute("PRAGMA quick_check(1)").fetchall()
    finally:
        copy.close()
    if said != [("ok",)]:
        raise sqlite3.DatabaseError("the copy is damaged")


def prune(folder: Path, keep: int, now: Seconds) -> None:
    """Keep the newest so many, and no drafts that somebody was killed over."""
    for old in snapshots(folder)[keep:]:
        old.path.unlink(missing_ok=True)
    for draft in folder.glob(".boa-*.part*"):
        if draft.lstat().st_mtime < now - DRAFT_S:
            draft.unlink(missing_ok=True)


class SnapshotKeeper:
    """Takes copies on a thread of its own; `step` is one look at the clock. Trouble is told of
    once, until it has passed, and hinders nobody."""

    def __init__(
        self,
        store: Path | None,
        folder: Path,
        *,
        every_h: float,
        keep: int,
        clock: Callable[[], Seconds] = time.time,
    ) -> None:
        """`store`: the file; None, of another database: none are taken. `clock`: the wall's."""
        self._store, self._folder, self._clock = store, folder, clock
        self._every_s, self._keep = every_h * SECONDS_PER_HOUR, keep
        self._failing = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._due = self._first_due()

    @property
    def wanted(self) -> bool:
        return self._store is not None and self._every_s > 0 and self._keep > 0

    def step(self) -> Snapshot | None:
        """A copy, where one is due."""
        now = self._clock()
        if not self.wanted or self._store is None or now < self._due:
            self._due = min(self._due, now + self._every_s)  # a clock that was set back
            return None
        self._due = now + self._every_s
        try:
            taken = take(self._store, self._folder, now)
            prune(self._folder, self._keep, now)
        except (SnapshotTrouble, OSError) as trouble:
            if not self._failing:
                _log.error("%s; it is tried again in %g h", trouble, self._every_s / 3600)
            self._failing = True
            return None
        self._failing = False
        return taken

    def start(self) -> None:
        if self.wanted:
            self._thread = threading.Thread(target=self._run, name="boa-snapshots", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """One that is being written is not waited for: it is a draft, and the next start's to
        remove."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(min(max(self._due - self._clock(), 1.0), 60.0)):
            self.step()

    def _first_due(self) -> Seconds:
        now = self._clock()
        newest = next(iter(snapshots(self._folder)), None) if self.wanted else None
        if newest is None or newest.at > now:
            return now + min(FIRST_S, self._every_s)
        return max(newest.at + self._every_s, now + min(FIRST_S, self._every_s))
