"""Last words of a run that failed: the line of its output that tells most of why."""

import os
import re
import stat

from boa.engines.processes.run_files import PLAIN

TAIL_BYTES = 8192
"""Bytes at the end of a log that are looked at."""
LONGEST = 200
"""Characters of a line that are kept."""
_RANK = re.compile(r"^(?:\[[\w ]{1,20}\]:? ?)+")
"""How PyTorch marks lines of one rank."""
_WORKER = re.compile(r"worker ([0-9]{1,6}): ")
_ERROR = re.compile(r"^[A-Za-z_][\w.]{0,100}(?:Error|Exception|Exit|Interrupt|Failure): \S")
_TELLING = ("out of memory", "NCCL error", "Killed")
"""Words that tell more than the error they come with."""


def last_words_of(folder: str, exit_code: int | None, reason: str) -> str:
    """Those of the worker of a run that failed first, by the run's folder: it is named in the
    reason if there were several. Of one that was killed only an error counts."""
    if not exit_code:
        return ""
    named = _WORKER.match(reason)
    found = last_words(
        os.path.join(folder, f"{named[1] if named else 0}.log"), errors_only=exit_code < 0
    )
    return "" if found in reason else found


def last_words(path: str, *, errors_only: bool = False) -> str:
    """The most telling line at the end of a log; empty where there is none, or no log."""
    try:
        fd = os.open(path, os.O_RDONLY | PLAIN)
    except OSError:
        return ""
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return ""
        data = os.pread(fd, TAIL_BYTES, max(found.st_size - TAIL_BYTES, 0))
    except OSError:
        return ""
    finally:
        os.close(fd)
    return most_telling(data.decode("utf-8", "replace"), errors_only=errors_only)


def most_telling(text: str, *, errors_only: bool = False) -> str:
    """The last line with a word that tells, else the last error with words of its own, else the
    last line."""
    lines = [_RANK.sub("", _plain(line)).strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    telling = [line for line in lines if any(word in line for word in _TELLING)]
    errors = [line for line in lines if _ERROR.match(line)]
    found = (telling or errors or ([] if errors_only else lines) or [""])[-1]
    return found if len(found) <= LONGEST else f"{found[: LONGEST - 1]}…"


def _plain(line: str) -> str:
    """Without colours and other control characters."""
    bare = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", line)
    return "".join(letter if letter.isprintable() else " " for letter in bare)
