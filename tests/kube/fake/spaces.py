"""Processes in name spaces of their own, by the kernel's calls themselves.

`unshare` and `mount` as programs would cost a pod some ten processes.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_NEWNS, _NEWUTS, _NEWPID = 0x00020000, 0x04000000, 0x20000000
_RDONLY, _REMOUNT, _BIND, _REC = 1, 32, 4096, 16384
_PDEATHSIG = 1
_DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
_OWN = ("dev", "media", "mnt", "proc", "run", "srv")
"""Folders of the root that pods do not have from this machine."""
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of this machine, at a path of the pod."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What is to run, and what it shall see."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    root: Path
    binds: Sequence[Bind]
    hostname: str
    scratch: Path
    """A folder that nobody else uses."""
    user: int = 0
    group: int = 0


def build_root(root: Path) -> None:
    """The root of all pods: this machine's folders, a `/dev` and a `/run` of their own."""
    _mount("tmpfs", root, "tmpfs", 0, "mode=755")
    for entry in os.scandir("/"):
        there = root / entry.name
        if entry.is_symlink():
            there.symlink_to(os.readlink(entry))
        elif entry.is_dir():
            there.mkdir()
            if entry.name not in _OWN:
                _mount(entry.path, there, "", _BIND | _REC)
    (root / "run" / "lock").mkdir(parents=True)
    (root / "proc").mkdir(exist_ok=True)
    _mount("/proc", root / "proc", "", _BIND | _REC)
    _build_devices(root / "dev")


def _build_devices(dev: Path) -> None:
    for name in _DEVICES:
        if os.path.exists(f"/dev/{name}"):
            (dev / name).touch()
            _mount(f"/dev/{name}", dev / name, "", _BIND)
    for name, to in _LINKS.items():
        (dev / name).symlink_to(to)
    (dev / "shm").mkdir()
    _mount("tmpfs", dev / "shm", "tmpfs", 0, "mode=1777")


async def spawn(launch: Launch, output: int) -> int:
    """Its process: the first of a new space of processes, with all of which it ends.

    Raises:
        OSError: with what could not be had (a command, a folder).
    """
    told, tells = os.pipe()
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    try:
        _check(_libc.unshare(_NEWPID), "unshare")  # of children alone
        pid = os.fork()
        if pid == 0:
            _become(launch, output, tells)
        _check(_libc.setns(own, _NEWPID), "setns")
    finally:
        os.close(own)
        os.close(tells)
    if said := await _rest(told):
        os.waitpid(pid, 0)
        raise OSError(said.decode())
    return pid


async def _rest(pipe: int) -> bytes:
    """What comes until nobody can write any more: the command runs, or what is wrong is said."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pipe, readable.set)
    try:
        await readable.wait()
        return os.read(pipe, 1 << 16)
    finally:
        loop.remove_reader(pipe)
        os.close(pipe)


def _become(launch: Launch, output: int, tells: int) -> None:
    try:
        _libc.prctl(_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        _check(_libc.unshare(_NEWNS | _NEWUTS), "unshare")
        socket.sethostname(launch.hostname)
        for number, bind in enumerate(launch.binds):
            _bind(launch, number, bind)
        _mount("proc", launch.root / "proc", "proc", 0)
        os.chroot(launch.root)
        os.chdir(launch.cwd)
        nothing = os.open("/dev/null", os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        if launch.user or launch.group:
            os.setgroups([launch.group])
            os.setgid(launch.group)
            os.setuid(launch.user)
        for ignored in (signal.SIGPIPE, signal.SIGINT):
            signal.signal(ignored, signal.SIG_DFL)
        os.umask(0o022)
        os.execvpe(launch.argv[0], list(launch.argv), dict(launch.env))
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(tells, str(error).encode()[:4000])
    os._exit(128)


def _bind(launch: Launch, number: int, bind: Bind) -> None:
    place = resolve(launch.root, bind.target)
    is_folder = stat.S_ISDIR(bind.source.stat().st_mode)
    if not place.exists():
        _overlay(launch.root, place, launch.scratch / f"over-{number}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir() if is_folder else place.touch()
    _mount(str(bind.source), place, "", _BIND | _REC)
    if bind.read_only:
        _mount("", place, "", _BIND | _REMOUNT | _RDONLY)


def _overlay(root: Path, place: Path, scratch: Path) -> None:
    """What is to be made at `place` shall not stay on this machine."""
    there = place
    while not there.exists():
        there = there.parent
    if os.stat(there).st_dev == os.stat(root).st_dev:
        return  # the pods' own
    upper, work = scratch / "upper", scratch / "work"
    for folder in (upper, work):
        folder.mkdir(parents=True)
    upper.chmod(stat.S_IMODE(there.stat().st_mode))
    with contextlib.suppress(OSError):  # a kernel that cannot: it stays, an empty folder
        _mount("overlay", there, "overlay", 0, f"lowerdir={there},upperdir={upper},workdir={work}")


def resolve(root: Path, path: str) -> Path:
    """Where `path` is for somebody whose root is `root`: links are followed within it."""
    done: list[str] = []
    todo = [part for part in path.split("/") if part not in ("", ".")]
    for _ in range(1000):
        if not todo:
            break
        part = todo.pop(0)
        if part == "..":
            done = done[:-1]
            continue
        here = root.joinpath(*done, part)
        if here.is_symlink():
            to = os.readlink(here)
            done = [] if to.startswith("/") else done
            todo = [one for one in to.split("/") if one not in ("", ".")] + todo
        else:
            done.append(part)
    return root.joinpath(*done)


def _mount(source: str, target: Path, kind: str, flags: int, data: str = "") -> None:
    done = _libc.mount(source.encode(), bytes(target), kind.encode(), flags, data.encode())
    _check(done, f"mount {source} at {target}")


def _check(done: int, what: str) -> None:
    if done != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
