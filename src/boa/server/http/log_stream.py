"""Logs of a job as one text: run after run, read on as they grow."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import BinaryIO

from starlette.concurrency import run_in_threadpool

from boa.engines.base import Engine
from boa.engines.processes.masking import Mask
from boa.errors import InputError
from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.model.runs import LogFile
from boa.plain_file import NotPlain, open_plain, plain_status
from boa.server.context import Service
from boa.server.http.errors import LogReplaced
from boa.server.http.log_files import FOLDERS, NOTICE, extent_of, open_extent, size_of
from boa.server.http.streams import LOOK_S
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


def check_plain(files: Sequence[LogFile]) -> None:
    """Refuse what a job has put in the place of a log."""
    for file in files:
        try:
            open_plain(file.path, folders=FOLDERS).close()
        except FileNotFoundError:
            continue  # it was turned over
        except NotPlain as problem:
            what = str(problem.strerror)
            raise LogReplaced(file.attempt, file.rank, file.path.name, what) from None


def _one_of(field: str, value: int, known: set[int]) -> None:
    if known and value not in known:
        raise InputError(field, value, f"one that has a log: {', '.join(map(str, sorted(known)))}")


def log_offset(files: Sequence[LogFile], tail: int | None, skip: int | None = None) -> int:
    """Where the last so many lines begin, counted in bytes from the first file's beginning.

    `skip`, where the log is as long: a log that grows long is cut at its beginning.
    """
    if tail is None:
        return skip or 0
    sizes = [size_of(file) for file in files]
    if skip is not None and skip <= sum(sizes):
        return skip
    wanted = tail
    for n in reversed(range(len(files))):
        begin, found = _last_lines(files[n], wanted)
        if found >= wanted:
            return sum(sizes[:n]) + begin
        wanted -= found
    return 0


def _last_lines(file: LogFile, wanted: int) -> tuple[int, int]:
    """Where the last lines of a file begin, and how many there are: `wanted`, or all."""
    size, notice = extent_of(file)
    if wanted == 0:
        return size + notice, 0
    found, end = 0, size
    with open_plain(file.path, folders=FOLDERS) as log:
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


class LogReader:
    """Reads on from where it stopped, in one file after the other.

    A log that grows long is turned over: its file gets another name and a new one begins. So the
    file being read is kept open, and files are known by their inodes.
    """

    def __init__(self, files: Callable[[], Sequence[LogFile]], skip: int) -> None:
        self._files, self._skip = files, skip
        self._log: BinaryIO | None = None
        self._attempt, self._inode = 0, 0
        self._noticed = False

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def more(self) -> bytes:
        """At most a block; empty if there is nothing new."""
        files = self._listed()  # first: what has a successor by now has got all it will ever get
        found = self._read()
        if found:
            return found
        for file, inode in self._later(files):
            if not self._open(file, inode):
                return b""  # it was turned over at this very moment: another look will find it
            found = self._read()
            if found:
                return found
        return b""

    def _listed(self) -> "list[tuple[LogFile, int]]":
        return [(file, inode) for file in self._files() if (inode := _inode(file))]

    def _later(self, files: "list[tuple[LogFile, int]]") -> "list[tuple[LogFile, int]]":
        """Files after the one being read; all, where that is none or gone."""
        for looked in (files, self._listed()):  # a list may be of before and after a turn at once
            where = [inode for _, inode in looked]
            if self._inode in where:
                return looked[where.index(self._inode) + 1 :]
        return [found for found in files if found[0].attempt >= self._attempt]

    def _open(self, file: LogFile, inode: int) -> bool:
        try:
            log = open_plain(file.path, folders=FOLDERS)
        except (FileNotFoundError, NotPlain):
            return False
        if os.fstat(log.fileno()).st_ino != inode:
            log.close()
            return False
        self.close()
        self._log, self._attempt, self._inode = log, file.attempt, inode
        self._noticed = False
        return True

    def _read(self) -> bytes:
        if self._log is None:
            return b""
        end, notice = open_extent(self._log.fileno())
        left = max(end - self._log.tell(), 0)
        skipped = min(self._skip, left)
        self._skip -= skipped
        self._log.seek(skipped, os.SEEK_CUR)
        found = self._log.read(min(BLOCK, left - skipped))
        if found or not notice or self._noticed:
            return found
        self._noticed = True
        skipped = min(self._skip, notice)
        self._skip -= skipped
        return NOTICE[skipped:]


def _inode(file: LogFile) -> int:
    status = plain_status(file.path)
    return 0 if status is None else status.st_ino


async def log_chunks(
    service: Service, reader: LogReader, job: JobId, *, follow: bool, attempt: int | None = None
) -> AsyncIterator[bytes]:
    """`attempt`: it ends with this run."""
    try:
        while True:
            # Asked first: what was printed before the end is then still read after it.
            record = service.control.snapshot.jobs.get(job)  # most are: asked on no thread
            over = not follow or (
                await run_in_threadpool(_ended, service, job)
                if record is None
                else attempt is not None and _is_past(record, attempt)
            )
            while found := await run_in_threadpool(reader.more):
                yield found
            if over or service.stopping.is_set():
                return
            await asyncio.sleep(LOOK_S)
    finally:
        reader.close()


async def masked_chunks(
    chunks: AsyncIterator[bytes], mask: Mask, before: int
) -> AsyncIterator[bytes]:
    """Without secrets, and without so many first bytes. What may be the beginning of a secret waits
    for what follows."""
    async for found in chunks:
        told = mask.feed(found)
        left, before = told[before:], max(before - len(told), 0)
        if left:
            yield left
    if rest := mask.rest()[before:]:
        yield rest


def _is_past(record: JobRecord, attempt: int) -> bool:
    """Whether a run of the job is over."""
    return record.attempts >= attempt and (record.run is None or record.run.attempt != attempt)


def _ended(service: Service, job: JobId) -> bool:
    try:
        return service.job(job).ended
    except StoreTrouble:
        return False
