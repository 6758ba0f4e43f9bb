"""A trace: concrete jobs with arrival times. What the simulator replays, and where λ comes from."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np

from boa.errors import InputError
from boa.model.priorities import Priority
from boa.model.speedup import Floats
from boa.units import SECONDS_PER_HOUR, PerHour, Seconds

MICROSECONDS = 6
"""Decimals of an arrival that is computed and not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    """One job that arrived. What a trace does not tell is None."""

    name: str
    arrival_s: Seconds
    application: str
    gpus: int | None = None
    """GPUs its user asked for; rigid policies give it exactly these."""
    batch_size: int | None = None
    """Total batch size its user asked for; Sia takes it as an upper limit."""
    steps: int | None = None
    """The work, where it is a number of iterations at a fixed batch (Rubick)."""
    plan: str | None = None
    """Execution plan its user asked for (Rubick)."""
    guaranteed: bool = False
    """Whether its tenant was promised the GPUs (Rubick)."""
    duration_s: Seconds | None = None
    """How long it would take on what its user asked for (Rubick)."""
    priority: Priority = "normal"
    line: int | None = field(default=None, compare=False)
    """Where it stands in its file, for errors to name."""

    def again(self, name: str, arrival_s: Seconds) -> "TraceJob":
        """A job like this one, under another name and at another time; it stands in no file.

        What `dataclasses.replace` does, four times as fast: synthetic traces have millions of
        jobs. So the slots are filled one by one, past the constructor that frozen values have.
        """
        made = object.__new__(TraceJob)
        _set_name(made, name)
        _set_arrival(made, arrival_s)
        _set_application(made, self.application)
        _set_gpus(made, self.gpus)
        _set_batch_size(made, self.batch_size)
        _set_steps(made, self.steps)
        _set_plan(made, self.plan)
        _set_guaranteed(made, self.guaranteed)
        _set_duration(made, self.duration_s)
        _set_priority(made, self.priority)
        _set_line(made, None)
        return made


(
    _set_name,
    _set_arrival,
    _set_application,
    _set_gpus,
    _set_batch_size,
    _set_steps,
    _set_plan,
    _set_guaranteed,
    _set_duration,
    _set_priority,
    _set_line,
) = (getattr(TraceJob, part.name).__set__ for part in fields(TraceJob))  # in their order


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """The jobs of one application in a trace."""

    name: str
    jobs: int
    share: float
    mean_gpus: float | None
    """Mean of the GPUs asked for, over the jobs that say; None where none does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """How a trace's jobs were made from a log that tells only their sizes."""

    recipe: str
    seed: int
    left_out: int
    """Jobs of the log that the recipe has no use for."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs in order of arrival."""

    jobs: tuple[TraceJob, ...]
    drawn: Drawn | None = field(default=None, compare=False)
    """None where the file itself says which jobs they were."""

    @property
    def span_s(self) -> Seconds:
        """The arrival span: 0 to the last arrival. Every rate is per this span."""
        return max((job.arrival_s for job in self.jobs), default=0.0)

    def between(self, start_s: Seconds, end_s: Seconds) -> "Trace":
        """Only the jobs that arrive in [start, end), counted from the start."""
        jobs = tuple(
            replace(job, arrival_s=round(job.arrival_s - start_s, MICROSECONDS))
            for job in self.jobs
            if start_s <= job.arrival_s < end_s
        )
        return replace(self, jobs=jobs)

    def denser(self, factor: float) -> "Trace":
        """The same jobs at so many times the rate: every gap is divided, and C² stays."""
        jobs = tuple(
            replace(job, arrival_s=round(job.arrival_s / factor, MICROSECONDS)) for job in self.jobs
        )
        return replace(self, jobs=jobs)

    @property
    def has_priorities(self) -> bool:
        return any(job.priority != "normal" for job in self.jobs)

    @property
    def paying(self) -> "Trace":
        """Without the jobs in the background, which nothing is rented for."""
        if not self.has_priorities:
            return self
        jobs = tuple(job for job in self.jobs if job.priority != "background")
        return replace(self, jobs=jobs)

    def counts(self) -> Mapping[str, int]:
        """Jobs per application, in order of first arrival."""
        return Counter(job.application for job in self.jobs)

    def arrivals_per_hour(self) -> Mapping[str, PerHour]:
        """λ_i per application: its jobs over the arrival span."""
        span = self.span_s
        if span <= 0:
            raise InputError(
                "trace", f"{len(self.jobs)} jobs, all at time 0", "arrivals that spread over time"
            )
        return {app: n * SECONDS_PER_HOUR / span for app, n in self.counts().items()}

    def mix(self) -> list[Portion]:
        """Portions that the trace is made of, most frequent first."""
        asked: dict[str, list[int]] = {}
        for job in self.jobs:
            if job.gpus is not None:
                asked.setdefault(job.application, []).append(job.gpus)
        found = [
            Portion(
                name=name,
                jobs=count,
                share=count / len(self.jobs),
                mean_gpus=sum(asked[name]) / len(asked[name]) if name in asked else None,
            )
            for name, count in self.counts().items()
        ]
        return sorted(found, key=lambda portion: (-portion.jobs, portion.name))

    def mean_steps(self, application: str) -> float | None:
        """Mean of `steps` over an application's jobs; None where one of them has none."""
        steps = [job.steps for job in self.jobs if job.application == application]
        known = [n for n in steps if n is not None]
        return sum(known) / len(known) if known and len(known) == len(steps) else None

    def arrivals_s(self) -> Floats:
        """All arrival times, in order."""
        return np.sort(np.fromiter((job.arrival_s for job in self.jobs), float, len(self.jobs)))

    def interarrival_cv2(self) -> float | None:
        """C²: the squared coefficient of variation of the times between arrivals.

        1 for a Poisson process, more for bursts. None where no time passes between arrivals, or
        where there are fewer than two such times to compare.
        """
        gaps = np.diff(self.arrivals_s())
        if len(gaps) < 2 or gaps.mean() <= 0:
            return None
        return float(gaps.var() / gaps.mean() ** 2)

    def peak_jobs(self, window_s: Seconds) -> int:
        """The most jobs that arrive within any stretch of this length."""
        times = self.arrivals_s()
        until = np.searchsorted(times, times + window_s, side="left")
        return int(np.max(until - np.arange(len(times)), initial=0))
