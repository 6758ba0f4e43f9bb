"""Disks of a world: a real file system on a loop device, which can fail; or a plain folder."""

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from _campaign.processes import NeverCame, until

SIZE_MB = 40
EXT4_IOC_SHUTDOWN = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125
NO_LOG_FLUSH = 2
CLONE_NEWNS = 0x00020000
OPTIONS = "loop,noatime,commit=300,errors=remount-ro"
"""What nobody has synced stays in memory for minutes: a cut loses it."""


class Disk(Protocol):
    folder: Path

    def close(self) -> None: ...


class PlainFolder:
    """For who may not mount anything."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "disk"
        self.folder.mkdir()

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class LoopDisk:
    """An ext4 of its own. Its mounts are seen by this process and its children alone."""

    def __init__(self, root: Path) -> None:
        self.folder, self._image = root / "disk", root / "image"
        self.folder.mkdir()
        with self._image.open("wb") as file:
            file.truncate(SIZE_MB * 1024**2)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,nodiscard", self._image)
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", OPTIONS, self._image, self.folder)

    def cut(self) -> None:
        """From now on nothing is written, and what was not is lost: every call fails (EIO)."""
        fd = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def make_read_only(self) -> None:
        """As ext4 does by itself when it finds an error: every write fails (EROFS)."""
        device = Path(_device(self.folder)).name
        Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("campaign")

    def fill(self) -> None:
        with (self.folder / "filler").open("wb") as file, suppress(OSError):
            for size in (1024**2, 64 * 1024, 4096):
                with suppress(OSError):
                    while True:
                        os.write(file.fileno(), b"\0" * size)

    def empty(self) -> None:
        (self.folder / "filler").unlink(missing_ok=True)

    def again(self) -> None:
        """Mounted anew, with what was on it; nobody may have it open any more."""
        until(self._unmounted, "the disk is in use and cannot be unmounted", 60.0)
        checked = subprocess.run(
            ["e2fsck", "-fp", str(self._image)], capture_output=True, check=False
        )
        if checked.returncode > 2:
            raise NeverCame(f"e2fsck: {checked.stdout.decode()}")
        self.mount()

    def close(self) -> None:
        with suppress(NeverCame):
            until(self._unmounted, "the disk is in use", 20.0)
        self._image.unlink(missing_ok=True)

    def _unmounted(self) -> bool:
        if not os.path.ismount(self.folder):
            return True
        return not subprocess.run(
            ["umount", str(self.folder)], stderr=subprocess.DEVNULL, check=False
        ).returncode


def can_mount(root: Path) -> bool:
    """Whether a loop device can be mounted here; if so, mounts are our own from now on."""
    if (
        os.geteuid() != 0
        or not shutil.which("mkfs.ext4")
        or not os.path.exists("/dev/loop-control")
    ):
        return False
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return False
    try:
        _run("mount", "--make-rprivate", "/")
        trial = root / "trial"
        trial.mkdir()
        disk = LoopDisk(trial)
        disk.cut()
        disk.again()
        disk.close()
        shutil.rmtree(trial)
    except (OSError, subprocess.CalledProcessError, NeverCame):
        return False
    return True


def _device(folder: Path) -> str:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        device, where = line.split()[:2]
        if where == str(folder):
            return device
    raise LookupError(folder)


def _run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
