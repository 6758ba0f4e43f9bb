"""Files of the engine on the service's disk: markers of runs, their ends, their output."""

import json
import os
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from boa.atomic_file import replace_file
from boa.engines.folders import RunFolders
from boa.engines.processes import run_files
from boa.engines.ray.gang import Ending
from boa.model.runs import RunKey
from boa.plain_file import NotPlain, open_plain, read_plain
from boa.private_files import private_folder
from boa.units import Seconds

RESERVE, RESERVED = f"{run_files.OUTCOME}.new", 2048
"""Space for how a run ended, so that a full disk is no hindrance."""


@dataclass(slots=True, kw_only=True)
class Marker:
    """All that it takes to find a run again."""

    tag: str = ""
    """The part of its names in the cluster that another start of the same run has otherwise."""
    nodes: list[str] = field(default_factory=list)
    """Ray's node id for every actor, once it is known."""
    leads: list[tuple[int, int]] = field(default_factory=list)
    """Actors that have a command to run, by number, and their ranks."""
    launched: bool = False
    token: str = ""
    """A file that it has left for its ranks to see, until they have."""


class Folders(RunFolders):
    def begin(self, key: RunKey, marker: Marker) -> None:
        self.mark(key, marker)
        private_folder(self.folder(key))
        replace_file(Path(self.folder(key), RESERVE), b" " * RESERVED, private=True)

    def mark(self, key: RunKey, marker: Marker) -> None:
        replace_file(self.marker_of(key), json.dumps(asdict(marker)), private=True)

    def marker(self, key: RunKey) -> Marker:
        with suppress(OSError, ValueError, TypeError):
            return Marker(**json.loads(read_plain(self.marker_of(key))))
        return Marker()  # cut off when the machine went down: as if nothing had been started

    def drop(self, key: RunKey) -> None:
        """As if it had never been asked for."""
        shutil.rmtree(self.folder(key), ignore_errors=True)
        self.unmark(key)

    def end(self, key: RunKey, ending: Ending, at: Seconds) -> None:
        """It ended then, which `age` counts from. Into space set aside: no draft would fit."""
        reserve, path = (
            os.path.join(self.folder(key), name) for name in (RESERVE, run_files.OUTCOME)
        )
        with suppress(OSError):  # found again, it is lost
            for name in (reserve, path):
                run_files.aside(name)
            fd = os.open(reserve, os.O_WRONLY | os.O_CREAT | run_files.PLAIN, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(json.dumps(asdict(ending)).encode().ljust(RESERVED))
                file.flush()
                os.fdatasync(fd)
            os.utime(reserve, (at, at))
            os.replace(reserve, path)
            run_files.sync_folder(self.folder(key))

    def ended(self, key: RunKey) -> Ending | None:
        path = Path(self.folder(key), run_files.OUTCOME)
        with suppress(OSError, ValueError, TypeError):
            return Ending(**json.loads(read_plain(path)))
        return None


class Mirror(run_files.Log):
    """The output of a rank elsewhere, in files here. Goes on where another left off."""

    def __init__(self, folder: str, rank: int, limit: int) -> None:
        self.path = os.path.join(folder, f"{rank}.log")
        self.old = os.path.join(folder, f"{rank}.old.log")
        self.times = os.path.join(folder, f"{rank}.times.log")
        self.began, self.marked = time.time(), 0.0
        self.limit, self.part = limit, max(limit // 2, run_files.LEAST_PART)
        self.lost, self.fd = 0, -1
        self.size, self.seen = _left_off(self.path)
        if not self.size:  # it may just have been turned over
            self.seen = _left_off(self.old)[1]
        self._append(b"")
        self.release()

    def take(self, first: int, data: bytes) -> None:
        """A piece of the output, and how much of it came before."""
        if first > self.seen:  # while nobody asked, more came than is kept there
            self._turn()
            self.seen = first
        self.write(data[self.seen - first :])
        self.release()

    def release(self) -> None:
        """No open file for each of thousands of ranks."""
        if self.fd >= 0:
            run_files.attempt(os.close, self.fd)
            self.fd = -1

    def _open(self) -> None:
        if self.size:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | run_files.PLAIN
            self.fd = os.open(self.path, flags, 0o600)
        else:
            super()._open()


def _left_off(path: str) -> tuple[int, int]:
    """The size of a log, and how much output there had been at its end: its first line says."""
    try:
        with open_plain(path) as file:
            head = file.readline(200)
            size = os.fstat(file.fileno()).st_size
    except (FileNotFoundError, NotPlain):
        return 0, 0
    words = head.split()
    if words[:1] == [b"[boa]"] and b" bytes came before this line" in head and words[1].isdigit():
        return size, int(words[1]) + size - len(head)
    return size, size
