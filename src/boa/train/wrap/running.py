"""Runs a script's command at the job's width, until it ends or can be stopped at a checkpoint."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from boa.train import session, stopping
from boa.train.checkpoints import Progress
from boa.train.trackers import TRACKED, loss_of
from boa.train.wrap import processes, reading, watching
from boa.train.wrap.fitting import fitted, launcher_of, resumed

LOOK_S = 1.0
"""From one look at the checkpoints to the next,"""
LOOK_SOON_S = 0.1
"""and while a stop waits for one."""
END_S = 5.0
"""From SIGTERM to SIGKILL for the command, once its work is safe; less in a short grace: it may
be saving once more."""
PIPE_BYTES = 65536
MOST_KEPT = 10
"""Checkpoints that are remembered."""
GRACE_S = 30.0
SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")
"""A folder for PYTHONPATH: what Python reads as it starts."""
SIGNALLED, INTERRUPTED = 128, 130
NOT_FOR_IT = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("BOA_REPORT_URL", "BOA_REPORT_TOKEN", "BOA_REPORT_CA"),
)
"""Variables that are the wrapper's own: it reports, and the command makes its ranks itself."""


class NotStarted(Exception):
    """No such command, or one that cannot be executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapped:
    """A command, and how to follow it."""

    command: Sequence[str]
    patterns: Sequence[re.Pattern[str]] = reading.USUAL
    checkpoints: Sequence[str] = watching.USUAL
    resume: Sequence[str] = ()
    """Arguments that are added where there is a checkpoint to go on from."""
    ask: signal.Signals | None = None
    """The signal that makes it save, sent when a stop is asked for."""
    settle_s: float = watching.SETTLE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended."""

    exit_code: int
    stopped: bool
    progress: Progress
    checkpoint: str | None
    """The newest whole one."""


