"""Estimates of a job's end: how much of it is done, how long the rest takes and costs. Pure.

All of it follows from the plan in force, and from the units of progress that an epoch was known to
have when that plan was made: times and prices are those of `policy/courses.py`. What a job waits
for GPUs is not in it: nobody knows that.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isfinite
from typing import NamedTuple, TypeAlias

import numpy as np

from boa.model.job import JobRecord
from boa.model.plan import Variant
from boa.model.speedup import Floats
from boa.policy.boa import dealt_to
from boa.policy.courses import Course, Rests, Step
from boa.scheduler.learn.measurements import units_before
from boa.scheduler.plan.plan_in_force import PlanState
from boa.units import Seconds, Usd


@dataclass(frozen=True, slots=True)
class Estimate:
    epochs: int
    done: float | None = None
    """Part of the whole training, by work; None where nothing is known of it."""
    left_s: Seconds | None = None
    left_usd: Usd | None = None


_Amount: TypeAlias = tuple[Seconds, Usd]
ROUNDING = 1e-6
"""Part by which sums of units may be off."""


@dataclass(frozen=True, slots=True, eq=False)
class _Ahead:
    """A course, and what comes after every epoch of it."""

    course: Course
    runs: list[_Amount]
    """Seconds and USD to train an epoch, on its GPUs already."""
    entries: list[_Amount]
    """Seconds and USD to get onto the GPUs of an epoch."""
    later: list[_Amount]
    """Seconds and USD to train all epochs after this one."""
    moves: list[_Amount]
    """The rescalings after the beginning of the next one."""


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """The work of a class."""

    units: tuple[float, ...]
    total: float
    """Units of all epochs."""
    parts: list[float]
    """The share of the whole training, by work, that every epoch is."""
    before: list[float]
    """The same, done when it begins."""


class _Position(NamedTuple):
    """How far a job has got, in the epochs that the plan has for its class."""

    epoch: int
    left: float
    """Part of that epoch."""
    scale: float
    """How much longer the job is than others of its class."""


class Estimates:
    """Estimates of all jobs, under one plan. They are kept: to be made once per plan."""

    def __init__(self, plan: PlanState) -> None:
        self._rests = Rests(plan.solution)
        self._variants: Mapping[str, tuple[Variant, ...]] = {
            planned.name: planned.variants for planned in plan.solution.plan.classes
        }
        self._work = {
            found.name: _work_of(plan.units[found.name], [epoch.work for epoch in found.epochs])
            for found in plan.workload.classes
            if self._variants.get(found.name) and len(plan.units.get(found.name, ())) > 0
        }
        self._ahead: dict[int, _Ahead] = {}
        self._fixed: dict[tuple[str, Step], _Ahead] = {}

    def of(self, job: JobRecord) -> Estimate:
        work = self._work.get(job.stream)
        if work is None:
            return unplanned(job)
        epochs = max(_told(job, work), _seen(job))
        if job.state == "succeeded":
            return Estimate(epochs, 1.0, 0.0, 0.0)
        if _silent(job):
            return Estimate(epochs)
        if _counts_its_own(job):
            at = _by_units(job, work)
        else:
            at = _by_epoch(job, work)
            if at is None and job.epoch >= job.spec.epochs:  # its last epoch's end was reported
                return _ending(job, epochs)
        if at is None:
            return Estimate(epochs)
        done = work.before[at.epoch] + (1.0 - at.left) * work.parts[at.epoch]
        if job.ended or job.stop_requested:
            return Estimate(epochs, done)
        seconds, dollars = self._rest(job, at)
        if not (isfinite(seconds) and isfinite(dollars)):
            return Estimate(epochs, done)
        return Estimate(epochs, done, seconds, dollars)

    def _rest(self, job: JobRecord, position: _Position) -> _Amount:
        """The rest of this epoch where it is or is to be, and the others as planned."""
        planned, (at, left, scale) = self._planned(job), position
        steps, given = planned.course.steps, _given(job)
        step = steps[at] if given is None else given
        here = planned if step == steps[at] else self._at(job.stream, step)
        part = left * scale
        run, later, moves = here.runs[at], planned.later[at], planned.moves[at]
        seconds, dollars = scale * later[0] + moves[0], scale * later[1] + moves[1]
        if part:  # nothing of an epoch that cannot be run is nothing
            seconds, dollars = seconds + part * run[0], dollars + part * run[1]
        if not _trains_on(job, step):
            entry = here.entries[at]
            seconds, dollars = seconds + entry[0], dollars + entry[1]
        if at + 1 < len(steps) and steps[at + 1] != step:
            entry = planned.entries[at + 1]
            seconds, dollars = seconds + entry[0], dollars + entry[1]
        return seconds, dollars

    def _planned(self, job: JobRecord) -> _Ahead:
        """As the policy has it for this job, or will have once it is asked."""
        note = None if job.share is None else job.share.note
        if isinstance(note, Variant):
            course = self._rests.course(job.stream, note)
        else:
            dealt = dealt_to(self._variants[job.stream], job.serial)
            course = self._rests.course(job.stream, dealt)
        known = self._ahead.get(id(course))
        if known is None:
            known = self._ahead[id(course)] = _ahead(course)
        return known

    def _at(self, job_class: str, step: Step) -> _Ahead:
        known = self._fixed.get((job_class, step))
        if known is None:
            course = self._rests.course(job_class, Variant(1.0, (step[0],), (step[1],)))
            known = self._fixed[job_class, step] = _ahead(course)
        return known


class EstimatesOfPlan:
    """The estimates of the plan in force, whoever asks."""

    def __init__(self) -> None:
        self._made: tuple[PlanState, Estimates] | None = None

    def of(self, job: JobRecord, plan: PlanState | None) -> Estimate:
        if plan is None:
            return unplanned(job)
        made = self._made
        if made is None or made[0] is not plan:
            made = self._made = (plan, Estimates(plan))
        return made[1].of(job)


def unplanned(job: JobRecord) -> Estimate:
    """Where nothing is known of the class."""
    epochs = max(job.spec.epochs, _seen(job))
    return _ending(job, epochs) if job.state == "succeeded" else Estimate(epochs)


def _ending(job: JobRecord, epochs: int) -> Estimate:
    gone_well = not job.ended or job.state == "succeeded"
    return Estimate(epochs, 1.0, 0.0, 0.0) if gone_well else Estimate(epochs, 1.0)


def _seen(job: JobRecord) -> int:
    """Epochs that were begun: the last report of many a job names one that will never be."""
    return max(job.epoch + (job.progress > 0), 1)


def _silent(job: JobRecord) -> bool:
    """It runs and has never told of itself: perhaps it never will, and nobody sees it get on."""
    told = job.run is not None and job.run.reported_at is not None
    further = job.epoch or job.progress or job.best_epoch or job.best_progress
    return job.state == "running" and not told and not further


def _counts_its_own(job: JobRecord) -> bool:
    """Whether its script knows its work, and has epochs that its spec does not name."""
    return job.total is not None and (job.spec.epochs == 1 or _seen(job) > job.spec.epochs)


def _told(job: JobRecord, work: _Work) -> int:
    """Epochs of a job: its spec's, its script's, or those of its class."""
    epochs = len(work.units)
    if job.total is not None and _counts_its_own(job) and epochs > 1 and work.total > 0:
        return max(round(epochs * job.total / work.total), 1)
    return job.spec.epochs if job.spec.epochs > 1 else epochs


def _scale(job: JobRecord, work: _Work) -> float:
    said = job.total_work
    return 1.0 if said is None or work.total <= 0 else said / work.total


def _by_epoch(job: JobRecord, work: _Work) -> _Position | None:
    """Return the position of a job that has its class's epochs; None: it is beyond the last."""
    if job.epoch >= len(work.units):
        return None
    scale = _scale(job, work)
    units = work.units[job.epoch] * scale
    left = min(max(1.0 - job.progress / units, 0.0), 1.0) if units > 0 else 1.0
    return _Position(job.epoch, left, scale)


