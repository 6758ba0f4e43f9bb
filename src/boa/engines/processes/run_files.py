"""Files of a run's folder: what a supervisor reads, whatever is there, and the logs that it writes.

Only plain files are opened, links are not followed, and nothing is waited for: a pipe or a folder
under the name of a file costs that file. Runs without the rest of the package, as its supervisor.
"""

import binascii
import errno
import marshal
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from typing import Any
else:
    import _signal

MOST_BYTES = 256 * 1024**2
LEAST_PART = 1024
MARKS = 1000
"""A log's times are noted once a second, and less often as it gets older: by such a part of it."""
RESERVED = 1024
"""Bytes set aside for the outcome."""
RESERVE, OUTCOME = "reserve", "outcome"
LOST = "lost"
DONE = "d"
"""After the digit that says whether a run was stopped: it has left its sign that it was done."""
DONE_SIGN = ".boa-done-"
"""Beginning of the name of that sign, in the checkpoint folder: every attempt has its own."""
SAVED = "saved"
"""File of a run's folder: when the newest file of its checkpoint folder was written."""
NO_CHECKPOINT = (".", "boa-wrap.json", "events.out.tfevents.")
LOGS = (".log", ".out", ".err", ".txt", ".csv", ".jsonl")
"""Ends of names in a checkpoint folder that say nothing of a checkpoint: such files grow."""
MOST_LOOKED_AT = 2000
"""Files of a checkpoint folder that one look takes in."""
FOUND_BY = ("../../.runs", "..", "../..")
"""Folders, seen from a run's own, whose entries lead to it; made when it began, in no hurry."""
PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How to open what should be a plain file."""


def attempt(action: "Callable[..., None]", *arguments: "Any") -> None:
    """Something that may have become impossible, and is not needed then."""
    try:
        action(*arguments)
    except OSError:
        return


def read_plain(path: str, most: int = MOST_BYTES) -> bytes:
    """The content of a plain file, as far as that; OSError of anything else."""
    fd = os.open(path, os.O_RDONLY | PLAIN)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", path)
        return read_all(fd, most)
    finally:
        os.close(fd)


def read_all(fd: int, most: int = MOST_BYTES) -> bytes:
    """All that an open file has, as far as that."""
    pieces, left = [], most
    while left and (piece := os.read(fd, min(left, 1024**2))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def in_memory(data: bytes) -> int:
    """A file with this in it, open, that is on no disk."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    fd = os.memfd_create("boa", os.MFD_CLOEXEC)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def replace_plain(folder: str, name: str, data: bytes) -> None:
    """The file with this in it, or else as it was before: OSError."""
    draft = os.path.join(folder, f".{name}.new")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | PLAIN, 0o600)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
    os.replace(draft, os.path.join(folder, name))


def aside(path: str) -> None:
    """Move what a job has put in the place of a file of ours out of the way."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            os.rename(path, f"{path}.{time.monotonic_ns()}.odd")
    except OSError:
        return


def packed(document: "dict[str, Any]") -> bytes:
    """A launch, or secrets by the variables that hold them: eight digits that say whether it is
    whole, then marshal.

    Its version 2 is the same in every Python that may run the supervisor.
    """
    data = marshal.dumps(document, 2)
    return b"%08x" % binascii.crc32(data) + data


def unpacked(data: bytes) -> "dict[str, Any]":
    """ValueError of what is cut off or garbled: marshal itself may take a process down with it."""
    if not data[8:] or data[:8] != b"%08x" % binascii.crc32(data[8:]):
        raise ValueError("not as it was written" if data else "empty")
    document: dict[str, Any] = marshal.loads(data[8:])
    return document


def described(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    names = [name for name in dir(_signal) if name.startswith("SIG") and "_" not in name]
    named = [name for name in names if getattr(_signal, name) == -code]
    return f"killed by {named[0] if named else f'signal {-code}'}"


def outcome_text(
    code: int | None, stopped: bool, reason: str, lost: bool = False, done: bool = False
) -> bytes:
    """`lost`: by no fault of the job's. `done`: see `RunEvent`."""
    how = LOST if lost else f"{int(stopped)}{DONE if done else ''}"
    said = f"{'' if code is None else code}\n{how}\n{' '.join(reason.split())}"
    return said.encode("utf-8", "replace")[: RESERVED - 1].ljust(RESERVED - 1) + b"\n"


