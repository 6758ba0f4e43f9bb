"""Processes of a world: who they are, found without asking the service."""

import ctypes
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 180.0
"""Only what never comes takes so long, however busy the machine is."""
LOOK_S = 0.02


class NeverCame(Exception):
    """A state that was waited for, in words."""


def until(
    done: Callable[[], bool], what: str, within_s: float = PATIENCE_S, every_s: float = LOOK_S
) -> None:
    deadline = time.monotonic() + within_s
    while not done():
        if time.monotonic() > deadline:
            raise NeverCame(f"{what}: not within {within_s:g} s")
        time.sleep(every_s)


def adopt_orphans() -> None:
    """All that is begun from here, and loses its parent, becomes ours: nobody is lost sight of."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def below(root: int) -> list[int]:
    """Living processes that were begun by this one, or by one of those."""
    children: dict[int, list[int]] = defaultdict(list)
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                children[int(parent)].append(int(name))
    found = list(children[root])
    for pid in found:  # which grows
        found += children[pid]
    return found


def children(parent: int) -> list[int]:
    """Begun by any of its threads."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{parent}/task"):
            with suppress(OSError):
                text = Path(f"/proc/{parent}/task/{thread}/children").read_text()
                found += [int(pid) for pid in text.split() if lives(int(pid))]
    return found


def lives(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def environment(pid: int) -> dict[str, str]:
    with suppress(OSError):
        entries = (
            entry.partition(b"=")
            for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        )
        return {os.fsdecode(name): os.fsdecode(value) for name, _, value in entries}
    return {}


def command(pid: int) -> list[str]:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        return [os.fsdecode(word) for word in words]
    return []


def send(pid: int, number: int) -> bool:
    """False of one that is gone, or is none that was begun from here: a number may be a stranger's
    by now, and 0 and -1 are those of many."""
    if pid <= 1 or pid not in below(os.getpid()):
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def end_all(found: Callable[[], Collection[int]]) -> None:
    """SIGKILL until nobody is left, however fast they begin others."""

    def over() -> bool:
        for pid in (left := list(found())):
            send(pid, signal.SIGKILL)
        bury()
        return not left

    until(over, "processes that do not die of SIGKILL")


def bury() -> None:
    """Reap orphans that were handed to us; not children that somebody waits for."""
    for pid in _zombies():
        if pid not in awaited:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


awaited: set[int] = set()
"""Children of ours that are some `Popen`'s."""


def _zombies() -> Iterator[int]:
    me = str(os.getpid())
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
            if state == "Z" and parent == me:
                yield int(name)
