"""Jobs as policies see them: from the record, and from what is believed of their like."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from boa.model.cluster import JobView, Prediction, UserRequest
from boa.model.job import JobRecord
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.scheduler.learn.beliefs import Beliefs, Believed
from boa.units import GpuName, Seconds


def believed_of(jobs: Sequence[JobRecord], beliefs: Beliefs) -> dict[Hashable, Believed]:
    """Beliefs by kin, each asked for once."""
    kin = {beliefs.kin(job): job for job in jobs}
    return {key: beliefs.of(job) for key, job in kin.items()}


def job_views(
    jobs: Sequence[JobRecord],
    beliefs: Beliefs,
    gpu_types: Mapping[GpuName, GpuType],
    now: Seconds,
) -> list[JobView]:
    believed = believed_of(jobs, beliefs)
    return [_job_view(job, believed[beliefs.kin(job)], beliefs, gpu_types, now) for job in jobs]


def _job_view(
    job: JobRecord,
    known: Believed,
    beliefs: Beliefs,
    gpu_types: Mapping[GpuName, GpuType],
    now: Seconds,
) -> JobView:
    running = job.run
    open_s = (now - running.requested_at) * running.allocation.width if running else 0.0
    return JobView(
        id=job.id,
        job_class=job.job_class,
        arrival=job.submitted_at,
        serial=job.serial,
        epoch=min(job.epoch, known.epochs - 1),
        left=beliefs.left(job),
        prediction=_allowed(job, known.prediction, gpu_types),
        asked=UserRequest(job.spec.gpus.min),
        allocation=job.allocation,
        rescalings=job.rescalings,
        rescale_s=known.rescale_s,
        service=job.held_gpu_s + open_s,
        tried=known.tried,
        note=job.share.note if job.share is not None else None,
        resumes_in=_resumes_in(job, known.rescale_s, now),
        limits=job.spec.gpus,
    )


def _resumes_in(job: JobRecord, rescale_s: Seconds, now: Seconds) -> Seconds:
    if job.allocation is None:
        return 0.0
    run = job.run
    if run is None or run.allocation != job.allocation:
        return rescale_s
    if run.reported_at is not None:
        return 0.0
    return max(run.requested_at + rescale_s - now, 0.0)


def _allowed(
    job: JobRecord, prediction: Prediction, gpu_types: Mapping[GpuName, GpuType]
) -> Prediction:
    """Types that its user does not allow are shown as types that it cannot run on: a policy may
    try one that it knows nothing of."""
    allowed = job.spec.gpus.types
    if not allowed or gpu_types.keys() <= set(allowed):
        return prediction
    return _OnTypes(prediction, allowed, np.zeros((2, job.spec.gpus.max + 1)))


@dataclass(frozen=True, slots=True, eq=False)
class _OnTypes:
    """A prediction for some types; on all others a job makes no progress at any width."""

    prediction: Prediction
    allowed: tuple[GpuName, ...]
    nothing: Floats

    def rates(self, gpu: GpuName, epoch: int) -> Floats | None:
        return self.prediction.rates(gpu, epoch) if gpu in self.allowed else self.nothing
