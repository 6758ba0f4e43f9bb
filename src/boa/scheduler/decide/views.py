"""Jobs as policies see them: from the record, and from what is believed of their like."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from boa.model.cluster import JobId, JobView, Prediction, Share, UserRequest
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


class KeptViews:
    """Views that are shown again at the next decision, with what time has changed in them.

    A record that is the same object gives the same view, but for what passes by itself; making
    thousands of views anew takes longer than any decision. So a policy may hold on to none of
    them.
    """

    def __init__(self) -> None:
        self._kept: dict[JobId, _Kept] = {}
        self._believed: dict[Hashable, Believed] = {}

    def of(
        self,
        jobs: Sequence[JobRecord],
        beliefs: Beliefs,
        gpu_types: Mapping[GpuName, GpuType],
        now: Seconds,
    ) -> list[JobView]:
        before, kin = self._kept, beliefs.kin
        kept = [before.get(job.id) for job in jobs]
        keys = [
            kin(job) if has is None or has.record is not job else has.kin
            for job, has in zip(jobs, kept, strict=True)
        ]
        believed = {
            key: self._same(key, beliefs.of(job))
            for key, job in dict(zip(keys, jobs, strict=True)).items()
        }
        after, found = {}, []
        passes = beliefs.left_passes
        for job, has, key in zip(jobs, kept, keys, strict=True):
            known = believed[key]
            if has is None or has.record is not job or has.known is not known:
                view = _job_view(job, known, beliefs, gpu_types, now)
                width = 0 if job.run is None else job.run.allocation.width
                has = _Kept(job, key, known, view, width)
            else:
                view, run = has.view, job.run
                if passes:
                    _set_left(view, beliefs.left(job))
                if run is not None:
                    _set_service(view, job.held_gpu_s + (now - run.requested_at) * has.width)
                    if run.reported_at is None or run.allocation is not job.allocation:
                        _set_resumes_in(view, _resumes_in(job, known.rescale_s, now))
            after[job.id] = has
            found.append(view)
        self._kept, self._believed = after, believed
        return found

    def _same(self, key: Hashable, known: Believed) -> Believed:
        """Belief as it was before, if it is the same: that is seen at once."""
        had = self._believed.get(key)
        if had is None or had.prediction is not known.prediction:
            return known
        return had if had == known else known


class _Kept(NamedTuple):
    record: JobRecord
    kin: Hashable
    known: Believed
    view: JobView
    width: int
    """Width of its run; 0: none."""


def _setter(name: str) -> Callable[[JobView, Any], None]:
    """Past the dataclass, which is frozen for everybody else."""
    found: Callable[[JobView, Any], None] = JobView.__dict__[name].__set__
    return found


_set_left, _set_service, _set_resumes_in = map(_setter, ("left", "service", "resumes_in"))
set_least: Callable[[JobView, Share], None] = _setter("least")
"""For the decider alone, and of views that are kept: a record that is the same has the same."""


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
    if run is None or (run.allocation is not job.allocation and run.allocation != job.allocation):
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
