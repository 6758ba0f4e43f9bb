"""Acts out a model's training from its profile: a real process that speaks the job protocol.

    python -I -S replay.py PROFILE.json [--scale X]

Hundreds of these run at once, so it imports next to nothing and starts in a few milliseconds; it
stands alone in its file for that reason. Progress follows from the time that has passed, never
from how well the process slept: `Timeline` says where training is at any moment.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from bisect import bisect_right
from itertools import accumulate

TYPE_CHECKING = False  # typing's own would mean to import it
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

REPORT_EVERY_S = 2.0
"""Seconds of the wall between reports. Epoch boundaries are reported when they come."""
LEAST_GAP_S = 0.05
"""Boundaries that come faster than this share a report, so that fast jobs flood nobody."""
TIMEOUT_S = 1.0
AWAY_S = 2.0
"""How long a server that did not answer is left alone."""
CHECKPOINT = "replay.json"
USAGE = "usage: python -m boa.train.replay PROFILE.json [--scale X]"


class Stopped(BaseException):
    """SIGTERM. Derived so that nothing on the way takes it for a failure."""


class Unusable(Exception):
    """The profile or a variable is not what it has to be."""


class Timeline:
    """Training from a checkpoint to its end, at the speed of one allocation.

    Times are server seconds since training went on.
    """

    def __init__(
        self,
        work: Sequence[float],
        rates: Sequence[float],
        epoch: int = 0,
        progress: float = 0.0,
    ) -> None:
        self._work, self._rates = work, rates
        self._first, self._before = epoch, progress
        left = [w - (progress if j == epoch else 0.0) for j, w in enumerate(work) if j >= epoch]
        seconds = (w / rate for w, rate in zip(left, rates[epoch:], strict=True))
        self.ends = list(accumulate(seconds))
        """When each epoch that is left ends."""
        self._units = [0.0, *accumulate(left)]
        """Done when each of them begins."""

    @property
    def over(self) -> float:
        return self.ends[-1] if self.ends else 0.0

    def at(self, seconds: float) -> tuple[int, float, float]:
        """(epoch, units done of it, units done since this run began)."""
        n = bisect_right(self.ends, seconds)
        if n == len(self.ends):  # all is done: the last epoch, in full
            return len(self._work) - 1, self._work[-1], self._units[-1]
        epoch = self._first + n
        began = self.ends[n - 1] if n else 0.0
        done = max(0.0, seconds - began) * self._rates[epoch]
        return epoch, done + (0.0 if n else self._before), self._units[n] + done


def rates_on(profile: Mapping[str, Any], gpu: str, width: int, nodes: int) -> list[float]:
    """Units per server second in every epoch. Beyond the widest that was measured: as there."""
    tables = profile["rates"]
    if gpu not in tables:
        raise Unusable(f"BOA_GPU_TYPE: got {gpu!r}; expected one of {', '.join(tables)}")
    rows = ("one_node", "across") if nodes == 1 else ("across", "one_node")
    # Nodes larger than those measured leave a gap in one row; the other is the best guess there.
    rates = [
        next((rate for row in rows if (rate := _at_width(tables[gpu][row][j], width))), 0.0)
        for j in range(len(profile["work"]))
    ]
    if not all(rates):
        raise Unusable(f"BOA_WIDTH: got {width}; expected a width that it can run on with {gpu}")
    return rates


def _at_width(rates: Sequence[float], width: int) -> float:
    return float(rates[min(width, len(rates)) - 1])


class Reporter:
    """Small HTTP POSTs over one connection; a server that is away costs little and breaks nothing.

    By hand, for http.client alone would double what this process costs to start.
    """

    def __init__(self, url: str, token: str, ca: str = "") -> None:
        scheme, _, rest = url.partition("://")
        place, slash, path = rest.partition("/")
        host, _, port = place.rpartition(":")
        if scheme not in ("http", "https") or not host or not port.isdigit():
            raise Unusable(f"BOA_REPORT_URL: got {url!r}; expected http://HOST:PORT/...")
        self._secure, self._ca = scheme == "https", ca
        self._address = host.strip("[]"), int(port)
        self._head = (
            f"POST {slash}{path} HTTP/1.1\r\nHost: {place}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )
        self._socket: socket.socket | None = None
        self._away_until = 0.0

    def post(self, document: Mapping[str, Any]) -> None:
        if time.monotonic() < self._away_until:
            return
        body = json.dumps(document)
        message = f"{self._head}{len(body)}\r\n\r\n{body}".encode()
        kept = self._socket is not None
        if not self._sent(message) and not (kept and self._sent(message)):  # it may have restarted
            self._away_until = time.monotonic() + AWAY_S

    def _sent(self, message: bytes) -> bool:
        try:
            if self._socket is None:
                self._socket = self._connected()
            self._socket.sendall(message)
            if not self._answered(self._socket):
                self.close()
        except OSError:
            self.close()
            return False
        return True

    def _connected(self) -> socket.socket:
        connection = socket.create_connection(self._address, TIMEOUT_S)
        if not self._secure:
            return connection
        import ssl  # dear, and seldom needed

        believed = ssl.create_default_context()
        if self._ca:
            believed.load_verify_locations(cadata=self._ca)
        try:
            return believed.wrap_socket(connection, server_hostname=self._address[0])
        except OSError:
            connection.close()
            raise

    @staticmethod
    def _answered(connection: socket.socket) -> bool:
        """Read one answer to its end; whether the connection can be used again."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(4096)
            if not more:
                raise ConnectionResetError
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name == b"content-length":
                left = int(value) - len(body)
                while left > 0 and (more := connection.recv(left)):
                    left -= len(more)
                return left == 0 and b"connection: close" not in head.lower()
        return False

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Checkpoint:
    """A small file that is replaced as a whole: complete, or as it was before."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, CHECKPOINT)
        os.makedirs(folder, exist_ok=True)

    def load(self) -> tuple[int, float]:
        """(epoch, progress); from the beginning where there is none."""
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
            return int(found["epoch"]), float(found["progress"])
        except FileNotFoundError:
            return 0, 0.0
        except (OSError, ValueError, KeyError, TypeError) as broken:
            _say(f"{self._path} cannot be read ({broken}): starting over", sys.stderr)
            return 0, 0.0

    def save(self, epoch: int, progress: float) -> None:
        # As boa.atomic_file, which this script, run without the package, cannot import. Not forced
        # to the disk: a killed process loses nothing by it, and hundreds would be slow.
        beside = f"{self._path}.part"
        with open(beside, "w", encoding="utf-8") as file:
            json.dump({"epoch": epoch, "progress": progress}, file)
        os.replace(beside, self._path)


class Replay:
    """One run of a replay job, from start or checkpoint until it is done or told to stop."""

    def __init__(self, profile: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        started, self._environ = time.monotonic(), environ
        self._speed = self._number("BOA_SPEED", 1.0)
        self._attempt = int(self._number("BOA_ATTEMPT", 1))
        width, nodes = int(self._number("BOA_WIDTH", 1)), int(self._number("BOA_NODES", 1))
        gpu = environ.get("BOA_GPU_TYPE") or next(iter(profile["rates"]))
        folder, url = environ.get("BOA_CHECKPOINT_DIR"), environ.get("BOA_REPORT_URL")
        self._checkpoint = Checkpoint(folder) if folder else None
        told = environ.get("BOA_REPORT_TOKEN", ""), environ.get("BOA_REPORT_CA", "")
        self._reporter = Reporter(url, *told) if url else None
        work = profile["work"]
        epoch, progress = self._checkpoint.load() if self._checkpoint else (0, 0.0)
        if epoch >= len(work):
            epoch, progress = len(work) - 1, work[-1]
        self.timeline = Timeline(
            work, rates_on(profile, gpu, width, nodes), epoch, min(progress, work[epoch])
        )
        self.title = f"{profile['class']} on {width} x {gpu}"
        self._epochs, self._said = len(work), -1
        rescale_s = float(profile.get("rescale_s", 0.0)) if self.timeline.over else 0.0
        # Rescaling began when it was decided on: starting this process is part of it.
        since = max(0.0, time.time() - self._number("BOA_DECIDED_AT", time.time()))
        self._began = time.monotonic() + max(0.0, rescale_s / self._speed - since)
        """The moment, on the wall's steady clock, at which training goes on."""
        self._start_s = (self._began - started) * self._speed

    def _number(self, name: str, default: float) -> float:
        text = self._environ.get(name) or str(default)
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            raise Unusable(f"{name}: got {text!r}; expected a number > 0")
        return value

    def now(self) -> float:
        """Server seconds since training went on; negative while it rescales."""
        return (time.monotonic() - self._began) * self._speed

    def act(self) -> None:
        """Train to the end."""
        _say(f"{self.title}: starting")
        self._wait(0.0)
        self._tell(0.0)
        last, ends = 0.0, self.timeline.ends
        while last < self.timeline.over:
            boundary = ends[bisect_right(ends, last)]
            soonest, latest = (last + gap * self._speed for gap in (LEAST_GAP_S, REPORT_EVERY_S))
            due = min(max(boundary, soonest), latest, self.timeline.over)
            self._wait(due)
            last = max(due, min(self.now(), boundary))  # woken late: as of now, or of the boundary
            self._tell(last)

    def _wait(self, until: float) -> None:
        left = (until - self.now()) / self._speed
        if left > 0:
            time.sleep(left)

    def _tell(self, seconds: float) -> None:
        """Save, then report: what the server was told is never lost."""
        epoch, progress, units = self.timeline.at(seconds)
        if epoch != self._said:
            self._said = epoch
            _say(f"{self.title}: epoch {epoch + 1} of {self._epochs}")
        self.save(seconds)
        if self._reporter is not None:
            self._reporter.post(
                {
                    "attempt": self._attempt,
                    "uptime_s": self._start_s + seconds,
                    "epoch": epoch,
                    "progress": progress,
                    "units": units,
                    **({} if self._checkpoint is None else {"saves": True}),
                }
            )

    def save(self, seconds: float) -> bool:
        """Whether it could. Training goes on where it could not: a later one may succeed."""
        epoch, progress, _ = self.timeline.at(max(0.0, seconds))
        try:
            if self._checkpoint is not None:
                self._checkpoint.save(epoch, progress)
        except OSError as problem:
            _say(f"cannot save a checkpoint: {problem}", sys.stderr)
            return False
        return True

    def close(self) -> None:
        if self._reporter is not None:
            self._reporter.close()


