"""How urgent every job is: by its priority or a weight of its own, and by its deadline. Pure.

The urgency that a deadline takes is the least at which the job would still be in time, by what the
plan in force knows of its class. It is looked at with every decision, so it rises as the deadline
nears and the job has not got as far as it should, and never falls: a job that is in time on what
it has would lose that to the next plan. A deadline that has passed counts no longer:
money does not bring it back.
"""

import math
from dataclasses import replace
from typing import Any

from boa.model.events import DeadlineCode
from boa.model.job import JobRecord
from boa.model.priorities import Priorities
from boa.policy.boa import Planned
from boa.policy.market.urgency import Position, in_time
from boa.scheduler.decide.decider import Decider
from boa.scheduler.state import Draft
from boa.units import Seconds

LOOK_S: Seconds = 60.0
"""How often a deadline is looked at where nothing else happens."""


def look(draft: Draft, decider: Decider) -> None:
    """Every job's urgency, by the plan in force; told where it changes for a deadline."""
    planned = decider.memory
    if not isinstance(planned, Planned):
        return
    some = [job for job in draft.jobs.values() if job.deadline is not None or _differs(job)]
    for job in filter(_has_its_own, some):
        wanted, job = _wanted(draft, decider, planned, job)
        if not math.isclose(wanted, job.urgency):
            draft.put_job(replace(job, urgency=wanted))
            draft.replan = True
            decider.asked_again.add(job.id)


def _differs(job: JobRecord) -> bool:
    """Whether it may count otherwise than its class."""
    return bool(job.amended) or job.spec.priority != "normal" or job.urgency != 1.0


def _has_its_own(job: JobRecord) -> bool:
    if job.stop_requested or job.background:
        return False
    urgent = job.spec.priority == "urgent"
    return job.deadline is not None or urgent or "weight" in job.amended or job.urgency != 1.0


def _wanted(
    draft: Draft, decider: Decider, planned: Planned, job: JobRecord
) -> tuple[float, JobRecord]:
    own = own_weight(job, planned, decider.priorities)
    if job.deadline is None:
        return own, job
    in_s = job.deadline - draft.now
    if in_s <= 0:
        return own, _told(draft, job, "missed", in_s=in_s)
    boot_s = _boot_s(decider, job)
    way, _ = in_time(
        planned.urgent.ways(job.stream, planned.price, job.spec.gpus, _at(draft, decider, job)),
        in_s - boot_s,
    )
    if way is None:
        return own, job
    urgency = max(own, job.urgency, way.urgency)  # it never falls: estimates waver
    told: dict[str, Any] = {"in_s": in_s, "takes_s": way.seconds, "urgency": urgency}
    if boot_s:
        told["boot_s"] = boot_s
    if not decider.beliefs.work(job):
        del told["takes_s"]  # supposed: how much there is to do is unknown
    if way.seconds + boot_s > in_s:  # not merely without reserve, for which it may be urgent too
        job = _told(draft, job, "out_of_reach", **told)
    elif urgency > own:
        job = _told(draft, job, "nears", **told)
    return urgency, job


def own_weight(job: JobRecord, planned: Planned, priorities: Priorities) -> float:
    """Times its class's weight that it counts by its priority, or by the weight that its user set
    for it while it was there."""
    if "weight" not in job.amended or job.spec.priority != "normal":
        return priorities.weight(job.spec.priority)
    classes = planned.solution.workload.classes
    usual = next((known.weight for known in classes if known.name == job.stream), None)
    return 1.0 if not usual else job.spec.weight / usual


def _at(draft: Draft, decider: Decider, job: JobRecord) -> Position:
    run = job.run
    rescale_s = decider.beliefs.of(job).rescale_s
    trains = run is not None and run.reported_at is not None
    resumes = 0.0 if run is None or trains else max(run.requested_at + rescale_s - draft.now, 0.0)
    held = None if run is None else run.allocation
    return Position(job.epoch, decider.beliefs.left(job), held, resumes)


def _boot_s(decider: Decider, job: JobRecord) -> Seconds:
    """Seconds that a node takes which a job without any may need."""
    if job.run is not None:
        return 0.0
    return max(decider.node_times.boots(decider.gpu_types).values(), default=0.0)


def _told(draft: Draft, job: JobRecord, why: DeadlineCode, **data: Any) -> JobRecord:
    """Once for every deadline."""
    if why in job.told:
        return job
    draft.tell("deadline", job=job.id, name=job.name, why=why, **data)
    return draft.put_job(replace(job, told=(*job.told, why)))


def wakes_at(job: JobRecord, now: Seconds) -> Seconds:
    """When it is to be looked at next for its deadline."""
    if job.deadline is None or job.deadline <= now:
        return math.inf
    return min(now + LOOK_S, job.deadline)
