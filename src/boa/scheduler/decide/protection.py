"""Protection: running jobs that keep exactly the GPUs they have, whatever a policy says. Pure.

A job that cannot checkpoint keeps its GPUs until it ends. One that BOA has just rescaled keeps them
for a while, so that what the rescaling cost is earned. A job loses its last GPUs only to a job of a
higher priority. `upheld` holds every decision to that.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from boa.model.cluster import Allocation, JobId, NodeId
from boa.model.job import JobRecord
from boa.scheduler.stop_cost import lost_s, may_stop
from boa.units import Seconds

CALM = 10.0
"""Rescaling times for which a job keeps its GPUs after a rescaling, while no other node can be
rented. Where one can be, the market weighs every move against its cost, and jobs move as nodes
boot (`docs/decisions/0052-a-running-job-keeps-its-work.md`)."""
NO_RANK = -2
"""Below that of every job."""
OVERTAKEN_S: Seconds = 600.0
"""Time for which a job that waits may be overtaken by later ones that gain more by its GPUs …"""
WIDE_OVERTAKEN_S: Seconds = 300.0
"""… and for which one that needs several GPUs may be, by later ones that need fewer."""
MODEST_S: Seconds = 600.0
"""Time that a retry waits for free GPUs, before it counts like any other job."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """How strictly running jobs keep their GPUs at a decision."""

    calm: float = 0.0
    """Rescaling times for which a job that was rescaled keeps its GPUs."""
    rank: int = NO_RANK
    """The highest rank of the jobs that wait for GPUs: jobs of a lower one are not kept so."""


class Protection(NamedTuple):
    """How far a job's GPUs are protected."""

    keeps_work: bool
    """BOA never stops it: that would lose its work."""
    rescaled_at: Seconds
    """When its run began, if that was a rescaling …"""
    rescale_s: Seconds
    """… and how long one takes."""

    def pins(self, now: Seconds, rank: int, pressure: Pressure) -> bool:
        """Return whether the job keeps exactly what it has."""
        if self.keeps_work:
            return True
        calm_until = self.rescaled_at + pressure.calm * self.rescale_s
        return now < calm_until and pressure.rank <= rank


NONE = Protection(False, -math.inf, 0.0)


def protection(job: JobRecord, rescale_s: Seconds, saves: bool) -> Protection:
    """Return a job's protection. `rescale_s` and `saves` are what is believed of its class."""
    run = job.run
    if run is None or run.state == "stopping" or job.allocation != run.allocation:
        return NONE
    keeps_work = not may_stop(job, saves)
    if not (keeps_work or run.moved):
        return NONE
    return Protection(keeps_work, run.requested_at if run.moved else -math.inf, rescale_s)


def rank(job: JobRecord) -> int:
    """Return a job's priority as a number: it may take GPUs from jobs of a lower one."""
    return {"background": -1, "normal": 0, "urgent": 1}[job.spec.priority]


def unsaved_s(job: JobRecord, saves: bool, now: Seconds) -> Seconds:
    """Return the seconds of work that a job would lose if it were stopped now."""
    return 0.0 if job.run is None else lost_s(job, job.run, now, saves)


def is_modest(job: JobRecord, now: Seconds) -> bool:
    """Return whether a job waits for free GPUs only: it failed lately, and may fail again."""
    if job.run is not None or not job.failed_at:
        return False
    return now < job.failed_at[-1] + MODEST_S


def in_turn(jobs: Sequence[JobRecord], now: Seconds) -> Sequence[JobRecord]:
    """Return the jobs without those that would overtake one which waits for long.

    On a full cluster GPUs come free one by one: a job that needs several, or that gains less than
    others, would wait for ever behind newcomers of its priority.
    """
    overdue = [
        job
        for job in jobs
        if job.allocation is None
        and job.run is None
        and now - job.submitted_at > (OVERTAKEN_S if job.spec.gpus.min == 1 else WIDE_OVERTAKEN_S)
        and not is_modest(job, now)
    ]
    if not overdue:
        return jobs
    return [
        job
        for job in jobs
        if job.attempts
        or job.allocation is not None
        or not any(_overtakes(job, first) for first in overdue)
    ]


