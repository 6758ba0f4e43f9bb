"""Places on a fixed cluster as the simulator of Pollux gives them to Tiresias and Optimus."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from boa.model.cluster import Allocation, JobId, JobView
from boa.placement.pool import Pool
from boa.units import GpuName


class Wanted(NamedTuple):
    """GPUs that a job is to have, wherever they are."""

    job: JobView
    gpu: GpuName
    width: int


def seat(wanted: Sequence[Wanted], pools: Mapping[GpuName, Pool]) -> dict[JobId, Allocation]:
    """Who keeps a width keeps the GPUs; then each in turn from the emptiest nodes, all of whom
    must fit."""
    placed = {}
    for job, gpu, width in wanted:
        held = job.allocation
        if held is not None and held.width == width and pools[gpu].fits(held):
            placed[job.id] = pools[gpu].hold(held.nodes)
    for job, gpu, width in wanted:
        if job.id not in placed:
            found = pools[gpu].take_emptiest(width)
            assert found is not None, f"{width} {gpu} for job {job.id}"
            placed[job.id] = found
    return placed
