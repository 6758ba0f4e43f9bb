"""An estimate of a job before it is submitted: time, dollars, widths, and how sure that is. Pure.

Widths are those that the plan in force gives the class, within the job's own limits; times and
dollars follow from the class as it would be known if the job arrived (`solver/objective.py` has the
formulas). How far jobs lie from it, the last of the class have shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias

import numpy as np

from boa.model.job import JobRecord
from boa.model.plan import Variant
from boa.model.workload import GpuType, JobClass
from boa.solver.objective import Rules, cost_rates, rescale_time, run_times
from boa.units import GpuName, Seconds, Usd

Basis: TypeAlias = Literal["jobs", "profile", "measured"]
"""Jobs of the class that succeeded; a profile of it; reports of jobs that have not ended, and a
work that is known."""
ENOUGH = 5
"""Jobs of a class from which a spread is told."""
LAST = 200
"""Jobs that it is taken from."""
LOW, HIGH = 0.1, 0.9
"""Four of five jobs lie between these."""
PROBE_S: Seconds = 300.0
"""Seconds that a probe of an unknown class may take at most."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Epochs in a row on the same GPUs."""

    first_epoch: int
    """From 0."""
    last_epoch: int
    gpu: GpuName
    width: int
    time_s: Seconds
    """The rescaling at its beginning included."""
    cost_usd: Usd


@dataclass(frozen=True, slots=True)
class Way:
    """One way through training, and the share of the class's jobs that takes it."""

    share: float
    stages: tuple[Stage, ...]

    @property
    def time_s(self) -> Seconds:
        return sum(stage.time_s for stage in self.stages)

    @property
    def cost_usd(self) -> Usd:
        return sum(stage.cost_usd for stage in self.stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Between these lie four of five jobs, as the last of the class did."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far the last jobs of a class lay from their mean."""

    jobs: int = 0
    times: tuple[float, ...] = ()
    """JCTs, each divided by their mean."""
    costs: tuple[float, ...] = ()

    def around(self, mean: float, ratios: Sequence[float]) -> Range | None:
        """None where too few have ended to tell."""
        if len(ratios) < ENOUGH:
            return None
        low, high = np.quantile(np.array(ratios), (LOW, HIGH)).tolist()
        return Range(low=mean * low, high=mean * high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A short run that would show what nobody knows yet."""

    gpu: GpuName
    width: int
    seconds: Seconds
    cost_usd: Usd
    """At most."""


def spread_of(jobs: Sequence[JobRecord]) -> Spread:
    """Spread of jobs of one class, newest first; those that did not succeed say nothing."""
    done = [job for job in jobs if job.state == "succeeded" and job.ended_at is not None][:LAST]
    jcts = [job.ended_at - job.submitted_at for job in done if job.ended_at is not None]
    return Spread(
        jobs=len(done), times=_ratios(jcts), costs=_ratios([job.cost_usd for job in done])
    )


def _ratios(values: Sequence[float]) -> tuple[float, ...]:
    mean = sum(values) / len(values) if values else 0.0
    return tuple(value / mean for value in values) if mean > 0 else ()


def ways(
    job_class: JobClass,
    variants: Sequence[Variant],
    gpu_types: Mapping[GpuName, GpuType],
    rules: Rules,
    scale: float = 1.0,
) -> tuple[Way, ...]:
    """Every way that can be gone. `scale`: how much longer the job is than others of its class."""
    found = (
        Way(variant.share, _stages(job_class, variant, gpu_types, rules, scale))
        for variant in variants
    )
    return tuple(way for way in found if way.stages and isfinite(way.time_s))


def _stages(
    job_class: JobClass,
    variant: Variant,
    gpu_types: Mapping[GpuName, GpuType],
    rules: Rules,
    scale: float,
) -> tuple[Stage, ...]:
    """None where an epoch cannot run on what is planned for it."""
    stages = []
    for first, end, gpu, width in as_long(variant, len(job_class.epochs)).stretches():
        epochs = job_class.epochs[first:end]
        bases = [job_class.base_on(gpu, epoch) for epoch in epochs]
        if gpu not in gpu_types or any(base is None or width < base for base in bases):
            return ()
        used = np.array([float(min(width, job_class.max_on(gpu)))])
        time = float(run_times(epochs, gpu, used).sum()) * scale + rescale_time(job_class, rules)
        rate = float(cost_rates(np.array([float(width)]), gpu_types[gpu], rules.billing)[0])
        stages.append(Stage(first, end - 1, gpu, int(width), time, time * rate))
    return tuple(stages)


def as_long(variant: Variant, epochs: int) -> Variant:
    """A variant for so many epochs: beyond its last it goes on as in the last."""
    at = [min(epoch, len(variant.widths) - 1) for epoch in range(epochs)]
    types = [min(n, len(variant.gpu_types) - 1) for n in at]
    return Variant(
        variant.share,
        tuple(variant.gpu_types[n] for n in types),
        tuple(variant.widths[n] for n in at),
    )


def means(found: Sequence[Way]) -> tuple[Seconds, Usd] | None:
    """Mean time and dollars over the ways that its jobs take."""
    total = sum(way.share for way in found)
    if total <= 0:
        return None
    return (
        sum(way.share * way.time_s for way in found) / total,
        sum(way.share * way.cost_usd for way in found) / total,
    )


def probe(gpu: GpuName, width: int, gpu_types: Mapping[GpuName, GpuType], rules: Rules) -> Probe:
    """On the fewest GPUs, of the cheapest type."""
    rate = float(cost_rates(np.array([float(width)]), gpu_types[gpu], rules.billing)[0])
    return Probe(gpu=gpu, width=width, seconds=PROBE_S, cost_usd=rate * PROBE_S)
