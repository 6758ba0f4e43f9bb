"""Jobs that a new one would take GPUs from if it came now, and what their stops cost them. Pure.

Told for a full cluster, where no node can be rented beside those that are there. Jobs of the same
priority, or a lower one, are narrowed to the least that they can run on; jobs of a lower priority
may lose all their GPUs. Jobs that cannot checkpoint are left alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.scheduler.decide.protection import rank
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
    jobs: Iterable[JobRecord],
    gpu: GpuName,
    missing: float,
    new_rank: int,
    cost_of: Callable[[JobRecord], StopCost],
) -> tuple[Displaced, ...]:
    """Return the jobs that would make room for a new one, the cheapest stops first.

    `missing`: GPUs of the type that the new job lacks; none are returned where others cannot give
    that many: it waits.
    """
    offers: list[tuple[bool, Seconds, Displaced]] = []
    for job in jobs:
        held, cost = job.allocation, cost_of(job)
        if job.run is None or held is None or held.gpu != gpu or rank(job) > new_rank:
            continue
        if not (cost.keeps or job.spec.preemptible):
            continue
        least = job.spec.gpus.min
        for preempted, gpus in ((False, held.width - least), (True, least)):
            if gpus <= 0 or (preempted and rank(job) >= new_rank):
                continue
            one = Displaced(
                job=job.id,
                gpus=gpus,
                preempted=preempted,
                seconds=cost.seconds,
                lost_s=cost.lost_s,
                usd=cost.usd,
            )
            offers.append((preempted, cost.seconds / gpus, one))
    found: dict[JobId, Displaced] = {}
    for _, _, one in sorted(offers, key=lambda offer: offer[:2]):
        if missing <= 0:
            break
        before = found.get(one.job)  # narrowed already: it is stopped once
        gpus = one.gpus + (0 if before is None else before.gpus)
        found[one.job] = replace(one, gpus=gpus)
        missing -= one.gpus
    return tuple(found.values()) if missing <= 0 else ()
