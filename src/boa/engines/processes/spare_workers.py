"""Workers that are forked, and have woken what takes long, before there is a run for them.

A warm parent that is asked for spares forks a supervisor for a run to come. That forks a process to
each worker that the engine expects, and has it wake the libraries that it was forked with (`WAKE`):
a GPU's context, say. No line of the job's script runs before the run is there. Then the supervisor
goes on as ever, and its workers take these processes in the place of new ones, where they fit.

In the folder, beside what every run has (`run_supervisor.py`):

spare    the workers to expect: variables that each is to see, and is to have when it is taken
awake    all of them are

Spares end with the parent, with the folder, or when nobody takes them.
"""

import os
import select
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from boa.engines.processes import forked_worker, run_files, run_marks, run_supervisor
else:
    import forked_worker
    import run_files
    import run_marks
    import run_supervisor

SPARE, AWAKE = "spare", "awake"
WAKE = {"boa.train.torch.waking": "wake"}
"""Functions of modules that were imported, which are called where a worker is to be woken."""
MOST_S = 120.0
"""Spares that nobody has taken by then are not going to be."""
LOOK_S = 1.0
MESSAGE_BYTES = 1024**2
LATE_S, ANSWER_S = 2.0, 5.0
"""A run waits so long for its spares to wake, and for each to answer; then it does without."""


class Spare:
    """A process that waits to be a worker."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """`env`: what it wakes by."""
        self.env = dict(env)
        self.pid = self.output = self.problem = 0
        self.line: socket.socket
        self._awake = False

    def fork(self, kind: "type[run_supervisor.Worker]") -> None:
        """Out by `Reborn` in the process that was forked, once it is taken."""
        self.output, out = os.pipe()
        self.problem, told = os.pipe()
        self.line, theirs = socket.socketpair()
        supervisor = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self.line.close()
            _wait(kind, self.env, theirs, supervisor, out, told)
        theirs.close()
        os.close(out)
        os.close(told)
        os.set_blocking(self.output, False)

    def fits(self, env: Mapping[str, str]) -> bool:
        return all(env.get(name) == value for name, value in self.env.items())

    def hear(self) -> None:
        """Take its word that it is awake; one that is gone has none."""
        with suppress(OSError):
            self._awake = bool(self.line.recv(1))

    def take(self, document: dict[str, Any], until: float) -> bool:
        """Tell it what to be; False: it cannot, or is not awake by then."""
        if not self._awake:
            self.line.settimeout(max(until - time.monotonic(), 0.001))
            self.hear()
        if not self._awake:
            return False
        plan = run_files.in_memory(run_files.packed(document))
        self.line.settimeout(ANSWER_S)
        try:
            socket.send_fds(self.line, [b"!"], [plan, *run_marks.kept])
            if not self.line.recv(1):  # it has died meanwhile
                return False
        except OSError:
            return False
        finally:
            os.close(plan)
        self.line.close()
        return True

    def end(self) -> None:
        self.line.close()
        for fd in (self.output, self.problem):
            os.close(fd)
        if self.pid > 0:
            run_files.attempt(os.kill, self.pid, run_supervisor.SIGKILL)


class Spares:
    """Those of one supervisor."""

    def __init__(self) -> None:
        self._left: list[Spare] = []
        self._until: float | None = None
        """When the run does without those that are not awake: all its workers wait as one."""

    def fork(self, kind: "type[run_supervisor.Worker]") -> None:
        told = run_files.unpacked(run_files.read_plain(SPARE))
        for env in told["workers"]:
            self._left.append(Spare(env))
            self._left[-1].fork(kind)

    def until_asked(self, asked: socket.socket) -> bytes:
        """The parent's message that the run is there. Empty: none will come."""
        until = time.monotonic() + MOST_S
        asleep = {spare.line.fileno(): spare for spare in self._left}
        poller = select.poll()
        for fd in (asked.fileno(), *asleep):
            poller.register(fd, select.POLLIN)
        while time.monotonic() < until and os.path.exists(SPARE):
            for fd, _ in poller.poll(LOOK_S * 1000):
                if fd == asked.fileno():
                    return asked.recv(MESSAGE_BYTES)
                poller.unregister(fd)
                asleep.pop(fd).hear()
                if not asleep:
                    run_files.attempt(run_files.replace_plain, ".", AWAKE, b"")
        return b""

    def start(self, worker: "run_supervisor.Worker", workdir: str, group: int) -> int | None:
        """One of them as this worker; gives what `Worker.start` does, or None."""
        if self._until is None:
            self._until = time.monotonic() + LATE_S
        document = {"plan": worker.plan, "workdir": workdir, "group": group}
        for spare in [spare for spare in self._left if spare.fits(worker.plan["env"])]:
            self._left.remove(spare)
            if spare.take({**document, "mark": run_marks.worn()}, self._until):
                worker.pid, worker.output = spare.pid, spare.output
                run_files.attempt(os.setpgid, worker.pid, group)  # both sides do
                return spare.problem
            spare.end()
        return None

    def end(self) -> None:
        """Those that are left."""
        while self._left:
            self._left.pop().end()


def _wait(
    kind: "type[run_supervisor.Worker]",
    env: Mapping[str, str],
    line: socket.socket,
    supervisor: int,
    out: int,
    told: int,
) -> NoReturn:
    """In the forked process: wake, wait, and be a worker."""
    run_supervisor.prctl(run_supervisor.PR_SET_PDEATHSIG, run_supervisor.SIGKILL)
    try:
        os.environ.update(env)
        _wake()
        line.send(b".")
        _, files, _, _ = socket.recv_fds(line, 1, 8)
        if not files:
            os._exit(0)
        plan, *locks = files
        document = run_files.unpacked(run_files.read_all(plan))
        os.close(plan)
        line.send(b"!")
        line.close()
        run_marks.take_on(document["mark"], locks)
    except Exception:
        os._exit(run_supervisor.NOT_EXECUTABLE)
    worker = object.__new__(kind)  # its log is the supervisor's
    worker.plan = document["plan"]
    worker._become(document["workdir"], document["group"], supervisor, out, told)


def _wake() -> None:
    """One that fails here is not used: nobody knows what a GPU makes of a second try."""
    before = forked_worker.open_files()
    for name, function in WAKE.items():
        module = sys.modules.get(name)
        if module is not None:
            getattr(module, function)()
    run_marks.kept.update(forked_worker.open_files() - before)
