"""Run a script's command at the job's width until it ends, or stop it at a checkpoint."""

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
from dataclasses import dataclass
from typing import IO

from boa.train import session, stopping
from boa.train.checkpoints import Progress
from boa.train.trackers import TRACKED, loss_of
from boa.train.wrap import placeholders, processes, reading, watching
from boa.train.wrap.account import Account, Mark
from boa.train.wrap.fitting import fitted, is_fixed, launcher_of, resumed, width_of
from boa.train.wrap.memory import Memory, say

LOOK_S = 1.0
"""From one look at the checkpoints to the next,"""
LOOK_SOON_S = 0.1
"""and while a stop waits for one."""
END_S = 5.0
"""From SIGTERM to SIGKILL for the command, once its work is safe; less in a short grace: it may
be saving once more."""
PIPE_BYTES = 65536
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
    samples_per_step: str = ""
    """Samples that one step takes, as an expression of the width; empty: steps are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """End of a run."""

    exit_code: int
    stopped: bool
    done: bool
    """Whether the script's work is finished, also where it was to stop."""
    progress: Progress
    checkpoint: str | None
    """The newest whole one."""


class Run:
    """One attempt of a wrapped command."""

    look_s = LOOK_S

    def __init__(self, wrapped: Wrapped, environment: Mapping[str, str], out: IO[bytes]) -> None:
        self._wrapped, self._out = wrapped, out
        self._width = width_of(environment)
        context = session.context()
        folder = context.checkpoint_dir
        patterns = list(wrapped.checkpoints)
        if folder is not None and wrapped.checkpoints is watching.USUAL:
            patterns += [str(folder / each) for each in watching.USUAL]
        self.watch = watching.Watch(
            os.getcwd(),
            patterns,
            wrapped.settle_s,
            lambda path: processes.have_open(self._child.pid, path),
        )
        self.memory = Memory.read(folder)
        self.newest = self.memory.newest() or self.watch.newest()
        mark = self.memory.saved.get(self.newest) if self.newest else Mark()
        if self.newest is not None:
            session.session().saved_s = 0.0
        per_step = wrapped.samples_per_step
        self.account = Account(
            mark,
            self.memory.first_epoch,
            unit=self.memory.unit,
            per_step=placeholders.samples_per_step(per_step, self._width) if per_step else 1.0,
            totals=reading.totals_of(wrapped.command),
        )
        self._before = self.memory.paces.get(self._width, (0.0, 0.0))
        self._writing: dict[str, float] = {}  # checkpoints that are not whole yet: written when
        self._is_safe = self._has_saved = False
        self._saved_at: float | None = None  # when the newest was written, or training began
        grace_s = _seconds(environment.get("BOA_GRACE_S"), GRACE_S)
        self._end_s = min(END_S, grace_s / 5)
        self._patience_s = max(grace_s - 2 * self._end_s, 0.0)
        self._asked = self._ending = self._says_steps = self._signalled = False
        self._tell_saves()
        self._tell_flat()
        self._tracked = tempfile.NamedTemporaryFile(prefix="boa-wrap-")  # noqa: SIM115
        self._rest = b""
        self._reading = threading.Lock()
        try:
            self._child = self._begin(environment)
        except BaseException:
            self._tracked.close()
            raise
        assert self._child.stdout is not None
        self._output = self._child.stdout
        self._pipe = self._output.fileno()
        os.set_blocking(self._pipe, False)  # whoever reads it first has it

    def _begin(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        command = fitted(self._wrapped.command, environment)
        # also where there is no checkpoint yet: what does not fit is told before anything starts
        again = resumed(command, self._wrapped.resume, self.newest or "", self._width)
        command = command if self.newest is None else again
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
        """Follow the command until it has ended, or was stopped."""
        reader = threading.Thread(target=self._read, name="boa-wrap", daemon=True)
        reader.start()
        next_look, stopped = time.monotonic() + self.look_s, False
        try:
            while self._child.poll() is None:
                if self.stop_requested():
                    stopped = self._stop_when_safe()
                elif time.monotonic() >= next_look:
                    self._hear_trackers()
                    self._look()
                    next_look = time.monotonic() + self.look_s
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(LOOK_SOON_S)
        finally:
            self._end()
        self._hear_trackers()
        self._tracked.close()
        reader.join(END_S)  # what is left in the pipe, unless somebody else holds it open
        if not reader.is_alive():
            self._output.close()
        return self._outcome(stopped or (self._signalled and self._wrapped.ask is not None))

    def _outcome(self, stopped: bool) -> Outcome:
        """Tell a script that has finished from one that was stopped: it is not to run again."""
        code = self._child.returncode
        if code == 0 or stopped:
            self._look(over=True)
        if not self._signalled:
            done = code == 0
        else:
            done = self.account.finished(exited=code == 0) and not self._writing
        if done:
            session.done()
            stopped = False
        code = 0 if stopped or done else code if code >= 0 else SIGNALLED - code
        if self._has_saved:
            self._remember()
        at = session.session().at
        return Outcome(
            exit_code=code, stopped=stopped, done=done, progress=at, checkpoint=self.newest
        )

    def stop_requested(self) -> bool:
        return stopping.stop_requested()

    def asked_s_ago(self) -> float:
        return stopping.asked_s_ago()

    def _look(self, *, over: bool = False) -> None:
        """Look at its checkpoints: which are new, which are whole; `over`: it writes no more."""
        for path, when in self.watch.changing():
            self._writing[path] = when
        whole = self.watch.whole(over=over)
        for path in whole:
            when = self._writing.pop(path, time.time())
            mark = self.account.at(when)  # only now: a line may have come right after it
            self.memory.saved.pop(path, None)
            self.memory.saved[path] = mark
            self._note_interval(when)
            self.newest, self._is_safe, self._has_saved = path, True, True
            self.saw(path, mark, when)
        if whole:
            self._remember()
            self._tell_saves()
            session.saved(time.time() - when)

    def saw(self, path: str, mark: Mark, when: float) -> None:
        """Take notice of a checkpoint that is whole, written at a real time."""

    def _note_interval(self, when: float) -> None:
        """Keep the longest time from one checkpoint to the next, or from training's beginning."""
        before = self._saved_at if self._saved_at is not None else self.account.since
        if before is not None:
            self.memory.every_s = max(self.memory.every_s or 0.0, when - before)
        self._saved_at = when

    def _remember(self) -> None:
        self.memory.first_epoch, self.memory.unit = self.account.first_epoch, self.account.unit
        (steps, seconds), (more, longer) = self._before, self.account.pace
        self.memory.paces[self._width] = (steps + more, seconds + longer)
        self._tell_flat()
        self.memory.write()

    def _tell_saves(self) -> None:
        """Report whether a stop makes it save: at a signal, or by the next checkpoint in time.

        Before the first checkpoint it is unknown.
        """
        in_time = self.memory.every_s is None or self.memory.every_s <= self._patience_s
        if self._wrapped.ask is not None or self.memory.saved:
            session.saves(self._wrapped.ask is not None or in_time)

    def _tell_flat(self) -> None:
        """Say once that more GPUs brought no more steps where every GPU has a batch of its own."""
        flat, own = self.memory.flat(), self._wrapped
        if flat is None or self.memory.told or own.samples_per_step or not is_fixed(own.command):
            return
        self.memory.told = True
        few, many = (f"{self.memory.rate(width):.3g} steps/s at {width}" for width in flat)
        say(
            f"{many} GPUs, {few}: if every GPU has its own batch, count samples "
            "(--samples-per-step '16*{width}', with the batch of one GPU for 16), or keep the "
            "batch of all GPUs the same (such as --batch-size {256/width} in the command)"
        )

    def _stop_when_safe(self) -> bool:
        """End it if a checkpoint has just become whole, or none will in time. One that has reached
        its total is left to exit."""
        if not self._asked:
            self._asked = True
            self._look()
            newest = self.memory.saved.get(self.newest or "")
            self._is_safe = self._is_safe and newest == self.account.now
            if self._wrapped.ask is not None and not self._is_safe and not self.account.reached:
                self._signalled = True
                for pid in processes.to_ask(self._child.pid, self._wrapped.command):
                    processes.signalled(pid, self._wrapped.ask)
        else:
            self._look()
        in_time = self.asked_s_ago() < self._patience_s
        if in_time and (self.account.reached or not self._is_safe):
            return False
        if self._is_safe:
            say(f"stopped at {self.newest}")
        elif self._patience_s and not self.account.finished(exited=False):
            lost = "the newest, " + self.newest if self.newest else "the beginning"
            say(
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
            self._signalled = True
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
            self.account.hear(found)

    def _hear(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if found := reading.find(text, self._wrapped.patterns):
            self._says_steps = self.account.hear(found) or self._says_steps


def run(
    wrapped: Wrapped,
    environment: Mapping[str, str] = os.environ,
    out: Callable[[], IO[bytes]] = lambda: sys.stdout.buffer,
) -> Outcome:
    """Run the command to its end, or until a stop.

    Raise `NotStarted` if it cannot be started, `placeholders.Unfit` if its placeholders have no
    value at this width.
    """
    return Run(wrapped, environment, out()).follow()


def _seconds(text: str | None, default: float) -> float:
    try:
        return max(float(text or default), 0.0)
    except ValueError:
        return default
