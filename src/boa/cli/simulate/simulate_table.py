"""Simulations as a person reads them at a glance: one run's figures, or many runs side by side."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from boa.amounts import dollars, duration, percent
from boa.cli.console import console
from boa.cli.markup import escape
from boa.cli.plan.plan_table import spelled
from boa.cli.tables import Table
from boa.model.workload import Billing
from boa.plots.words import Money, significant
from boa.sim.comparison import counts_gpus, money_key
from boa.sim.sweep import document_of

if TYPE_CHECKING:
    from boa.policy.registry import Knobs
    from boa.sim.report import SimulationReport
    from boa.sim.run import World
    from boa.sim.sweep import PointOutcome

MOST_CLASSES = 40


def money_of(world: "World") -> Money:
    return Money(counts_gpus(world))


def knob_words(world: "World", knobs: "Knobs") -> str:
    """The policy's knobs, in words."""
    if knobs.budget is not None:
        return f"with a budget of {money_of(world).rate(knobs.budget)}"
    if knobs.target is not None:
        return f"at a target efficiency of {knobs.target:g}"
    if knobs.width is not None:
        return f"at {knobs.width:,} GPU{'s' if knobs.width > 1 else ''} per job"
    if knobs.nodes is not None:
        nodes = ", ".join(f"{count:,} × {gpu}" for gpu, count in knobs.nodes.items())
        return f"on nodes {nodes}"
    return ""


def print_report(
    report: "SimulationReport", world: "World", policy: str, knobs: "Knobs", physics: str
) -> None:
    out = console()
    document = document_of(report, policy, world)
    for name, said in figures(document, world, knobs):
        out.print(f"[bold]{name:<13}[/bold] {said}")
    for n, line in enumerate(wrap(physics, out.width - 15)):
        out.print(f"[bold]{'' if n else 'physics':<13}[/bold] {escape(line)}")
    out.print(f"[bold]{'simulated in':<13}[/bold] {duration(document['wall_s'])}")
    out.print()
    out.print(_classes(document["classes"], document["completed"]))
    hidden = len(document["classes"]) - MOST_CLASSES
    if hidden > 0:
        out.print(f"[dim]… and {hidden:,} rarer classes (all of them: --json)[/dim]")


def figures(got: Mapping[str, Any], world: "World", knobs: "Knobs") -> Iterator[tuple[str, str]]:
    money = money_of(world)
    types = ", ".join(
        f"{gpu.name} ({gpu.gpus_per_node} per node{_price(gpu.price, money)})"
        for gpu in world.gpu_types.values()
    )
    yield "policy", escape(f"{got['policy']} {knob_words(world, knobs)}".strip())
    yield "GPU types", escape(types)
    ended = (
        "all of them ended"
        if got["completed"] == got["jobs"]
        else (f"[yellow]{got['completed']:,} of them ended[/yellow]")
    )
    arrived = f"{got['jobs']:,}, arrived within {duration(got['span_s'])}"
    yield "jobs", f"{arrived}; {ended} within {duration(got['makespan_s'])}"
    planned = got.get("planned_jct_s")
    beside = "" if planned is None else f"; planned {duration(planned)}"
    yield "average JCT", f"[bold green]{spelled(got['average_jct_s'])}[/bold green]{beside}"
    parts = [f"P{n} {duration(got[f'p{n}_jct_s'])}" for n in (50, 95, 99)]
    yield "", ", ".join(parts)
    yield from _spend(got, money)
    yield from _bill(got, money, knobs.budget)
    lost = duration(got["rescaling_s_per_job"])
    yield (
        "rescalings",
        f"{significant(got['rescalings_per_job'])} per job after its start; "
        + (f"starts and rescalings took {lost} of each"),
    )
    yield "queueing", f"{duration(got['average_queueing_s'])} per job"
    if got["average_efficiency"] is not None:
        yield "efficiency", f"{percent(got['average_efficiency'])}: speedup per GPU rented"


def _price(price: float, money: Money) -> str:
    return "" if money.counts_gpus else f", {dollars(price)} per GPU-hour"


def _why_off(physics: Mapping[str, Any]) -> str:
    limits = ("max_spend_per_hour", "max_nodes", "pacing_h")
    if any(physics[name] is not None for name in limits):
        return "limits and pacing hold jobs back, or make good for it; all is spread over arrivals"
    return "jobs did not run as predicted"


def _spend(got: Mapping[str, Any], money: Money) -> Iterator[tuple[str, str]]:
    by_node = got["physics"]["billing"] == "node"  # then the bill is held against the budget
    planned = None if by_node else got.get("planned_spend_per_hour")
    beside = "" if planned is None else f"; planned {money.rate(planned)}"
    held, rented = significant(got["average_gpus"], 4), significant(got["rented_gpus"], 4)
    yield "GPUs", f"{held} held by jobs, {rented} rented{beside if money.counts_gpus else ''}"
    if not money.counts_gpus:
        held, rented = (money.rate(got[key]) for key in ("spend_per_hour", "rented_spend_per_hour"))
        yield "spend", f"{held} held by jobs, {rented} rented{beside}"
    if planned is not None and not 0.9 <= got["spend_per_hour"] / planned <= 1.1:
        off = got["spend_per_hour"] / planned - 1
        yield "", f"[yellow]{off:+.0%} against the plan: {_why_off(got['physics'])}[/yellow]"
    if got["physics"]["max_spend_per_hour"] is not None:
        peak, cap = got["peak_rented_spend_per_hour"], got["physics"]["max_spend_per_hour"]
        yield "peak", f"{money.rate(peak)} rented at a moment, of at most {money.rate(cap)}"
    by_type = got["gpu_hours_by_type"]
    each = ", ".join(f"{escape(gpu)} {hours:,.0f}" for gpu, hours in by_type.items())
    total = f"{got['gpu_hours']:,.0f}" + (f" ({each})" if len(by_type) > 1 else "")
    span = f"; averages are these over the {duration(got['span_s'])} of arrivals"
    yield "GPU-hours", total + (span if got["span_s"] else "")


