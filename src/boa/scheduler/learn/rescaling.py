"""Rescaling times: measured by the service as a whole, and by its jobs in parts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from boa.model.job import Run
from boa.model.records import RESCALE_PARTS, Report
from boa.scheduler.learn.fading_means import Mean
from boa.scheduler.learn.measurements import is_duration
from boa.units import Seconds

TOTAL, OTHER, FIRST_STEP = "total", "other", "first_step"
OF_THE_RUN_BEFORE = ("stop", "save")
ORDER = (TOTAL, *RESCALE_PARTS, OTHER)
"""As they are listed; other: what no part explains."""
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


def told(run: Run, report: Report, now: Seconds) -> Told:
    """The service's own clock says what it all took, from the decision to the first report that
    comes before any progress. By how much a first step is longer than others is part of it."""
    parts = _new_parts(run, report)
    waited, late = now - run.decided_at, TOTAL in run.rescale
    if late:
        waited = run.rescale[TOTAL] - run.rescale.get(FIRST_STEP, 0.0)
    elif run.reported_at is not None or report.units > 0 or not is_duration(waited):
        return Told(parts)
    first_step = parts.get(FIRST_STEP, 0.0)
    explained = [seconds for name, seconds in parts.items() if name != FIRST_STEP]
    if explained and OTHER not in run.rescale:
        parts[OTHER] = max(waited - sum(explained), 0.0)
    if late:
        return Told(parts, longer=first_step)
    return Told({TOTAL: waited + first_step, **parts})


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

    def add(self, seconds: Seconds) -> "Timed":
        return Timed(self.mean.add(seconds), self.count + 1)


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
            parts[TOTAL] = Timed(parts[TOTAL].mean.raised(what.longer), parts[TOTAL].count)
        for name, seconds in what.parts.items():
            parts[name] = parts.get(name, Timed()).add(seconds)
        return Rescalings(parts)

    def listed(self) -> Iterator[tuple[str, Timed]]:
        return ((name, self.parts[name]) for name in ORDER if name in self.parts)

    def as_document(self) -> dict[str, Any]:
        """To be stored."""
        return {
            name: [timed.mean.value, timed.mean.weight, timed.count]
            for name, timed in self.parts.items()
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Rescalings":
        return cls(
            {
                name: Timed(Mean(value, weight), count)
                for name, (value, weight, count) in document.items()
            }
        )


def stored_before_engines(mean: Mean) -> dict[str, Rescalings]:
    """Records of that time have the mean alone; its weight is the number of values, or 20."""
    if not mean.weight:
        return {}
    return {UNKNOWN: Rescalings({TOTAL: Timed(mean, max(round(mean.weight), 1))})}
