"""Reasons for the GPUs that a job gets, for the event that tells of its start. Pure.

A reason carries the facts that it was derived from: the GPUs before, the nodes they were on, and
the time that the job still had to go there. What a change saves and costs is compared with staying
on those GPUs, up to the next change that the plan has for the job, or else up to its end; the
rescaling and the work that it loses count as part of the change. There are no figures where the job
could not have stayed, or where nothing is known of its work. `scheduler/check_reasons.py` holds
every reason against the state.
"""

import math
from collections.abc import Callable, Mapping
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
"""A reason as a job keeps it: `why` (a cause), `epoch`, `from` (type, width and nodes of its last
run, until it starts), where they are known `saves_s`, `extra_usd`, `left_s`, `left_usd` and
`pause_s`, for `squeezed` the job it is squeezed `for` and `wait_s`, and `lost_s`, the work that the
last stop has really lost."""


class Change(NamedTuple):
    """A market's reason to give a job other GPUs."""

    for_job: JobId | None = None
    """The job that starts on GPUs which this one gives up."""
    wait_s: Seconds | None = None
    """Seconds that it would have waited for a node instead; None: it could not have had one."""


class _Had(NamedTuple):
    """GPUs of a job's last run."""

    step: Step
    nodes: tuple[int, ...] | None
    """None: stored by a version that did not keep them."""


class _Gain(NamedTuple):
    """A change compared with staying, and the rest of the job on the GPUs that it had."""

    saves_s: Seconds
    extra_usd: Usd
    left_s: Seconds
    left_usd: Usd


def reason(
    job: JobRecord,
    given: Allocation | None,
    decided: Cause | None,
    memory: object,
    left: float,
    change: Change | None = None,
    *,
    scale: float | None = 1.0,
    lost_s: Seconds = 0.0,
) -> Reason:
    """Return the reason for giving a job these GPUs.

    `decided`: why the policy was asked about it; `memory`: what the policy remembers; `left`: the
    part of its current epoch that is still to be done; `change`: why a market gives it others;
    `scale`: its work over that of its class, None where nobody knows how much work it has;
    `lost_s`: work that the change loses, as its stop is expected to cost (`stop_cost`).
    """
    had = _had(job)
    known = {} if had is None else {"from": _stored(had)}
    if job.run is None and "lost_s" in job.why:
        known["lost_s"] = job.why["lost_s"]
    if given is None:
        return known
    cause = _cause(job, given, had, change, decided)
    found: dict[str, Any] = {"why": cause, "epoch": job.epoch, **known}
    if change is not None and cause == "squeezed" and change.for_job is not None:
        found["for"] = change.for_job
        if change.wait_s:
            found["wait_s"] = change.wait_s
    stays = job.run is not None and job.allocation is not None
    if had is None or not stays or scale is None or not isinstance(memory, Planned):
        return found
    step = (given.gpu, given.width)
    if had.step == step or _silent(job):
        return found
    gained = _gained(memory, job, had.step, step, left, scale, lost_s)
    if gained is None:
        return found
    if cause in MARKET_CAUSES:
        rescale_s = memory.rests.course(job.stream, _all_on(*step)).rescale_s
        found["pause_s"] = rescale_s + lost_s
    return {**found, **gained._asdict()}


def changes(
    before: Mapping[JobId, Allocation],
    after: Mapping[JobId, Allocation],
    find_waits: Callable[[], Mapping[GpuName, Seconds]],
) -> dict[JobId, Change]:
    """Return the jobs that had GPUs and have others now.

    A job is squeezed for one that starts on a node where it gives GPUs up. `find_waits` returns the
    seconds until another node could be ready, of the types of which one boots or may be rented; it
    is asked only if a job has moved.
    """
    has = before.get
    others = [(job, given) for job, given in after.items() if has(job) is not given]  # few
    moved = [(job, given, held) for job, given in others if (held := has(job)) not in (None, given)]
    starts = [(job, given) for job, given in others if job not in before]
    waits = find_waits() if moved else {}
    found: dict[JobId, Change] = {}
    for job, given, held in moved:
        assert held is not None
        kept = dict(given.nodes)
        left = {node for node, count in held.nodes if kept.get(node, 0) < count}
        starts_there = (j for j, g in starts if any(node in left for node, _ in g.nodes))
        found[job] = Change(next(starts_there, None), waits.get(held.gpu))
    return found


def _had(job: JobRecord) -> _Had | None:
    """Return the GPUs of its last run, and their nodes."""
    if job.run is not None:
        held = job.run.allocation
        return _Had((held.gpu, held.width), tuple(node for node, _ in held.nodes))
    before = job.why.get("from")
    if before is None:
        return None
    gpu, width, *nodes = before
    return _Had((gpu, width), tuple(nodes[0]) if nodes else None)


def _stored(had: _Had) -> list[Any]:
    return [*had.step, *([] if had.nodes is None else [list(had.nodes)])]


