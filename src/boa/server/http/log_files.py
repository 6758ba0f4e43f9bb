"""Files of a worker's log, which its job can change: how much of one is shown."""

import os
from contextlib import suppress

from boa.formats.service_fields import MAX_LOG_MB
from boa.model.runs import LogFile
from boa.plain_file import NotPlain, open_plain, plain_status

FOLDERS = 2
"""Folders above a log that are its job's: JOB/ATTEMPT/RANK.log."""
MOST_BYTES = round(MAX_LOG_MB) * 1024**2
"""Bytes of a file that are shown at most: BOA writes no longer log, whatever `log_mb` is."""
LARGEST_BLOCK = 64 * 1024
"""Bytes of a file system's blocks at most."""
NOTICE = (
    b"\n[boa] the job has made this log longer than what it printed: the rest of the file is "
    b"left out\n"
)
"""Shown in place of the rest of a file."""


def size_of(file: LogFile) -> int:
    """Return the bytes that are shown of a file, NOTICE included."""
    return sum(extent_of(file))


def extent_of(file: LogFile) -> tuple[int, int]:
    """Return the bytes of the file itself that are shown, and those of NOTICE after them."""
    status = plain_status(file.path)
    if status is None:
        return 0, 0
    if not _is_odd(status):
        return status.st_size, 0
    with suppress(OSError, NotPlain), open_plain(file.path, folders=FOLDERS) as log:
        return open_extent(log.fileno())
    return 0, 0


def open_extent(fd: int) -> tuple[int, int]:
    """Return the extent of an open file, whose position stays."""
    status = os.fstat(fd)
    if not _is_odd(status):
        return status.st_size, 0
    end = min(_first_hole(fd, status.st_size), MOST_BYTES)
    return end, len(NOTICE) if end < status.st_size else 0


def _is_odd(status: os.stat_result) -> bool:
    """Tell whether a file may have a hole, which truncate(1) makes, or is too long."""
    return status.st_size > MOST_BYTES or status.st_blocks * 512 < status.st_size


def _first_hole(fd: int, size: int) -> int:
    position = os.lseek(fd, 0, os.SEEK_CUR)
    try:
        hole = os.lseek(fd, 0, os.SEEK_HOLE)
        first = max(hole - LARGEST_BLOCK, 0)
        block = os.pread(fd, hole - first, first) if hole < size else b""
        return hole - (len(block) - len(block.rstrip(b"\0")))  # the last block is filled up
    except OSError:
        return size
    finally:
        os.lseek(fd, position, os.SEEK_SET)
