"""Why a job gets the GPUs that it gets, for the event that tells of its start. Pure.

What a change saves and costs is told against staying on the GPUs that the job had, up to the next
change that its plan has for it, or else up to its end; the rescaling is paid for by the change. Of
what comes after that, nothing is lost by leaving it out: it is the same on both sides.
"""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from boa.model.cluster import Allocation, JobId
from boa.model.events import Cause, Start
from boa.model.job import JobRecord, Run
from boa.model.plan import Variant
from boa.policy.boa import Planned
from boa.policy.courses import Course, Step
from boa.units import GpuName, Seconds, Usd

MARKET_CAUSES: tuple[Cause, ...] = ("widened", "squeezed", "moved")
Reason: TypeAlias = Mapping[str, Any]
"""As a job keeps it: `why` (a cause), `epoch`, `from` (type and width, while it has not started),
where they are known `saves_s`, `extra_usd` and `pause_s`, and of one that is squeezed `for` whom
and `wait_s`."""


class Change(NamedTuple):
    """Why a market gives a job other GPUs."""

    cause: Cause
    for_job: JobId | None = None
    """Who starts on GPUs that this one gives up …"""
    wait_s: Seconds = 0.0
    """… and how long it would have waited for a node instead."""


def reason(
    job: JobRecord,
    given: Allocation | None,
    decided: Cause | None,
    memory: object,
    left: float,
    change: Change | None = None,
) -> Reason:
    """The reason for giving a job these GPUs. `decided`: why the policy was asked about it;
    `memory`: what the policy remembers; `left`: the part of its current epoch that is to be done
    yet; `change`: why a market gives it others."""
    held = _held(job)
    known = {} if held is None else {"from": list(held)}
    if given is None:
        return known
    step = (given.gpu, given.width)
    cause = _cause(job, step, held, change.cause if change is not None else decided)
    found: dict[str, Any] = {"why": cause, "epoch": job.epoch, **known}
    if change is not None and cause == "squeezed" and change.for_job is not None:
        found |= {"for": change.for_job, "wait_s": change.wait_s}
    if held is None or held == step or _silent(job) or not isinstance(memory, Planned):
        return found
    gained = _gained(memory, job, held, step, left)
    if gained is None:
        return found
    if change is not None:
        found["pause_s"] = memory.rests.course(job.stream, _all_on(*step)).rescale_s
    return {**found, "saves_s": gained[0], "extra_usd": gained[1]}


def changes(
    before: Mapping[JobId, Allocation],
    after: Mapping[JobId, Allocation],
    boots: Mapping[GpuName, Seconds],
) -> dict[JobId, Change]:
    """Jobs that were there and have other GPUs now. A job is squeezed for one that starts, on its
    own node if there is such a one."""
    has = before.get
    others = [(job, given) for job, given in after.items() if has(job) is not given]  # few
    starts = [(job, given) for job, given in others if job not in before]
    found: dict[JobId, Change] = {}
    for job, given in others:
        held = before.get(job)
        if held is None or held == given:
            continue
        if held.gpu != given.gpu:
            found[job] = Change("moved")
        elif given.width > held.width:
            found[job] = Change("widened")
        elif given.width < held.width:
            mine = {node for node, _ in held.nodes}
            beside = (j for j, g in starts if any(node in mine for node, _ in g.nodes))
            same = (j for j, g in starts if g.gpu == held.gpu)
            for_job = next(beside, None) or next(same, None)
            found[job] = Change("squeezed", for_job, boots.get(held.gpu, 0.0))
    return found


def _held(job: JobRecord) -> Step | None:
    """GPU type and width that it has run on last."""
    if job.run is not None:
        return job.run.allocation.gpu, job.run.allocation.width
    before = job.why.get("from")
    return None if before is None else (before[0], before[1])


def _silent(job: JobRecord) -> bool:
    """Whether it never said how far it is: nobody then knows how much of it is left."""
    return job.epoch == 0 and job.progress == 0.0


def _cause(job: JobRecord, step: Step, held: Step | None, decided: Cause | None) -> Cause:
    if job.attempts == 0:
        return "first"
    if held == step:
        return "nodes"
    if is_short(job, step[1]) and (held is None or step[1] < held[1]):
        return "short"
    if held is None:
        return "again"
    return decided or "room"


def is_short(job: JobRecord, width: int) -> bool:
    return job.share is not None and width < job.share.width


def _gained(
    memory: Planned, job: JobRecord, held: Step, step: Step, left: float
) -> tuple[Seconds, Usd] | None:
    """Seconds saved and dollars more; None where the plan does not know."""
    if job.stream not in memory.by_class:
        return None
    stay, go = (memory.rests.course(job.stream, _all_on(gpu, width)) for gpu, width in (held, step))
    epoch = min(job.epoch, len(go.times) - 1)
    until = None if job.share is None else job.share.until
    if until is not None and until <= epoch:
        until = None
    stay_s, stay_usd = _spent(stay, epoch, left, until)
    go_s, go_usd = _spent(go, epoch, left, until)
    moving_usd = go.rescale_s * float(go.rates[epoch])
    saves, extra = stay_s - go_s - go.rescale_s, go_usd + moving_usd - stay_usd
    return (saves, extra) if math.isfinite(saves) and math.isfinite(extra) else None


@cache
def _all_on(gpu: GpuName, width: int) -> Variant:
    """One and the same every time: that is what courses are found by."""
    return Variant(1.0, (gpu,), (width,))


def _spent(course: Course, epoch: int, left: float, until: int | None) -> tuple[Seconds, Usd]:
    """Seconds and USD of the rest of an epoch and the epochs after it, up to `until`."""
    times = course.times[epoch:until].copy()
    with np.errstate(invalid="ignore"):  # where an epoch cannot run, which is then not told
        times[0] *= left
        return float(times.sum()), float((times * course.rates[epoch:until]).sum())


# As the event tells it


def told(job: JobRecord, run: Run) -> Start:
    """Fields of the event of a job that starts: on which GPUs, why, and where these are fewer than
    planned, what was planned."""
    given, share, why = run.allocation, job.share, job.why
    data: Start = {
        "name": job.name,
        "job_class": job.job_class,
        "attempt": run.attempt,
        "gpu_type": given.gpu,
        "width": given.width,
        "epoch": job.epoch,
        "epochs": job.spec.epochs,
    }
    if "why" in why:
        data["why"], data["for_epoch"] = why["why"], why.get("epoch", job.epoch)
    if "saves_s" in why:
        data["saves_s"], data["extra_usd"] = why["saves_s"], why["extra_usd"]
    if why.get("why") in MARKET_CAUSES and "from" in why:
        data["before_gpu_type"], data["before_width"] = why["from"]
        if "pause_s" in why:
            data["pause_s"] = why["pause_s"]
        if "for" in why:
            data["for_job"], data["wait_s"] = why["for"], why["wait_s"]
    if share is not None and (is_short(job, given.width) or why.get("why") == "short"):
        data["planned_gpu_type"], data["planned_width"] = share.gpu, share.width
    return data
