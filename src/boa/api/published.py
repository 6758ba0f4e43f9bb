"""Addresses and tokens, as services tell them to the commands of their own user.

One file per address and port, in folders that only this user may look into: that of his state, and
one that does not go by $HOME. Believed is only what is this user's own and closed to all others.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from boa.api.listeners import is_our_process

SERVERS = "servers"
MOST_BYTES = 4096
OTHERS, WRITERS = 0o077, 0o022
PORTS = {"http": 80, "https": 443}
LOCALHOST = ("127.0.0.1", "::1")


class Published(NamedTuple):
    url: str
    token: str
    pid: int
    file: Path


def found(url: str) -> Published | None:
    """A service of this user that was last at this address, whether or not it still runs."""
    parts = urlsplit(url)
    port = parts.port or PORTS.get(parts.scheme, 0)
    host = parts.hostname or ""
    for folder in folders():
        for name in LOCALHOST if host == "localhost" else (host,):
            if (one := _read(folder / _name(name, port))) is not None:
                return one
    return None


@contextmanager
def publishing(url: str, token: str | None) -> Iterator[list[Path]]:
    """Meanwhile commands of this user find the token by the address; None: there is none that they
    may, and none of an earlier service either. Gives the files, which may be none."""
    withdraw(url)
    files = [] if token is None else list(_publish(url, token))
    try:
        yield files
    finally:
        for file in files:
            _remove(file, os.getpid())


def withdraw(url: str) -> None:
    """Whoever was at this address before is there no more: the port is ours now."""
    parts = urlsplit(url)
    for folder in folders():
        _remove(folder / _name(parts.hostname or "", parts.port or 0))


def folders() -> list[Path]:
    """By $XDG_STATE_HOME or $HOME; and by the user's id, for whom those differ or cannot be
    written."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    run = os.environ.get("XDG_RUNTIME_DIR", "")
    users = Path(run) / "boa" if os.path.isabs(run) else Path(f"/tmp/boa-{os.geteuid()}")
    places = [Path(state) / "boa", users]
    return [place / SERVERS for place in places if place.is_absolute()]


def _publish(url: str, token: str) -> Iterator[Path]:
    from boa.atomic_file import replace_file
    from boa.private_files import private_folder

    parts = urlsplit(url)
    document = json.dumps({"url": url, "token": token, "pid": os.getpid()})
    for folder in folders():
        with suppress(OSError):
            private_folder(folder)
            if not _is_private_folder(folder):
                continue
            _tidy(folder)
            file = folder / _name(parts.hostname or "", parts.port or 0)
            replace_file(file, document, private=True)
            yield file


def _tidy(folder: Path) -> None:
    """Forget services that were killed."""
    for file in folder.glob("*.json"):
        one = _read(file)
        if one is not None and not is_our_process(one.pid):
            file.unlink(missing_ok=True)


def _remove(file: Path, pid: int | None = None) -> None:
    """`pid`: only what this process has said."""
    with suppress(OSError):
        one = _read(file)
        if one is not None and pid in (None, one.pid):
            file.unlink(missing_ok=True)


def _read(file: Path) -> Published | None:
    try:
        if not _is_private_folder(file.parent):
            return None
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(opened, "rb") as content:
        status = os.fstat(content.fileno())
        if not stat.S_ISREG(status.st_mode) or not _is_private(status):
            return None
        try:
            said = json.loads(content.read(MOST_BYTES))
            return Published(str(said["url"]), str(said["token"]), int(said["pid"]), file)
        except (ValueError, KeyError, TypeError):
            return None


def _is_private_folder(folder: Path) -> bool:
    """And the one above it this user's own, or whoever has that could put another in its place."""
    status, above = os.lstat(folder), (os.lstat(folder.parent), os.stat(folder.parent))
    held = all(one.st_uid == os.geteuid() for one in above) and not above[1].st_mode & WRITERS
    return held and stat.S_ISDIR(status.st_mode) and _is_private(status)


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & OTHERS


def _name(host: str, port: int) -> str:
    return f"{host.replace(':', '-').replace('/', '-')}_{port}.json"
