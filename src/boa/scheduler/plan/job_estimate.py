"""An estimate of a job before it is submitted: time, dollars, widths, and how sure that is. Pure.

Widths are those that the plan in force gives the class, within the job's own limits; times and
dollars follow from the class as it would be known if the job arrived (`solver/objective.py` has the
formulas). How far jobs lie from it, the last of the class have shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, log
from typing import Literal, TypeAlias

import numpy as np

from boa.model.job import JobRecord
from boa.model.plan import Variant
from boa.model.workload import GpuType, JobClass
from boa.scheduler.plan.queue_ahead import Queue
from boa.scheduler.plan.residuals import spread_of
from boa.solver.objective import Rules, cost_rates, rescale_time, run_times
from boa.units import GpuName, Seconds, Usd

Basis: TypeAlias = Literal["jobs", "profile", "measured"]
"""Jobs of the class that succeeded; a profile of it; reports of jobs that have not ended, and a
work that is known."""
LAST = 200
"""Jobs of a class that are looked at."""
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
    """Four of five jobs lie between these, by what jobs of the class really took."""

    low: float
    high: float


WAITS = Range(low=0.3, high=1.6)
"""Waits for GPUs of other jobs, as parts of those that the queue foretells: measured
(`bench/coverage.py`)."""
BOOTS = Range(low=0.7, high=1.0)
"""Waits for a new node, likewise: some jobs get GPUs of others instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Time and cost of a job, by its class and by what its last jobs took beyond that, and its end
    by the present queue."""

    time_s: Seconds
    """From its start to its end: with the stops that such jobs have had lately."""
    jct_s: Seconds | None
    """Seconds from submission to end; None: its wait for GPUs is unknown."""
    cost_usd: Usd
    times: Range
    jcts: Range | None
    costs: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A job that succeeded."""

    time_s: Seconds
    cost_usd: Usd
    gpu: GpuName | None
    width: float
    """GPUs that it held, on average."""
    total_work: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A short run that would show what nobody knows yet."""

    gpu: GpuName
    width: int
    seconds: Seconds
    cost_usd: Usd
    """At most."""


def past_of(jobs: Sequence[JobRecord]) -> tuple[Past, ...]:
    """Jobs that succeeded, newest first; others say nothing of what a job takes."""
    found = []
    for job in jobs:
        if job.state != "succeeded" or job.ended_at is None or job.started_at is None:
            continue
        time_s = job.ended_at - job.started_at
        if time_s <= 0:
            continue
        found.append(
            Past(
                time_s=time_s,
                cost_usd=job.cost_usd,
                gpu=None if job.share is None else job.share.gpu,
                width=job.held_gpu_s / job.ran_s if job.ran_s > 0 else 1.0,
                total_work=job.total_work,
            )
        )
    return tuple(found[:LAST])


def figures(
    expected: tuple[Seconds, Usd],
    past: Sequence[Past],
    as_run: Callable[[Past], tuple[Seconds, Usd]],
    queue: Queue,
) -> Figures:
    """Return what a job takes. `expected`: by its class alone; `as_run`: what its class would be
    expected to take as a job of the past was run; `queue`: the jobs that it waits for now."""
    rows = [(one, *as_run(one)) for one in past]
    rows = [row for row in rows if isfinite(row[1]) and row[1] > 0]
    times = spread_of([log(one.time_s / seconds) for one, seconds, _ in rows])
    costs = spread_of([log(one.cost_usd / usd) for one, _, usd in rows if one.cost_usd * usd > 0])
    low, time_s, high = times.around(expected[0])
    least, cost_usd, most = costs.around(expected[1])
    wait_s, waits = queue.wait_s, BOOTS if queue.boot_s else WAITS
    return Figures(
        time_s=time_s,
        jct_s=None if wait_s is None else wait_s + time_s,
        cost_usd=cost_usd,
        times=Range(low=low, high=high),
        jcts=None
        if wait_s is None
        else Range(low=low + waits.low * wait_s, high=high + waits.high * wait_s),
        costs=Range(low=least, high=most),
    )


def as_run(
    job_class: JobClass,
    gpu_types: Mapping[GpuName, GpuType],
    rules: Rules,
    gpu: GpuName,
    units: float,
) -> Callable[[Past], tuple[Seconds, Usd]]:
    """Return what a class is expected to take and cost on the GPUs that a job of the past held.
    `gpu`: their type, where the job does not tell it; `units`: of a usual job of the class."""

    def taken(one: Past) -> tuple[Seconds, Usd]:
        kind = gpu if one.gpu not in gpu_types or one.gpu is None else one.gpu
        bases = [job_class.base_on(kind, epoch) for epoch in job_class.epochs]
        if any(base is None for base in bases):
            return 0.0, 0.0
        least = max(base for base in bases if base is not None)
        width = np.array([min(max(one.width, least), max(job_class.max_on(kind), least))])
        scale = 1.0 if one.total_work is None or units <= 0 else one.total_work / units
        seconds = float(run_times(job_class.epochs, kind, width).sum()) * scale
        seconds += rescale_time(job_class, rules)
        rate = float(cost_rates(np.array([one.width]), gpu_types[kind], rules.billing)[0])
        return seconds, seconds * rate

    return taken


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


def as_taken(found: Sequence[Way], longer: float, dearer: float) -> tuple[Way, ...]:
    """Ways whose times and costs are those that jobs really have."""
    return tuple(
        Way(
            way.share,
            tuple(
                replace(stage, time_s=longer * stage.time_s, cost_usd=dearer * stage.cost_usd)
                for stage in way.stages
            ),
        )
        for way in found
    )


def probe(gpu: GpuName, width: int, gpu_types: Mapping[GpuName, GpuType], rules: Rules) -> Probe:
    """On the fewest GPUs, of the cheapest type."""
    rate = float(cost_rates(np.array([float(width)]), gpu_types[gpu], rules.billing)[0])
    return Probe(gpu=gpu, width=width, seconds=PROBE_S, cost_usd=rate * PROBE_S)
