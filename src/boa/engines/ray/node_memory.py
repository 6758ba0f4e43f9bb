"""Memory for training state on a Ray node: where a job asks for it, and who begins its keeper.

TMP/boa-memory-UID/ledger                 what all keepers of this machine hold
TMP/boa-memory-UID/SERVICE/NODE/JOB       where a job asks for its keeper, and talks to it

The keeper is nobody's child and in a session of its own, so neither the end of a rank's actor nor
Ray, which kills what an actor has begun, ends it.
"""

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from boa.engines.keepers import Keepers
from boa.plain_file import remove_folder
from boa.private_files import private_folder
from boa.train.keeper.process import LOCK

OLD_S = 24 * 3600.0
"""Folders of jobs that have asked for nothing here for so long, and have no keeper, go."""


class NodeMemory:
    def __init__(
        self, told: Mapping[str, Any], job: str, python: str, environment: Mapping[str, str]
    ) -> None:
        """`told`: the `share` of memory, `service` and `node` by their names, and the `host` that
        other nodes reach this one by. OSError: the place for it is somebody else's."""
        place = _place()
        self.folder = os.path.join(place, quote(told["service"], ""), told["node"], job)
        self._keepers = Keepers(
            os.path.join(place, "ledger"),
            python,
            told["share"],
            environment,
            host=told["host"],
            node=told["node"],
            alone=True,
        )
        _sweep(Path(place))

    def offered(self) -> bool:
        if not self._keepers.offer(self.folder):
            return False
        with suppress(OSError):
            os.utime(self.folder)
        return True

    def look(self) -> None:
        """Whether the job has asked for a keeper; then there is one soon."""
        self._keepers.look(self.folder)
        self._keepers.tend()


def _place() -> str:
    """A folder of ours in one that is everybody's."""
    folder = os.path.join(tempfile.gettempdir(), f"boa-memory-{os.getuid()}")
    private_folder(folder)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is not ours alone")
    return folder


def _sweep(place: Path) -> None:
    for folder in place.glob("*/*/*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > OLD_S and not _is_kept(folder):
                remove_folder(folder)


def _is_kept(folder: Path) -> bool:
    """Whether it has a keeper, which holds its lock as long as it lives."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
