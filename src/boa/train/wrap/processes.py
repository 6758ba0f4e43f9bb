"""Processes that a command has begun."""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress

from boa.train.wrap.fitting import launcher_of


def below(pid: int) -> dict[int, str]:
    """All that it has begun, and they, with when each began: a number may be given again."""
    children: dict[int, list[tuple[int, str]]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit() and (about := _about(int(name))):
            children.setdefault(about[0], []).append((int(name), about[1]))
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for child, began in children.get(waiting.pop(), ()):
            found[child] = began
            waiting.append(child)
    return found


def have_open(pid: int, path: str) -> bool:
    """Return whether a process, or any that it has begun, has a file open."""
    path = os.path.realpath(path)
    for each in (pid, *below(pid)):
        with suppress(OSError):
            for fd in os.listdir(f"/proc/{each}/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/{each}/fd/{fd}") == path:
                        return True
    return False


def to_ask(pid: int, command: Sequence[str]) -> list[int]:
    """Those that a signal to save is for: of a launcher the ranks that it has started, which it
    does not pass such signals on to; else the process itself."""
    if launcher_of(command)[0] is None:
        return [pid]
    return [child for child in below(pid) if (about := _about(child)) and about[0] == pid]


def is_still(pid: int, began: str) -> bool:
    about = _about(pid)
    return about is not None and about[1] == began


def signalled(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process, or to the group -pid, if it is still there."""
    try:
        if pid < 0:
            os.killpg(-pid, number)
        else:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _about(pid: int) -> tuple[int, str] | None:
    """Its parent, and when it began."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[1]), fields[19]
    except (OSError, ValueError, IndexError):
        return None
