"""Limits of single jobs: the time and the money that they may take, and a warning before. All pure.

A job is stopped so long before its limit that the whole grace time still fits, so that it has its
checkpoint and has not gone over; but not while a tenth of the limit is left.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from boa.model.job import JobRecord
from boa.scheduler.money.ledger import hold_cost, hold_rate
from boa.scheduler.state import Draft, State
from boa.scheduler.terms.stopping import stop_job
from boa.scheduler.words.amounts import dollars, seconds
from boa.units import SECONDS_PER_HOUR, Seconds

WARNED = 0.8
"""Part of a limit at which its user is told."""
KEPT_BACK = 0.1
"""Part of a limit that the grace time takes, at most."""


class Used(NamedTuple):
    """A limit, and what is used of it."""

    why: Literal["max_cost", "max_time"]
    most: float
    used: float
    per_s: float
    """More in every second."""
    until: float
    """The use at which it is stopped."""

    @property
    def in_s(self) -> Seconds:
        """Until it is stopped, at this pace."""
        left = self.until - self.used
        return 0.0 if left <= 0 else left / self.per_s if self.per_s else math.inf


def used_of(job: JobRecord, state: State, now: Seconds) -> Iterator[Used]:
    """Every limit that a job has."""
    spec, run = job.spec, job.run
    if spec.max_cost is not None:
        keys = [] if run is None else [(job.id, node, run.requested_at) for node in run.slots]
        open_holds = [state.holds[key] for key in keys if key in state.holds]
        used = job.cost_usd + sum(hold_cost(hold, now) for hold in open_holds)
        per_s = sum(hold_rate(hold, now) for hold in open_holds) / SECONDS_PER_HOUR
        yield _used("max_cost", spec.max_cost, used, per_s, spec.grace_s)
    if spec.max_time_s is not None:
        used = job.on_gpus_s(now)
        yield _used("max_time", spec.max_time_s, used, 0.0 if run is None else 1.0, spec.grace_s)


def _used(
    why: Literal["max_cost", "max_time"], most: float, used: float, per_s: float, grace_s: Seconds
) -> Used:
    return Used(why, most, used, per_s, most - min(per_s * grace_s, KEPT_BACK * most))


def look(draft: Draft) -> None:
    """Stop whoever has reached a limit; warn whoever comes near one."""
    for job in limited(draft.state):
        for used in used_of(job, draft.state, draft.now):
            job = _look_at(draft, job, used)


def limited(state: State) -> list[JobRecord]:
    """Jobs with a limit that may still be reached."""
    return [
        job
        for job in state.jobs.values()
        if (job.spec.max_cost is not None or job.spec.max_time_s is not None)
        and not job.stop_requested
    ]


def _look_at(draft: Draft, job: JobRecord, used: Used) -> JobRecord:
    if job.stop_requested:
        return job
    if used.in_s <= 0:
        detail = f"{_amount(used, used.used)} of {_amount(used, used.most)}"
        return stop_job(draft, job, used.why, detail)
    if used.why in job.told or used.used < WARNED * used.most:
        return job
    soon: dict[str, Any] = {} if math.isinf(used.in_s) else {"in_s": used.in_s}
    draft.tell(
        "limit", job=job.id, name=job.name, why=used.why, used=used.used, most=used.most, **soon
    )
    return draft.put_job(replace(job, told=(*job.told, used.why)))


def _amount(used: Used, amount: float) -> str:
    return dollars(amount) if used.why == "max_cost" else seconds(amount)


def wakes_at(job: JobRecord, state: State, now: Seconds) -> Seconds:
    """When it is to be looked at next for its limits."""
    return min((now + used.in_s for used in used_of(job, state, now)), default=math.inf)
