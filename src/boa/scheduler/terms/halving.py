"""Successive halving: of a sweep's jobs that have got equally far, the best part goes on. Pure.

A rung is a number of epochs. A job is given up as soon as it is certain that it is not among the
best of its rung, whoever comes yet: so the same jobs win as if all had been waited for. Until that
is known it goes on, unless others of the sweep have no GPUs yet: then it is parked, and they get
its GPUs. A run that a stop would cost its work is not parked.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.model.records import Report
from boa.model.sweep import LOSS, Halving, Sweep
from boa.scheduler.state import Draft
from boa.scheduler.stop_cost import Saves, lost_s, may_stop, unknown
from boa.scheduler.terms.stopping import stop_job
from boa.scheduler.words.of_terms import PARKED


def rungs(sweep: Sweep) -> list[int]:
    """Epochs after which jobs are compared: none after the last."""
    rule, found = sweep.halving, list[int]()
    at = 0 if rule is None else rule.first
    while rule is not None and at < sweep.epochs:
        found.append(at)
        at *= rule.factor
    return found


def places(sweep: Sweep, number: int) -> int:
    """Jobs that go on from a rung, counted from 0."""
    assert sweep.halving is not None
    left: int = len(sweep.jobs) // sweep.halving.factor ** (number + 1)
    return max(left, 1)


def value_of(job: JobRecord, metric: str) -> float | None:
    """The newest of the metric that a job reported."""
    return job.loss if metric == LOSS else job.metrics.get(metric)


def score(value: float | None, rule: Halving) -> float:
    """The lower, the better; what is no number is worst."""
    if value is None or math.isnan(value):
        return math.inf
    return value if rule.better == "min" else -value


def heard(draft: Draft, job: JobRecord, report: Report) -> None:
    """Note what a job had come to at its rungs, though it may be further by now: reports are late
    where the service was away."""
    sweep = draft.state.sweeps.get(job.sweep) if job.sweep else None
    if sweep is None or sweep.halving is None:
        return
    metric, reached = sweep.halving.metric, dict(sweep.rungs)
    for end in sorted(report.ends, key=lambda end: end.epoch):
        for rung in rungs(sweep):
            row = reached.get(str(rung), {})
            if end.epoch >= rung and metric in end.values and job.id not in row:
                reached[str(rung)] = {**row, job.id: end.values[metric]}
    if reached != sweep.rungs:
        draft.put_sweep(replace(sweep, rungs=reached))


def look(draft: Draft, saves: Saves = unknown) -> None:
    """Note how far jobs of sweeps are, give losers up, park whoever has to wait for others.

    `saves`: whether jobs of a class are believed to save when they are asked to stop.
    """
    touched = {job.sweep for job in draft.changes.jobs.values() if job.sweep}
    for name in touched & draft.state.sweeps.keys():
        before = draft.state.sweeps[name]
        sweep = _noted(draft, before)
        if sweep.halving is not None:
            _judge(draft, sweep, sweep.halving, saves)
            sweep = _noted(draft, sweep)  # those without a run have ended by that
        if sweep != before:
            draft.put_sweep(sweep)


def _noted(draft: Draft, sweep: Sweep) -> Sweep:
    """With what has changed in this draft: ends, and values at rungs."""
    changed = [job for job in draft.changes.jobs.values() if job.sweep == sweep.id]
    ended = [job for job in changed if job.ended and job.id not in sweep.outcomes]
    rule, reached = sweep.halving, {name: dict(row) for name, row in sweep.rungs.items()}
    if rule is not None:
        for job in changed:
            value = value_of(job, rule.metric)
            for rung in rungs(sweep):
                done = job.epoch >= rung or job.state == "succeeded"
                if done and value is not None:
                    reached.setdefault(str(rung), {}).setdefault(job.id, value)
    metric = LOSS if rule is None else rule.metric
    finals = {job.id: found for job in ended if (found := value_of(job, metric)) is not None}
    outcomes = {**sweep.outcomes, **{job.id: job.state for job in ended}}
    return replace(
        sweep,
        rungs=reached if reached != sweep.rungs else sweep.rungs,
        outcomes=outcomes if ended else sweep.outcomes,
        finals={**sweep.finals, **finals} if finals else sweep.finals,
        ended_usd=sweep.ended_usd + sum(job.cost_usd for job in ended),
        ended_at=draft.now if ended and len(outcomes) == len(sweep.jobs) else sweep.ended_at,
    )


def _judge(draft: Draft, sweep: Sweep, rule: Halving, saves: Saves) -> None:
    verdicts = judged(sweep, rule)
    for name in sweep.jobs:
        job = draft.jobs.get(name)
        if job is not None and name in verdicts.lost:
            stop_job(draft, job, "halving", verdicts.lost[name])
    coming = [job for name in verdicts.behind if _comes(job := draft.jobs.get(name))]
    waiting = any(job is not None and job.run is None and not job.parked for job in coming)
    for name in sweep.jobs:
        undecided = name in verdicts.undecided and bool(coming)
        _park(draft, name, undecided, saves, others=waiting)


class Verdicts(NamedTuple):
    lost: dict[JobId, str]
    """Jobs that others do better than for certain, and how."""
    undecided: set[JobId]
    """Jobs that may yet turn out not to be among the best of the last rung they came to …"""
    behind: set[JobId]
    """… and those that this depends on."""


def judged(sweep: Sweep, rule: Halving) -> Verdicts:
    """Who has lost, whatever comes yet. Only those count as better that are sure to have got to the
    rung: one that is ahead may turn out to have lost before."""
    lost, undecided, behind = dict[JobId, str](), set[JobId](), set[JobId]()
    for number, rung in enumerate(rungs(sweep)):
        row = sweep.rungs.get(str(rung), {})
        keep, sure, possible = places(sweep, number), 0, 0
        pending = {
            name
            for name in sweep.jobs
            if name not in row and name not in lost and name not in sweep.outcomes
        }
        unsure: set[JobId] = set()
        for name in sorted(row, key=lambda job: (score(row[job], rule), int(job))):
            if name in lost:
                continue
            if sure >= keep:
                lost[name] = f"{rule.metric} {_figure(row[name])} {_better(rung, sure)}"
                continue
            if name in undecided or possible + len(pending) >= keep:
                unsure.add(name)
            sure += name not in undecided
            possible += 1
        if unsure:
            behind |= pending
        undecided = (undecided - row.keys() | unsure) - lost.keys()
    return Verdicts(lost, undecided, behind)


def _figure(value: float | None) -> str:
    return "that is no number" if value is None else f"{value:.4g}"


def _better(rung: int, count: int) -> str:
    epochs = "1 epoch" if rung == 1 else f"{rung:,} epochs"
    return f"after {epochs}: {count:,} {'does' if count == 1 else 'do'} better"


def _comes(job: JobRecord | None) -> bool:
    """Whether it may still get to a rung, without anybody's doing."""
    return job is not None and not (job.stop_requested or job.paused or job.awaits)


def _park(draft: Draft, name: JobId, undecided: bool, saves: Saves, *, others: bool) -> None:
    """A job waits while its rung is not decided and others of the sweep have no GPUs; once it
    waits, until the rung is decided. One that may not be stopped goes on."""
    job = draft.jobs.get(name)
    if job is None or job.stop_requested:
        return
    park = undecided and (job.parked or others)
    if park == job.parked or (park and job.run is not None and not may_stop(job, saves(job))):
        return
    draft.replan = True
    if park:
        if job.run is not None:
            lost = lost_s(job, job.run, draft.now, saves(job))
            told: dict[str, Any] = {"lost_s": lost} if lost else {}
            draft.tell("paused", job=job.id, name=job.name, why="sweep", **told)
        state = "waiting" if job.run is None else job.state
        parked = replace(job, parked=True, allocation=None, state=state, reason=PARKED)
        draft.put_job(parked)
    else:
        moved_at = None if job.moved_at is None else draft.now
        draft.put_job(replace(job, parked=False, moved_at=moved_at, reason="resumed"))
