"""Reservation: what the user asked for, first come, first served, never rescaled."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from boa.model.cluster import Allocation, ClusterView, Decision, JobId, JobView, Share
from boa.model.workload import GpuType
from boa.placement.pool import Pool
from boa.units import GpuName


@dataclass(frozen=True, slots=True)
class Reservation:
    """Every job gets exactly the GPUs its user asked for.

    The cluster follows: nodes are rented and released as jobs come and go. `fixed`: the nodes there
    are, in strict order of arrival, nobody overtakes.
    """

    fixed: bool = False
    by_job: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "reservation"

    def decide(self, view: ClusterView) -> Decision:
        if self.fixed:
            placements = in_turn(view, sorted(view.jobs, key=lambda job: job.arrival))
            return Decision(placements=placements, nodes=tuple(view.nodes))
        shares = {
            job.id: Share(gpu, asked_width(job))
            for job in view.jobs
            if (gpu := asked_type(job, view.gpu_types)) is not None
        }
        return Decision(shares=shares)


def asked_width(job: JobView) -> int:
    return job.asked.gpus or 1


def asked_type(job: JobView, gpu_types: Mapping[GpuName, GpuType]) -> GpuName | None:
    """The type it holds, else the first that can run it at its width; None if none can.

    A type of which nothing is known yet is taken only if none is known to do.
    """
    if job.allocation is not None:
        return job.allocation.gpu
    width, unknown = asked_width(job), None
    for gpu in gpu_types:
        rates = job.prediction.rates(gpu, job.epoch)
        if rates is None:
            unknown = unknown or gpu
        elif width < rates.shape[1] and rates[:, width].max() > 0:
            return gpu
    return unknown


def pools_of(view: ClusterView) -> dict[GpuName, Pool]:
    """The whole cluster, free."""
    return {
        gpu: Pool(gpu, kind.gpus_per_node, (node.id for node in view.nodes if node.gpu == gpu))
        for gpu, kind in view.gpu_types.items()
    }


def in_turn(view: ClusterView, queue: Iterable[JobView]) -> dict[JobId, Allocation]:
    """Running jobs stay; then one after the other, until one finds no room on the fewest nodes.

    A job wider than the cluster could ever hold is passed over: it would block all others for good.
    """
    pools = pools_of(view)
    placed = {
        job.id: pools[job.allocation.gpu].hold(job.allocation.nodes)
        for job in view.jobs
        if job.allocation is not None and pools[job.allocation.gpu].fits(job.allocation)
    }
    for job in queue:
        gpu = asked_type(job, view.gpu_types)
        if job.id in placed or gpu is None:
            continue
        pool, width = pools[gpu], asked_width(job)
        if width > len(pool.free) * pool.per_node:
            continue
        found = pool.take(width)
        if found is None:
            break
        placed[job.id] = found
    return placed
