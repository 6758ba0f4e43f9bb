"""`boa submit --estimate`: what a job would take, before it is submitted."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from boa.amounts import dollars, duration
from boa.cli.console import console, emit_json, note
from boa.cli.live.service import connect
from boa.cli.markup import escape
from boa.cli.tables import Table, listing
from boa.model.job_spec import JobSpec
from boa.model.priorities import Priority

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
                f"{duration(offer['seconds'])} and {dollars(offer['cost_usd'])}"
            )
            found = client.probe(spec)
    if json:
        emit_json({"estimate": found})
        return
    out = console()
    for line in lines(found, spec.priority):
        out.print(line)
    if found["ways"] and spec.priority != "background":  # whose widths nobody plans
        rows = [row for way in found["ways"] for row in _rows(way, len(found["ways"]) > 1)]
        epochs = "epochs" if spec.priority == "normal" else "epochs, if normal"
        columns = (epochs, "GPUs", "time", "cost")
        out.print(listing(columns, rows, out.width, right=("time", "cost"), cut=(epochs,)))
    if found.get("priorities"):  # an older service has none
        print_priorities(found["priorities"])


def print_priorities(found: "Sequence[PriorityCost]") -> None:
    out = console()
    out.print(priority_table(found, out.width))
    for one in found:
        if said := one.get("note"):
            out.print(f"[dim]{escape(said)}[/dim]")


def priority_table(found: "Sequence[PriorityCost]", width: int) -> Table:
    """Costs of each priority: to the job, to others, and of the class if all its jobs had it."""
    rows = [
        (
            one["priority"],
            "unknown" if one["jct_s"] is None else duration(one["jct_s"]),
            dollars(one["cost_usd"]),
            duration(one["others_s"]) if one["others_s"] else "none",
            f"{dollars(one['class_usd_per_hour'])}/h",
            duration(one["class_others_s"]) if one["class_others_s"] else "none",
        )
        for one in found
    ]
    columns = ("priority", "time", "cost", "delay to others", "class cost", "average delay")
    return listing(columns, rows, width, right=columns[1:])


def lines(found: "JobEstimate", asked: Priority = "normal") -> list[str]:
    """The estimate in words. `asked`: the priority that the job is to have."""
    name, offer = escape(found["class"]), found["probe"]
    if offer is not None:
        return [
            f"time  unknown: no job of {name} has ended or reported progress",
            f"probe boa submit --probe measures it on {offer['width']}×{escape(offer['gpu_type'])} "
            f"in at most {duration(offer['seconds'])}, for at most {dollars(offer['cost_usd'])}",
            *_before(found),
            *_displaces(found),
        ]
    time_s, cost = found["time_s"], found["cost_usd"]
    if time_s is None or cost is None:
        return [f"no GPU type that can be rented here runs {name} within its limits"]
    time_said, cost_said = _as_asked(found, asked)
    waits = [_EMPTY] if asked == "background" else _before(found)
    return [
        f"time  {time_said}{duration(time_s)}{_between(found['time_range'], duration)}",
        *_jct(found, asked),
        f"cost  {cost_said}{dollars(cost)}{_between(found['cost_range'], dollars)}",
        f"from  {_basis(found)}",
        *waits,
        *_displaces(found),
    ]


def _displaces(found: "JobEstimate") -> list[str]:
    """Running jobs that could give up GPUs for it."""
    return [
        f"may take {one['gpus']} GPU{'s' if one['gpus'] > 1 else ''} from job {one['job']}, which "
        + ("waits meanwhile" if one["preempted"] else "goes on with fewer")
        + f"; the stop costs it {duration(one['seconds'])} ({dollars(one['cost_usd'])}), "
        + f"{duration(one['lost_s'])} of that in lost work"
        for one in found.get("displaces", ())  # an older service has none
    ]


def _jct(found: "JobEstimate", asked: Priority) -> list[str]:
    """When it ends, counted from its submission: the wait by the present queue, and its time."""
    if asked != "normal" or found["put_off"] is not None:
        return []
    jct_s = found.get("jct_s")  # an older service has none
    if jct_s is None:
        return ["end   unknown, as its wait is"] if "jct_s" in found else []
    return [f"end   {duration(jct_s)} after submission{_between(found['jct_range'], duration)}"]


_EMPTY = "wait  until GPUs are paid for and empty; it makes room for jobs that pay"


def _as_asked(found: "JobEstimate", asked: Priority) -> tuple[str, str]:
    """Words before a normal job's time and cost, where another priority was asked for."""
    normal = "as a normal job "
    if asked == "background":
        return f"on empty GPUs, however long these last; {normal}", f"nothing is paid; {normal}"
    one = next((one for one in found.get("priorities", ()) if one["priority"] == asked), None)
    if asked == "normal" or one is None or one["jct_s"] is None:
        return "", ""
    return f"{duration(one['jct_s'])}; {normal}", f"{dollars(one['cost_usd'])}; {normal}"


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
    queue, put_off = found["before"], found.get("put_off")  # an older service has none
    if put_off is not None:
        return [f"wait  it {escape(put_off['why'])}"]
    if queue is None:
        return []
    who = "1 job waits" if queue["waiting"] == 1 else f"{queue['waiting']} jobs wait"
    what = f"{queue['gpus']} GPU{'s' if queue['gpus'] != 1 else ''}"
    ahead = f"{who} for {what} before it" if queue["waiting"] else "no job waits"
    if found.get("displaces"):
        return [f"wait  {ahead}; running jobs would make room for it"]
    if queue["wait_s"] is None:
        why = found.get("blocked", "")
        return [f"wait  {ahead}; it is unknown when GPUs come free{f': {why}' if why else ''}"]
    if queue["wait_s"] <= 0:
        return [f"wait  {ahead}; it would start at once"]
    node = ", for a new node" if queue["boot_s"] else ""
    return [f"wait  {ahead}; it would start in about {duration(queue['wait_s'])}{node}"]


def _rows(way: "EstimateWay", several: bool) -> list[tuple[str, str, str, str]]:
    who = f" ({100 * way['share']:.0f} % of jobs)" if several else ""
    return [
        (
            f"{_epochs(stage)}{who}",
            f"{stage['width']}×{escape(stage['gpu_type'])}",
            duration(stage["time_s"]),
            dollars(stage["cost_usd"]),
        )
        for stage in way["stages"]
    ]


def _epochs(stage: "EstimateStage") -> str:
    """Counted from 1, as people do."""
    first, last = stage["first_epoch"] + 1, stage["last_epoch"] + 1
    return f"{first}" if first == last else f"{first}–{last}"