@dataclass(slots=True)
class Memory:
    """Notes that one attempt leaves to the next, in the job's checkpoint folder."""

    path: Path | None
    first_epoch: int | None = None
    saved: dict[str, Progress] = field(default_factory=dict)
    """How far training was when each checkpoint was written, the newest last."""

    @staticmethod
    def read(folder: Path | None) -> "Memory":
        path = None if folder is None else folder / watching.OURS
        try:
            document = json.loads(path.read_text("utf-8")) if path else {}
            saved = {name: Progress(**at) for name, at in document["saved"].items()}
            return Memory(path, document["first_epoch"], saved)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return Memory(path)  # none, or none of ours: from what the log says

    def write(self) -> None:
        if self.path is None:
            return
        newest = list(self.saved.items())[-MOST_KEPT:]
        saved = {name: asdict(at) for name, at in newest}
        beside = self.path.with_suffix(".part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps({"first_epoch": self.first_epoch, "saved": saved}))
            os.replace(beside, self.path)
        except OSError as problem:
            _say(f"{self.path} cannot be written ({problem}): progress may be counted twice")

    def newest(self) -> str | None:
        """The newest that is still there."""
        return next((path for path in reversed(self.saved) if os.path.exists(path)), None)


class _Run:
    def __init__(self, wrapped: Wrapped, environment: Mapping[str, str], out: IO[bytes]) -> None:
        self._wrapped, self._out = wrapped, out
        context = session.context()
        folder = context.checkpoint_dir
        patterns = list(wrapped.checkpoints)
        if folder is not None and wrapped.checkpoints is watching.USUAL:
            patterns += [str(folder / each) for each in watching.USUAL]
        self._watch = watching.Watch(os.getcwd(), patterns, wrapped.settle_s)
        self._memory = Memory.read(folder)
        self.newest = self._memory.newest() or self._watch.newest()
        at = self._memory.saved.get(self.newest) if self.newest else Progress()
        self._account = reading.Account(at, self._memory.first_epoch)
        self._writing: dict[str, Progress] = {}  # checkpoints that are not whole yet
        self._is_safe = False
        grace_s = _seconds(environment.get("BOA_GRACE_S"), GRACE_S)
        self._end_s = min(END_S, grace_s / 5)
        self._patience_s = max(grace_s - 2 * self._end_s, 0.0)
        self._asked = self._ending = self._says_steps = False
        self._tracked = tempfile.NamedTemporaryFile(prefix="boa-wrap-")  # noqa: SIM115
        self._rest = b""
        self._reading = threading.Lock()
        self._child = self._begin(environment)
        assert self._child.stdout is not None
        self._output = self._child.stdout
        self._pipe = self._output.fileno()
        os.set_blocking(self._pipe, False)  # whoever reads it first has it

    def _begin(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        command = fitted(self._wrapped.command, environment)
        if self.newest is not None and self._wrapped.resume:
            command = resumed(command, self._wrapped.resume, self.newest)
        env = {name: value for name, value in environment.items() if name not in NOT_FOR_IT}
        paths = [SITE, *filter(None, [environment.get("PYTHONPATH")])]
        own = {TRACKED: self._tracked.name, "PYTHONPATH": os.pathsep.join(paths)}
        try:
            return subprocess.Popen(
                command,
                env={"PYTHONUNBUFFERED": "1", **env, **own},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # to end all that it has begun
            )
        except OSError as problem:
            raise NotStarted(problem.strerror) from None

    def follow(self) -> Outcome:
        """Until it has ended, or was stopped."""
        reader = threading.Thread(target=self._read, name="boa-wrap", daemon=True)
        reader.start()
        next_look, stopped = time.monotonic() + LOOK_S, False
        try:
            while self._child.poll() is None:
                if stopping.stop_requested():
                    stopped = self._stop_when_safe()
                elif time.monotonic() >= next_look:
                    self._hear_trackers()
                    self._look()
                    next_look = time.monotonic() + LOOK_S
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(LOOK_SOON_S)
        finally:
            self._end()
        self._hear_trackers()
        self._tracked.close()
        reader.join(END_S)  # what is left in the pipe, unless somebody else holds it open
        if not reader.is_alive():
            self._output.close()
        stopped = stopped or (self._asked and self._wrapped.ask is not None)
        code = self._child.returncode
        code = 0 if stopped else code if code >= 0 else SIGNALLED - code
        if code == 0:
            self._look(over=True)
        at = session.session().at
        return Outcome(exit_code=code, stopped=stopped, progress=at, checkpoint=self.newest)

    def _look(self, *, over: bool = False) -> None:
        """At its checkpoints: which are new, which are whole; `over`: nobody writes any more."""
        for path, when in self._watch.changing():
            self._writing[path] = self._account.at(when)
        for path in self._watch.whole(over=over):
            self._memory.saved.pop(path, None)
            self._memory.saved[path] = self._writing.pop(path, session.session().at)
            self._memory.first_epoch = self._account.first_epoch
            self._memory.write()
            self.newest, self._is_safe = path, True

    def _stop_when_safe(self) -> bool:
        """End it if a checkpoint has just become whole, or none will in time."""
        if not self._asked:
            self._asked = True
            self._look()
            newest = self._memory.saved.get(self.newest or "")
            self._is_safe = self._is_safe and newest == session.session().at
            if self._wrapped.ask is not None and not self._is_safe:
                for pid in processes.to_ask(self._child.pid, self._wrapped.command):
                    processes.signalled(pid, self._wrapped.ask)
        else:
            self._look()
        if self._is_safe:
            _say(f"stopped at {self.newest}")
        elif stopping.asked_s_ago() < self._patience_s:
            return False
        else:
            lost = "the newest, " + self.newest if self.newest else "the beginning"
            _say(
                f"no checkpoint within {self._patience_s:g} s of being asked to stop: it goes on "
                f"from {lost}; expected one within the job's grace_s"
            )
        self._end()
        return True

    def _end(self) -> None:
        """End it, and whatever it has begun."""
        begun = processes.below(self._child.pid)
        if self._child.poll() is None:
            self._take_what_is_there()
            self._ending = launcher_of(self._wrapped.command)[0] is not None
            processes.signalled(-self._child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(self._end_s)
        processes.signalled(-self._child.pid, signal.SIGKILL)
        for pid, began in begun.items():  # torchrun has its ranks in sessions of their own
            if processes.is_still(pid, began):
                processes.signalled(pid, signal.SIGKILL)
        self._child.wait()

    def _read(self) -> None:
        """Pass on what it prints, and read it."""
        more = True
        while more:
            select.select([self._pipe], [], [])
            with self._reading:
                more = self._take()
        self._hear(self._rest)

    def _take_what_is_there(self) -> None:
        """Lines from before it is to end are no launcher's complaints of that."""
        if self._reading.acquire(timeout=END_S):  # or nobody takes what is passed on
            self._take()
            self._reading.release()

    def _take(self) -> bool:
        """As much as a pipe holds; false: no more will come."""
        try:
            piece = os.read(self._pipe, PIPE_BYTES)
        except BlockingIOError:
            return True
        if not self._ending:  # then launchers complain at length of the signal that we sent
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                self._out.write(piece)
                self._out.flush()
        *lines, rest = re.split(rb"[\r\n]+", self._rest + piece)
        self._rest = rest[-reading.LONGEST_LINE :]
        for line in lines:
            self._hear(line)
        return bool(piece)

    def _hear_trackers(self) -> None:
        """Metrics that it has logged to trackers since the last look: its log is not all."""
        for line in self._tracked.readlines():
            try:
                told = json.loads(line)
                metrics = {str(name): float(value) for name, value in told["metrics"].items()}
            except (ValueError, LookupError, TypeError, AttributeError):
                continue  # half a line, or another one's
            loss = loss_of(metrics)
            found = {n: v for n, v in metrics.items() if n not in reading.COUNTED}
            if loss is not None:
                found["loss"] = loss
            if told.get("step") is not None and not self._says_steps:
                found["step"] = told["step"]
            self._account.hear(found)

    def _hear(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if found := reading.find(text, self._wrapped.patterns):
            self._says_steps = self._account.hear(found) or self._says_steps


def run(
    wrapped: Wrapped,
    environment: Mapping[str, str] = os.environ,
    out: Callable[[], IO[bytes]] = lambda: sys.stdout.buffer,
) -> Outcome:
    """Run it to its end, or until a stop; `NotStarted` if it cannot be started."""
    return _Run(wrapped, environment, out()).follow()


def _seconds(text: str | None, default: float) -> float:
    try:
        return max(float(text or default), 0.0)
    except ValueError:
        return default


def _say(text: str) -> None:
    print(f"boa: {text}", file=sys.stderr, flush=True)
