"""The folder of results: one command's at a time, and tried before hours are spent on it."""

import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from boa.errors import FileError
from boa.paper.pool import RUNS
from boa.paper.results import SUFFIXES
from boa.paper.study import Study
from boa.paper.summary import SUMMARY

LOCK = ".lock"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder, made if it is not there, for us alone until the block ends."""
    try:
        for part in (folder, folder / RUNS):
            part.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=part).close()
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as problem:
        raise _unfit(folder, problem.filename, problem.strerror or str(problem)) from None
    try:
        _lock(folder, lock)
        yield
    finally:
        os.close(lock)


def _lock(folder: Path, lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        problem = "another boa paper is writing to it"
        expected = "a folder of its own, or that command to be ended first"
        raise FileError(f"--output {folder}", problem, expected) from None


def check_files(folder: Path, chosen: Iterable[Study]) -> None:
    """Refuse a folder, or what else is no file, in the place of one that is to be written."""
    names = [study.name + suffix for study in chosen for suffix in SUFFIXES]
    for path in (folder / name for name in (SUMMARY, *names)):
        if path.exists() and not path.is_file():
            raise _unfit(folder, path, "is no regular file")


def _unfit(folder: Path, path: Path | str | None, problem: str) -> FileError:
    where = f"{path}: " if path is not None and Path(path) != folder else ""
    return FileError(f"--output {folder}", where + problem, "a folder that can be written")
