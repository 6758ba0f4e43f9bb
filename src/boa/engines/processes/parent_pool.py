"""Warm parents, as the engine sees them: at most a few, each for one kind of run (`Recipe`).

See `parent_process.py` for what they do. Nothing here waits for one: a request to a parent
that is still importing lies in its socket. A parent that does not do what it was asked for costs
time and no more, since the engine sends a run another supervisor, and only one can take it.
"""

import json
import logging
import os
import signal
import socket
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from boa.engines.processes import orphans
from boa.engines.processes.beginning import begun
from boa.engines.processes.warm_scripts import Recipe
from boa.units import Seconds

MOST = 4
"""Parents at a time, unless the service says otherwise."""
IDLE_S: Seconds = 900.0
"""A parent without runs is kept so long."""
AGAIN_S: Seconds = 600.0
"""A parent that failed is not tried again for so long."""
GOING_S: Seconds = 1.0
"""Seconds for parents to be gone when all are ended."""
BEGIN = (
    "import sys; known = set(sys.modules); p = sys.path; p[:] = p[p[:1] == ['']:]; "
    "p.insert(0, sys.argv[1]); import parent_process; del p[0]; "
    "parent_process.main(int(sys.argv[2]), known, sys.argv[3:])"
)
"""Without the present folder, where a module of a job may be called like one that is imported."""
_MESSAGE_BYTES = 1024**2
_HERE = str(Path(__file__).resolve().parent)
_Message: TypeAlias = dict[str, Any]
DIED = "it died"
_log = logging.getLogger("boa.engines")


@dataclass(slots=True, eq=False)
class _Parent:
    recipe: Recipe
    pid: int
    control: socket.socket
    used_at: Seconds
    files: dict[str, int] | None = None
    """Files that must not change on the disk, by time of change; None while it is importing."""
    runs: set[str] = field(default_factory=set)
    """Folders it was asked to look after, and that are not over."""

    @property
    def stale(self) -> bool:
        return self.files is not None and any(_stamp(p) != t for p, t in self.files.items())

    def hear(self) -> _Message | None:
        """Its next message, if there is one."""
        for _ in range(2):
            try:
                message = self.control.recv(_MESSAGE_BYTES)
            except BlockingIOError:
                return None
            except OSError:  # ended with requests unread; what it said last comes after this
                continue
            if message:
                heard: _Message = json.loads(message)
                return heard
        return {"failed": DIED}

    def end(self) -> None:
        """At once: it has nothing to lose. What was forked from it goes on."""
        self.control.close()
        with suppress(ProcessLookupError):  # reaped by somebody else
            os.kill(self.pid, signal.SIGKILL)


