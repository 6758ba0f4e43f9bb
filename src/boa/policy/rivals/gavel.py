"""Gavel (OSDI'20) as the authors of Sia ran it: parts of time on GPU types, kept in rounds.

A program says which part of its time every job should have on every type; in every round those go
first that have had least of what they should. Jobs run on the GPUs that their users asked for, or
not at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from boa.model.cluster import Allocation, ClusterView, Decision, JobId, JobView
from boa.model.speedup import Floats
from boa.placement.pool import Pool
from boa.policy.rivals.reservation import asked_width, pools_of
from boa.policy.rivals.seating import (
    Starts,
    Wanted,
    kept,
    starts_after,
    still_starting,
    usable,
)
from boa.policy.rivals.time_shares import Contest, Objective, symmetric
from boa.units import GpuName

FIRST = 0.5
"""Rounds that a job counts as having had on every type when it comes."""


@dataclass(frozen=True, slots=True)
class Had:
    """Rounds that jobs have had on every type."""

    by_job: Mapping[JobId, Floats] = field(default_factory=dict)
    in_all: Floats = field(default_factory=lambda: np.zeros(0))
    """Rounds of all jobs that ever came."""
    starts: Starts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gavel:
    """On the nodes there are."""

    name: str
    objective: Objective
    symmetric: bool = False
    """Equal jobs are treated equally, as in published runs; else they end one after the other."""
    by_job: ClassVar[bool] = False

    def decide(self, view: ClusterView) -> Decision:
        had = came(view.memory or Had(), view.jobs, len(view.gpu_types))
        if not view.jobs:
            return Decision(nodes=tuple(view.nodes), memory=had)
        pools = pools_of(view)
        contest = contest_of(view, pools)
        shares = self.objective(contest)
        if self.symmetric:
            shares = symmetric(contest, shares)
        chosen = self._chosen(view, contest, np.round(shares, 5), had, pools)
        placed = seated(chosen, pools)
        after = replace(
            ran(had, placed, list(pools)), starts=starts_after(view.jobs, placed, had.starts)
        )
        return Decision(placements=placed, nodes=tuple(view.nodes), memory=after)

    def _chosen(
        self,
        view: ClusterView,
        contest: Contest,
        shares: Floats,
        had: Had,
        pools: Mapping[GpuName, Pool],
    ) -> list[Wanted]:
        """By what is due to them, whoever fits; where GPUs are left, also who is due nothing."""
        rounds = np.stack([had.by_job[job.id] for job in view.jobs])
        due = shares * had.in_all / rounds
        free = {gpu: pool.gpus_free for gpu, pool in pools.items()}
        names = list(pools)
        order = np.lexsort((-shares.T.ravel(), -due.T.ravel()))
        chosen = {one.job.id: one for one in stay_on(view.jobs, pools, had.starts)}
        for one in chosen.values():
            free[one.gpu] -= one.width
        for at in order.tolist():
            gpu, job = names[at // len(view.jobs)], view.jobs[at % len(view.jobs)]
            width = int(contest.widths[at % len(view.jobs)])
            able = contest.rates[at % len(view.jobs), at // len(view.jobs)] > 0
            if able and job.id not in chosen and width <= free[gpu]:
                free[gpu] -= width
                chosen[job.id] = Wanted(job, gpu, width)
        return list(chosen.values())


def stay_on(jobs: Sequence[JobView], pools: Mapping[GpuName, Pool], starts: Starts) -> list[Wanted]:
    """Jobs that are still being started, where they are."""
    starting = still_starting(jobs, starts)
    return [
        Wanted(job, held.gpu, held.width)
        for job in jobs
        if job.id in starting
        and (held := job.allocation) is not None
        and held.width == asked_width(job)
        and pools[held.gpu].fits(held)
    ]


def contest_of(view: ClusterView, pools: Mapping[GpuName, Pool]) -> Contest:
    """The jobs of a view, at the widths that were asked for."""
    widths = np.array([asked_width(job) for job in view.jobs])
    gpus = np.array([float(pool.gpus_free) for pool in pools.values()])
    rates = np.array(
        [
            [
                rate_on(job, gpu, int(width), pool.per_node) if width <= pool.gpus_free else 0.0
                for gpu, pool in pools.items()
            ]
            for job, width in zip(view.jobs, widths, strict=True)
        ]
    )
    works = [np.array(job.work or (1.0,)) for job in view.jobs]
    left = [
        float(work[min(job.epoch, len(work) - 1)] * job.left + work[job.epoch + 1 :].sum())
        for job, work in zip(view.jobs, works, strict=True)
    ]
    return Contest(
        rates=rates,
        widths=widths,
        gpus=gpus,
        left=np.array(left),
        whole=np.array([work.sum() for work in works]),
        age=np.array([view.now - job.arrival for job in view.jobs]),
        start_s=np.array([job.rescale_s for job in view.jobs]),
    )


def rate_on(job: JobView, gpu: GpuName, width: int, per_node: int) -> float:
    table = job.prediction.rates(gpu, job.epoch)
    if table is None or width >= table.shape[1]:
        return 0.0
    return float(table[int(width > per_node), width])


def came(had: Had, jobs: Sequence[JobView], types: int) -> Had:
    """With those that are new, and without those that are gone."""
    first = np.full(types, FIRST)
    by_job = {job.id: had.by_job.get(job.id, first) for job in jobs}
    new = sum(job.id not in had.by_job for job in jobs)
    in_all = had.in_all if len(had.in_all) else np.zeros(types)
    return Had(by_job, in_all + new * first, had.starts)


def ran(had: Had, placed: Mapping[JobId, Allocation], types: Sequence[GpuName]) -> Had:
    """With the round that begins."""
    one = {gpu: np.eye(len(types))[at] for at, gpu in enumerate(types)}
    by_job = {
        name: rounds + one[placed[name].gpu] if name in placed else rounds
        for name, rounds in had.by_job.items()
    }
    now = sum((one[held.gpu] for held in placed.values()), np.zeros(len(types)))
    return Had(by_job, had.in_all + now)


def seated(chosen: Sequence[Wanted], pools: Mapping[GpuName, Pool]) -> dict[JobId, Allocation]:
    """The widest first, each on the GPUs that it has, or the first free ones as nodes come."""
    placed: dict[JobId, Allocation] = {}
    for width in sorted({one.width for one in chosen}, reverse=True):
        group = [one for one in chosen if one.width == width]
        for one in group:
            if (held := kept(one, pools[one.gpu])) is not None:
                placed[one.job.id] = held
        for one in group:
            if one.job.id not in placed:
                pool = pools[one.gpu]
                if (found := usable(one, pool.take_first(width), pool)) is not None:
                    placed[one.job.id] = found
    return placed
