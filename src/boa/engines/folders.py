"""Where engines keep runs on the service's disk.

ROOT/.runs/JOB.ATTEMPT               a file for every run that is not forgotten
ROOT/.born                           a word of its own
ROOT/JOB/ATTEMPT/outcome             how it ended
ROOT/JOB/ATTEMPT/RANK.log            what a worker has printed, with RANK.old.log before it
ROOT/JOB/ATTEMPT/RANK.times.log      when: bytes so far, and seconds of the wall
ROOT/JOB/work                        where jobs run that name no folder of their own
ROOT/JOB/code                        the package that a job runs in, unpacked anew for every attempt
ROOT/JOB/keeper                      where it asks for memory for its state, and finds it
"""

import logging
import os
import re
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from boa.engines.processes import run_files
from boa.errors import InputError
from boa.model.cluster import JobId
from boa.model.runs import LogFile, RunKey
from boa.plain_file import remove_folder
from boa.private_files import private_file, private_folder
from boa.units import Seconds

KEPT_ATTEMPTS = 20
"""Attempts of every job whose logs are kept."""
_MARKER = re.compile(r"([A-Za-z0-9-]{1,200})\.(0|[1-9][0-9]{0,8})")
_ATTEMPT = re.compile(r"0|[1-9][0-9]{0,8}")
_LOG = re.compile(r"([0-9]{1,9})(\.old)?\.log")
_log = logging.getLogger("boa.engines")


class RunFolders:
    def __init__(self, root: Path) -> None:
        self.root = os.path.abspath(root)
        self._index = os.path.join(self.root, ".runs")
        private_folder(self._index)

    def born(self) -> str:
        """A random word that tells it from any folder that was or will be at its place on the disk.
        Empty: its runs are older than such words."""
        word = Path(self.root, ".born")
        with suppress(OSError):
            if not word.exists() and not self.known():
                private_file(word, os.urandom(8).hex().encode())
            return word.read_text(errors="replace")
        return ""

    def known(self) -> list[RunKey]:
        """Those not forgotten. Whatever else is among them is named in the log, and left alone."""
        found = []
        with os.scandir(self._index) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                match = _MARKER.fullmatch(entry.name)
                if match and entry.is_file(follow_symlinks=False):
                    found.append(RunKey(match[1], int(match[2])))
                elif not entry.name.startswith("."):  # drafts of markers
                    _log.warning("%s: no run is marked by this, and nobody minds it", entry.path)
        return found

    def exists(self, key: RunKey) -> bool:
        return os.path.lexists(self.folder(key))

    def age(self, key: RunKey) -> Seconds:
        """How long ago it ended. A clock that was set back makes it now."""
        with suppress(OSError):  # the disk was full, or somebody has deleted it
            ended = os.lstat(os.path.join(self.folder(key), run_files.OUTCOME)).st_mtime
            return max(time.time() - ended, 0.0)
        return 0.0

    def logs(self, job: JobId) -> Sequence[LogFile]:
        """A long log is in two parts, both of them listed: the older first. What a job has put in
        the place of one is listed as well: who reads it tells."""
        found = []
        for attempt in self._attempts(job):
            with suppress(OSError), os.scandir(self.folder(RunKey(job, attempt))) as entries:
                for entry in entries:
                    match = _LOG.fullmatch(entry.name)
                    if match:
                        found.append((attempt, int(match[1]), not match[2], Path(entry.path)))
        return [LogFile(attempt, rank, path) for attempt, rank, _, path in sorted(found)]

    def tidy(self, key: RunKey, others: Collection[RunKey]) -> None:
        """Remove all but the logs of a forgotten run, and all of old attempts of its job, unless
        they are among `others`."""
        with suppress(OSError):
            for name in os.listdir(self.folder(key)):
                if not name.endswith(".log"):  # what was launched has the job's token in it
                    remove(os.path.join(self.folder(key), name))
        if all(other.job != key.job for other in others):  # the next attempt unpacks its own
            remove(self.code(key.job))
        for attempt in self._attempts(key.job)[:-KEPT_ATTEMPTS]:
            if RunKey(key.job, attempt) not in others:
                remove(self.folder(RunKey(key.job, attempt)))

    def unmark(self, key: RunKey) -> None:
        """It is forgotten."""
        remove(self.marker_of(key))

    def marker_of(self, key: RunKey) -> str:
        return os.path.join(self._index, f"{key.job}.{key.attempt}")

    def work(self, job: JobId) -> str:
        folder = os.path.join(self.home(job), "work")
        private_folder(folder)
        return folder

    def code(self, job: JobId) -> str:
        return os.path.join(self.home(job), "code")

    def keeper(self, job: JobId) -> str:
        return os.path.join(self.home(job), "keeper")

    def home(self, job: JobId) -> str:
        if not job.replace("-", "").isalnum():
            raise InputError("job", job, "an id of letters, digits and -")
        return os.path.join(self.root, job)

    def folder(self, key: RunKey) -> str:
        return os.path.join(self.home(key.job), str(key.attempt))

    def _attempts(self, job: JobId) -> list[int]:
        with suppress(OSError):
            return sorted(int(n) for n in os.listdir(self.home(job)) if _ATTEMPT.fullmatch(n))
        return []


def remove(path: str) -> None:
    """Whatever it is; what cannot be removed stays, and the log says so."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            remove_folder(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as trouble:
        _log.warning("%s cannot be removed: %s", path, trouble.strerror)
