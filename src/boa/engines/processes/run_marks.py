"""Marks of a run: what its processes cannot shed as they can their environment and their session.

mark      a number, worn as the limit on file locks, which Linux has long ceased to enforce: what
          is forked has it, whatever it executes, and nobody can raise it again without privileges
lock      a file that the supervisor locks, and that all its processes inherit open: locked as
          long as one of them lives, also where it cannot be seen
cgroup    where the service may make one

Whoever looks for a run's processes finds them by any of these (`orphans.py`). Runs without the
rest of the package, as does the supervisor, which puts them on.
"""

import _ctypes  # `ctypes` itself takes longer to import than all the rest together
import fcntl
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from boa.engines.processes.run_files import PLAIN, attempt
else:
    from run_files import PLAIN, attempt

RLIMIT_LOCKS = 10
LOCK = "lock"
LOCK_FD = 200
"""Where the lock is open, or the next that is free: far from what scripts open by number."""
ROUNDS = 10
"""Processes may begin others while they are gathered."""
kept: set[int] = set()
"""Files that a worker must not close on its way."""
_worn: int | None = None


def libc(name: str, *arguments: "int | bytes") -> int:
    """The result of one of its functions."""
    itself = _ctypes.dlopen(None, os.RTLD_NOW)  # type: ignore[arg-type]  # as `ctypes` does
    function = _ctypes.dlsym(itself, name)
    result: int = _ctypes.call_function(function, arguments)
    return result


def wear(mark: int) -> None:
    """Put on what can be at once: in the run's folder, before its first process is begun."""
    _limit(mark)
    attempt(_lock)  # not on a full disk, nor on every file system


def _limit(mark: int) -> None:
    global _worn
    _worn = mark
    limits = mark.to_bytes(8, sys.byteorder) * 2
    libc("setrlimit", RLIMIT_LOCKS, limits)  # in vain in some sandboxes, and inside another run


def worn() -> int | None:
    return _worn


def take_on(mark: int | None, locks: "list[int]") -> None:
    """In a process that was there before its run: what it would have inherited."""
    if mark is not None:
        _limit(mark)
    for fd in locks:
        _keep(fd)
        os.close(fd)


def _lock() -> None:
    fd = os.open(LOCK, os.O_RDWR | os.O_CREAT | PLAIN, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _keep(fd)
    finally:
        os.close(fd)


def _keep(fd: int) -> None:
    """Out of the way, for what is forked and executed too."""
    try:
        kept.add(fcntl.fcntl(fd, fcntl.F_DUPFD, LOCK_FD))
    except OSError:  # more than may be open
        kept.add(fcntl.fcntl(fd, fcntl.F_DUPFD, 3))


def gather(cgroup: str) -> None:
    """This process and all that descends from it, into that group, when all are up: the kernel
    takes milliseconds over each. What they begin after that begins in there."""
    moved: set[int] = set()
    for _ in range(ROUNDS):
        found = _descendants(os.getpid())
        if found <= moved:
            return
        for pid in found - moved:
            attempt(_move, cgroup, pid)
        moved |= found


def _descendants(pid: int) -> "set[int]":
    """A process and all of its."""
    found, to_ask = {pid}, [pid]
    while to_ask:
        new = children(to_ask.pop()) - found
        found |= new
        to_ask += new
    return found


def _move(cgroup: str, pid: int) -> None:
    fd = os.open(os.path.join(cgroup, "cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"%d" % pid)
    finally:
        os.close(fd)


def children(pid: int) -> "set[int]":
    """Children of all its threads."""
    found: set[int] = set()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found.update(map(int, file.read().split()))
    except OSError:  # it has ended
        return found
    return found
