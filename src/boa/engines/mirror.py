"""The output of a rank that runs elsewhere, in files on the service's disk."""

import os
import time

from boa.engines.processes import run_files
from boa.plain_file import NotPlain, open_plain


class Mirror(run_files.Log):
    """The output of a rank elsewhere, in files here. Goes on where another left off."""

    def __init__(self, folder: str, rank: int, limit: int) -> None:
        self.path = os.path.join(folder, f"{rank}.log")
        self.old = os.path.join(folder, f"{rank}.old.log")
        self.times = os.path.join(folder, f"{rank}.times.log")
        self.began, self.marked = time.time(), 0.0
        self.limit, self.part = limit, max(limit // 2, run_files.LEAST_PART)
        self.lost, self.fd = 0, -1
        self.size, self.seen = _left_off(self.path)
        if not self.size:  # it may just have been turned over
            self.seen = _left_off(self.old)[1]
        self._append(b"")
        self.release()

    def take(self, first: int, data: bytes) -> None:
        """A piece of the output, and how much of it came before."""
        if first > self.seen:  # while nobody asked, more came than is kept there
            self._turn()
            self.seen = first
        self.write(data[self.seen - first :])
        self.release()

    def release(self) -> None:
        """No open file for each of thousands of ranks."""
        if self.fd >= 0:
            run_files.attempt(os.close, self.fd)
            self.fd = -1

    def _open(self) -> None:
        if self.size:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | run_files.PLAIN
            self.fd = os.open(self.path, flags, 0o600)
        else:
            super()._open()


def _left_off(path: str) -> tuple[int, int]:
    """The size of a log, and how much output there had been at its end: its first line says."""
    try:
        with open_plain(path) as file:
            head = file.readline(200)
            size = os.fstat(file.fileno()).st_size
    except (FileNotFoundError, NotPlain):
        return 0, 0
    words = head.split()
    if words[:1] == [b"[boa]"] and b" bytes came before this line" in head and words[1].isdigit():
        return size, int(words[1]) + size - len(head)
    return size, size
