"""Places on a fixed cluster as the simulator of Pollux gives them to Tiresias and Optimus."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from boa.model.cluster import Allocation, JobId, JobView
from boa.placement.pool import Pool
from boa.units import GpuName


class Wanted(NamedTuple):
    """GPUs that a job is to have, wherever they are."""

    job: JobView
    gpu: GpuName
    width: int


Starts: TypeAlias = Mapping[JobId, tuple[int, float]]
"""Epochs, and parts of them left, of jobs when they were put where they are."""


def still_starting(jobs: Iterable[JobView], starts: Starts) -> set[JobId]:
    """Jobs that have made no progress where they are: who takes turns lets them, or with rounds
    that are shorter than a start nobody would ever get anywhere."""
    held = (job for job in jobs if job.allocation is not None)
    return {job.id for job in held if starts.get(job.id) == (job.epoch, job.left)}


def starts_after(
    jobs: Iterable[JobView], placed: Mapping[JobId, Allocation], starts: Starts
) -> dict[JobId, tuple[int, float]]:
    """Starts of those that have GPUs now."""
    return {
        job.id: starts[job.id]
        if job.allocation == placed[job.id] and job.id in starts
        else (job.epoch, job.left)
        for job in jobs
        if job.id in placed
    }


def seat(wanted: Sequence[Wanted], pools: Mapping[GpuName, Pool]) -> dict[JobId, Allocation]:
    """Who keeps a width keeps the GPUs; then each in turn from the emptiest nodes. One that cannot
    run across nodes gets GPUs on the fewest, or waits for them."""
    placed = {}
    for one in wanted:
        if (held := kept(one, pools[one.gpu])) is not None:
            placed[one.job.id] = held
    for one in wanted:
        if one.job.id not in placed:
            pool = pools[one.gpu]
            if (found := usable(one, pool.take_emptiest(one.width), pool)) is not None:
                placed[one.job.id] = found
    return placed


def kept(wanted: Wanted, pool: Pool) -> Allocation | None:
    """GPUs that it has, if they are what it is to have."""
    held = wanted.job.allocation
    if held is None or held.width != wanted.width or not pool.fits(held):
        return None
    return pool.hold(held.nodes) if runs_on(wanted.job, held) else None


def usable(wanted: Wanted, found: Allocation | None, pool: Pool) -> Allocation | None:
    """GPUs that were found for it, or others, on the fewest nodes, if it cannot run on these."""
    if found is None or runs_on(wanted.job, found):
        return found
    pool.give(found)
    return pool.take(wanted.width)


def runs_on(job: JobView, given: Allocation) -> bool:
    """Whether it is expected to make progress there; nobody knows: yes."""
    rates = job.prediction.rates(given.gpu, job.epoch)
    if rates is None or given.width >= rates.shape[1]:
        return True
    return bool(rates[int(len(given.nodes) > 1), given.width] > 0)
