"""Sentences about plans, money and the service itself."""

from collections.abc import Mapping
from typing import Any

from boa.model.events import BudgetSet, ClockSet, PeriodBegan, PlannedFields, TroubleFields, UsedUp
from boa.scheduler.words.amounts import dollars, rate, seconds
from boa.scheduler.words.of_jobs import FROM_KEPT
from boa.scheduler.words.pieces import About, Words, job, named, worded

_NO_GAP = 1e-4
_ONE_PROCESS = (
    "is one process (launcher single), which sees the GPUs of its first node only: where it is "
    "spread over several, the others are paid for nothing. gpus.max: 1, or launcher workers or "
    "torchrun"
)


def planned(about: About, data: PlannedFields) -> Words:
    if data.get("unknown"):
        yield f"plan {data['number']}: no class is measured yet, so each job gets its fewest GPUs"
        return
    best = "proven best" if data["gap"] < _NO_GAP else f"at most {data['gap']:.2%} above the best"
    jct_s, too_small = data["average_jct_s"], data["too_small_per_hour"]
    yield f"plan {data['number']}: jobs take "
    yield worded(jct_s)
    yield f" on average, for {rate(data['spend_per_hour'])} "
    yield f"({best}; solved in {seconds(data['wall_s'])})"
    if too_small is not None:
        yield f"; the budget cannot keep up: the cheapest plan needs {rate(too_small)}"


def budget(about: About, data: BudgetSet) -> Words:
    said, budget = [], data["budget"]
    if "before" in data:
        said.append(f"the budget is {rate(budget)} from now on")
        if data["before"] != budget:
            said.append(f"it was {rate(data['before'])}")
    if "max_spend" in data:
        cap = data["max_spend"]
        said.append("no hard cap" if cap is None else f"never more than {rate(cap)} at a time")
    yield "; ".join(said) or f"the budget is {rate(budget)}"


def period(about: About, data: PeriodBegan) -> Words:
    if data["period"] is None:
        yield "the budget has ended: no node is rented, and jobs stop and wait"
    else:
        yield f"period {data['period']} begins: the budget is {rate(data['budget'])}"


def used_up(about: About, data: UsedUp) -> Words:
    whose = f"{data['part']}'s money" if "part" in data else "the budget"
    what = "in total" if data["each"] == "once" else f"for the {data['each']}"
    yield f"{whose} {what} is used up: {dollars(data['usd'])}, "
    yield f"meant to last through {data['last_day']}"


def clock(about: About, data: ClockSet) -> Words:
    by_s = data["by_s"]
    yield f"the machine's clock was set by {'−' if by_s < 0 else '+'}"
    yield worded(abs(by_s))
    yield "; the service's own time goes on"


def trouble(about: About, data: TroubleFields) -> Words:
    match data["why"]:
        case "no_plan":
            yield f"no plan could be made: {data.get('detail', '')}"
        case "one_process":
            yield job(about)
            yield f" {_ONE_PROCESS}"
        case "exit_code":
            yield from named(about, data.get("name", ""))
            yield f" ended with exit code {data.get('exit_code')} when told to stop; "
            yield f"it is started again, {FROM_KEPT}"
        case "not_over":
            yield from named(about, data.get("name", ""))
            yield f" waits until its run is over: {data.get('detail', '')}"
        case "unit":
            yield from named(about, data.get("name", ""))
            yield f": {data.get('detail', '')}"
        case who:
            yield f"trouble with the {who}: {data.get('detail', '')}"


def other(about: About, data: Mapping[str, Any]) -> Words:
    yield "something that this version has no words for"
