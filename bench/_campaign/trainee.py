"""A job of the campaign: counts units of work, and writes down what it does outside the bad disk.

trainee.py JOURNAL LOCKS NAME UNITS UNIT_S CHILD

A unit is in the journal before it is reported or saved, so that nobody can believe more than was
done. Every rank holds a lock as long as it, or a child of its, lives: whoever finds another
attempt's lock held writes down that two were there at once. It imports little: it starts fast.
"""

import fcntl
import glob
import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Any

SAVED_EVERY, REPORTED_EVERY = 4, 2
TIMEOUT_S = 2.0
NOBODY_S = 600.0
"""A rank that waits longer than this for the first one is left over."""


class Trainee:
    """One rank."""

    def __init__(self, journal: str, locks: str, name: str, units: str, unit_s: str) -> None:
        self.journal = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.locks, self.name = locks, name
        self.units, self.unit_s = int(units), float(unit_s)
        self.rank, self.attempt = int(os.environ["RANK"]), int(os.environ["BOA_ATTEMPT"])
        self.folder = os.environ["BOA_CHECKPOINT_DIR"]
        self.began, self.stopped = time.monotonic(), False
        self.resumed = self.done = 0
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopped = True

    def tell(self, what: str, n: int = 0, **more: Any) -> None:
        line = {
            "at": time.clock_gettime(time.CLOCK_BOOTTIME),
            "what": what,
            "name": self.name,
            "job": os.environ["BOA_JOB_ID"],
            "attempt": self.attempt,
            "rank": self.rank,
            "pid": os.getpid(),
            "n": n,
            **more,
        }
        os.write(self.journal, json.dumps(line).encode() + b"\n")

    def lock(self) -> int:
        """Its own; and a look at those of other attempts."""
        path = os.path.join(self.locks, f"{self.name}.{self.attempt}.{self.rank}")
        mine = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if not _taken(mine, fcntl.LOCK_EX):
            self.tell("double", other=path)
        for other in glob.glob(os.path.join(glob.escape(self.locks), f"{self.name}.*.*")):
            if other.split(".")[-2] == str(self.attempt) or other.endswith(".over"):
                continue
            held = os.open(other, os.O_RDONLY)
            if not _taken(held, fcntl.LOCK_SH):
                self.tell("double", other=other)
            os.close(held)
        return mine

    def load(self) -> None:
        try:
            with open(os.path.join(self.folder, "state.json")) as file:
                saved = json.load(file)
        except (OSError, ValueError):
            return
        if saved["name"] != self.name:
            self.tell("stranger", other=saved["name"])
            return
        self.resumed = self.done = saved["done"]

    def save(self) -> None:
        """On the disk, or as it was before: a bad disk does not end a training."""
        draft = os.path.join(self.folder, f".state.{self.attempt}")
        with suppress(OSError):
            with open(draft, "w") as file:
                json.dump({"name": self.name, "done": self.done}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, os.path.join(self.folder, "state.json"))
            folder = os.open(self.folder, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

    def report(self) -> None:
        host, _, path = os.environ["BOA_REPORT_URL"].removeprefix("http://").partition("/")
        path, (name, _, port) = f"/{path}", host.partition(":")
        speed = float(os.environ.get("BOA_SPEED", "1"))
        said = {
            "attempt": self.attempt,
            "uptime_s": (time.monotonic() - self.began) * speed,
            "epoch": 0,
            "progress": self.done,
            "units": self.done - self.resumed,
            "step": self.done,
            "saves": True,
        }
        body = json.dumps(said).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"Authorization: Bearer {os.environ['BOA_REPORT_TOKEN']}\r\n\r\n"
        )
        with suppress(OSError), socket.create_connection((name, int(port)), TIMEOUT_S) as wire:
            wire.sendall(head.encode() + body)
            while wire.recv(4096):
                pass

    def lead(self) -> None:
        """The first rank: does the work."""
        self.load()
        self.tell("start", self.done)
        while self.done < self.units and not self.stopped:
            time.sleep(self.unit_s)
            self.done += 1
            self.tell("unit", self.done)
            if self.done % REPORTED_EVERY == 0:
                self.report()
            if self.done % SAVED_EVERY == 0:
                self.save()
        self.save()
        if self.done >= self.units:
            self.report()
        self.tell("end", self.done, over=self.done >= self.units)
        with open(self._over(), "w"):
            pass

    def follow(self) -> None:
        """Any other: is there until the first has done."""
        self.tell("start")
        end = time.monotonic() + NOBODY_S
        while not self.stopped and not os.path.exists(self._over()) and time.monotonic() < end:
            time.sleep(0.02)
        self.tell("end")

    def _over(self) -> str:
        return os.path.join(self.locks, f"{self.name}.{self.attempt}.over")


def _taken(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _child(trainee: Trainee, kind: str, lock: int) -> int:
    """bare: without the environment, in a session of its own; it has the lock all the same."""
    if kind == "none":
        return 0
    os.set_inheritable(lock, True)
    child = os.fork()
    if child == 0:
        if kind == "bare":
            os.setsid()
        os.execve("/bin/sleep", ["sleep", "3600"], {} if kind == "bare" else os.environ)
    trainee.tell("child", child=child)
    return child


def main(journal: str, locks: str, name: str, units: str, unit_s: str, kind: str) -> None:
    trainee = Trainee(journal, locks, name, units, unit_s)
    child = _child(trainee, kind, trainee.lock())
    try:
        trainee.lead() if trainee.rank == 0 else trainee.follow()
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