def _bill(got: Mapping[str, Any], money: Money, budget: float | None) -> Iterator[tuple[str, str]]:
    """Charges for whole nodes, what of them was of no use, and what they could have bought."""
    bill = got["bill_per_hour"]
    if bill <= 0:
        return
    parts = [
        f"{percent(got[f'{part}_spend_per_hour'] / bill)} {part}"
        for part in ("idle", "booting", "reclaiming")
        if got[f"{part}_spend_per_hour"] > 0
    ]
    yield "bill", f"{money.rate(bill)} for whole nodes" + (f": {', '.join(parts)}" if parts else "")
    counted = budget if got["physics"]["billing"] == "node" else None
    if counted is not None and not 0.9 <= bill / counted <= 1.1:
        off = bill / counted - 1
        yield "", f"[yellow]{off:+.0%} against the budget: {_why_off(got['physics'])}[/yellow]"
    if got["bound_jct_s"] is not None:
        ratio, bound = got["jct_over_bound"], duration(got["bound_jct_s"])
        yield "bound", f"{bound} at this bill; the average JCT is {ratio:.2f} times that"


def _classes(classes: Sequence[Mapping[str, Any]], jobs: int) -> Table:
    table = Table(gap=3)
    table.add_column("class", no_wrap=True, max_width=40)
    for column in ("jobs", "of all", "average JCT"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in sorted(classes, key=lambda row: -row["jobs"])[:MOST_CLASSES]:
        table.add_row(
            escape(row["name"]),
            f"{row['jobs']:,}",
            percent(row["jobs"] / max(jobs, 1)),
            duration(row["average_jct_s"]),
        )
    return table


def print_comparison(
    world: "World", found: Mapping[str, Any], left_out: Sequence["PointOutcome"], physics: str
) -> None:
    out, money = console(), money_of(world)
    out.print(_points(found["points"], money, found["comparisons"], found["billing"]))
    out.print()
    for line in verdicts(found, money):
        out.print(line)
    for outcome in left_out:
        point = outcome.point.document()
        said = f"left out: {point['policy']} {_told(point)}".rstrip() + f": {outcome.problem}"
        out.print(f"[yellow]{escape(said)}[/yellow]", wrap=False)
    out.print(f"[dim]physics: {escape(physics)}[/dim]", wrap=False)


def _points(
    points: Sequence[Mapping[str, Any]],
    money: Money,
    compared: Sequence[Mapping[str, Any]],
    billing: Billing,
) -> Table:
    ratios = {(c["policy"], c["value"]): c for c in compared}
    table = Table(gap=3)
    table.add_column("policy", no_wrap=True)
    table.add_column("told", no_wrap=True)
    spend, key = "GPUs" if money.counts_gpus else "spend", money_key(billing)
    if billing == "node":
        spend = "GPUs billed" if money.counts_gpus else "bill"
    for column in (spend, "average JCT", "P95", "rescalings", "× BOA", "P95 × BOA"):
        table.add_column(column, justify="right", no_wrap=True)
    for point in points:
        beside = ratios.get((point["policy"], point["value"]))
        held = point[key]
        table.add_row(
            point["policy"],
            escape(_told(point)),
            significant(held, 4) if money.counts_gpus else money.rate(held),
            duration(point["average_jct_s"]),
            duration(point["p95_jct_s"]),
            significant(point["rescalings_per_job"]),
            "" if beside is None else f"{beside['jct_ratio']:.2f}",
            "" if beside is None else f"{beside['p95_ratio']:.2f}",
            style="bold" if point["policy"] == "boa" else None,
        )
    return table


def _told(point: Mapping[str, Any]) -> str:
    value = point["value"]
    if value is None:
        return ""
    knob = "target" if point["knob"] == "target_efficiency" else point["knob"]
    return f"{knob} {value if isinstance(value, str) else f'{value:g}'}"


def verdicts(found: Mapping[str, Any], money: Money) -> Iterator[str]:
    """Per rival, how much longer its jobs take than BOA's for the same money."""
    rivals = dict.fromkeys(p["policy"] for p in found["points"] if p["policy"] != "boa")
    if len(rivals) == len({p["policy"] for p in found["points"]}):
        return
    same = "bill" if found.get("billing") == "node" else "spend"
    for rival in rivals:
        mine = [c for c in found["comparisons"] if c["policy"] == rival]
        if not mine:
            yield f"{rival}: never at a {same} that BOA was simulated at"
            continue
        average, tail = (_span([c[key] for c in mine]) for key in ("jct_ratio", "p95_ratio"))
        at = [c.get("at_gpus", c.get("at_spend_per_hour")) for c in mine]
        where = (
            money.rate(min(at))
            if len(at) == 1
            else (f"{money.rate(min(at))} to {money.rate(max(at))}")
        )
        yield (
            f"[bold]{rival}[/bold]: average JCT {average} × BOA's, P95 {tail} ×, "
            f"at the same {same} ({where})"
        )


def _span(ratios: Sequence[float]) -> str:
    least, most = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
    return least if least == most else f"{least} to {most}"
