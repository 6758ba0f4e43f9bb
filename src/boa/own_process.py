"""This process, closed to others of its own user as far as the kernel lets us.

/proc/PID/environ shows for ever what a process was started with, and whoever is the same user may
read it, or all of its memory. Jobs often are the same user.
"""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

PR_SET_DUMPABLE = 4
ENV_START = 47
"""The place of the address of the first variable in /proc/PID/stat, after the name; the next is
that of the end."""


def close_to_others(is_shown: Callable[[str], bool]) -> None:
    """Blank the values that this process was started with, but for names that are shown; then deny
    its memory, files and environment to all but root. What the process itself sees stays.

    Where the kernel does not let us (another system than Linux, say) things are as they were.
    """
    try:
        _blank(is_shown)
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, ValueError, IndexError, AttributeError):
        return


def _blank(is_shown: Callable[[str], bool]) -> None:
    at, block = _block()
    for entry in block.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        variable = os.fsdecode(name)
        if equals and not is_shown(variable):
            if variable in os.environ:
                os.environ[variable] = os.environ[variable]  # a copy of its own, elsewhere
            ctypes.memset(at + len(name) + 1, 0, len(value))
        at += len(entry) + 1


def _block() -> tuple[int, bytes]:
    """Where the environment that this process was started with lies, and what is in it."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = map(int, fields[ENV_START : ENV_START + 2])
    found = Path("/proc/self/environ").read_bytes()
    if not begin or end - begin != len(found) or ctypes.string_at(begin, len(found)) != found:
        raise ValueError("the environment is not where it should be")
    return begin, found
