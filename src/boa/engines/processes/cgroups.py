"""Control groups (version 2) of runs, where the service may make some inside of its own.

No limits are set: a group is only what a run's processes are found by, and ended together. It is
made before the run begins and removed when nothing is left in it, which the kernel checks.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

PREFIX = "boa-"


def place() -> str:
    """The folder of this process's own group, if others can be made in it; else empty."""
    with suppress(OSError, ValueError, StopIteration):
        with open("/proc/self/cgroup") as groups:
            own = next(line.rstrip("\n")[3:] for line in groups if line.startswith("0::"))
        with open("/proc/self/mountinfo") as mounts:
            for root, mount in _mounts(mounts):
                inside = own if root == "/" else own.removeprefix(root)
                folder = os.path.normpath(f"{mount}/{inside}")
                files = (folder, os.path.join(folder, "cgroup.procs"))
                if folder.startswith(mount) and all(os.access(file, os.W_OK) for file in files):
                    return folder
    return ""


def path_of(place: str, mark: int) -> str:
    """The group of a run; empty where there can be none."""
    return os.path.join(place, f"{PREFIX}{mark:016x}") if place else ""


def marks(place: str) -> set[int]:
    """Those that have a group there."""
    found: set[int] = set()
    with suppress(OSError):
        for name in os.listdir(place) if place else ():
            with suppress(ValueError):
                if name.startswith(PREFIX):
                    found.add(int(name.removeprefix(PREFIX), 16))
    return found


def make(path: str) -> None:
    """The group, if it can be made: who is to join it finds out."""
    if path:
        with suppress(OSError):
            os.mkdir(path)


def members(path: str) -> set[int]:
    found: set[int] = set()
    for folder in _inside(path):
        with suppress(OSError), open(os.path.join(folder, "cgroup.procs")) as file:
            found.update(map(int, file.read().split()))
    return found - {0}  # of another namespace


def kill(path: str) -> None:
    """SIGKILL to all of it at once, so that none can begin another meanwhile."""
    try:
        fd = os.open(os.path.join(path or os.devnull, "cgroup.kill"), os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"1")
        finally:
            os.close(fd)
    except OSError:  # there is none, or it is before Linux 5.14
        for pid in members(path):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def remove(path: str) -> bool:
    """Whether it is gone: it is not while a process is in it."""
    for folder in _inside(path):
        with suppress(OSError):
            os.rmdir(folder)
    return not os.path.exists(path)


def _inside(path: str) -> list[str]:
    """A group and those that its processes have made in it, the innermost first."""
    return [folder for folder, _, _ in os.walk(path, topdown=False)] if path else []


def _mounts(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        fields = line.split()
        if fields[fields.index("-") + 1] == "cgroup2":
            yield fields[3], fields[4]
