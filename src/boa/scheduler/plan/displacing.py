"""Jobs that a new one would take GPUs from if it came now, and what their stops cost them. Pure.

Decided by the same rule as preemption itself (`decide/preemption.py`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from boa.model.cluster import JobId, Node
from boa.scheduler.decide.preemption import Holder, make_room
from boa.scheduler.stop_cost import StopCost
from boa.units import GpuName, Seconds, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Displaced:
    """A running job that would give up GPUs."""

    job: JobId
    gpus: int
    """GPUs that it would give up."""
    preempted: bool
    """It would give up all it has, and wait."""
    seconds: Seconds
    """Rescaling and lost work …"""
    lost_s: Seconds
    """… of which so much is work since its last checkpoint."""
    usd: Usd


def displaced(
    new: Holder,
    jobs: Sequence[Holder],
    nodes: Iterable[Node],
    cost_of: Callable[[JobId], StopCost],
) -> tuple[Displaced, ...]:
    """Return the jobs that would make room for a new one on the nodes that are there.

    None are returned where the others cannot give it the fewest GPUs that it can run on: it waits.
    """
    preemption = make_room(
        [*jobs, new._replace(waits=True, first=True)], nodes, lambda job: cost_of(job).seconds
    )
    found = list[Displaced]()
    for job in jobs:
        taker = preemption.victims.get(job.id) or preemption.narrowed.get(job.id)
        if taker != new.id or job.held is None:
            continue
        cost, preempted = cost_of(job.id), job.id in preemption.victims
        found.append(
            Displaced(
                job=job.id,
                gpus=job.held.width - (0 if preempted else job.least),
                preempted=preempted,
                seconds=cost.seconds,
                lost_s=cost.lost_s,
                usd=cost.usd,
            )
        )
    return tuple(found)


def blocked(new: Holder, jobs: Iterable[Holder], gpu: GpuName) -> str:
    """Return why running jobs do not make room for a new one on a GPU type."""
    held = [job for job in jobs if job.held is not None and job.held.gpu == gpu]
    lower = [job for job in held if job.rank < new.rank]
    if not lower:
        return "jobs of its priority or a higher one have the GPUs"
    if all(job.keeps_work for job in lower):
        rest = " or have its priority" if len(lower) < len(held) else ""
        return f"the jobs that have the GPUs cannot checkpoint{rest}"
    return "jobs that can be stopped have too few GPUs"
