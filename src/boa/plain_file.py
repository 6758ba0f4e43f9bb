"""Files that a job may have replaced: read only where they are plain files, and never waited for.

A pipe in the place of a log would hold whoever opens it for ever; a link would show another file.
Standard library alone, so that any layer may use it. What runs without the rest of the package
keeps a few lines of its own: `engines/processes/run_files.py`.
"""

import errno
import os
import secrets
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 64 * 1024**2
"""No file that the service keeps for itself is longer."""
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_NONE = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO)
"""A link, a link to a folder, a socket."""


class NotPlain(OSError):
    """Something else stands where a plain file was."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(errno.EINVAL, f"is {kind_of(path)}, not a plain file", str(path))


def open_plain(path: str | Path, *, folders: int = 0, follow: bool = False) -> BinaryIO:
    """For reading, from its beginning. `folders`: so many above it may be no links either.
    `follow`: it may be a link itself, to a plain file."""
    path = Path(path)
    top, *between = [*reversed(path.parents[: folders + 1])]
    with ExitStack() as opened:
        try:
            where = _folder(opened, top, None, 0)
            for folder in between:
                where = _folder(opened, folder.name, where, os.O_NOFOLLOW)
            found = os.open(
                path.name, os.O_RDONLY | _FLAGS | (0 if follow else os.O_NOFOLLOW), dir_fd=where
            )
        except OSError as trouble:
            if trouble.errno in _NONE:
                raise NotPlain(path) from None
            raise
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise NotPlain(path)
    return os.fdopen(found, "rb")


def _folder(opened: ExitStack, path: str | Path, where: int | None, flags: int) -> int:
    found = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _FLAGS | flags, dir_fd=where)
    opened.callback(os.close, found)
    return found


def read_plain(path: str | Path, *, most: int = MOST_BYTES, follow: bool = False) -> bytes:
    """All of it, or `most`."""
    with open_plain(path, follow=follow) as file:
        return file.read(most)


def plain_status(path: str | Path) -> os.stat_result | None:
    """Its size and the like; None where it is no plain file, or not there."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def remove_folder(path: str | Path) -> None:
    """Remove a folder with all that is in it, however deep: a job may nest more than a call or a
    descriptor per level can follow, so each folder is moved to the top before it is emptied.
    Follows no link. Raises OSError."""
    top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mine, number = secrets.token_hex(8), 0
        waiting = _emptied(top)
        while waiting:
            name = waiting.pop()
            where = _opened(name, top)
            try:
                for folder in _emptied(where):
                    waiting.append(f".{mine}.{number}")
                    number += 1
                    os.rename(folder, waiting[-1], src_dir_fd=where, dst_dir_fd=top)
            finally:
                os.close(where)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(path)


def _emptied(where: int) -> list[str]:
    """Names of folders in one, which had all else removed."""
    with os.scandir(where) as found:
        entries = [(one.name, one.is_dir(follow_symlinks=False)) for one in found]
    for name, is_folder in entries:
        if not is_folder:
            os.unlink(name, dir_fd=where)
    return [name for name, is_folder in entries if is_folder]


def _opened(name: str, where: int) -> int:
    """A folder, closed to its own user or not."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=where)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=where)
        return os.open(name, flags, dir_fd=where)


def kind_of(path: str | Path) -> str:
    """The kind of thing that stands there, in words."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return "nothing that can be looked at"
    kinds = {
        stat.S_IFIFO: "a pipe",
        stat.S_IFLNK: "a link",
        stat.S_IFDIR: "a folder",
        stat.S_IFSOCK: "a socket",
        stat.S_IFREG: "in a folder that is a link",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
