"""Logs of a job as one text: run after run, read on as they grow."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence

from starlette.concurrency import run_in_threadpool

from boa.engines.base import Engine, LogFile
from boa.errors import InputError
from boa.model.cluster import JobId
from boa.server.context import Service
from boa.server.streams import LOOK_S
from boa.store.base import StoreTrouble

BLOCK = 64 * 1024


def select(engine: Engine, job: JobId, attempt: int | None, rank: int) -> list[LogFile]:
    """The files of one worker, oldest first. A job that has printed nothing yet has none."""
    return [f for f in engine.logs(job) if f.rank == rank and attempt in (None, f.attempt)]


def check_exists(engine: Engine, job: JobId, attempt: int | None, rank: int) -> None:
    """Refuse a run or a worker that never was, if others were."""
    files = engine.logs(job)
    if attempt is not None:
        _one_of("attempt", attempt, {file.attempt for file in files})
        files = [file for file in files if file.attempt == attempt]
    _one_of("rank", rank, {file.rank for file in files})


def _one_of(field: str, value: int, known: set[int]) -> None:
    if known and value not in known:
        raise InputError(field, value, f"one that has a log: {', '.join(map(str, sorted(known)))}")


def log_offset(files: Sequence[LogFile], tail: int | None) -> int:
    """Where the last so many lines begin, counted in bytes from the first file's beginning."""
    if tail is None:
        return 0
    sizes = [_size(file) for file in files]
    wanted = tail
    for n in reversed(range(len(files))):
        begin, found = _last_lines(files[n], sizes[n], wanted)
        if found >= wanted:
            return sum(sizes[:n]) + begin
        wanted -= found
    return 0


def _last_lines(file: LogFile, size: int, wanted: int) -> tuple[int, int]:
    """Where the last lines of a file begin, and how many there are: `wanted`, or all."""
    if wanted == 0:
        return size, 0
    found, end = 0, size
    with file.path.open("rb") as log:
        while end > 0:
            begin = max(end - BLOCK, 0)
            log.seek(begin)
            block = log.read(end - begin)
            at = len(block)
            while (at := block.rfind(b"\n", 0, at)) >= 0:
                if begin + at == size - 1:
                    continue  # the end of the last line, not of the one before it
                found += 1
                if found == wanted:
                    return begin + at + 1, found
            end = begin
    return 0, found + (size > 0)


def _size(file: LogFile) -> int:
    try:
        return file.path.stat().st_size
    except FileNotFoundError:
        return 0


class LogReader:
    """Reads on from where it stopped, in one file after the other.

    A log that grows long is turned over: its file gets another name and a new one begins. So files
    are known by their inodes.
    """

    def __init__(self, files: Callable[[], Sequence[LogFile]], skip: int) -> None:
        self._files, self._skip = files, skip
        self._attempt, self._inode, self._at = 0, 0, 0

    def more(self) -> bytes:
        """At most a block; empty if there is nothing new."""
        files = [(file, inode) for file in self._files() if (inode := _inode(file))]
        where = [inode for _, inode in files]
        if self._inode in where:
            files = files[where.index(self._inode) :]
        else:  # none yet, or the one being read is gone
            files = [found for found in files if found[0].attempt >= self._attempt]
        for file, inode in files:
            found = self._read(file, inode)
            if found != b"":
                return found or b""
        return b""

    def _read(self, file: LogFile, inode: int) -> bytes | None:
        """None: it was turned over at this very moment; another look will find it."""
        try:
            log = file.path.open("rb")
        except FileNotFoundError:
            return None
        with log:
            stat = os.fstat(log.fileno())
            if stat.st_ino != inode:
                return None
            if inode != self._inode or stat.st_size < self._at:
                self._attempt, self._inode, self._at = file.attempt, inode, 0
            skipped = min(self._skip, stat.st_size - self._at)
            self._at, self._skip = self._at + skipped, self._skip - skipped
            log.seek(self._at)
            found = log.read(BLOCK)
        self._at += len(found)
        return found


def _inode(file: LogFile) -> int:
    try:
        return file.path.stat().st_ino
    except FileNotFoundError:
        return 0


async def log_chunks(
    service: Service, reader: LogReader, job: JobId, *, follow: bool
) -> AsyncIterator[bytes]:
    while True:
        # Asked first: what was printed before the end is then still read after it.
        over = not follow or await run_in_threadpool(_ended, service, job)
        while found := await run_in_threadpool(reader.more):
            yield found
        if over or service.stopping.is_set():
            return
        await asyncio.sleep(LOOK_S)


def _ended(service: Service, job: JobId) -> bool:
    try:
        return service.job(job).ended
    except StoreTrouble:
        return False
