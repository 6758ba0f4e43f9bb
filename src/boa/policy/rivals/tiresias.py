"""Tiresias (NSDI'19) as the authors of Pollux ran it: least attained service, in two queues.

A job's attained service is GPUs × time. Every job begins in the first queue; one that has had its
share goes to the end of the second, for good. Jobs run on the GPUs that their users asked for, or
not at all: queue by queue, in the order in which they entered it, whoever still fits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from boa.model.cluster import ClusterView, Decision, JobId, JobView
from boa.policy.rivals.reservation import asked_type, asked_width, pools_of
from boa.policy.rivals.seating import Wanted, seat

THRESHOLD = 57_600.0
"""GPU-seconds after which a job goes to the second queue: 16 GPU-hours."""


@dataclass(frozen=True, slots=True)
class Tiresias:
    """Discretised 2D-LAS on the nodes there are."""

    threshold: float = THRESHOLD
    by_job: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "tiresias"

    def decide(self, view: ClusterView) -> Decision:
        second = self.second_queue(view.jobs, view.memory or ())
        rank = {name: place for place, name in enumerate(second, start=1)}
        queued = sorted(view.jobs, key=lambda job: rank.get(job.id, 0))
        chosen = _who_fits(queued, view)
        placed = seat(chosen, pools_of(view))
        return Decision(placements=placed, nodes=tuple(view.nodes), memory=second)

    def second_queue(self, jobs: Sequence[JobView], before: Sequence[JobId]) -> tuple[JobId, ...]:
        """Jobs in it, by entry."""
        due = {job.id: None for job in jobs if job.service >= self.threshold}
        return tuple(dict.fromkeys([*(name for name in before if name in due), *due]))


def _who_fits(queued: Sequence[JobView], view: ClusterView) -> list[Wanted]:
    """A job that no longer fits is passed over, so that no GPU lies idle."""
    free = {gpu: pool.gpus_free for gpu, pool in pools_of(view).items()}
    chosen = []
    for job in queued:
        gpu, width = asked_type(job, view.gpu_types), asked_width(job)
        if gpu is not None and width <= free[gpu]:
            free[gpu] -= width
            chosen.append(Wanted(job, gpu, width))
    return chosen