class WarmParents:
    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._parents: dict[Recipe, _Parent] = {}
        self._refused: dict[Recipe, Seconds] = {}
        """Moments until which recipes are not tried again."""
        self._died: dict[Recipe, Seconds] = {}
        """When parents that had been ready ended last."""
        self._given_up: set[str] = set()
        """Runs that no parent looks after now, and that were not told of yet."""
        self._ending: list[int] = []
        """Parents that were killed. They may take their time, and nobody waits for it."""

    def ask(self, recipe: Recipe, folder: str, given: bytes = b"") -> bool:
        """Whether a parent was asked to begin this run. It may do so late, or never. `given`: its
        secrets, for its supervisor."""
        now = time.monotonic()
        self._refused = {r: until for r, until in self._refused.items() if until > now}
        parent = self._parents.get(recipe)
        if parent is not None and parent.stale:
            self._drop(parent)
            parent = None
        try:
            parent = parent or self._begin(recipe, now)
            if parent is None:
                return False
            parent.control.send(os.fsencode(folder) + (b"\0" + given if given else b""))
        except OSError as trouble:  # no more processes, too many requests, or it has just died
            _log.info("no warm start of %s: %s", folder, trouble)
            return False
        parent.used_at = now
        parent.runs.add(folder)
        return True

    def have_spares(self, recipe: Recipe, folder: str) -> bool:
        """Whether the parent was asked for spares of a run that will be in that folder. None is
        begun for it: that takes longer than the spares would save."""
        parent = self._parents.get(recipe)
        if parent is None or parent.files is None or parent.stale:
            return False
        try:
            parent.control.send(b"\0" + os.fsencode(folder))
        except OSError as trouble:
            _log.info("no spares in %s: %s", folder, trouble)
            return False
        return True

    def late(self, folder: str, waited_s: Seconds) -> None:
        """A run was not begun in time: whoever was asked for it may hang, and is asked no more."""
        for parent in [parent for parent in self._parents.values() if folder in parent.runs]:
            self._refuse(parent, f"no run was begun within {waited_s:g} s", time.monotonic())

    def tend(self, running: Collection[str]) -> set[str]:
        """Hear what parents say, and end idle ones.

        Gives the runs that no parent looks after any more: it was dropped, or says that the run's
        supervisor is gone. One that has not begun by now, none of them will begin.
        """
        now = time.monotonic()
        self._reap()
        for parent in list(self._parents.values()):
            while parent.recipe in self._parents and (message := parent.hear()) is not None:
                self._heed(parent, message, now)
            parent.runs.intersection_update(running)
            if parent.runs:
                parent.used_at = now
            elif now - parent.used_at > IDLE_S and parent.recipe in self._parents:
                self._drop(parent)
        given_up, self._given_up = self._given_up, set()
        return given_up

    def close(self) -> None:
        for parent in list(self._parents.values()):
            self._drop(parent)
        until = time.monotonic() + GOING_S
        while self._ending and time.monotonic() < until:
            time.sleep(0.002)
            self._reap()

    def _heed(self, parent: _Parent, message: _Message, now: Seconds) -> None:
        if "gone" in message:
            parent.runs.discard(message["gone"])
            self._given_up.add(message["gone"])
        elif "ready" in message:
            parent.files = message["ready"]["files"]
            mb = message["ready"]["memory_kb"] / 1024
            what = ", ".join(parent.recipe.modules)
            _log.info("warm parent %d has imported %s: %.0f MB", parent.pid, what, mb)
        elif message["failed"] == DIED and parent.files is not None and self._may_die(parent, now):
            _log.info("warm parent %d was killed; the next start begins another", parent.pid)
            self._drop(parent)
        else:
            self._refuse(parent, message["failed"], now)

    def _may_die(self, parent: _Parent, now: Seconds) -> bool:
        """Once in a while, of no fault of its own (the machine was out of memory, say)."""
        before, self._died[parent.recipe] = self._died.get(parent.recipe), now
        return before is None or before < now - AGAIN_S

    def _refuse(self, parent: _Parent, why: str, now: Seconds) -> None:
        what, python = ", ".join(parent.recipe.modules), parent.recipe.python
        _log.warning("no warm starts with %s of %s for %.0f s: %s", what, python, AGAIN_S, why)
        self._refused[parent.recipe] = now + AGAIN_S
        self._drop(parent)

    def _begin(self, recipe: Recipe, now: Seconds) -> _Parent | None:
        """None where it has failed lately, or where there are too many that are just beginning."""
        if recipe in self._refused or self._most < 1:
            return None
        if len(self._parents) >= self._most:
            ready = [parent for parent in self._parents.values() if parent.files is not None]
            if not ready:
                return None
            self._drop(min(ready, key=lambda parent: parent.used_at))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            pid = _spawn(recipe, theirs.fileno())
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        parent = self._parents[recipe] = _Parent(recipe, pid, ours, now)
        return parent

    def _drop(self, parent: _Parent) -> None:
        del self._parents[parent.recipe]
        self._given_up |= parent.runs
        parent.end()
        self._ending.append(parent.pid)
        self._reap()

    def _reap(self) -> None:
        self._ending = [pid for pid in self._ending if not orphans.reaped(pid)]


def _spawn(recipe: Recipe, control: int) -> int:
    begin = f"import os; os.chdir({recipe.folder!r}); {BEGIN}"
    words = [recipe.python, "-c", begin, _HERE, str(os.getpid()), *recipe.modules]
    return begun(words, {**dict(recipe.env), orphans.WARM: "1"}, control)


def _stamp(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None
