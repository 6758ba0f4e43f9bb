"""Whose failure it was: the job's own, or that of where it was put. All pure.

A run that fails before it gets anywhere, at a placement where its job never got anywhere and
nobody of its class did, or at least while this very job went well elsewhere, fails by our decision.
It costs none of the job's retries, and the job goes back to what went well. Where nobody ever got
anywhere a failure counts as the job's own, but the last tries are made elsewhere.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from boa.model.cluster import Share
from boa.model.job import JobRecord, Run
from boa.model.placements import MOST_TRIES, FailedPlacement, Placement
from boa.replacing import replace
from boa.units import GpuName, Seconds

WENT_ON_S: Seconds = 60.0
"""A run that reports nothing and was up for so long, until we stopped it, went well there."""
IN_A_ROW = 2
"""Failures of a job's own, in a row, after which it is tried elsewhere; one where no more tries
than that are left."""


def way_back(job: JobRecord, failed: Placement, worked: AbstractSet[Placement]) -> Placement | None:
    """Where a job goes on whose run failed by our decision; None: it counts as its own failure.

    `worked`: placements at which it or one of its class made progress.
    """
    if failed in job.worked or _times(job, failed) >= MOST_TRIES:
        return None
    return best_of(job, failed, job.worked if failed in worked else worked)


def best_of(job: JobRecord, failed: Placement, well: Iterable[Placement]) -> Placement | None:
    """The nearest of these that the job may have and has not failed at: its own first, of the same
    type, rather narrower than wider."""
    unfit = {found.place for found in job.unfit}
    found = [
        place
        for place in well
        if place[:2] != failed[:2] and place not in unfit and allows(job, place)
    ]
    return min(
        found,
        key=lambda place: (
            place not in job.worked,
            place.gpu != failed.gpu,
            place.width > failed.width,
            abs(place.width - failed.width),
            place,
        ),
        default=None,
    )


def elsewhere(
    job: JobRecord, failed: Placement, worked: AbstractSet[Placement]
) -> Placement | None:
    """Where a job is tried next that failed on its own account; None: where it is.

    Once that may be the last try: where it or others went well, or else on the least it asks for.
    """
    if job.failures < min(IN_A_ROW, job.spec.retries):
        return None
    return best_of(job, failed, [*worked, *least_of(job, failed.gpu)])


def least_of(job: JobRecord, gpu: GpuName) -> tuple[Placement, ...]:
    """The least GPUs that it asks for, unless it failed there."""
    least = job.spec.gpus.min
    known = any(found.place[:2] == (gpu, least) for found in job.unfit)
    return () if known else (Placement(gpu, least, across=False),)


def allows(job: JobRecord, place: Placement) -> bool:
    """Whether its user does."""
    return job.spec.gpus.allow(place.gpu, place.width)


def _times(job: JobRecord, failed: Placement) -> int:
    return sum(found.times for found in job.unfit if found.place == failed)


def sent_back(job: JobRecord, found: FailedPlacement, began: Seconds, back: Placement) -> JobRecord:
    """The job that is to go on there, and for a while not where it failed."""
    others = tuple(one for one in job.unfit if one.place != found.place)
    before = next((one for one in job.unfit if one.place == found.place), None)
    both = found if before is None else before.once_more(found, began)
    return replace(job, unfit=(*others, both), share=Share(back.gpu, back.width))


def went_well(job: JobRecord, place: Placement) -> JobRecord:
    """The job that made progress there."""
    unfit = tuple(one for one in job.unfit if one.place != place)
    worked = job.worked if place in job.worked else (*job.worked, place)
    if len(unfit) == len(job.unfit) and worked is job.worked:
        return job
    return replace(job, worked=worked, unfit=unfit)


def stopped_well(job: JobRecord, run: Run, at: Seconds) -> JobRecord:
    """The job whose run we stopped: if that told nothing, but lasted, it went well there."""
    silent = run.reported_at is None and run.started_at is not None
    if not silent or at - (run.started_at or at) < WENT_ON_S:
        return job
    return went_well(job, Placement.of(run.allocation))
