"""Shockwave (NSDI'23): rounds of the near future planned for the product of all jobs' progress.

At every arrival and end, the next 20 rounds are planned: so many for every job that the sum of the
logarithms of what each will have done is largest, less something for the longest rest. Jobs that
are later than with an equal part of the cluster count more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from boa.model.cluster import ClusterView, Decision, JobId, JobView
from boa.model.speedup import Floats
from boa.policy.rivals.outlook import Outlooks
from boa.policy.rivals.reservation import asked_width, pools_of
from boa.policy.rivals.seating import Starts, Wanted, seat, starts_after, still_starting
from boa.policy.rivals.time_shares import least

ROUND_S, ROUNDS = 120.0, 20
POINTS = np.array([1e-6, 0.2, 0.4, 0.6, 0.8, 1.0])
"""Parts of a job between which the logarithm is taken to be linear."""
LONGEST_REST = 1e-3
"""Weight of a second of the longest rest."""
LATE_POWER = 12.0
"""Power of its lateness that a late job counts by …"""
MOST_URGENT = 1e6
"""… up to this."""
CROWD_KEPT = 0.9
"""Part of the running mean of how crowded the cluster is that a round leaves."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """Rounds that jobs are to have yet, by a plan for these jobs."""

    jobs: frozenset[JobId] = frozenset()
    rounds: Mapping[JobId, int] = field(default_factory=dict)
    crowd: float = 1.0
    """GPUs asked for by those there are, by GPUs: a running mean, at least 1."""
    starts: Starts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shockwave:
    """On the nodes there are, of one GPU type; jobs run as asked, or not at all."""

    name: str = "shockwave"
    by_job: ClassVar[bool] = False

    def decide(self, view: ClusterView) -> Decision:
        gpu, pools = next(iter(view.gpu_types)), pools_of(view)
        gpus, plan = pools[gpu].gpus_free, view.memory or Horizon()
        times = _times(view, gpus)
        jobs = [job for job in view.jobs if job.id in times]
        asked = sum(asked_width(job) for job in jobs) / max(gpus, 1)
        crowd = max(CROWD_KEPT * plan.crowd + (1 - CROWD_KEPT) * asked, 1.0)
        if plan.jobs != frozenset(times) or not any(plan.rounds.values()):
            rounds = planned(jobs, times, gpus, crowd, view.now)
            plan = Horizon(frozenset(times), rounds, crowd, plan.starts)
        starting = still_starting(jobs, plan.starts)
        order = sorted(
            jobs,
            key=lambda job: (
                job.id not in starting,
                _turn(job, plan.rounds[job.id], times[job.id]),
            ),
        )
        chosen, free = set(), gpus
        for job in order:
            if asked_width(job) <= free:
                free -= asked_width(job)
                chosen.add(job.id)
        left = {job.id: max(plan.rounds[job.id] - (job.id in chosen), 0) for job in jobs}
        wanted = [Wanted(job, gpu, asked_width(job)) for job in order if job.id in chosen]
        placed = seat(wanted, pools)
        return Decision(
            placements=placed,
            nodes=tuple(view.nodes),
            memory=Horizon(plan.jobs, left, crowd, starts_after(jobs, placed, plan.starts)),
        )


def _turn(job: JobView, rounds: int, times: tuple[float, float]) -> tuple[bool, float]:
    """Whoever is due, by what the next round adds to the sum of logarithms for every GPU: progress
    counts in every round from then on. Then whoever has the longest rest."""
    rest, whole = times
    if rounds <= 0:
        return (True, -rest)
    done = max(1.0 - rest / whole, 0.0)
    after = np.interp([done, min(done + ROUND_S / whole, 1.0)], POINTS, np.log(POINTS))
    return (False, -float(after[1] - after[0]) / asked_width(job))


def _times(view: ClusterView, gpus: int) -> dict[JobId, tuple[float, float]]:
    """Seconds that jobs have yet to run as asked, and all that they take; of those that can."""
    outlooks, gpu, found = Outlooks(view.gpu_types), next(iter(view.gpu_types)), {}
    for job in view.jobs:
        seen, width = outlooks.of(job), asked_width(job)
        at = None if seen is None or width > gpus else seen.column_of(gpu, width)
        if seen is not None and at is not None:
            rest, whole = seen.rest(job.epoch, job.left)[at], seen.rest(0, 1.0)[at]
            if np.isfinite(whole):
                found[job.id] = (float(rest), float(whole))
    return found


def planned(
    jobs: list[JobView],
    times: Mapping[JobId, tuple[float, float]],
    gpus: int,
    crowd: float,
    now: float,
) -> dict[JobId, int]:
    """Rounds of the horizon for every job."""
    if not jobs:
        return {}
    rests, wholes = np.array([times[job.id] for job in jobs]).T
    widths = np.array([float(asked_width(job)) for job in jobs])
    late = (np.array([now - job.arrival for job in jobs]) + rests) / (wholes * crowd)
    weights = np.clip(np.maximum(late, 1.0) ** LATE_POWER, 1.0, MOST_URGENT)
    found = _rounds(rests, wholes, widths, weights / weights.max(), float(gpus * ROUNDS))
    return dict(zip((job.id for job in jobs), found.tolist(), strict=True))


def _rounds(
    rests: Floats, wholes: Floats, widths: Floats, weights: Floats, gpu_rounds: float
) -> Floats:
    """Rounds by job, whole ones: variables are rounds, utilities below the logarithm, and the
    longest rest after the horizon."""
    count = len(rests)
    needed = np.minimum(np.ceil(rests / ROUND_S), ROUNDS)
    slopes = np.diff(np.log(POINTS)) / np.diff(POINTS)
    levels = np.log(POINTS[1:]) - slopes * POINTS[1:]
    done, step = 1.0 - rests / wholes, ROUND_S / wholes
    rows, limits = [np.concatenate([widths, np.zeros(count + 1)])], [gpu_rounds]
    for job in range(count):
        for slope, level in zip(slopes, levels, strict=True):  # u ≤ level + slope · done
            row = np.zeros(2 * count + 1)
            row[job], row[count + job] = -slope * step[job], 1.0
            rows.append(row)
            limits.append(level + slope * done[job] - np.log(POINTS[0]))
        row = np.zeros(2 * count + 1)
        row[job], row[-1] = -ROUND_S, -1.0  # longest ≥ rest − rounds
        rows.append(row)
        limits.append(-rests[job])
    costs = np.concatenate([np.zeros(count), -weights / count, [LONGEST_REST]])
    upper = np.concatenate([needed, np.full(count, -np.log(POINTS[0])), [1e12]])
    found = least(costs, np.stack(rows), np.array(limits), upper)[:count]
    return np.asarray(np.ceil(found - 1e-6).astype(np.int64))
