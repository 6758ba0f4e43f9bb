"""Sentences about plans, money and the service itself."""

from collections.abc import Mapping
from typing import Any

from boa.model.events import BudgetSet, ClockSet, PeriodBegan, PlannedFields, TroubleFields, UsedUp
from boa.scheduler.words.of_jobs import FROM_KEPT
from boa.scheduler.words.pieces import About, Part, Words, job, named

_NO_GAP = 1e-4
_ONE_PROCESS = (
    "is one process (launcher single), which sees the GPUs of its first node only: where it is "
    "spread over several, the others are paid for nothing. gpus.max: 1, or launcher workers or "
    "torchrun"
)


def planned(about: About, data: PlannedFields) -> Words:
    best = "proven best" if data["gap"] < _NO_GAP else f"at most {data['gap']:.2%} above the best"
    jct_s, too_small = data["average_jct_s"], data["too_small_per_hour"]
    yield f"plan {data['number']}: jobs take "
    yield Part(f"{jct_s:,.0f} s", seconds=jct_s)
    yield f" on average, for ${data['spend_per_hour']:.4g}/h "
    yield f"({best}; solved in {data['wall_s'] * 1000:.0f} ms)"
    if too_small is not None:
        yield f"; the budget cannot keep up: the cheapest plan needs ${too_small:.4g}/h"


def budget(about: About, data: BudgetSet) -> Words:
    said, budget = [], data["budget"]
    if "before" in data:
        said.append(f"the budget is ${budget:g}/h from now on")
        if data["before"] != budget:
            said.append(f"it was ${data['before']:g}/h")
    if "max_spend" in data:
        cap = data["max_spend"]
        said.append("no hard cap" if cap is None else f"never more than ${cap:g}/h at a time")
    yield "; ".join(said) or f"the budget is ${budget:g}/h"


def period(about: About, data: PeriodBegan) -> Words:
    if data["period"] is None:
        yield "the budget has ended: no node is rented, and jobs stop and wait"
    else:
        yield f"period {data['period']} begins: the budget is ${data['budget']:g}/h"


def used_up(about: About, data: UsedUp) -> Words:
    whose = f"{data['part']}'s money" if "part" in data else "the budget"
    what = "in total" if data["each"] == "once" else f"for the {data['each']}"
    yield f"{whose} {what} is used up: ${data['usd']:,.2f}, "
    yield f"meant to last through {data['last_day']}"


def clock(about: About, data: ClockSet) -> Words:
    signed = f"{data['by_s']:+.0f} s"
    yield f"the machine's clock was set by {signed[0]}"
    yield Part(signed[1:], seconds=abs(data["by_s"]))
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
