"""Keepers (`boa.train.keeper`) of jobs that run on this machine: who begins them.

A job whose state is worth it asks for one by a file in its folder, ROOT/JOB/keeper. A keeper goes
on when the service dies, as runs do: it may hold state that is on no disk yet. It is known by a
lock in that folder, and ends by itself when nobody needs it.
"""

import logging
import os
from collections.abc import Mapping
from contextlib import suppress

from boa.engines.processes import orphans
from boa.engines.processes.beginning import begun
from boa.private_files import private_folder
from boa.train.keeper import process
from boa.train.keeper.process import SHARE, WANTED

BEGIN = "import sys; sys.path.append(sys.argv.pop(1)); import process; process.main()"
_log = logging.getLogger("boa.engines")


class Keepers:
    def __init__(self, root: str, python: str, share: float, env: Mapping[str, str]) -> None:
        """`share`: of this machine's memory, for all of them together; 0: there are none. `env`:
        what they and their writers see."""
        self._root, self._python, self._share, self._env = root, python, share, dict(env)
        self._ours: list[int] = []

    def offer(self, home: str) -> str:
        """Where the job whose folder this is asks for one; empty: it need not."""
        if self._share <= 0:
            return ""
        folder = _folder(home)
        try:
            private_folder(folder)
        except OSError:
            return ""
        return folder

    def look(self, home: str) -> None:
        """Whether this job has asked for one; then there is one soon."""
        folder = _folder(home)
        wanted = os.path.join(folder, WANTED)
        if self._share <= 0 or not os.path.exists(wanted):
            return
        with suppress(FileNotFoundError):
            os.unlink(wanted)
        try:
            self._ours.append(self._spawned(folder))
        except OSError as trouble:
            _log.warning("no keeper for %s: %s", home, trouble)

    def tend(self) -> None:
        """Those that have ended are no longer processes."""
        self._ours = [pid for pid in self._ours if not orphans.reaped(pid)]

    def _spawned(self, folder: str) -> int:
        """Should there be one already, it ends at once."""
        beside = os.path.dirname(process.__file__)
        ledger = os.path.join(self._root, ".memory")
        words = [folder, "--ledger", ledger, "--share", str(self._share)]
        return begun([self._python, "-I", "-S", "-c", BEGIN, beside, *words], self._env)


def _folder(home: str) -> str:
    return os.path.join(home, "keeper")


__all__ = ["SHARE", "Keepers"]
