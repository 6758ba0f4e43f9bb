"""Samples of the service and points of its jobs, kept to show later how things went.

Each is part of a step's changes. What was last kept counts once it is stored, so that a step that
is not stored leaves nothing out and keeps nothing twice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.model.records import Point, Report, Sample
from boa.scheduler.state import Draft
from boa.units import GpuName, Seconds, UsdPerHour

SAMPLE_S: Seconds = 60.0
WALL_S = 1.0
"""A sample comes no sooner than this, in seconds of the wall."""
POINT_S: Seconds = 10.0
POINT_PART = 0.05
"""Nor does a point before this part of its job's life so far: about a hundred of each job."""
MOST_TURNS = 100
"""Points of a job that are kept only because its epoch has changed."""


class Sampling:
    def __init__(self, speed: float, points: Mapping[JobId, Point]) -> None:
        """`points`: the last one of every job that goes on."""
        self._every_s = max(SAMPLE_S, speed * WALL_S)
        self._sample: Sample | None = None
        self._points = dict(points)

    def look(self, draft: Draft, budget: UsdPerHour, effective: UsdPerHour) -> None:
        """Take a sample if it is time, or the budget is another."""
        last = self._sample
        if last is not None and budget == last.budget and draft.now < last.at + last.every_s:
            return
        draft.changes.samples.append(
            Sample(
                at=draft.now,
                every_s=self._every_s,
                budget=budget,
                effective=effective,
                wanted=wanted(draft.jobs.values()),
                active=len(draft.jobs),
                waiting=sum(job.state in ("waiting", "preempted") for job in draft.jobs.values()),
            )
        )

    def reported(self, draft: Draft, job: JobRecord, report: Report) -> None:
        """Keep a report, if it has been long enough or is the first of its kind."""
        before = self._before(draft, job.id)
        new = before is None or before.attempt != report.attempt
        turned = before is not None and before.epoch != report.epoch
        turns = 0 if before is None else before.turns
        if new or (turned and turns < MOST_TURNS) or _long_since(before, job, draft.now):
            kept = _point(job, report, draft.now, turns + (turned and not new))
            draft.changes.points[job.id] = kept

    def ended(self, draft: Draft, job: JobRecord, report: Report) -> None:
        """Keep the last thing that a job said."""
        before = self._before(draft, job.id)
        said = (report.attempt, report.uptime_s)
        if job.ended_at is not None and (
            before is None or (before.attempt, before.uptime_s) < said
        ):
            turns = 0 if before is None else before.turns
            draft.changes.points[job.id] = _point(job, report, job.ended_at, turns)

    def stored(self, draft: Draft) -> None:
        """Count this step's samples and points as kept."""
        if draft.changes.samples:
            self._sample = draft.changes.samples[-1]
        self._points.update(draft.changes.points)
        for job in draft.changes.jobs.values():
            if job.ended:
                self._points.pop(job.id, None)

    def _before(self, draft: Draft, job: JobId) -> Point | None:
        return draft.changes.points.get(job) or self._points.get(job)


def wanted(jobs: Iterable[JobRecord]) -> dict[GpuName, int]:
    """GPUs that the plan has for them, by type."""
    found: Counter[GpuName] = Counter()
    for job in jobs:
        if job.share is not None:
            found[job.share.gpu] += job.share.width
    return dict(found)


def _long_since(before: Point | None, job: JobRecord, now: Seconds) -> bool:
    if before is None:
        return True
    life = 0.0 if job.started_at is None else now - job.started_at
    return now - before.at >= max(POINT_S, POINT_PART * life)


def _point(job: JobRecord, report: Report, at: Seconds, turns: int) -> Point:
    return Point(
        job=job.id,
        at=at,
        attempt=report.attempt,
        epoch=report.epoch,
        progress=report.progress,
        units=report.units,
        uptime_s=report.uptime_s,
        step=report.step,
        loss=report.loss,
        batch_size=report.metrics.get("batch_size"),
        turns=turns,
    )