def _silent(job: JobRecord) -> bool:
    """Whether it never said how far it is: nobody then knows how much of it is left."""
    return job.epoch == 0 and job.progress == 0.0


def _cause(
    job: JobRecord,
    given: Allocation,
    had: _Had | None,
    change: Change | None,
    decided: Cause | None,
) -> Cause:
    step = (given.gpu, given.width)
    if job.attempts == 0:
        return "first"
    if had is not None and had.step == step:
        if had.nodes is not None and set(had.nodes) != {node for node, _ in given.nodes}:
            return "nodes"
        return "returned" if job.allocation is None else "again"
    if is_short(job, step[1]) and (had is None or step[1] < had.step[1]):
        return "short"
    if had is None:
        return "again"
    if job.allocation is None:
        return "returned"
    return (decided or "room") if change is None else _changed(had.step, step)


def _changed(had: Step, step: Step) -> Cause:
    if had[0] != step[0]:
        return "moved"
    return "widened" if step[1] > had[1] else "squeezed"


def is_short(job: JobRecord, width: int) -> bool:
    return job.share is not None and width < job.share.width


def _gained(
    memory: Planned,
    job: JobRecord,
    held: Step,
    step: Step,
    left: float,
    scale: float,
    lost_s: Seconds,
) -> _Gain | None:
    """Return what a change saves and costs; None where the plan does not know.

    The stop is charged at the price of the new GPUs: work that is lost is done again there.
    """
    if job.stream not in memory.by_class:
        return None
    stay, go = (memory.rests.course(job.stream, _all_on(gpu, width)) for gpu, width in (held, step))
    epoch = min(job.epoch, len(go.times) - 1)
    until = None if job.share is None else job.share.until
    if until is not None and until <= epoch:
        until = None
    stay_s, stay_usd = _spent(stay, epoch, left, until, scale)
    go_s, go_usd = _spent(go, epoch, left, until, scale)
    pause_s = go.rescale_s + lost_s
    saves = stay_s - go_s - pause_s
    extra = go_usd + pause_s * float(go.rates[epoch]) - stay_usd
    found = _Gain(saves, extra, stay_s, stay_usd)
    return found if all(map(math.isfinite, found)) else None


@cache
def _all_on(gpu: GpuName, width: int) -> Variant:
    """One and the same every time: that is what courses are found by."""
    return Variant(1.0, (gpu,), (width,))


def _spent(
    course: Course, epoch: int, left: float, until: int | None, scale: float
) -> tuple[Seconds, Usd]:
    """Seconds and USD of the rest of an epoch and the epochs after it, up to `until`."""
    times = course.times[epoch:until] * scale
    with np.errstate(invalid="ignore"):  # where an epoch cannot run, which is then not told
        times[0] *= left
        return float(times.sum()), float((times * course.rates[epoch:until]).sum())


# As the event tells it


def told(job: JobRecord, run: Run, *, retried: bool = False) -> Start:
    """Return the fields of the event of a job that starts: on which GPUs, why, and where these are
    fewer than planned, what was planned.

    `retried`: its last run failed or was lost, whatever had been decided before that.
    """
    given, share, why = run.allocation, job.share, job.why
    planned = share is not None and (share.gpu, share.width) == (given.gpu, given.width)
    if why.get("why") == "short" and planned:  # by a plan that came after the decision
        why = {**why, "why": "again"}
    if retried and why.get("why") not in (None, "short"):
        lost = {"lost_s": why["lost_s"]} if "lost_s" in why else {}
        why = {"why": "again", "epoch": why.get("epoch", job.epoch), **lost}
    data: Start = {
        "name": job.name,
        "job_class": job.job_class,
        "attempt": run.attempt,
        "gpu_type": given.gpu,
        "width": given.width,
        "nodes": [node for node, _ in given.nodes],
        "epoch": job.epoch,
        "epochs": job.spec.epochs,
    }
    if "why" in why:
        data["why"], data["for_epoch"] = why["why"], why.get("epoch", job.epoch)
    if "from" in why:
        data["before_gpu_type"], data["before_width"], *nodes = why["from"]
        if nodes:
            data["before_nodes"] = nodes[0]
    if "left_s" in why:
        data["saves_s"], data["extra_usd"] = why["saves_s"], why["extra_usd"]
        data["left_s"], data["left_usd"] = why["left_s"], why["left_usd"]
    if "pause_s" in why:
        data["pause_s"] = why["pause_s"]
    if "lost_s" in why:
        data["lost_s"] = why["lost_s"]
    if "for" in why:
        data["for_job"] = why["for"]
        if why.get("wait_s"):
            data["wait_s"] = why["wait_s"]
    if share is not None and (is_short(job, given.width) or why.get("why") == "short"):
        data["planned_gpu_type"], data["planned_width"] = share.gpu, share.width
    return data
