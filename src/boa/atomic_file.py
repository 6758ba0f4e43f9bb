"""Files that are replaced as a whole: who reads one sees the old or the new, never half.

Standard library alone, so that any layer may use it. What runs without the rest of the package
keeps a few lines of its own: `engines/processes/run_files.py`, `engines/ray/rank_supervisor.py`,
`train/replay.py`.
"""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_file(
    path: str | Path, content: str | bytes, *, durable: bool = False, private: bool = False
) -> None:
    """The file with this in it, text as UTF-8, or else as it was before."""
    with drafted(path, durable=durable, private=private) as draft:
        draft.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def drafted(path: str | Path, *, durable: bool = False, private: bool = False) -> Iterator[Path]:
    """A file to write to, which takes the place of `path` when the block ends well.

    It is gone if the block raises. `durable`: the new one is on the disk before anybody is told, so
    that a power cut leaves one of the two; otherwise only a killed process is thought of. What is
    no plain file (/dev/stdout, a pipe) is handed out as it is. `private`: a file of the service's
    own, for nobody else to read; whatever somebody has put in its place goes.
    """
    if private:
        whole = Path(path)
    else:
        whole = Path(os.path.realpath(path))  # a link stays one: what it points to is replaced
        if whole.exists() and not whole.is_file():
            yield whole
            return
    draft = draft_of(whole)
    try:
        _make(draft, None if private else whole)
        yield draft
        if durable:
            to_disk(draft)
        os.replace(draft, whole)
    finally:
        draft.unlink(missing_ok=True)
    if durable:
        to_disk(whole.parent)


def draft_of(path: Path) -> Path:
    """Beside the file, so on the same disk, and no other writer's."""
    return path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.part")


def _make(draft: Path, like: Path | None) -> None:
    """With the permissions that opening the file itself would leave it with; None: for us alone."""
    mode: int | None = 0o600
    if like is not None:
        try:
            mode = stat.S_IMODE(like.stat().st_mode)
        except FileNotFoundError:
            mode = None
    draft.unlink(missing_ok=True)  # of a process that was killed
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
    try:
        if mode is not None:
            os.fchmod(fd, mode)
    finally:
        os.close(fd)


def free_name(path: Path) -> Path:
    """The path, or one like it that nothing has yet."""
    tried, again = path, 1
    while os.path.lexists(tried):
        tried, again = path.with_stem(f"{path.stem}-{again}"), again + 1
    return tried


def to_disk(path: Path) -> None:
    """A file as it is, or the names in a folder, before this returns."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
