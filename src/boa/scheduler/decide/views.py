"""Jobs as policies see them: from the record, and from what is believed of their like."""

import math
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from boa.model.cluster import JobView, Prediction, Share, UserRequest
from boa.model.job import JobRecord
from boa.model.kept_rows import Ints, KeptRows
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.replacing import replace
from boa.scheduler.decide.barring import barred_for, kept_off
from boa.scheduler.decide.protection import NONE as UNPROTECTED
from boa.scheduler.decide.protection import (
    Pressure,
    Protection,
    is_modest,
    protection,
    rank,
)
from boa.scheduler.learn.beliefs import Beliefs, Believed
from boa.scheduler.stop_cost import lost_s
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
        self._rows = KeptRows()
        self._kept: list[_Kept] = []
        self._kin: dict[Hashable, JobRecord] = {}
        """A job of every kin …"""
        self._believed: dict[Hashable, Believed] = {}
        """… and what was believed of it."""
        self._passing = np.zeros((0, 3))
        """Parts of their service, by row: GPU-seconds of earlier runs, the beginning of
        the one that is there, its width."""
        self._starting: list[_Kept] = []
        """Those whose run has not come to where it makes progress."""

    def of(
        self,
        jobs: Sequence[JobRecord],
        beliefs: Beliefs,
        gpu_types: Mapping[GpuName, GpuType],
        now: Seconds,
        pressure: Pressure,
    ) -> list[JobView]:
        before = self._rows.before(jobs)
        fresh = [] if before is None else self._take_over(jobs, before, beliefs)
        for kept in self._kept if self._believe(beliefs) else fresh:
            known = self._believed[kept.kin]
            if kept.known is not known:
                kept.known = known
                kept.view = _job_view(kept.record, known, beliefs, gpu_types, now)
                job = kept.record
                kept.guard = protection(job, known.rescale_s, known.saves)
                kept.loses = lost_s(job, job.run, math.inf, known.saves) > 0
        if beliefs.left_passes:
            for kept in self._kept:
                _set_left(kept.view, beliefs.left(kept.record))
        for kept in self._starting:
            _set_resumes_in(kept.view, _resumes_in(kept.record, kept.view.rescale_s, now))
        self._guard(now, pressure)
        views = [kept.view for kept in self._kept]
        held, since, widths = self._passing.T
        service = held + (now - since) * widths
        deque(map(_set_service, views, service.tolist()), maxlen=0)  # a loop, but quicker
        return views

    def _take_over(
        self, jobs: Sequence[JobRecord], before: Ints, beliefs: Beliefs
    ) -> "list[_Kept]":
        """Keep what is known of records that are the same; `before`: where they were. Those that
        are not come back."""
        had, rows = self._kept, before.tolist()
        self._kept = [
            _Kept(job, beliefs.kin(job)) if row < 0 else had[row]
            for job, row in zip(jobs, rows, strict=True)
        ]
        self._kin = dict(zip(map(_kin, self._kept), jobs, strict=True))
        self._starting = [kept for kept in self._kept if kept.starting]
        was = self._passing
        self._passing = was[before] if len(was) else np.zeros((len(rows), 3))
        fresh = np.flatnonzero(before < 0).tolist()
        for row in fresh:
            self._passing[row] = _passing(jobs[row])
        return [self._kept[row] for row in fresh]

    def _guard(self, now: Seconds, pressure: Pressure) -> None:
        """Show which jobs are protected now, and which wait for free GPUs only: both pass."""
        for kept in self._kept:
            job, view = kept.record, kept.view
            if kept.guard is UNPROTECTED and not job.failed_at and not kept.loses:
                continue  # nearly all
            pinned = kept.guard.pins(now, job.id, pressure)
            modest = is_modest(job, now)
            if view.pinned != pinned or view.modest != modest:
                kept.view = view = replace(view, pinned=pinned, modest=modest)
            if kept.loses and kept.known is not None:
                _set_lost_s(view, lost_s(job, job.run, now, kept.known.saves))

    def _believe(self, beliefs: Beliefs) -> bool:
        """Ask what is believed of every kin; whether any of it is new."""
        before = self._believed
        self._believed = {
            key: _same(before.get(key), beliefs.of(job)) for key, job in self._kin.items()
        }
        return any(known is not before.get(key) for key, known in self._believed.items())


def _same(had: Believed | None, known: Believed) -> Believed:
    """Belief as it was before, if it is the same: that is seen at once."""
    if had is None or had.prediction is not known.prediction:
        return known
    return had if had == known else known


class _Kept:
    """A record with its view, by what is known of its kin."""

    __slots__ = ("guard", "kin", "known", "loses", "record", "starting", "view")
    view: JobView
    guard: Protection
    loses: bool
    """A stop loses work, and more of it as time passes."""

    def __init__(self, record: JobRecord, kin: Hashable) -> None:
        self.record, self.kin = record, kin
        self.known: Believed | None = None
        run = record.run
        self.starting = run is not None and (
            run.reported_at is None or run.allocation is not record.allocation
        )


_kin = attrgetter("kin")


def _passing(job: JobRecord) -> tuple[float, Seconds, int]:
    run = job.run
    return (
        job.held_gpu_s,
        *((0.0, 0) if run is None else (run.requested_at, run.allocation.width)),
    )


def _setter(name: str) -> Callable[[JobView, Any], None]:
    """Past the dataclass, which is frozen for everybody else."""
    found: Callable[[JobView, Any], None] = JobView.__dict__[name].__set__
    return found


_set_left, _set_service, _set_resumes_in, _set_lost_s = map(
    _setter, ("left", "service", "resumes_in", "lost_s")
)
set_least: Callable[[JobView, Share], None] = _setter("least")
"""For the decider alone, and of views that are kept: a record that is the same has the same."""


def _job_view(
    job: JobRecord,
    known: Believed,
    beliefs: Beliefs,
    gpu_types: Mapping[GpuName, GpuType],
    now: Seconds,
) -> JobView:
    running, barred = job.run, barred_for(job, known.bars, gpu_types, now)
    open_s = (now - running.requested_at) * running.allocation.width if running else 0.0
    return JobView(
        id=job.id,
        job_class=job.stream,
        arrival=job.submitted_at,
        serial=job.serial,
        epoch=min(job.epoch, known.epochs - 1),
        left=beliefs.left(job),
        work=beliefs.work(job),
        prediction=_allowed(job, kept_off(known.prediction, barred), gpu_types),
        asked=UserRequest(job.spec.gpus.min),
        allocation=job.allocation,
        rescalings=job.rescalings,
        rescale_s=known.rescale_s,
        service=job.held_gpu_s + open_s,
        tried=known.tried,
        note=job.share.note if job.share is not None else None,
        resumes_in=_resumes_in(job, known.rescale_s, now),
        limits=job.spec.gpus,
        barred=barred.states,
        urgency=job.urgency,
        rank=rank(job),
        lost_s=lost_s(job, job.run, now, known.saves),
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
