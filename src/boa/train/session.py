"""This process's progress so far, and the calls that tell of it."""

import atexit
import contextlib
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boa.train import checkpoints, job, stopping
from boa.train.checkpoints import Progress
from boa.train.job import JobContext

if TYPE_CHECKING:
    from boa.train.sender import Sender

MOST_METRICS = 100
LONGEST_NAME = 100
"""Printable characters of a metric's name, at most: the service refuses reports with others."""
PARTS = ("stop", "save", "start", "load", "first_step")
"""Parts of a rescaling, as far as a job can tell (`rescaled`)."""
DONE_FILE = "BOA_DONE"
"""Variable with the file that a job creates when its work is finished: exit 0 then ends the job,
also after a stop. It works without reports."""


class Session:
    def __init__(self) -> None:
        self.context = job.read()
        self.at = Progress()
        self.resumed = False
        """Whether somebody has said where to count on from."""
        self.told = False
        """Whether somebody who has loaded a checkpoint has said where it was taken."""
        self.units = 0.0
        """Done by this attempt, over all epochs."""
        self.step: int | None = None
        self.loss: float | None = None
        self.metrics: dict[str, float] = {}
        self._values: dict[str, float | None] = {}
        """The newest of each, loss included; None: it was no finite number."""
        self.rescale: dict[str, float] = {}
        """Parts of the rescaling that this attempt began with, in the service's seconds."""
        self.layouts: list[dict[str, object]] = []
        self.total: float | None = None
        """Units of the whole job, all epochs together; None: unknown."""
        self.saves: bool | None = None
        """Whether a stop makes this job save a checkpoint; None: the script has not said so."""
        self.saved_s: float | None = None
        """Uptime (service's seconds) at which the newest complete checkpoint was taken; 0: the one
        that this attempt resumed from; None: there is none."""
        self.done = False
        """Whether the job's work is finished."""
        self._counts = False  # whether the script says itself how much was done
        self._tracked: float | None = None  # the last step that it has logged to a tracker
        self._forward: Callable[[Mapping[str, float], int | None, bool], None] | None = None
        self._lock = threading.RLock()  # a signal handler may report while we are reporting
        self._began = time.monotonic() - _age_of_process()
        self._pid = os.getpid()
        self._sender = self._new_sender()
        self._cleaned = False
        atexit.register(self.close)

    def _new_sender(self) -> "Sender | None":
        url = os.environ.get("BOA_REPORT_URL")
        if not url or self.context.rank != 0:
            return None
        from boa.train.sender import Sender  # what it imports is not needed anywhere else

        every_s = finite(os.environ.get("BOA_REPORT_EVERY_S"))
        token = os.environ.get("BOA_REPORT_TOKEN", "")
        ca = os.environ.get("BOA_REPORT_CA", "")
        return Sender(url, token, 1.0 if every_s is None else every_s, ca)

    def report(
        self,
        made: object,
        step: object,
        loss: object,
        epoch: object,
        metrics: dict[str, object],
    ) -> None:
        if os.getpid() != self._pid:
            return  # forked: counted by the process that began
        units = max(finite(made) or 0.0, 0.0)
        with self._lock:
            begins = self._turn_to(epoch)
            if units > 0:
                self._go_on()
            self._counts = self._counts or made is not None
            self.units += units
            self.step = self.step if step is None else _whole(step)
            self.at = Progress(self.at.epoch, self.at.progress + units, self.step or 0)
            if loss is not None:
                self.loss = self._values["loss"] = finite(loss)
            for name, value in metrics.items():
                number = finite(value)
                if name != "loss" and (name in self._values or self._has_room(name)):
                    self._values[name] = number
                if number is None:
                    self.metrics.pop(name, None)
                elif name in self.metrics or self._has_room(name):
                    self.metrics[name] = number
            self._send(prompt=begins)
            if self._forward is not None:
                told = {} if self.loss is None else {"loss": self.loss}
                self._forward({**told, **self.metrics}, self.step, False)

    def track(self, metrics: Mapping[str, object], step: float | None, loss: object) -> None:
        """Metrics that the script has logged elsewhere. Where it never says how much was done, the
        steps that it logs with do."""
        if os.getpid() != self._pid or self._sender is None:
            return
        with self._lock:
            made = 0.0
            if step is not None and not self._counts:
                if self._tracked is None and not self.at.step:  # it may have gone on by itself
                    self.at = Progress(self.at.epoch, step, int(step))
                before = self.at.step if self._tracked is None else self._tracked
                made, self._tracked = max(step - before, 0.0), max(step, before)
            counts = self._counts
            said = self.step if step is None or counts else self._tracked
            self.report(made, said, loss, None, dict(metrics))
            self._counts = counts

    def forward_to(self, target: Callable[[Mapping[str, float], int | None, bool], None]) -> None:
        self._forward = target

    def epoch(self, number: object) -> None:
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._turn_to(number):
                self._send(prompt=True)

    def ready(self) -> None:
        with self._lock:
            if os.getpid() == self._pid and self.units == 0:
                self._send(kept=True)

    def rescaled(self, parts: Mapping[str, object]) -> None:
        with self._lock:
            for name in PARTS:
                seconds = finite(parts.get(name))
                if seconds is not None and seconds >= 0:
                    self.rescale[name] = seconds * self.context.speed

    def tried(self, layouts: list[dict[str, object]]) -> None:
        """Layouts of the model that were tried: told with every report from here on."""
        with self._lock:
            self.layouts = layouts

    def set_total(self, units: object) -> None:
        number = finite(units)
        with self._lock:
            self.total = number if number is not None and number > 0 else None

    def set_saves(self, does: bool) -> None:
        with self._lock:
            self.saves = does

    def set_saved(self, ago_s: object) -> None:
        with self._lock:
            taken = self.age() - max(finite(ago_s) or 0.0, 0.0)
            self.saved_s = max(taken, 0.0) * self.context.speed
            if os.getpid() == self._pid:
                self._send()

    def ask(self) -> None:
        """Note that the script asks whether to stop: it saves then, unless it says otherwise."""
        with self._lock:
            if self.saves is not None or os.getpid() != self._pid:
                return
            self.saves = True
            if self.units > 0:  # else the first report of work says so: none may come before that
                self._send()

    def _go_on(self) -> None:
        """There is more work after all: another stage, say."""
        if self.done:
            self.done = False
            if path := self._done_file():
                with contextlib.suppress(OSError):
                    path.unlink()

    def _done_file(self) -> Path | None:
        path = os.environ.get(DONE_FILE)
        return Path(path) if path and self.context.rank == 0 else None

    def finish(self) -> None:
        with self._lock:
            if os.getpid() != self._pid or self.done:
                return
            self.done = True
            self._send(kept=True)
            if path := self._done_file():
                with contextlib.suppress(OSError):  # a service that reads no such file
                    path.touch()

    def resume(self) -> Progress:
        if self.told:  # the newest checkpoint may be in memory, or older than what was loaded
            return self.at
        home = self.clean_home()
        checkpoint = checkpoints.latest(home) if home else None
        found = checkpoints.progress_at(checkpoint) if checkpoint else None
        if found is not None and self.saved_s is None:
            self.saved_s = 0.0
        return self.resume_at(found or Progress())

    def resume_at(self, progress: Progress) -> Progress:
        with self._lock:
            self.resumed = True
            self.at = progress
            self.step = progress.step or None
            return self.at

    def clean_home(self) -> Path | None:
        """Where checkpoints are; rank 0 first removes what interrupted saves have left there."""
        home = self.context.checkpoint_dir
        if home is not None and self.context.rank == 0 and not self._cleaned:
            checkpoints.remove_leftovers(home, spared=_being_written(home))
            self._cleaned = True
        return home

    def age(self) -> float:
        """Seconds since this process began."""
        return time.monotonic() - self._began

    def close(self) -> None:
        if self._forward is not None and os.getpid() == self._pid:
            self._forward({}, None, True)
        if self._sender is not None and os.getpid() == self._pid:
            self._sender.close()

    def _turn_to(self, epoch: object) -> bool:
        """Whether another epoch begins."""
        number = _whole(epoch)
        if number is None or number == self.at.epoch:
            return False
        self._go_on()
        if self._sender is not None and number > self.at.epoch and self._values:
            self._sender.ended({"epoch": number, "values": dict(self._values)})
        self.at = Progress(number, 0.0, self.at.step)
        return True

    def _has_room(self, name: str) -> bool:
        fits = len(name) <= LONGEST_NAME and name.isprintable()
        return fits and len(self.metrics) < MOST_METRICS

    def _send(self, *, prompt: bool = False, kept: bool = False) -> None:
        if self._sender is None:
            return
        report: dict[str, Any] = {
            "attempt": self.context.attempt,
            "uptime_s": self.age() * self.context.speed,
            "epoch": self.at.epoch,
            "progress": self.at.progress,
            "units": self.units,
            "step": self.step,
            "loss": self.loss,
            "metrics": dict(self.metrics),
        }
        if self.rescale:
            report["rescale"] = dict(self.rescale)
        if self.layouts:
            report["layouts"] = self.layouts
        known = {"total": self.total, "saves": self.saves, "saved_s": self.saved_s}
        report |= {name: value for name, value in known.items() if value is not None}
        if self.done:
            report["done"] = True
        self._sender.offer(report, prompt=prompt, kept=kept)


