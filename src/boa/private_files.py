"""Folders and files for the service's own user alone: 0700 and 0600, whatever the umask is.

Standard library alone, so that any layer may use it.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

OTHERS = 0o077


def private_folder(path: str | Path) -> None:
    """Made where it is not there, with all that is missing above it. One that is there stays as it
    is."""
    path = Path(path)
    if path.is_dir():
        return
    if not path.parent.exists():
        private_folder(path.parent)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise


def private_file(
    path: str | Path, content: bytes = b"", owner: tuple[int, int] | None = None
) -> None:
    """A new one with this in it. FileExistsError: there is one, or something else. `owner`: the
    user and group whose it is to be, whatever has its name by then."""
    found = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(found, "wb") as file:
        file.write(content)
        if owner is not None:
            os.fchown(file.fileno(), *owner)


def tighten(paths: Iterable[Path]) -> list[Path]:
    """Take from others what they may do with files and folders of ours. Gives those that stay open
    to others, because they are not ours; links and what is not there are passed over."""
    return [path for path in paths if is_open(path) and not _closed(path)]


def is_open(path: Path) -> bool:
    """Whether others may do anything with it."""
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        return not stat.S_ISLNK(mode) and bool(mode & OTHERS)
    return False


def _closed(path: Path) -> bool:
    with suppress(OSError):
        found = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.fchmod(found, stat.S_IMODE(os.fstat(found).st_mode) & ~OTHERS)
        finally:
            os.close(found)
        return True
    return False
