"""What the engine keeps on the service's disk.

ROOT/.runs/JOB.ATTEMPT     for every run not forgotten: its actors, and whether they were started
ROOT/JOB/ATTEMPT/outcome   how it ended
ROOT/JOB/ATTEMPT/RANK.log  what a rank has printed, with RANK.old.log before it
ROOT/JOB/work              where jobs run that name no folder of their own
"""

import json
import os
import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from boa.engines import shim
from boa.engines.base import LogFile, RunKey
from boa.engines.ray.gang import Ending
from boa.errors import InputError
from boa.model.cluster import JobId
from boa.units import Seconds

KEPT_ATTEMPTS = 20
"""Of every job: whose logs are kept."""


@dataclass(slots=True, kw_only=True)
class Marker:
    """What it takes to find a run again."""

    tag: str = ""
    """Of its names in the cluster: another start of the same run has another."""
    nodes: list[str] = field(default_factory=list)
    """Of every actor, Ray's id of its node, once it is known."""
    leads: list[tuple[int, int]] = field(default_factory=list)
    """Actors that have a command to run, by number, and their ranks."""
    launched: bool = False


class Folders:
    def __init__(self, root: Path) -> None:
        self._root = os.path.abspath(root)
        self._index = os.path.join(self._root, ".runs")
        os.makedirs(self._index, mode=0o700, exist_ok=True)

    def known(self) -> list[RunKey]:
        names = (name.rpartition(".") for name in sorted(os.listdir(self._index)))
        return [RunKey(job, int(attempt)) for job, _, attempt in names if attempt.isdigit()]

    def begin(self, key: RunKey, marker: Marker) -> None:
        self.mark(key, marker)
        os.makedirs(self.folder(key), exist_ok=True)

    def mark(self, key: RunKey, marker: Marker) -> None:
        _replace(self._marker(key), asdict(marker))

    def marker(self, key: RunKey) -> Marker:
        with suppress(OSError, ValueError, TypeError):
            return Marker(**json.loads(Path(self._marker(key)).read_bytes()))
        return Marker()  # cut off when the machine went down: as if nothing had been started

    def exists(self, key: RunKey) -> bool:
        return os.path.exists(self.folder(key))

    def drop(self, key: RunKey) -> None:
        """As if it had never been asked for."""
        shutil.rmtree(self.folder(key), ignore_errors=True)
        Path(self._marker(key)).unlink(missing_ok=True)

    def forget(self, key: RunKey, others: Collection[RunKey]) -> None:
        Path(self._marker(key)).unlink(missing_ok=True)
        Path(self.folder(key), shim.OUTCOME).unlink(missing_ok=True)
        for attempt in self._attempts(key.job)[:-KEPT_ATTEMPTS]:
            if RunKey(key.job, attempt) not in others:
                shutil.rmtree(self.folder(RunKey(key.job, attempt)), ignore_errors=True)

    def end(self, key: RunKey, ending: Ending) -> None:
        with suppress(OSError):  # a full disk: found again, it is lost
            _replace(os.path.join(self.folder(key), shim.OUTCOME), asdict(ending))

    def ended(self, key: RunKey) -> Ending | None:
        path = Path(self.folder(key), shim.OUTCOME)
        with suppress(OSError, ValueError, TypeError):
            return Ending(**json.loads(path.read_bytes()))
        return None

    def age(self, key: RunKey) -> Seconds:
        """How long ago its end was written down. A clock that was set back makes it now."""
        with suppress(OSError):
            written = os.stat(os.path.join(self.folder(key), shim.OUTCOME)).st_mtime
            return max(time.time() - written, 0.0)
        return 0.0

    def logs(self, job: JobId) -> Sequence[LogFile]:
        found = []
        for attempt in self._attempts(job):
            for path in Path(self.folder(RunKey(job, attempt))).glob("*.log"):
                rank, *old, _ = path.name.split(".")
                found.append((attempt, int(rank), not old, path))
        return [LogFile(attempt, rank, path) for attempt, rank, _, path in sorted(found)]

    def work(self, job: JobId) -> str:
        folder = os.path.join(self._home(job), "work")
        os.makedirs(folder, exist_ok=True)
        return folder

    def folder(self, key: RunKey) -> str:
        return os.path.join(self._home(key.job), str(key.attempt))

    def _marker(self, key: RunKey) -> str:
        return os.path.join(self._index, f"{key.job}.{key.attempt}")

    def _home(self, job: JobId) -> str:
        if not job.replace("-", "").isalnum():
            raise InputError("job", job, "an id of letters, digits and -")
        return os.path.join(self._root, job)

    def _attempts(self, job: JobId) -> list[int]:
        with suppress(FileNotFoundError):
            return sorted(int(name) for name in os.listdir(self._home(job)) if name.isdigit())
        return []


class Mirror(shim.Log):
    """What a rank prints elsewhere, in files here. Goes on where another left off."""

    def __init__(self, folder: str, rank: int, limit: int) -> None:
        self.path = os.path.join(folder, f"{rank}.log")
        self.old = os.path.join(folder, f"{rank}.old.log")
        self.limit, self.part = limit, max(limit // 2, shim.LEAST_PART)
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
            shim.attempt(os.close, self.fd)
            self.fd = -1

    def _open(self) -> None:
        if self.size:
            self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        else:
            super()._open()


def _left_off(path: str) -> tuple[int, int]:
    """The size of a log, and how much output there had been at its end: its first line says."""
    try:
        with open(path, "rb") as file:
            head = file.readline(200)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return 0, 0
    words = head.split()
    if words[:1] == [b"[boa]"] and b" bytes came before this line" in head and words[1].isdigit():
        return size, int(words[1]) + size - len(head)
    return size, size


def _replace(path: str, document: object) -> None:
    draft = f"{path}.new"
    with open(draft, "w", encoding="utf-8") as file:
        file.write(json.dumps(document))
    os.replace(draft, path)