@cache
def session() -> Session:
    """That of this process."""
    return Session()


def context() -> JobContext:
    """The job's context. From here on SIGTERM only sets what `stop_requested` tells."""
    stopping.listen()
    return session().context


def report(
    *,
    samples: object = None,
    step: object = None,
    loss: object = None,
    epoch: object = None,
    progress: object = None,
    **metrics: object,
) -> None:
    """Tell the service what was done since the last report. Returns at once, whatever happens.

    `samples` are those of the whole job (all ranks), not a running total; where the unit of
    progress is another one, `progress` says how many of it were done. Only rank 0 is heard. What
    is not a finite number is left out.
    """
    session().report(samples if progress is None else progress, step, loss, epoch, metrics)


def epoch(number: int) -> None:
    """An epoch (0, 1, …) begins: progress counts from zero again."""
    session().epoch(number)


def epochs(total: int | None = None) -> Iterator[int]:
    """The epochs that are left, from the resumed one on. `total`: as the job's spec says.

    After the last one the job's work is finished (`done`), unless it then reports more.
    """
    last = session().context.epochs if total is None else total
    _warn_of_beginning_anew()
    for number in range(session().at.epoch, last):
        epoch(number)
        yield number
    done()


def _warn_of_beginning_anew() -> None:
    """A script that loads its checkpoint and counts from 0 would never end: each rescaling takes it
    back to the beginning."""
    now = session()
    if not now.resumed and now.context.rank == 0 and latest_checkpoint() is not None:
        print(
            "boa: there is a checkpoint, but epochs() begins with the first: call train.resume() "
            "before it to count on",
            file=sys.stderr,
            flush=True,
        )


