"""Sentences about a job's terms: pauses, changes, limits, deadlines, and why it was stopped."""

from datetime import datetime
from typing import TYPE_CHECKING

from boa.model.events import (
    Changed,
    DeadlineFields,
    Limited,
    OfJob,
    Paused,
    PreemptedFields,
    PreemptionCode,
    StopCode,
    StopFields,
    StoppedFields,
)
from boa.scheduler.words.amounts import dollars
from boa.scheduler.words.amounts import seconds as worded_s
from boa.scheduler.words.of_jobs import ended
from boa.scheduler.words.pieces import About, Part, Words, named, worded
from boa.units import Seconds

if TYPE_CHECKING:  # which loads NumPy
    from boa.model.calendar import Calendar
    from boa.policy.market.hours import Run

UNSAVED = " of work is lost unless it saves a checkpoint first"
PAUSED = "paused: boa job resume goes on with it"
NO_WEEK = "waits for a plan of the calendar's week"
UNTOLD = "may wait for other hours: for which, nobody knows before there is a plan of the week"
PARKED = "waits until others of its sweep have got as far"


def stopped_by(why: StopCode, detail: str = "") -> str:
    """Why a job was stopped, as it says itself."""
    match why:
        case "requested":
            return "stopped on request"
        case "max_cost":
            return f"its limit on cost is reached{_more(detail)}"
        case "max_time":
            return f"its limit on time is reached{_more(detail)}"
        case "dependency":
            return detail or "a job that it was to start after did not end as it should"
        case "halving":
            return f"others of its sweep do better{_more(detail)}"


def _more(detail: str) -> str:
    return f" ({detail})" if detail else ""


def stop(about: About, data: StopFields) -> Words:
    yield from named(about, data["name"])
    why = data.get("why", "requested")
    if why == "requested":
        yield " was asked to stop"
    else:
        yield f" is stopped: {stopped_by(why, data.get('detail', ''))}"


def stopped(about: About, data: StoppedFields) -> Words:
    yield from ended(about, data)
    yield f"; {stopped_by(data['why'], data.get('detail', ''))}"


def preempted(why: PreemptionCode, by: str) -> str:
    """Return the reason that a preempted job shows while it waits."""
    match why:
        case "job":
            return f"preempted by job {by}, which has a higher priority"
        case "node":
            return "preempted: its node is taken back"
        case "cap":
            return "preempted: the hard cap on spend leaves no room"
        case "ended":
            return "preempted: the budget has ended"
        case "room":
            return "preempted: its GPUs are needed by jobs that pay for them, or given back"


def preempted_told(about: About, data: PreemptedFields) -> Words:
    """Word the event: by which job, what is given up, what is lost."""
    yield from named(about, data["name"])
    by = data.get("by_job", "")
    if data["why"] == "job" and by:
        yield " was preempted by "
        yield Part(f"job {by}", job=by)
    else:
        yield f" was {preempted(data['why'], by)}"
    yield f"; it gives up {data['width']}×{data['gpu_type']}"
    if data["saves"] or not data["lost_s"]:
        yield " once its checkpoint is saved"
    else:
        yield "; "
        yield worded(data["lost_s"])
        yield UNSAVED


def paused(about: About, data: Paused) -> Words:
    yield from named(about, data["name"])
    yield " was paused"
    if "why" in data:
        yield f": it {PARKED}"
    if data.get("lost_s"):
        yield "; "
        yield worded(data.get("lost_s", 0.0))
        yield UNSAVED


def resumed(about: About, data: OfJob) -> Words:
    yield from named(about, data["name"])
    yield " was resumed"


def changed(about: About, data: Changed) -> Words:
    yield from named(about, data["name"])
    said = ", ".join(f"{name} {_shown(value)}" for name, value in data["fields"].items())
    yield f" was changed: {said}"


def _shown(value: str | float | None) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def limit(about: About, data: Limited) -> Words:
    yield from named(about, data["name"])
    used, most = _of(data["why"], data["used"]), _of(data["why"], data["most"])
    yield f" is near its limit: {used} of {most}"
    if "in_s" in data:
        yield "; it is stopped in "
        yield worded(data["in_s"])


def _of(why: str, amount: float) -> str:
    return dollars(amount) if why == "max_cost" else worded_s(amount)


def deadline(about: About, data: DeadlineFields) -> Words:
    yield from named(about, data["name"])
    match data["why"]:
        case "missed":
            yield " has missed its deadline: it goes on at its own weight"
            return
        case "nears":
            yield f" counts {data.get('urgency', 1.0):.3g} times as much for its deadline in "
            yield worded(data["in_s"])
        case _:
            alone = "boot_s" not in data or data.get("takes_s", 0.0) > data["in_s"]
            sure = alone and "takes_s" in data
            yield f" {'will' if sure else 'may'} miss its deadline in "
            yield worded(data["in_s"])
    if "takes_s" not in data:
        yield ": how long it takes is unknown"
        return
    yield ", takes "
    yield worded(data["takes_s"])
    if "boot_s" in data:
        yield " and "
        yield worded(data["boot_s"])
        yield " more if a node has to boot"


def put_off(calendar: "Calendar", at: Seconds, now: "Run", then: "Run") -> str:
    """Why a job has not started, where money buys more later; `at`: from when on."""
    begins = datetime.fromtimestamp(at + calendar.origin, calendar.zone)
    name = calendar.periods[calendar.at(at)].name
    waits = f"waits for {name}, from {begins:%a %Y-%m-%d %H:%M %Z} on"
    later, at_once = (f"{worded_s(run.seconds)} and {dollars(run.usd)}" for run in (then, now))
    if later == at_once:
        return f"{waits}: it takes {later} then as now, but others gain less by the money then"
    return f"{waits}: it takes {later} then, {at_once} now"


def waits_for(names: str) -> str:
    """Why a job has not started, where others have to end first."""
    return f"waits for {names}"