def saved_at(folder: str) -> "float | None":
    """Return when the newest checkpoint of a run was written, as its supervisor says; None: it has
    seen none."""
    try:
        at = float(read_plain(os.path.join(folder, SAVED), 64))
    except (OSError, ValueError):
        return None
    return at if 0 < at < float("inf") else None


def newest_file(folder: str, since: float) -> float:
    """When the newest file below a folder was written, as far as one look goes; 0: none since
    then. Hidden ones do not count, nor logs, nor what boa wrap notes there for itself."""
    newest, left, folders = 0.0, MOST_LOOKED_AT, [folder]
    while folders and left > 0:
        try:
            entries = os.scandir(folders.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    break
                name = entry.name
                if name.startswith(NO_CHECKPOINT) or name.endswith(LOGS):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        newest = max(newest, entry.stat(follow_symlinks=False).st_mtime)
                except OSError:
                    continue
    return newest if newest > since else 0.0


def write_outcome(
    folder: str,
    code: int | None,
    stopped: bool,
    reason: str,
    lost: bool = False,
    done: bool = False,
) -> None:
    """Into space set aside, so that a full disk is no hindrance; complete or not there, and there
    after a power cut too.

    Only of a run that was told to stop does the disk not have to know before anybody else: the
    store does. There somebody waits, and the disk may be busy with the checkpoint.
    `boa.atomic_file` would make a draft, which takes space, and is not there where this runs.
    """
    reserve = os.path.join(folder, RESERVE)
    aside(reserve)
    aside(os.path.join(folder, OUTCOME))
    fd = os.open(reserve, os.O_WRONLY | os.O_CREAT | PLAIN, 0o600)
    try:
        if os.write(fd, outcome_text(code, stopped, reason, lost, done)) < RESERVED:
            raise OSError("disk full")
        if not stopped:
            os.fdatasync(fd)  # its size is as it was
    finally:
        os.close(fd)
    os.rename(reserve, os.path.join(folder, OUTCOME))
    if not stopped:
        for place in (".", *FOUND_BY):
            attempt(sync_folder, os.path.join(folder, place))


def sync_folder(folder: str) -> None:
    """The names in it, on the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def append_line(path: str, line: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | PLAIN, 0o600)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


class Log:
    """The output of one worker: two parts, each at most half of the limit; older ones are cut."""

    def __init__(self, rank: int, limit: int) -> None:
        self.path, self.old, self.times = f"{rank}.log", f"{rank}.old.log", f"{rank}.times.log"
        self.limit, self.began, self.marked = limit, time.time(), 0.0
        self.part = max(limit // 2, LEAST_PART)
        self.size = self.seen = self.lost = 0
        self.fd = -1
        self._append(b"")

    def write(self, data: bytes) -> None:
        while self.size + len(data) > self.part:
            room = max(self.part - self.size, 0)
            cut = data.rfind(b"\n", 0, room) + 1 or room
            self._append(data[:cut])
            data = data[cut:]
            self._turn()
        self._append(data)
        if self.size > self.part * 15 // 16 and data.endswith(b"\n"):
            self._turn()  # while it is between two lines

    def _turn(self) -> None:
        attempt(os.close, self.fd)
        attempt(os.rename, self.path, self.old)
        self.fd, self.size = -1, 0

    def _append(self, data: bytes) -> None:
        """Write, or count what could not be written: a full disk never stops a job."""
        if data:
            self._mark()
        seen = self.seen + len(data)
        try:
            if self.fd < 0:
                self._open()
            elif os.fstat(self.fd).st_size > self.size + self.limit:
                os.ftruncate(self.fd, self.size)  # the job made it longer, by truncate(1) say
            if self.lost:
                said = f"\n[boa] {self.lost} bytes of output could not be written here\n"
                self.size += os.write(self.fd, said.encode())
                self.lost = 0
            while data:
                count = os.write(self.fd, data)
                self.size += count
                data = data[count:]
        except OSError:
            self.lost += len(data)
        self.seen = seen

    def _mark(self) -> None:
        """Note the time, now and then: so that one can ask for what was printed since."""
        now = time.time()
        if not 0 <= now - self.marked < max(1.0, (now - self.began) / MARKS):
            self.marked = now
            attempt(append_line, self.times, f"{self.seen} {now:.3f}\n")

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        self.fd = os.open(self.path, flags | PLAIN, 0o600)
        if self.seen:
            said = f"[boa] {self.seen} bytes came before this line; the newest {self.limit} stay\n"
            self.size += os.write(self.fd, said.encode())
