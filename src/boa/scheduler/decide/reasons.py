"""Why a job gets the GPUs that it gets, for the event that tells of its start. Pure.

What a change saves and costs is told against staying on the GPUs that the job had, up to the next
change that its plan has for it, or else up to its end; the rescaling is paid for by the change. Of
what comes after that, nothing is lost by leaving it out: it is the same on both sides.
"""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np

from boa.model.cluster import Allocation
from boa.model.job import JobRecord
from boa.model.plan import Variant
from boa.policy.boa import Planned
from boa.policy.courses import Course, Step
from boa.scheduler.decide.wording import dollars, seconds
from boa.units import GpuName, Seconds, Usd

Cause: TypeAlias = Literal["first", "epoch", "plan", "short", "room", "nodes", "again", "round"]
"""Its first start; an epoch begins that is planned on other GPUs; a new plan; fewer GPUs than
planned; no longer so; other GPUs of the same kind; after a failure or a lost node; a policy that
shares GPUs out in rounds."""
Reason: TypeAlias = Mapping[str, Any]
"""As a job keeps it: `why` (a cause), `epoch`, `from` (type and width, while it has not started),
and where they are known `saves_s` and `extra_usd`."""
TOLD = ("why", "saves_s", "extra_usd")
"""Keys of a reason that the event's data have too."""
_NO_TIME_S = 0.05


def reason(
    job: JobRecord,
    given: Allocation | None,
    decided: Cause | None,
    memory: object,
    left: float,
) -> Reason:
    """The reason for giving a job these GPUs. `decided`: why the policy was asked about it;
    `memory`: what the policy remembers; `left`: the part of its current epoch that is to be done
    yet."""
    held = _held(job)
    known = {} if held is None else {"from": list(held)}
    if given is None:
        return known
    step = (given.gpu, given.width)
    found = {"why": _cause(job, step, held, decided), "epoch": job.epoch, **known}
    if held is None or held == step or _silent(job) or not isinstance(memory, Planned):
        return found
    gained = _gained(memory, job, held, step, left)
    return found if gained is None else {**found, "saves_s": gained[0], "extra_usd": gained[1]}


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
    if job.job_class not in memory.by_class:
        return None
    stay, go = (
        memory.rests.course(job.job_class, _all_on(gpu, width)) for gpu, width in (held, step)
    )
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


# In words


def said(job: JobRecord, given: Allocation) -> str:
    """The sentence on a job that starts on these GPUs."""
    parts, why = [_words(job, given)], job.why.get("why")
    if why in ("first", "epoch", "plan") and is_short(job, given.width):
        parts.append(_short(job, given))
    if why != "short" and "saves_s" in job.why:
        parts.append(_bought(job.why["saves_s"], job.why["extra_usd"]))
    return f"job {job.id} ({job.name}) → {given.width}×{given.gpu}: {'; '.join(parts)}"


def _words(job: JobRecord, given: Allocation) -> str:
    match job.why.get("why"):
        case "first":
            return "first start"
        case "epoch":
            return f"epoch {job.why['epoch'] + 1} begins"
        case "plan":
            return "a new plan"
        case "short":
            return _short(job, given)
        case "room":
            of = f" ({_planned(job, given)})" if is_short(job, given.width) else ""
            return f"GPUs are free again{of}"
        case "round":
            return "GPUs are shared out anew"
        case "nodes":
            return "moves to other nodes"
    if job.spec.epochs > 1:
        return f"goes on with epoch {min(job.epoch + 1, job.spec.epochs)} of {job.spec.epochs}"
    return "goes on from its last checkpoint"


def _short(job: JobRecord, given: Allocation) -> str:
    return f"GPUs are short ({_planned(job, given)})"


def _planned(job: JobRecord, given: Allocation) -> str:
    share = job.share
    if share is None:
        return "more were planned"
    same = share.gpu == given.gpu
    return f"{share.width} planned" if same else f"{share.width}×{share.gpu} planned"


def _bought(saves: Seconds, extra: Usd) -> str:
    if saves > _NO_TIME_S:
        return f"saves {seconds(saves)} {'for' if extra > 0 else 'and'} {dollars(abs(extra))}"
    later = f"{seconds(-saves)} later" if saves < -_NO_TIME_S else "as fast"
    if extra < 0:
        return f"cheaper: {later}, saves {dollars(-extra)}"
    return f"{later}, for {dollars(extra)} more"