def play(profile: Mapping[str, Any], environ: Mapping[str, str]) -> int:
    """Act out a profile as `environ` says; gives the exit code."""
    replay = None
    try:
        signal.signal(signal.SIGTERM, _stop)
        replay = _prepared(profile, environ)
        replay.act()
        replay.close()
        _say(f"{replay.title}: done")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing is left to stop
        return 0
    except (Stopped, KeyboardInterrupt) as why:
        code = 0 if isinstance(why, Stopped) else 130
        if replay is None:
            return code
        saved = replay.save(replay.now())
        replay.close()
        _say(f"{replay.title}: stopped")
        return code if saved else 1


def _prepared(profile: Mapping[str, Any], environ: Mapping[str, str]) -> Replay:
    try:
        return Replay(profile, environ)
    except (LookupError, TypeError, ValueError) as problem:
        what = f"{type(problem).__name__}: {problem}"
        raise Unusable(f"not a profile ({what}); expected what `boa schema profile` says") from None
    except OSError as problem:
        raise Unusable(f"BOA_CHECKPOINT_DIR: {problem}; expected a folder to write to") from None


def _stop(number: int, frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stopped


def _say(text: str, where: Any = None) -> None:
    """A log that is full or that nobody reads any more stops no training."""
    stream = where or sys.stdout
    try:
        print(text, file=stream, flush=True)
    except OSError:  # from here on it goes nowhere, what is left in its buffer included
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def read(path: str, scale: str = "1") -> dict[str, Any]:
    """A profile file, every epoch's work times a number."""
    try:
        with open(path, encoding="utf-8") as file:
            profile: dict[str, Any] = json.load(file)
        return {**profile, "work": [float(work) * float(scale) for work in profile["work"]]}
    except (OSError, LookupError, TypeError, ValueError) as problem:
        what = f"{type(problem).__name__}: {problem}"
        raise Unusable(f"{path}: {what}; expected a profile (boa schema profile)") from None


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 and (len(arguments) != 3 or arguments[1] != "--scale"):
        _say(USAGE, sys.stderr)
        return 2
    try:
        return play(read(arguments[0], *arguments[2:]), os.environ)
    except Unusable as problem:
        _say(f"error: {problem}", sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
