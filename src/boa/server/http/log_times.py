"""When a log's bytes were printed, by the marks that its writer has left beside it."""

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from boa.model.runs import LogFile
from boa.plain_file import NotPlain, open_plain, plain_status
from boa.server.http.log_files import FOLDERS, size_of
from boa.units import Seconds

MOST_BYTES = 4 * 1024**2
CAME_BEFORE = b" bytes came before this line"


def marks_of(file: LogFile) -> list[tuple[Seconds, int]]:
    """(seconds of the wall, bytes of output before then), by time; empty where nobody noted any."""
    path = file.path.with_name(f"{file.rank}.times.log")
    found: list[tuple[Seconds, int]] = []
    with suppress(OSError, NotPlain), open_plain(path, folders=FOLDERS) as marks:
        for line in marks.read(MOST_BYTES).splitlines():
            with suppress(ValueError):
                count, at = line.split()
                found.append((float(at), int(count)))
    return sorted(found)


def began_at(files: Sequence[LogFile]) -> Seconds | None:
    """When the first byte was printed, by whichever worker: rank 0 may have said nothing."""
    return min((marks[0][0] for file in files if (marks := marks_of(file))), default=None)


def last_at(path: Path) -> Seconds:
    status = plain_status(path)
    return 0.0 if status is None else status.st_mtime


def offset_since(files: Sequence[LogFile], since: Seconds) -> int:
    """Where what was printed since then begins, in bytes from the first file's beginning; a second
    earlier, or a thousandth of the run's age, rather than later."""
    before = 0
    for file in files:
        status = plain_status(file.path)
        if status is None:
            continue
        if status.st_mtime >= since:
            return before + min(_inside(file, since), size_of(file))
        before += size_of(file)
    return before


def _inside(file: LogFile, since: Seconds) -> int:
    marks = marks_of(file)
    at = bisect_right([when for when, _ in marks], since)
    if at == 0:
        return 0
    cut, head = _cut(file)
    return max(marks[at - 1][1] - cut, 0) + (head if marks[at - 1][1] > cut else 0)


def _cut(file: LogFile) -> tuple[int, int]:
    """Bytes of output that this file does not have, since it was turned over, and of the line that
    says so."""
    with suppress(OSError, NotPlain), open_plain(file.path, folders=FOLDERS) as log:
        head = log.readline(200)
        words = head.split()
        if words[:1] == [b"[boa]"] and CAME_BEFORE in head and words[1].isdigit():
            return int(words[1]), len(head)
    return 0, 0
