"""Where engines keep runs on the service's disk.

ROOT/.runs/JOB.ATTEMPT               a file for every run that is not forgotten
ROOT/JOB/ATTEMPT/outcome             how it ended
ROOT/JOB/ATTEMPT/RANK.log            what a worker has printed, with RANK.old.log before it
ROOT/JOB/work                        where jobs run that name no folder of their own
"""

import os
import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from boa.engines.processes import run_supervisor
from boa.errors import InputError
from boa.model.cluster import JobId
from boa.model.runs import LogFile, RunKey
from boa.units import Seconds

KEPT_ATTEMPTS = 20
"""Attempts of every job whose logs are kept."""


class RunFolders:
    def __init__(self, root: Path) -> None:
        self._root = os.path.abspath(root)
        self._index = os.path.join(self._root, ".runs")
        os.makedirs(self._index, mode=0o700, exist_ok=True)

    def known(self) -> list[RunKey]:
        """Those not forgotten."""
        names = (name.rpartition(".") for name in sorted(os.listdir(self._index)))
        return [RunKey(job, int(attempt)) for job, _, attempt in names if attempt.isdigit()]

    def exists(self, key: RunKey) -> bool:
        return os.path.exists(self.folder(key))

    def age(self, key: RunKey) -> Seconds:
        """How long ago it ended. A clock that was set back makes it now."""
        with suppress(OSError):  # the disk was full, or somebody has deleted it
            ended = os.stat(os.path.join(self.folder(key), run_supervisor.OUTCOME)).st_mtime
            return max(time.time() - ended, 0.0)
        return 0.0

    def logs(self, job: JobId) -> Sequence[LogFile]:
        """A long log is in two parts, both of them listed: the older first."""
        found = []
        for attempt in self._attempts(job):
            for path in Path(self.folder(RunKey(job, attempt))).glob("*.log"):
                rank, *old, _ = path.name.split(".")
                found.append((attempt, int(rank), not old, path))
        return [LogFile(attempt, rank, path) for attempt, rank, _, path in sorted(found)]

    def tidy(self, key: RunKey, others: Collection[RunKey]) -> None:
        """Remove all but the logs of a forgotten run, and all of old attempts of its job, unless
        they are among `others`."""
        with suppress(FileNotFoundError):
            for name in os.listdir(self.folder(key)):
                if not name.endswith(".log"):  # what was launched has the job's token in it
                    os.unlink(os.path.join(self.folder(key), name))
        for attempt in self._attempts(key.job)[:-KEPT_ATTEMPTS]:
            if RunKey(key.job, attempt) not in others:
                shutil.rmtree(self.folder(RunKey(key.job, attempt)), ignore_errors=True)

    def unmark(self, key: RunKey) -> None:
        """It is forgotten."""
        Path(self.marker_of(key)).unlink(missing_ok=True)

    def marker_of(self, key: RunKey) -> str:
        return os.path.join(self._index, f"{key.job}.{key.attempt}")

    def work(self, job: JobId) -> str:
        folder = os.path.join(self.home(job), "work")
        os.makedirs(folder, exist_ok=True)
        return folder

    def home(self, job: JobId) -> str:
        if not job.replace("-", "").isalnum():
            raise InputError("job", job, "an id of letters, digits and -")
        return os.path.join(self._root, job)

    def folder(self, key: RunKey) -> str:
        return os.path.join(self.home(key.job), str(key.attempt))

    def _attempts(self, job: JobId) -> list[int]:
        with suppress(FileNotFoundError):
            return sorted(int(name) for name in os.listdir(self.home(job)) if name.isdigit())
        return []