def _by_units(job: JobRecord, work: _Work) -> _Position | None:
    """Return the position of a job by its units done of its total. Longer jobs have more epochs.

    None: by its class's epochs it would have done more than that.
    """
    done, total = units_before(work.units, job.epoch) + job.progress, job.total or 0.0
    if done > total * (1.0 + ROUNDING) or work.total <= 0:
        return None
    ends = list(accumulate(work.units))
    at = min(done / total, 1.0) * work.total
    epoch = min(bisect_right(ends, at * (1.0 + ROUNDING)), len(ends) - 1)
    units = work.units[epoch]
    left = min(max((ends[epoch] - at) / units, 0.0), 1.0) if units > 0 else 1.0
    return _Position(epoch, left, total / work.total)


def _given(job: JobRecord) -> Step | None:
    """GPU type and width that it is on, or is to be on next."""
    if job.allocation is not None:
        return job.allocation.gpu, job.allocation.width
    return None if job.share is None else (job.share.gpu, job.share.width)


def _trains_on(job: JobRecord, step: Step) -> bool:
    """And not on its way there: its first report ends the rescaling."""
    run = job.run
    if run is None or run.reported_at is None:
        return False
    return (run.allocation.gpu, run.allocation.width) == step


def _work_of(units: tuple[float, ...], work: list[Seconds]) -> _Work:
    parts = np.array(work) / sum(work)
    before = np.minimum(np.append(0.0, np.cumsum(parts)[:-1]), 1.0)
    return _Work(units, float(sum(units)), parts.tolist(), before.tolist())


def _ahead(course: Course) -> _Ahead:
    seconds = course.times
    dollars = np.where(np.isfinite(seconds), seconds, 0.0) * course.rates
    entry_s = np.full(len(course.steps), course.rescale_s)
    entry_usd = entry_s * course.rates
    moved = np.array([False, *(a != b for a, b in pairwise(course.steps))])
    # The move into the next epoch depends on where a job is now: it is counted there.
    moves_s, moves_usd = (
        np.append(_after(np.where(moved, entry, 0.0))[1:], 0.0) for entry in (entry_s, entry_usd)
    )
    return _Ahead(
        course,
        runs=_paired(seconds, dollars),
        entries=_paired(entry_s, entry_usd),
        later=_paired(_after(seconds), _after(dollars)),
        moves=_paired(moves_s, moves_usd),
    )


def _after(amounts: Floats) -> Floats:
    """The sum of all that come after each."""
    return np.append(np.cumsum(amounts[:0:-1])[::-1], 0.0)


def _paired(seconds: Floats, dollars: Floats) -> list[_Amount]:
    return list(zip(seconds.tolist(), dollars.tolist(), strict=True))