def _overtakes(job: JobRecord, first: JobRecord) -> bool:
    """Return whether a job would take GPUs that one which came before it waits for."""
    mine, others = job.spec.gpus.types, first.spec.gpus.types
    same = not others or (bool(mine) and set(mine) <= set(others))
    return same and rank(job) <= rank(first) and first.submitted_at < job.submitted_at


class Guarded(NamedTuple):
    """A job as `upheld` looks at it."""

    id: JobId
    rank: int
    pinned: bool
    keeps_work: bool
    """It is pinned since a stop would lose its work."""
    runs: bool
    """It has a run that BOA has not asked to stop."""
    arrival: Seconds
    started: bool
    """It has run before: it goes before newcomers."""


def upheld(
    after: Mapping[JobId, Allocation],
    before: Mapping[JobId, Allocation],
    jobs: Sequence[Guarded],
    sizes: Mapping[NodeId, int],
    *,
    last_gpus: bool = True,
) -> Mapping[JobId, Allocation]:
    """Return a decision in which every protected job keeps its GPUs.

    Pinned jobs keep exactly what they have. With `last_gpus` a running job keeps some, unless jobs
    of a higher rank take them. Whatever does not fit beside them waits. `sizes`: GPUs of every
    node that jobs may be on. A decision that respects all this is returned as it is.
    """
    wrong = [
        job
        for job in jobs
        if job.id in before
        and all(node in sizes for node, _ in before[job.id].nodes)
        and (
            (job.pinned and after.get(job.id) != before[job.id])
            or (last_gpus and job.runs and job.id not in after)
        )
    ]
    if not wrong or not any(
        job.pinned or not _taken_by_higher(job, after, before, jobs) for job in wrong
    ):
        return after
    free, given = Counter(dict(sizes)), dict[JobId, Allocation]()
    for job in sorted(jobs, key=_order):
        wishes = [after.get(job.id), before.get(job.id) if job.runs or job.pinned else None]
        if job.pinned:
            wishes.reverse()
        for wish in wishes:
            if wish is not None and all(free[node] >= count for node, count in wish.nodes):
                free.subtract(dict(wish.nodes))
                given[job.id] = wish
                break
    return given


def _order(job: Guarded) -> tuple[object, ...]:
    return (not job.pinned, -job.rank, not job.runs, not job.started, job.arrival)


def _taken_by_higher(
    loser: Guarded,
    after: Mapping[JobId, Allocation],
    before: Mapping[JobId, Allocation],
    jobs: Iterable[Guarded],
) -> bool:
    """Return whether each of the GPUs that a job loses is needed by jobs of a higher rank."""
    return any(
        job.rank > loser.rank and job.id in after and after[job.id] != before.get(job.id)
        for job in jobs
    )


def takers(
    before: Mapping[JobId, Allocation],
    after: Mapping[JobId, Allocation],
    ranks: Mapping[JobId, int],
    losers: Collection[JobId],
) -> dict[JobId, JobId]:
    """Return, for jobs that lose all their GPUs, the job of a higher rank that these go to.

    One on the loser's own nodes is named before one elsewhere.
    """
    gains = [
        (job, given)
        for job, given in after.items()
        if job not in before or before[job] is not given
    ]
    found: dict[JobId, JobId] = {}
    for loser in losers:
        mine = {node for node, _ in before[loser].nodes}
        higher = [one for one in gains if ranks.get(one[0], 0) > ranks.get(loser, 0)]
        higher.sort(key=lambda one: (not mine & {node for node, _ in one[1].nodes}, one[0]))
        if higher:
            found[loser] = higher[0][0]
    return found
