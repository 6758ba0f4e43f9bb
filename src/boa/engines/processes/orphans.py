"""Processes of runs whose supervisor was killed. Workers die with it; what they began may not.

They are looked for by everything that a process of a run has of it (`Traces`): each of them can be
shed or be missing on some machine, but hardly all. As long as anything is found, the run is not
over, and its job is not started again.
"""

import binascii
import fcntl
import os
import signal
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from boa.engines.processes import cgroups, run_files, run_marks, run_supervisor

MARKS = ("BOA_JOB_ID", "BOA_ATTEMPT", "BOA_CHECKPOINT_DIR")
"""Variables in the environment of a run's processes, and only of theirs."""
WARM = "BOA_WARM"
"""A variable in the environment of warm parents, and so of all that is forked from them."""
Marks: TypeAlias = tuple[str, ...]
MOST_NAMED = 3
_PAUSES_S = (0.001, 0.01, 0.04)
"""Seconds for processes to die of SIGKILL before they are looked for again. One may also have begun
another while they were looked through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """Everything that the processes of one run are known by."""

    environ: Marks | None = None
    supervisor: str = ""
    """PID.TICKS.BOOT of the one that is gone: its session is that of its workers. What was forked
    from a warm parent has the parent's environment in /proc, which says nothing of a run."""
    mark: int = 0
    folder: str = ""
    """Where its lock is."""
    cgroup: str = ""


def root_of(folder: str, born: str) -> int:
    """The part of marks that is the same in all runs of an engine, and in no other's: not in a
    copy's, which lies elsewhere, nor in those of a folder that lay here before (`born`)."""
    found = os.stat(folder)
    return binascii.crc32(f"{found.st_dev}.{found.st_ino}{born}".encode()) & 0x3FFFFF | 1


def mark_of(root: int, job: str, attempt: int) -> int:
    number = int(job) if job.isascii() and job.isdigit() else binascii.crc32(job.encode())
    return root << 40 | (number & 0xFFFFFFFF) << 8 | attempt & 0xFF


def marks_of(environment: Mapping[str, str]) -> Marks | None:
    """None of a process that belongs to no run."""
    marks = tuple(environment[name] for name in MARKS if name in environment)
    return marks if len(marks) == len(MARKS) else None


def kill(runs: Collection[Traces]) -> dict[Traces, str]:
    """Every process on this machine that belongs to one of these runs.

    Gives the runs of which something is left all the same, and what that is.
    """
    left = _left(runs) if runs else {}
    for pause_s in _PAUSES_S:
        if not left:
            return {}
        for run, pids in left.items():
            cgroups.kill(run.cgroup)
            for pid in pids:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(pause_s)
        left = _left(left)
    return {run: named(pids) for run, pids in left.items()}


def is_held(run: Traces) -> bool:
    """Whether a process is left, as far as that can be told without looking at every process."""
    return _is_locked(run.folder) or not cgroups.remove(run.cgroup)


def marked(root: int, cgroups_place: str) -> set[int]:
    """Marks of this engine's runs on processes of this machine, and on control groups in there."""
    found = {mark for pid in _pids() if (mark := _mark(pid)) >> 40 == root and _lives(pid)}
    return found | {mark for mark in cgroups.marks(cgroups_place) if mark >> 40 == root}


def named(pids: Collection[int]) -> str:
    """Processes, in words."""
    known = [f"process {pid} ({_command(pid)})" for pid in sorted(pids)[:MOST_NAMED]]
    more = [f"{len(pids) - MOST_NAMED} more"] if len(pids) > MOST_NAMED else []
    return ", ".join([*known, *more]) or "a process that cannot be seen from here"


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


def _left(runs: Collection[Traces]) -> dict[Traces, set[int]]:
    """Runs of which there is still something, with their processes as far as they are seen."""
    found: dict[Traces, set[int]] = {run: cgroups.members(run.cgroup) for run in runs}
    by_mark = {run.mark: run for run in runs if run.mark}
    by_environ = {run.environ: run for run in runs if run.environ}
    by_session = {run.supervisor.partition(".")[0]: run for run in runs if _is_gone(run.supervisor)}
    for pid in _pids():
        run = by_mark.get(_mark(pid)) or _by_environ(pid, by_environ, by_session)
        if run is not None:
            found[run].add(pid)
    held = {run for run in runs if _is_locked(run.folder)}
    for pid, run in _holders(held):
        found[run].add(pid)
    me = os.getpid()
    living = {run: {p for p in pids if p != me and _lives(p)} for run, pids in found.items()}
    return {
        run: pids
        for run, pids in living.items()
        if pids or run in held or not cgroups.remove(run.cgroup)
    }


def _by_environ(
    pid: int, by_environ: Mapping[Marks, Traces], by_session: Mapping[str, Traces]
) -> Traces | None:
    """A number that is a session's is not given to a new process; but an empty session is none."""
    environ = _environ(pid) if by_environ or by_session else {}
    marks = marks_of(environ)
    if marks is not None and marks in by_environ:
        return by_environ[marks]
    if not by_session or WARM not in environ:
        return None
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return by_session.get(file.read().rpartition(")")[2].split()[3])
    return None


def _is_gone(supervisor: str) -> bool:
    """Whether a supervisor of this boot is gone, and its number is no other process's by now."""
    number, its_boot = supervisor.split(".")[0], supervisor.split(".")[-1]
    return its_boot == boot() and not run_supervisor.identity(int(number))


def _is_locked(folder: str) -> bool:
    if not folder:
        return False
    try:
        fd = os.open(os.path.join(folder, run_marks.LOCK), os.O_RDONLY | run_files.PLAIN)
    except OSError:
        return False
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no locks on this file system
        return False
    finally:
        os.close(fd)
    return False


def _holders(runs: Collection[Traces]) -> Iterator[tuple[int, Traces]]:
    """Who has the locks of these runs open, among the processes that we may look into."""
    locks = {os.path.join(os.path.realpath(run.folder), run_marks.LOCK): run for run in runs}
    for pid in _pids() if locks else ():
        with suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    run = locks.get(os.readlink(f"/proc/{pid}/fd/{fd}"))
                    if run is not None:
                        yield pid, run


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _lives(pid: int) -> bool:
    return bool(run_supervisor.identity(pid))


def _mark(pid: int) -> int:
    """0 of a process without one."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/limits", "rb") as file:
        line = file.read().partition(b"Max file locks")[2]
        return int(line.split(maxsplit=2)[1])
    return 0


def _environ(pid: int) -> Mapping[str, str]:
    """As it was when the process began; empty where we may not look, or it is gone."""
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        entries = (entry.partition(b"=") for entry in file.read().split(b"\0"))
        return {os.fsdecode(k): os.fsdecode(v) for k, _, v in entries}
    return {}


def _command(pid: int) -> str:
    with suppress(OSError), open(f"/proc/{pid}/comm", errors="replace") as file:
        return file.read().strip()
    return "gone"
