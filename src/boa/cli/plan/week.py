"""A plan for a week in which money changes, as `boa plan --calendar` tells it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from boa.amounts import duration, percent
from boa.cli import options
from boa.cli.console import console, emit_json, working
from boa.cli.markup import escape
from boa.cli.plan.planning_rules import PlanningRules
from boa.cli.tables import Table
from boa.plots.words import Money

if TYPE_CHECKING:
    from boa.model.calendar import Calendar
    from boa.model.workload import Workload
    from boa.solver.by_period import WeekPlan


def tell_week(
    read: "Workload", file: Path, workload: Path, rules: PlanningRules, *, as_json: bool
) -> None:
    from boa.formats.calendar import check_types, load_calendar
    from boa.solver.by_period import plan_week
    from boa.solver.planner import rules_of

    calendar = options.read(load_calendar, file)
    check_types(calendar, read.gpu_types, f"{file}:", str(workload))
    with working("solving"), options.solving(workload):
        found = plan_week(read, calendar, rules_of(**rules.for_solver()))
    if as_json:
        emit_json(week_document(calendar, found))
    else:
        _print(read, calendar, found)


def week_document(calendar: "Calendar", found: "WeekPlan") -> dict[str, Any]:
    return {
        "version": 1,
        "budget_per_hour": calendar.average,
        "spend_per_hour": found.spend,
        "average_jct_s": found.average_jct,
        "objective_s": found.objective,
        "lower_bound_s": found.lower_bound,
        "gap": found.gap,
        "periods": [
            {
                "name": period.name,
                "share": period.share,
                "budget_per_hour": period.budget,
                "spend_per_hour": period.spend,
                "average_jct_s": period.average_jct,
                "shadow_price_s": period.multiplier,
            }
            for period in found.periods
        ],
        "waiting": [
            {
                "class": one.job_class,
                "came": one.came,
                "runs": one.runs,
                "share": one.share,
                "wait_s": one.wait,
            }
            for one in found.waiting
        ],
    }


def _print(read: "Workload", calendar: "Calendar", found: "WeekPlan") -> None:
    out, money = console(), Money.of(read)
    for name, said in (
        ("budget", f"{money.rate(calendar.average)} over a week, spent: {money.rate(found.spend)}"),
        ("average JCT", f"[bold green]{duration(found.average_jct)}[/bold green] with waiting"),
        ("proof", f"optimal: no plan is below {duration(found.lower_bound)}"),
    ):
        out.print(f"[bold]{name:<13}[/bold] {said}")
    out.print()
    table = Table()
    table.add_column("period", no_wrap=True, max_width=24)
    for column in ("of the week", "budget", "spends", "JCT", f"{money.one_more} saves"):
        table.add_column(column, justify="right", no_wrap=True)
    for period in found.periods:
        table.add_row(
            escape(period.name),
            percent(period.share),
            money.rate(period.budget),
            money.rate(period.spend),
            duration(period.average_jct),
            duration(period.multiplier) if period.multiplier else "nothing",
        )
    out.print(table)
    out.print()
    for one in found.waiting:
        out.print(
            f"{percent(one.share)} of [bold]{escape(one.job_class)}[/bold] that comes in "
            f"{escape(one.came)} waits for {escape(one.runs)}: {duration(one.wait)} on average"
        )
    if not found.waiting:
        out.print("[dim]no job gains by waiting for another period[/dim]")
