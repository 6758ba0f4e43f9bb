"""A trace: concrete jobs with arrival times. What the simulator replays, and where λ comes from."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from boa.errors import InputError
from boa.units import SECONDS_PER_HOUR, PerHour, Seconds


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
    line: int | None = field(default=None, compare=False)
    """Where it stands in its file, for errors to name."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs in order of arrival."""

    jobs: tuple[TraceJob, ...]

    @property
    def span_s(self) -> Seconds:
        """The arrival span: 0 to the last arrival. Every rate is per this span."""
        return max((job.arrival_s for job in self.jobs), default=0.0)

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

    def mean_steps(self, application: str) -> float | None:
        """Mean of `steps` over an application's jobs; None where one of them has none."""
        steps = [job.steps for job in self.jobs if job.application == application]
        known = [n for n in steps if n is not None]
        return sum(known) / len(known) if known and len(known) == len(steps) else None
