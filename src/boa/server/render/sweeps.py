"""Sweeps as documents: what their jobs are doing, and which does best. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from boa.api import sweeps as answers
from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.model.sweep import LOSS, Halving, Sweep
from boa.runtime.snapshot import Snapshot
from boa.scheduler.money.costs import cost_of_job
from boa.scheduler.terms.halving import rungs, score, value_of
from boa.server.render.documents import holds_of
from boa.units import Seconds


def row(
    sweep: Sweep, snapshot: Snapshot, now: Seconds, ended: Mapping[JobId, JobRecord] | None = None
) -> answers.SweepRow:
    """`ended`: jobs of it that have, where they are known; the best of them is looked up there."""
    active = [snapshot.jobs[job] for job in sweep.jobs if job in snapshot.jobs]
    states = Counter([*sweep.outcomes.values(), *(job.state for job in active)])
    costs = sum(cost_of_job(job, holds_of(job, snapshot), now) for job in active)
    return {
        "id": sweep.id,
        "name": sweep.name,
        "class": sweep.job_class,
        "owner": sweep.owner,
        "team": sweep.team,
        "submitted_at": sweep.made_at,
        "ended_at": sweep.ended_at,
        "outcome": sweep.outcome,
        "jobs": len(sweep.jobs),
        "states": dict(states),
        "gpus": sum(job.run.allocation.width for job in active if job.run is not None),
        "cost_usd": sweep.ended_usd + costs,
        "metric": _rule(sweep).metric,
        "best": _best(sweep, [*active, *(ended or {}).values()], snapshot, now),
    }


def _rule(sweep: Sweep) -> Halving:
    return sweep.halving or Halving(metric=LOSS)


def best_of_ended(sweep: Sweep) -> JobId | None:
    """The ended job with the best value: the only one of them that a list has to look up."""
    rule = _rule(sweep)

    def order(job: JobId) -> tuple[float, int]:
        return score(sweep.finals[job], rule), int(job)

    return min(sweep.finals, key=order, default=None)


def _best(
    sweep: Sweep, jobs: Iterable[JobRecord], snapshot: Snapshot, now: Seconds
) -> answers.Member | None:
    rule, members = _rule(sweep), [member(job, sweep, snapshot, now) for job in jobs]
    known = [
        (score(value, rule), int(one["job"]), one)
        for one in members
        if (value := one["value"]) is not None
    ]
    return min(known, key=lambda found: found[:2])[2] if known else None


def member(job: JobRecord, sweep: Sweep, snapshot: Snapshot, now: Seconds) -> answers.Member:
    return {
        "job": job.id,
        "state": job.state,
        "parameters": dict(job.drawn),
        "epoch": job.epoch,
        "value": value_of(job, _rule(sweep).metric),
        "cost_usd": cost_of_job(job, holds_of(job, snapshot), now),
        "reason": job.reason,
    }


def details(
    sweep: Sweep, jobs: Mapping[JobId, JobRecord], snapshot: Snapshot, now: Seconds
) -> answers.SweepDetails:
    """`jobs`: those that have ended."""
    rule = sweep.halving
    known = [snapshot.jobs.get(job) or jobs.get(job) for job in sweep.jobs]
    said: answers.HalvingRule | None = None
    if rule is not None:
        said = {
            "metric": rule.metric,
            "better": rule.better,
            "factor": rule.factor,
            "first": rule.first,
            "rungs": rungs(sweep),
        }
    return {
        **row(sweep, snapshot, now, jobs),
        "halving": said,
        "members": [member(job, sweep, snapshot, now) for job in known if job is not None],
    }
