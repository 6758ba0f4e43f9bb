"""Rescaling times: measured by the service as a whole, and by its jobs in parts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from boa.model.job import Run
from boa.model.records import RESCALE_PARTS, Report
from boa.replacing import replace
from boa.scheduler.learn.fading_means import Mean
from boa.scheduler.learn.measurements import is_duration
from boa.units import Seconds

TOTAL, OTHER, FIRST_STEP = "total", "other", "first_step"
OF_THE_RUN_BEFORE = ("stop", "save")
ORDER = (TOTAL, *RESCALE_PARTS, OTHER)
"""As they are listed; other: what no part explains."""
LATE, LATE_S = 1.5, 1.0
"""Two reports belong together if they arrived no further apart than this times the seconds between
them, and this many seconds more."""
LAST = 12
"""Rescalings of a class that its typical one is taken from."""
UNKNOWN = "unknown"
"""The engine of what was measured before engines were told apart."""


@dataclass(frozen=True, slots=True)
class Told:
    """One report's addition to what is known of the rescaling that its run began with."""

    parts: Mapping[str, Seconds]
    """Seconds by part (`ORDER`), each once per run."""
    longer: Seconds = 0.0
    """Seconds by which the total that was told before has grown."""

    def on(self, run: Run) -> dict[str, Seconds]:
        """All that is known of this run's rescaling by now."""
        known = {**run.rescale, **self.parts}
        if self.longer:
            known[TOTAL] += self.longer
        return known


def told(run: Run, report: Report, now: Seconds, before: Report | None = None) -> Told:
    """Return what a report adds to what is known of the rescaling that its run began with.

    The service's own clock measures the total: the stop of the run before, and from the start to
    the first report. If that report has progress, the time which that progress took is
    subtracted, at the pace up to the next report (`before` is the report before this one). The
    part by which a first step is longer than others is included.
    """
    parts = _new_parts(run, report)
    waited, late = now - run.decided_at, TOTAL in run.rescale
    first_step = parts.get(FIRST_STEP, 0.0)
    if late:
        waited = run.rescale[TOTAL] - run.rescale.get(FIRST_STEP, 0.0)
    elif run.reported_at is not None:
        progressed = _by_pace(run, before, report, now)
        if progressed is None:
            return Told(parts)
        waited = progressed - first_step - run.rescale.get(FIRST_STEP, 0.0)
        if waited <= 0:
            return Told(parts)  # reports are too coarse to tell
    elif report.units > 0 or not is_duration(waited):
        return Told(parts)
    explained = [seconds for name, seconds in parts.items() if name != FIRST_STEP]
    if explained and OTHER not in run.rescale:
        parts[OTHER] = max(waited - sum(explained), 0.0)
    if late:
        return Told(parts, longer=first_step)
    return Told({TOTAL: waited + first_step, **parts})


def _by_pace(run: Run, before: Report | None, report: Report, now: Seconds) -> Seconds | None:
    """Return the time until training began, for a run whose first report had progress.

    None: `before` is not that first report, or there is no pace between the two.
    """
    if before is None or run.reported_at is None or before.attempt != report.attempt:
        return None
    seconds, units = report.uptime_s - before.uptime_s, report.units - before.units
    if seconds <= 0 or units <= 0 or before.units <= 0:
        return None
    if now - run.reported_at > LATE * seconds + LATE_S:  # the service has missed reports
        return None
    waited = run.reported_at - run.decided_at - before.units * seconds / units
    return waited if waited > 0 and is_duration(waited) else None


def has_first_step(run: Run, before: Report) -> bool:
    """Whether the time after this report holds a first step whose excess is told as a part.

    It is part of the rescaling then, so no rate may be made of it. Of jobs that tell no parts it
    is not: their rates have it.
    """
    return before.units <= 0 and any(name in run.rescale for name in RESCALE_PARTS)


def _new_parts(run: Run, report: Report) -> dict[str, Seconds]:
    """A run that no other was stopped for may have loaded a checkpoint that tells of an older
    stop: that is not believed."""
    stopped = run.decided_at < run.requested_at
    return {
        name: seconds
        for name, seconds in report.rescale.items()
        if name in RESCALE_PARTS
        and name not in run.rescale
        and is_duration(seconds)
        and (stopped or name not in OF_THE_RUN_BEFORE)
    }


@dataclass(frozen=True, slots=True)
class Timed:
    """How long something takes, and how often that was measured."""

    mean: Mean = field(default_factory=Mean)
    count: int = 0
    last: tuple[Seconds, ...] = ()
    """The newest of them; none where an older version stored only the mean."""

    def add(self, seconds: Seconds) -> "Timed":
        last = (*self.last, seconds)[-LAST:]
        return Timed(self.mean.add(seconds), self.count + 1, last)

    def raised(self, by: Seconds) -> "Timed":
        """Return this with the newest one longer by so much."""
        last = (*self.last[:-1], self.last[-1] + by) if self.last else ()
        return Timed(self.mean.raised(by), self.count, last)

    @property
    def value(self) -> Seconds:
        """Typical time, which no single outlier can move far."""
        return typical(self.last) if self.last else self.mean.value

    def after(self, prior: Seconds) -> Seconds:
        """Typical time, with what was believed before as if that had been the first."""
        return replace(self.mean, value=self.value).after(prior)

    def as_document(self) -> list[Any]:
        """Return it as it is stored."""
        return [self.mean.value, self.mean.weight, self.count, list(self.last)]

    @classmethod
    def from_document(cls, document: Sequence[Any]) -> "Timed":
        value, weight, count, *last = document
        return cls(Mean(value, weight), count, tuple(*last))


def typical(values: Sequence[float]) -> float:
    """Return the mean of the middle half; of two the lower, of three the median."""
    ordered = sorted(values)
    cut = (len(ordered) + 1) // 4
    kept = ordered[cut : len(ordered) - cut] if len(ordered) > 2 else ordered[:1]
    return sum(kept) / len(kept)


@dataclass(frozen=True, slots=True)
class Rescalings:
    """Those of one class under one engine."""

    parts: Mapping[str, Timed] = field(default_factory=dict)
    """Times by part (`ORDER`)."""

    @property
    def total(self) -> Timed:
        return self.parts.get(TOTAL, Timed())

    def add(self, what: Told) -> "Rescalings":
        parts = dict(self.parts)
        if what.longer and TOTAL in parts:
            parts[TOTAL] = parts[TOTAL].raised(what.longer)
        for name, seconds in what.parts.items():
            parts[name] = parts.get(name, Timed()).add(seconds)
        return Rescalings(parts)

    def listed(self) -> Iterator[tuple[str, Timed]]:
        return ((name, self.parts[name]) for name in ORDER if name in self.parts)

    def as_document(self) -> dict[str, Any]:
        """To be stored."""
        return {name: timed.as_document() for name, timed in self.parts.items()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Rescalings":
        return cls({name: Timed.from_document(timed) for name, timed in document.items()})


def stored_before_engines(mean: Mean) -> dict[str, Rescalings]:
    """Records of that time have the mean alone; its weight is the number of values, or 20."""
    if not mean.weight:
        return {}
    return {UNKNOWN: Rescalings({TOTAL: Timed(mean, max(round(mean.weight), 1))})}
