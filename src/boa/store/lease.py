"""A lock that ends with the process that holds it, however that process ends.

A forked child inherits open files, and with them the lock: it would outlive a service that was
killed. So children let go of it as soon as they are born.
"""

import contextlib
import fcntl
import os
import weakref
from pathlib import Path
from typing import Protocol


class LockHolder(Protocol):
    def let_go_in_child(self) -> None:
        """Close this process's copy of what holds the lock; the parent's still does."""
        ...


_held: "weakref.WeakSet[LockHolder]" = weakref.WeakSet()


def not_for_children(held: LockHolder) -> None:
    _held.add(held)


def _let_go() -> None:
    while _held:
        _held.pop().let_go_in_child()


os.register_at_fork(after_in_child=_let_go)


class FileLease:
    """An exclusive flock on a file that says who holds it."""

    def __init__(self, path: Path) -> None:
        """Raises BlockingIOError if somebody else holds it."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            os.close(file)
            raise
        self._file: int | None = file
        not_for_children(self)

    @staticmethod
    def holder(path: Path) -> str:
        """The process that last took it; empty if that cannot be read."""
        with contextlib.suppress(OSError):
            return path.read_text(encoding="ascii", errors="replace").strip()
        return ""

    def let_go_in_child(self) -> None:
        self._close()

    def release(self) -> None:
        _held.discard(self)
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
