"""The memory that all keepers of a node hold together, so that it is never more than they may.

Every keeper has a file in one folder with the number of its bytes, locked while it lives: what a
dead one had is free.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = "lock"
_SUFFIX = ".bytes"


class Ledger:
    def __init__(self, folder: Path, most_bytes: int) -> None:
        """`most_bytes`: of all keepers that write into this folder."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self.most_bytes = folder, most_bytes
        self._name = f"{os.getpid()}{_SUFFIX}"
        with self._alone():
            self._mine = os.open(folder / self._name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            fcntl.flock(self._mine, fcntl.LOCK_EX)
            self._write(0)

    def take(self, held: int, more: int) -> int:
        """Write down that this keeper, which has `held` bytes, has `more` from now on. Gives how
        many there are for it; if that is less, nothing was written."""
        with self._alone():
            left = self.most_bytes - self._others() - held
            if more <= left:
                self._write(held + more)
            return left

    def set(self, held: int) -> None:
        with self._alone():
            self._write(held)

    def close(self) -> None:
        (self._folder / self._name).unlink(missing_ok=True)
        os.close(self._mine)

    def _others(self) -> int:
        total = 0
        for path in self._folder.glob(f"*{_SUFFIX}"):
            if path.name == self._name:
                continue
            try:
                total += self._held(path)
            except (OSError, ValueError):  # gone, or nobody's
                continue
        return total

    @staticmethod
    def _held(path: Path) -> int:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return max(int(os.pread(file, 32, 0)), 0)
        else:  # its keeper is no more
            path.unlink(missing_ok=True)
            return 0
        finally:
            os.close(file)

    def _write(self, held: int) -> None:
        os.pwrite(self._mine, f"{held:<31}\n".encode(), 0)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        file = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def share_of_memory(share: float) -> int:
    """Bytes of this node, or of the control group that we are in, whichever is less."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(path).read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return int(total * share)


def in_words(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
