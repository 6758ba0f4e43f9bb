"""Tiresias (NSDI'19): two-dimensional least attained service, in discrete queues.

A job's attained service is GPUs × time. Jobs that have had little go first; service counts only by
the queue it falls into, so that jobs do not preempt each other all the time, and within a queue the
first to arrive goes first. Every job runs on the GPUs its user asked for, or not at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from boa.model.cluster import Allocation, ClusterView, Decision, JobId, JobView
from boa.placement.pool import Pool
from boa.policy.rivals.reservation import asked_type, asked_width, pools_of
from boa.units import GpuName

THRESHOLDS = (3200.0,)
"""GPU-seconds: two queues, the setting of the Tiresias paper's testbed."""


@dataclass(frozen=True, slots=True)
class Tiresias:
    """Discretised 2D-LAS on the nodes there are."""

    thresholds: tuple[float, ...] = THRESHOLDS
    """Attained service, in GPU-seconds, at which a job drops to the next queue; rising."""
    promote: float | None = None
    """A job that has waited so many times as long as it has run goes back to the first queue.

    None: never, the Tiresias paper's default.
    """
    by_job: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "tiresias"

    def decide(self, view: ClusterView) -> Decision:
        ranked = sorted(view.jobs, key=lambda job: (self.queue(job, view.now), job.arrival))
        wanted = [
            (job, gpu) for job in ranked if (gpu := asked_type(job, view.gpu_types)) is not None
        ]
        chosen = _chosen(wanted, pools_of(view))
        placed = _undisturbed(chosen, pools_of(view))
        if placed is None:
            placed = _by_rank(wanted, pools_of(view))
        return Decision(placements=placed, nodes=tuple(view.nodes))

    def queue(self, job: JobView, now: float) -> int:
        """0 is served first."""
        ran = job.service / asked_width(job)
        waited = now - job.arrival - ran
        if self.promote is not None and ran > 0 and waited >= self.promote * ran:
            return 0
        return sum(job.service >= threshold for threshold in self.thresholds)


_Wanted = tuple[JobView, GpuName]


def _chosen(wanted: Sequence[_Wanted], pools: dict[GpuName, Pool]) -> list[_Wanted]:
    """Who runs, by rank: a job that no longer fits is passed over, so that no GPU lies idle."""
    free = {gpu: len(pool.free) * pool.per_node for gpu, pool in pools.items()}
    chosen = []
    for job, gpu in wanted:
        if asked_width(job) <= free[gpu]:
            free[gpu] -= asked_width(job)
            chosen.append((job, gpu))
    return chosen


def _undisturbed(
    chosen: Sequence[_Wanted], pools: dict[GpuName, Pool]
) -> dict[JobId, Allocation] | None:
    """Running jobs stay where they are and the others fit around them; None if they do not."""
    placed = {}
    for job, gpu in sorted(chosen, key=lambda w: (w[0].allocation is None, -asked_width(w[0]))):
        held = job.allocation
        if held is not None and pools[gpu].fits(held):
            placed[job.id] = pools[gpu].hold(held.nodes)
        elif (found := pools[gpu].take(asked_width(job))) is not None:
            placed[job.id] = found
        else:
            return None
    return placed


def _by_rank(wanted: Sequence[_Wanted], pools: dict[GpuName, Pool]) -> dict[JobId, Allocation]:
    """Each in turn where it was, or else on the fewest nodes; one that finds no such room waits."""
    placed = {}
    for job, gpu in wanted:
        held = job.allocation
        if held is not None and pools[gpu].fits(held):
            placed[job.id] = pools[gpu].hold(held.nodes)
        elif (found := pools[gpu].take(asked_width(job))) is not None:
            placed[job.id] = found
    return placed
