"""Reports of running jobs, taken into the draft and to the profiler."""

from collections import deque

from boa.model.job import JobRecord
from boa.model.records import Report
from boa.replacing import replace
from boa.scheduler import lifecycle
from boa.scheduler.learn import rescaling
from boa.scheduler.learn.beliefs import Beliefs
from boa.scheduler.learn.measurements import contradicts, is_amount
from boa.scheduler.observe.sampling import Sampling
from boa.scheduler.state import Draft
from boa.scheduler.terms import halving
from boa.scheduler.words import of_jobs as words


class Reports:
    def __init__(self, beliefs: Beliefs, sampling: Sampling) -> None:
        self._beliefs, self._sampling = beliefs, sampling
        self._last: dict[str, Report] = {}
        """The newest of every running attempt; rates are differences to it."""
        self._first: dict[str, Report] = {}
        """The first of every running attempt, which tells when its training began: those that
        follow may say no more than that a checkpoint was saved."""

    def take(self, draft: Draft, incoming: deque[Report]) -> None:
        for job_id in self._last.keys() - draft.jobs.keys():
            self._first.pop(job_id, None)
            ended = draft.changes.jobs.get(job_id)
            if ended is None:  # it was stored as ended by a step before
                del self._last[job_id]
            else:
                self._sampling.ended(draft, ended, self._last[job_id])
                _ended(draft, ended, self._last[job_id])
        for _ in range(len(incoming)):
            report = incoming.popleft()
            job = draft.jobs.get(report.job)
            if job is not None and job.run is not None and job.run.attempt == report.attempt:
                self._take(draft, job, report)

    def _take(self, draft: Draft, job: JobRecord, report: Report) -> None:
        before = self._last.get(job.id)
        if before is not None and before.attempt != report.attempt:
            before = None
        if before is not None and (report.uptime_s, report.units) < (before.uptime_s, before.units):
            return  # overtaken on the way
        job = _totalled(draft, self._rescaled(draft, job, before, report), report)
        self._beliefs.reported(job, before, report)
        if before is not None and report.epoch == before.epoch + 1:
            done = before.progress + (report.units - before.units) - report.progress
            self._beliefs.epoch_done(job, before.epoch, done)
        self._last[job.id] = report
        self._sampling.reported(draft, job, report)
        halving.heard(draft, lifecycle.reported(draft, job, report), report)

    def _rescaled(
        self, draft: Draft, job: JobRecord, before: Report | None, report: Report
    ) -> JobRecord:
        """The job with all that it told so far of the rescaling that its run began with."""
        run = job.run
        assert run is not None
        if run.state == "stopping" and before is not None and report.units > before.units:
            # Until the report before, at least: the last one may come after its checkpoint.
            until = draft.now - (report.uptime_s - before.uptime_s)
            return replace(job, run=replace(run, trained_at=max(until, run.trained_at or 0.0)))
        if run.reported_at is None:
            self._first[job.id] = report
        first = self._first.get(job.id)
        told = rescaling.told(run, report, draft.now, first)
        if not told.parts:
            return job
        self._beliefs.rescaled(job, told)
        for name, seconds in told.parts.items():
            draft.count(**{f"rescaling_{name}": 1, f"rescaling_{name}_s": seconds})
        if told.longer:
            draft.count(rescaling_total_s=told.longer)
        return replace(job, run=replace(run, rescale=told.on(run)))


def _totalled(draft: Draft, job: JobRecord, report: Report) -> JobRecord:
    """The job with its script's own total, which is believed; its owner is told where it
    contradicts `total_work`."""
    total, said = report.total, job.spec.total_work
    if total is None or not is_amount(total) or total == job.total:
        return job
    if said is not None and job.total is None and contradicts(said, total):
        detail = words.other_unit(said, total, "its script reports")
        draft.tell("trouble", job=job.id, why="unit", name=job.name, detail=detail)
    return replace(job, total=total)


def _ended(draft: Draft, job: JobRecord, last: Report) -> None:
    """Tell the owner of a job that did far more or less than its `total_work`. Its last report may
    have come before its end: the rest is taken to have gone on at the same pace."""
    said = job.spec.total_work
    told = job.total is not None or job.state != "succeeded" or job.attempts != 1
    if said is None or told or not is_amount(last.units) or last.uptime_s <= 0:
        return
    counted = last.units * max(job.ran_s / last.uptime_s, 1.0)
    if contradicts(said, counted):
        detail = words.other_unit(said, counted, "it reported about")
        draft.tell("trouble", job=job.id, why="unit", name=job.name, detail=detail)