def _being_written(home: Path) -> str:
    """The generation that a keeper holds in memory and has written there, or nothing."""
    if not (home / "memory.json").exists():
        return ""
    from boa.train.keeper import pointer  # only who has one needs to know

    return pointer.generation_at(home)


def resume() -> Progress:
    """Where the newest checkpoint was taken, to count on from there; zeros if there is none."""
    return session().resume()


def resume_at(progress: Progress) -> None:
    """Count on from here: for who keeps checkpoints in a way of its own."""
    session().resume_at(progress)
    session().told = True


def ready() -> None:
    """Training begins now: told at once, before anything is done. It ends the rescaling.

    Once something was done in this attempt it says nothing.
    """
    session().ready()


def rescaled(parts: Mapping[str, float]) -> None:
    """Tell what the rescaling before this attempt took, in seconds of the wall, by part (`PARTS`).

    Goes with the next report and all later ones. Parts may come one after another: the newest
    value of each counts. What is no finite number >= 0, or no known part, is left out.
    """
    session().rescaled(parts)


def total(units: float | None) -> None:
    """Set the units of the whole job, all epochs together (None: unknown), for the next report."""
    session().set_total(units)


def saves(does: bool = True) -> None:
    """Declare whether a stop (SIGTERM) makes this job save a checkpoint, for the next report."""
    session().set_saves(does)


def saved(ago_s: float = 0.0) -> None:
    """Report that a complete checkpoint exists, taken `ago_s` real seconds ago."""
    session().set_saved(ago_s)


def done() -> None:
    """Report at once that the job's work is finished: exit 0 ends the job, also after a stop."""
    session().finish()


def stop_requested() -> bool:
    """Whether to save a checkpoint now and exit with code 0.

    The first call tells the service that the job saves when it is stopped.
    """
    session().ask()
    return stopping.stop_requested()


def latest_checkpoint() -> Path | None:
    """The folder of the newest complete checkpoint."""
    home = session().context.checkpoint_dir
    return checkpoints.latest(home) if home else None


@contextmanager
def new_checkpoint() -> Iterator[Path]:
    """A folder to write a checkpoint into: published, complete, when the block ends.

    If the block raises or the process dies, there is no such checkpoint. It is rank 0's to write;
    what other ranks write is thrown away, as it is outside of a job. The newest two are kept.
    """
    home = session().clean_home()
    if home is None or session().context.rank != 0:
        with tempfile.TemporaryDirectory(prefix="boa-") as scratch:
            yield Path(scratch)
        return
    began = session().age()
    with checkpoints.written(home, session().at) as folder:
        yield folder
    saved(session().age() - began)


def finite(value: object) -> float | None:
    """A finite number, or None."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except Exception:  # whatever it is, it must not stop a training
        return None
    return number if math.isfinite(number) else None


def _whole(value: object) -> int | None:
    number = finite(value)
    return None if number is None else int(number)


def _age_of_process() -> float:
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        began = ticks / os.sysconf("SC_CLK_TCK")
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - began, 0.0)
    except (OSError, ValueError, IndexError, AttributeError):  # not Linux: since it was imported
        return 0.0
