"""`boa submit --estimate`: what a job would take, before it is submitted."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from boa.cli.console import console, emit_json, note
from boa.cli.live.service import connect, dollars, span
from boa.cli.markup import escape
from boa.cli.tables import Table, listing
from boa.model.job_spec import JobSpec
from boa.plots.words import unit_for

if TYPE_CHECKING:
    from boa.api.estimates import (
        EstimateRange,
        EstimateStage,
        EstimateWay,
        JobEstimate,
        PriorityCost,
    )


def show_estimate(spec: JobSpec, *, probe: bool, json: bool) -> None:
    with connect() as client:
        found = client.estimate(spec)
        if probe and found["probe"] is not None:
            offer = found["probe"]
            note(
                f"probing {found['class']} on {offer['width']}×{offer['gpu_type']}, for up to "
                f"{span(offer['seconds'])} and {dollars(offer['cost_usd'])}"
            )
            found = client.probe(spec)
    if json:
        emit_json({"estimate": found})
        return
    out = console()
    for line in lines(found):
        out.print(line)
    if found["ways"]:
        rows = [row for way in found["ways"] for row in _rows(way, len(found["ways"]) > 1)]
        columns = ("epochs", "GPUs", "time", "cost")
        out.print(listing(columns, rows, out.width, right=("time", "cost"), cut=("epochs",)))
    if found.get("priorities"):  # an older service has none
        out.print(priority_table(found["priorities"], out.width))


def priority_table(found: "Sequence[PriorityCost]", width: int) -> Table:
    """Costs of each priority, to the job and to all others."""
    rows = [
        (
            one["priority"],
            "when GPUs are empty" if one["jct_s"] is None else lasting(one["jct_s"]),
            dollars(one["cost_usd"]),
            lasting(one["others_s"]) if one["others_s"] else "nothing",
            f"{dollars(one['class_usd_per_hour'])}/h",
            lasting(one["class_others_s"]) if one["class_others_s"] else "nothing",
        )
        for one in found
    ]
    columns = ("priority", "takes", "costs", "costs others", "all of the class", "and everybody")
    return listing(columns, rows, width, right=columns[1:])


def lines(found: "JobEstimate") -> list[str]:
    """The estimate in words."""
    name, offer = escape(found["class"]), found["probe"]
    if offer is not None:
        return [
            f"nobody knows how long a job of {name} takes: none has ended or told of itself",
            f"boa submit --probe runs it on {offer['width']}×{escape(offer['gpu_type'])} for up to "
            f"{span(offer['seconds'])} ({dollars(offer['cost_usd'])} at most), and then knows",
            *_before(found),
        ]
    time_s, cost = found["time_s"], found["cost_usd"]
    if time_s is None or cost is None:
        return [f"no GPU type that can be rented here runs {name} within its limits"]
    return [
        f"time  {lasting(time_s)}{_between(found['time_range'], lasting)}",
        f"cost  {dollars(cost)}{_between(found['cost_range'], dollars)}",
        f"from  {_basis(found)}",
        *_before(found),
    ]


def lasting(seconds: float) -> str:
    """Seconds in a unit that leaves two digits or three: 42 s, 2.5 h."""
    length, sign = unit_for(seconds)
    value = seconds / length
    return f"{round(value, 1 if value < 10 else 0):g} {sign}"


def _between(found: "EstimateRange | None", worded: Callable[[float], str]) -> str:
    if found is None:
        return ""
    return f", four of five jobs between {worded(found['low'])} and {worded(found['high'])}"


def _basis(found: "JobEstimate") -> str:
    name, many = escape(found["class"]), found["succeeded"]
    said = {
        "jobs": f"{many} job{'s' if many != 1 else ''} of {name} that succeeded",
        "profile": f"the profile of {name}; no job has shown it yet",
        "measured": f"what jobs of {name} have reported so far",
    }[found["basis"] or "measured"]
    if found["time_range"] is None:
        said += "; too few have ended to tell how far they lie apart"
    if found["plan"] is None:
        said += "; on its fewest GPUs, as there is no plan for it yet"
    return said


def _before(found: "JobEstimate") -> list[str]:
    queue = found["before"]
    if queue is None:
        return []
    who = f"{queue['waiting']} job{'s' if queue['waiting'] != 1 else ''}"
    ahead = f"{who} wait for {queue['gpus']} GPUs before it" if queue["waiting"] else "nobody waits"
    if queue["wait_s"] is None:
        return [f"wait  {ahead}; when there are GPUs for it, nobody knows"]
    if queue["wait_s"] <= 0:
        return [f"wait  {ahead}; it would start at once"]
    node = ", for a new node" if queue["boot_s"] else ""
    return [f"wait  {ahead}; it would start in about {span(queue['wait_s'])}{node}"]


def _rows(way: "EstimateWay", several: bool) -> list[tuple[str, str, str, str]]:
    who = f" ({100 * way['share']:.0f} % of jobs)" if several else ""
    return [
        (
            f"{_epochs(stage)}{who}",
            f"{stage['width']}×{escape(stage['gpu_type'])}",
            lasting(stage["time_s"]),
            dollars(stage["cost_usd"]),
        )
        for stage in way["stages"]
    ]


def _epochs(stage: "EstimateStage") -> str:
    """Counted from 1, as people do."""
    first, last = stage["first_epoch"] + 1, stage["last_epoch"] + 1
    return f"{first}" if first == last else f"{first}–{last}"
