"""Processes of runs whose supervisor was killed. Workers die with it; what they began may not."""

import os
import signal
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import TypeAlias

from boa.engines.processes import run_supervisor

MARKS = ("BOA_JOB_ID", "BOA_ATTEMPT", "BOA_CHECKPOINT_DIR")
"""Variables in the environment of a run's processes, and only of theirs."""
WARM = "BOA_WARM"
"""A variable in the environment of warm parents, and so of all that is forked from them."""
Marks: TypeAlias = tuple[str, ...]
_ROUNDS = 3
"""A process may begin another one while they are looked through."""


def marks_of(environment: Mapping[str, str]) -> Marks | None:
    """None of a process that belongs to no run."""
    marks = tuple(environment[name] for name in MARKS if name in environment)
    return marks if len(marks) == len(MARKS) else None


def kill(runs: Collection[Marks], supervisors: Collection[str] = ()) -> None:
    """Every process on this machine that belongs to one of these runs.

    What was forked from a warm parent has the parent's environment in /proc, which says nothing of
    a run. It is told by its session, which is its supervisor's (PID.TICKS.BOOT) unless it has left
    it. A number that is a session's is not given to a new process; but an empty session is none.
    """
    sessions = {identity.partition(".")[0] for identity in supervisors if _is_gone(identity)}
    for _ in range(_ROUNDS):
        found = [pid for pid, environ in _processes() if _belongs(pid, environ, runs, sessions)]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def reaped(pid: int) -> bool:
    """Whether a child of ours has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # by somebody else
        return True


def bury(supervisor: str) -> None:
    """Reap it, should it have been handed to us when the parent that forked it was gone.

    That is so where the service is process 1 of a container, say. Its number alone would not do:
    by now it may be that of another child, whose end somebody waits for.
    """
    pid, *born = supervisor.split(".")
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        state, *fields = file.read().rpartition(")")[2].split()
        if state == "Z" and born == [fields[18], boot()]:
            reaped(int(pid))


def boot() -> str:
    """The part of identities that says since when the machine is up."""
    return run_supervisor.identity(os.getpid()).split(".")[-1]


def _is_gone(supervisor: str) -> bool:
    """Whether a supervisor of this boot is gone, and its number is no other process's by now."""
    number, its_boot = supervisor.split(".")[0], supervisor.split(".")[-1]
    return its_boot == boot() and not run_supervisor.identity(int(number))


def _belongs(
    pid: int, environ: Mapping[str, str], runs: Collection[Marks], sessions: Collection[str]
) -> bool:
    if marks_of(environ) in runs:
        return True
    if not sessions or WARM not in environ:
        return False
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[3] in sessions
    return False


def _processes() -> Iterator[tuple[int, Mapping[str, str]]]:
    """All that we can look into, and what their environment was when they began."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:  # another user's, gone
            entries = (entry.partition(b"=") for entry in file.read().split(b"\0"))
            yield int(name), {os.fsdecode(k): os.fsdecode(v) for k, _, v in entries}
