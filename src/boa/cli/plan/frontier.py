"""`boa frontier`: the best average JCT that each budget can buy."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.cli import options, shell
from boa.cli.console import check_writable, console, emit_json, note_written, working, write_file
from boa.cli.options import Json, WorkloadPath
from boa.cli.plan.planning_rules import PlanningRules
from boa.errors import UsageError
from boa.units import UsdPerHour

if TYPE_CHECKING:
    from boa.model.workload import Workload
    from boa.solver.frontier import Frontier, FrontierPoint


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

    [bold]Examples[/bold]
    [dim]$[/dim] boa frontier jobs.yaml
    [dim]$[/dim] boa frontier jobs.yaml --budget 40 --plot frontier.html
    [dim]$[/dim] boa frontier jobs.yaml --max-budget 60 --points 100 --json
    """
    budgets.check()
    check_writable(plot, "--plot")
    read = options.read_workload(workload)
    from boa.solver.planner import frontier as sweep

    with working("sweeping the frontier") as progress, options.solving(workload):
        found = sweep(read, progress=progress, **rules.for_solver())
    shown, chosen = budgets.of(found)
    if plot is not None:
        _draw(read, found, budgets, None if no_glue else rules, plot)
    if json:
        emit_json(frontier_document(found, shown, chosen))
    else:
        print_frontier(read, found, shown, chosen)
    note_written({"frontier": plot})


def frontier_document(
    found: "Frontier", shown: "list[FrontierPoint]", chosen: "FrontierPoint | None"
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "points": [_point(found, p) for p in shown],
        "cheapest_per_hour": found.cheapest,
        "fastest_jct_s": found.fastest_jct,
        "fastest_per_hour": found.fastest_budget,
    }
    return document if chosen is None else {**document, "chosen": _point(found, chosen)}


def _point(found: "Frontier", point: "FrontierPoint") -> dict[str, float]:
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
) -> None:
    from boa.cli.tables import Table
    from boa.plots.words import Money, duration

    money, out = Money.of(workload), console()
    slowest = duration(float(found.average_jcts[0]))
    out.print(f"[bold]cheapest[/bold]  {money.rate(found.cheapest)}, average JCT {slowest}")
    out.print(
        f"[bold]fastest[/bold]   {money.rate(found.fastest_budget)}, "
        f"average JCT {duration(found.fastest_jct)}; more money buys nothing"
    )
    out.print()
    table = Table(gap=3)
    for column in ("budget", "average JCT", f"{money.one_more} saves"):
        table.add_column(column, justify="right", no_wrap=True)
    extra = [chosen] if chosen is not None and chosen not in shown else []
    for point in sorted([*shown, *extra], key=lambda p: p.budget):
        table.add_row(
            money.rate(point.budget),
            duration(point.average_jct),
            duration(point.average_jct - found.at(point.budget + 1).average_jct),
            style="bold green" if point == chosen else None,
        )
    out.print(table)


def _draw(
    workload: "Workload",
    found: "Frontier",
    budgets: Budgets,
    glue: PlanningRules | None,
    plot: Path,
) -> None:
    """`glue`: the rules that Algorithm 1 is drawn by, if it is."""
    from boa.plots.curve import curve_of, glue_points
    from boa.plots.render import frontier_picture

    least, most = budgets.min_budget, budgets.max_budget
    curve = curve_of(workload, found, budget=budgets.budget, least=least, most=most)
    if glue is not None:
        with working("Algorithm 1, for comparison") as progress:
            curve = glue_points(curve, workload, progress=progress, **glue.for_solver())
    with working("drawing"):
        picture = frontier_picture(curve, plot.suffix)
    write_file(plot, picture, "--plot")
