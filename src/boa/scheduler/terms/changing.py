"""Changes of a job until it has ended: paused, resumed, other limits and weights. All pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from boa.errors import InputError
from boa.model.job import JobRecord
from boa.model.job_spec import amended
from boa.model.workload import GpuType
from boa.scheduler.observe.commands import check
from boa.scheduler.refusals import NoSuchJob, WouldLoseWork
from boa.scheduler.state import Draft
from boa.scheduler.stop_cost import StopCost, needs_consent
from boa.scheduler.terms.dependencies import waits
from boa.scheduler.words.of_terms import PAUSED
from boa.units import GpuName

_DEADLINE = ("nears", "out_of_reach", "missed")


def active(draft: Draft, job_id: str, known: JobRecord | None, doing: str) -> JobRecord:
    """A job that can still be changed. `known`: what the store has of one that is not active."""
    job = draft.jobs.get(job_id)
    if job is None:
        if known is None:
            raise NoSuchJob(job_id)
        raise InputError("job", job_id, f"one that can be {doing}", f"job {job_id} {known.state}")
    if job.stop_requested:
        problem = f"job {job_id} is being stopped"
        raise InputError("job", job_id, f"one that can be {doing}", problem)
    return job


def pause(draft: Draft, job: JobRecord, cost: StopCost, *, force: bool = False) -> JobRecord:
    """Take a job's GPUs until it is resumed; refuse where that loses work, unless forced.

    `cost` is what stopping its run costs now.
    """
    if job.paused:
        return job
    if needs_consent(job, cost) and not force:
        again = f"to pause all the same: boa job pause --force {job.id}"
        raise WouldLoseWork(job.id, cost.lost_s, cost.lost_usd, "a pause", again)
    lost: dict[str, Any] = {"lost_s": cost.lost_s} if cost.lost_s else {}
    draft.tell("paused", job=job.id, name=job.name, **lost)
    draft.replan = True
    state = "waiting" if job.run is None else job.state
    return draft.put_job(
        replace(job, paused=True, allocation=None, retry_at=None, state=state, reason=PAUSED)
    )


def resume(draft: Draft, job: JobRecord) -> JobRecord:
    """It has GPUs again as soon as there are some; what it waited is no part of a rescaling."""
    if not job.paused:
        return job
    draft.tell("resumed", job=job.id, name=job.name)
    draft.replan = True
    reason = waits(job.awaits) if job.awaits else "resumed"
    return draft.put_job(replace(job, paused=False, moved_at=_from_now(draft, job), reason=reason))


def _from_now(draft: Draft, job: JobRecord) -> float | None:
    return None if job.moved_at is None else draft.now


_WORDS = {"name", "tags"}
"""Fields that no plan depends on."""


def amend(
    draft: Draft,
    job: JobRecord,
    fields: Mapping[str, Any],
    gpu_types: Mapping[GpuName, GpuType],
    max_nodes: Mapping[GpuName, int],
    cost: StopCost,
    *,
    force: bool = False,
) -> JobRecord:
    """Change fields of a job; refuse to make it a background job where that may lose its work,
    unless forced.

    `fields`: those that change, as JSON has them and checked one by one. `cost` is what stopping
    its run costs now.
    """
    spec = amended(job.spec, fields)
    changed = {name: value for name, value in fields.items() if _differs(job, spec, name)}
    if "gpus" in changed:
        check(spec, gpu_types, max_nodes)
    if not changed:
        return job
    becomes_background = spec.priority == "background" and not job.background
    if becomes_background and needs_consent(job, cost) and not force:
        again = "to change it all the same, repeat the command with --force"
        what = "BOA may stop a background job at any time, which"
        raise WouldLoseWork(job.id, cost.lost_s, cost.lost_usd, what, again)
    share, deadline, urgency = job.share, job.deadline, job.urgency
    forget = {"max_time" if name == "max_time_s" else name for name in changed}
    if "gpus" in changed and share is not None:
        share = replace(share, until=job.epoch)  # so that it is asked about at once
    if "deadline_s" in changed:
        deadline = None if spec.deadline_s is None else draft.now + spec.deadline_s
        forget.update(_DEADLINE)
    if not changed.keys().isdisjoint(("deadline_s", "weight", "priority")):
        urgency = 1.0  # as it is found at the next decision
    if job.background and spec.priority != "background":
        draft.arrived.append(replace(job, spec=spec))  # from now on it is planned and paid for
    if job.background != (spec.priority == "background"):
        draft.change_background(job)
    draft.tell("changed", job=job.id, name=job.name, fields=_flat(changed, job.spec.tags))
    draft.replan |= not changed.keys() <= _WORDS
    return draft.put_job(
        replace(
            job,
            spec=spec,
            amended={**job.amended, **changed},
            share=share,
            deadline=deadline,
            urgency=urgency,
            told=tuple(code for code in job.told if code not in forget),
        )
    )


def _flat(changed: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, str | float | None]:
    """As events have them: limits on GPUs, and tags, each by itself. `tags`: those before."""
    found = {name: value for name, value in changed.items() if name not in ("gpus", "tags")}
    if "tags" in changed:
        for kind in {**tags, **changed["tags"]}:
            found[f"tags.{kind}"] = changed["tags"].get(kind)
    for name, value in changed.get("gpus", {}).items():
        found[f"gpus.{name}"] = "+".join(value) or None if name == "types" else value
    return found


def _differs(job: JobRecord, spec: Any, name: str) -> bool:
    """A deadline is told from now on, so the same one again is another."""
    if name == "deadline_s":
        return spec.deadline_s is not None or job.deadline is not None
    return bool(getattr(spec, name) != getattr(job.spec, name))
