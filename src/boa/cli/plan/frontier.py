"""`boa frontier`: the best average JCT that each budget can buy."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.cli import options, shell
from boa.cli.console import check_writable, console, emit_json, note_written, working, write_file
from boa.cli.options import Json, WorkloadPath
from boa.cli.plan.foretelling import NodeTimes, bill_words, jct_words
from boa.cli.plan.planning_rules import PlanningRules
from boa.errors import UsageError
from boa.units import UsdPerHour

if TYPE_CHECKING:
    from boa.model.workload import Workload
    from boa.sim.foretold import Foretold
    from boa.solver.frontier import Frontier, FrontierPoint

SIMULATED = 5
"""Budgets that are simulated: each takes half a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The budgets that are shown."""

    points: Annotated[
        int,
        options.count(
            "--points", "N", 2, "How many budgets, evenly growing from the least to the most."
        ),
    ] = 20
    min_budget: Annotated[
        UsdPerHour | None,
        options.dollars("--min-budget", "The least budget; the cheapest there is."),
    ] = None
    max_budget: Annotated[
        UsdPerHour | None,
        options.dollars("--max-budget", "The most; where more money buys nothing."),
    ] = None
    budget: Annotated[UsdPerHour | None, options.dollars("--budget", "A budget to mark.")] = None
    breakpoints: Annotated[
        bool,
        shell.Option(
            "--breakpoints",
            help="Every breakpoint instead: the frontier is exact between them.",
        ),
    ] = False

    def check(self) -> None:
        least, most = self.min_budget, self.max_budget
        if least is not None and most is not None and least > most:
            raise UsageError(f"--min-budget {least:g} is above --max-budget {most:g}")

    def of(self, found: "Frontier") -> "tuple[list[FrontierPoint], FrontierPoint | None]":
        """The points to show, and the one to mark."""
        for asked in (self.min_budget, self.max_budget):
            if asked is not None:
                found.at(asked)  # refuses a budget below the cheapest
        chosen = None if self.budget is None else found.at(self.budget)
        if not self.breakpoints:
            return found.sample(self.points, self.min_budget, self.max_budget), chosen
        least, most = self.min_budget or 0.0, self.max_budget or float("inf")
        return [p for p in found.breakpoints() if least <= p.budget <= most], chosen


def frontier(
    workload: WorkloadPath,
    *,
    budgets: Budgets,
    no_glue: Annotated[
        bool, shell.Option("--no-glue", help="Leave the paper's Algorithm 1 out of the picture.")
    ] = False,
    rules: PlanningRules,
    nodes: NodeTimes,
    plot: Annotated[
        Path | None,
        options.plot("Draw it (.png, .svg, .pdf; .html works offline and answers to the mouse)."),
    ] = None,
    json: Json = False,
) -> None:
    """Show the best average JCT that each budget can buy. Rents nothing.

    One sweep gives the whole trade-off, exact at every budget, from the
    cheapest plan that keeps up with the workload to the fastest plan there
    is.

    With --billing node and --boot-s, five of the budgets shown, and the one
    that is marked, are simulated (minutes): the bill and the JCT that the
    service will reach there, each with half its 95 % interval.

    [bold]Examples[/bold]
    [dim]$[/dim] boa frontier jobs.yaml
    [dim]$[/dim] boa frontier jobs.yaml --budget 40 --plot frontier.html
    [dim]$[/dim] boa frontier jobs.yaml --max-budget 60 --points 100 --json
    [dim]$[/dim] boa frontier jobs.yaml --billing node --boot-s 120
    """
    budgets.check()
    nodes.check(rules.billing)
    check_writable(plot, "--plot")
    read = options.read_workload(workload)
    from boa.solver.planner import frontier as sweep

    with working("sweeping the frontier") as progress, options.solving(workload):
        found = sweep(read, progress=progress, **rules.for_solver())
    shown, chosen = budgets.of(found)
    simulated = _simulated(shown, chosen)
    foretold = nodes.foretell(read, simulated)
    if plot is not None:
        _draw(read, found, budgets, None if no_glue else rules, foretold, plot)
    if json:
        known = None if nodes.boot_s is None else foretold
        emit_json(frontier_document(found, shown, chosen, known))
    else:
        print_frontier(read, found, shown, chosen, foretold)
    note_written({"frontier": plot})


def _simulated(shown: "list[FrontierPoint]", chosen: "FrontierPoint | None") -> list[UsdPerHour]:
    """A few of the budgets shown, evenly, both ends and the marked one among them."""
    few, last = min(SIMULATED, len(shown)), len(shown) - 1
    picked = {shown[round(n * last / max(few - 1, 1))].budget for n in range(few)}
    return sorted(picked | ({chosen.budget} if chosen is not None else set()))


def frontier_document(
    found: "Frontier",
    shown: "list[FrontierPoint]",
    chosen: "FrontierPoint | None",
    foretold: "Mapping[UsdPerHour, Foretold] | None" = None,
) -> dict[str, Any]:
    """`foretold`: by budget, where that was asked for."""

    def point(one: "FrontierPoint") -> dict[str, Any]:
        said = _point(found, one)
        if foretold is None:
            return said
        known = foretold.get(one.budget)
        return {**said, "foretold": None if known is None else known.document()}

    document: dict[str, Any] = {
        "points": [point(p) for p in shown],
        "cheapest_per_hour": found.cheapest,
        "fastest_jct_s": found.fastest_jct,
        "fastest_per_hour": found.fastest_budget,
    }
    if foretold is not None:
        document["simulated_per_hour"] = list(foretold)
    return document if chosen is None else {**document, "chosen": point(chosen)}


def _point(found: "Frontier", point: "FrontierPoint") -> dict[str, Any]:
    from boa.plots.curve import shadow_price

    return {
        "budget_per_hour": point.budget,
        "average_jct_s": point.average_jct,
        "objective_s": point.objective,
        "lower_bound_s": point.lower_bound,
        "gap": point.gap,
        "shadow_price_s": shadow_price(found, point.budget),
    }


def print_frontier(
    workload: "Workload",
    found: "Frontier",
    shown: "list[FrontierPoint]",
    chosen: "FrontierPoint | None",
    foretold: "Mapping[UsdPerHour, Foretold]",
) -> None:
    from boa.amounts import duration
    from boa.cli.tables import Table
    from boa.plots.words import Money

    money, out = Money.of(workload), console()
    slowest = duration(float(found.average_jcts[0]))
    out.print(f"[bold]cheapest[/bold]  {money.rate(found.cheapest)}, average JCT {slowest}")
    unless = ", unless nodes boot: see foretold" if foretold else ""
    out.print(
        f"[bold]fastest[/bold]   {money.rate(found.fastest_budget)}, "
        f"average JCT {duration(found.fastest_jct)}; more money buys nothing{unless}"
    )
    out.print()
    table = Table(gap=3)
    more = ("foretold bill", "foretold JCT") if foretold else ()
    for column in ("budget", "average JCT", f"{money.one_more} saves", *more):
        table.add_column(column, justify="right", no_wrap=True)
    extra = [chosen] if chosen is not None and chosen not in shown else []
    for point in sorted([*shown, *extra], key=lambda p: p.budget):
        known = foretold.get(point.budget)
        said = () if known is None else (bill_words(known, money), jct_words(known))
        table.add_row(
            money.rate(point.budget),
            duration(point.average_jct),
            duration(point.average_jct - found.at(point.budget + 1).average_jct),
            *(said or [""] * len(more)),
            style="bold green" if point == chosen else None,
        )
    out.print(table)
    for any_one in list(foretold.values())[:1]:
        out.print()
        out.print(
            f"[dim]foretold where nodes are billed: simulated at {len(foretold)} budgets, "
            f"{any_one.draws} draws of {any_one.jobs} jobs each; ± half the 95 % interval[/dim]"
        )


def _draw(
    workload: "Workload",
    found: "Frontier",
    budgets: Budgets,
    glue: PlanningRules | None,
    foretold: "Mapping[UsdPerHour, Foretold]",
    plot: Path,
) -> None:
    """`glue`: the rules that Algorithm 1 is drawn by, if it is."""
    from boa.plots.curve import Spread, curve_of, glue_points
    from boa.plots.render import frontier_picture

    least, most = budgets.min_budget, budgets.max_budget
    curve = curve_of(workload, found, budget=budgets.budget, least=least, most=most)
    if glue is not None:
        with working("Algorithm 1, for comparison") as progress:
            curve = glue_points(curve, workload, progress=progress, **glue.for_solver())
    known = [
        Spread(budget, f.bill.mean, f.bill.error, f.jct.mean, f.jct.error)
        for budget, f in foretold.items()
    ]
    curve = replace(curve, foretold=tuple(known))
    with working("drawing"):
        picture = frontier_picture(curve, plot.suffix)
    write_file(plot, picture, "--plot")
