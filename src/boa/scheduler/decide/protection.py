"""Protection: which running jobs keep exactly their GPUs, and which wait for free ones. Pure.

A job that cannot checkpoint keeps its GPUs until it ends. One that BOA has just rescaled settles:
it keeps them for a while, so that what the rescaling cost is earned. `preemption.py` says what a
job of a higher priority may take all the same.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.scheduler.decide.preemption import NONE as NO_PREEMPTION
from boa.scheduler.decide.preemption import Preemption
from boa.scheduler.lifecycle import FAILED_LATELY_S, LONGEST_BACKOFF_S
from boa.scheduler.stop_cost import may_stop
from boa.units import Seconds

CALM = 10.0
"""Rescaling times for which a job keeps its GPUs after a rescaling, while no other node can be
rented. Where one can be, the market weighs every move against its cost, and jobs move as nodes
boot (`docs/decisions/0052-a-running-job-keeps-its-work.md`)."""
MODEST_S: Seconds = LONGEST_BACKOFF_S + 600.0
"""Seconds after a single failure in which a retry waits for free GPUs: ten minutes from when it is
due, at least. Then others may be narrowed for it."""


class Calm(NamedTuple):
    """How long a job keeps its GPUs after a rescaling."""

    times: float
    """Rescaling times."""
    node_at: Seconds
    """When the newest node became ready."""


RESTLESS = Calm(0.0, math.inf)
"""Jobs may be rescaled at any time."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """How strictly running jobs keep their GPUs at a decision."""

    calm: Calm = RESTLESS
    preemption: Preemption = NO_PREEMPTION
    """Jobs that give way to a higher priority all the same."""


class Protection(NamedTuple):
    """How far a job's GPUs are protected."""

    keeps_work: bool
    """BOA never stops it: that would lose its work."""
    rescaled_at: Seconds
    """Start of its run, if BOA had rescaled it."""
    rescale_s: Seconds
    """Seconds that a rescaling takes."""

    def settles(self, now: Seconds, calm: "Calm") -> bool:
        """Return whether the job was rescaled so lately that it keeps its GPUs: not if a node has
        become ready since, which was rented for jobs to move to."""
        came = calm.node_at < self.rescaled_at or calm.node_at == self.rescaled_at < now
        return came and now < self.rescaled_at + calm.times * self.rescale_s

    def pins(self, now: Seconds, job: JobId, pressure: Pressure) -> bool:
        """Return whether the job keeps exactly what it has."""
        if self.keeps_work:
            return True
        return self.settles(now, pressure.calm) and not pressure.preemption.yields(job)


NONE = Protection(False, -math.inf, 0.0)


def protection(job: JobRecord, rescale_s: Seconds, saves: bool | None) -> Protection:
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


def may_preempt(job: JobRecord, now: Seconds) -> bool:
    """Return whether a job may take GPUs from jobs of a lower rank: it has not failed lately, nor
    ever since it last got further."""
    if job.failures or job.losses > 1 or job.asked > 1:
        return False
    return not job.failed_at or now >= job.failed_at[-1] + FAILED_LATELY_S


def standing(job: JobRecord, now: Seconds) -> int:
    """Return a waiting job's rank: one that has failed lately goes before no normal job."""
    return rank(job) if job.run is not None or may_preempt(job, now) else min(rank(job), 0)


def is_modest(job: JobRecord, now: Seconds) -> bool:
    """Return whether a job waits for free GPUs only: it failed a short while ago, or more than once
    of late."""
    if job.run is not None or not job.failed_at:
        return False
    lately = sum(now < at + FAILED_LATELY_S for at in job.failed_at)
    return lately > 1 or now < job.failed_at[-1] + MODEST_S
