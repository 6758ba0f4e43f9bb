"""`boa budget`: the least budget for an average JCT; the budget of a running service."""

import math
from typing import TYPE_CHECKING, Annotated, Any

from boa.amounts import dollars, duration, rate
from boa.cli import options, parsers, shell
from boa.cli.console import console, emit_json, note, working
from boa.cli.live.cost import average_words, billed_words, limits_set
from boa.cli.live.service import connect
from boa.cli.markup import escape
from boa.cli.options import Json, WorkloadPath
from boa.cli.plan.planning_rules import PlanningRules
from boa.cli.tables import Table
from boa.errors import InputError

if TYPE_CHECKING:
    from boa.api.money import Budget, BudgetPart, BudgetStretch
    from boa.model.workload import Workload
    from boa.solver.solution import Solution


def budget(
    workload: WorkloadPath,
    jct: Annotated[
        float,
        shell.Option(
            "--jct",
            metavar="SECONDS",
            parser=parsers.number("--jct", "a finite number of seconds > 0, such as 3600"),
            help="The average JCT to reach.",
        ),
    ],
    rules: PlanningRules,
    json: Json = False,
) -> None:
    """Find the least budget at which jobs take SECONDS on average.

    The answer of `boa plan` turned round. A JCT that no budget reaches ends
    with exit code 3 and names the shortest; one longer than the cheapest
    plan's costs no less than that plan.

    Of a running service, [bold]boa budget show[/bold] shows the budget and
    [bold]boa budget set USD[/bold] changes it (each has a --help of its own).

    [bold]Examples[/bold]
    [dim]$[/dim] boa budget jobs.yaml --jct 3600
    [dim]$[/dim] boa budget jobs.yaml --jct 3600 --json | jq .budget_per_hour
    [dim]$[/dim] boa budget set 14
    """
    read = options.read_workload(workload)
    from boa.solver.planner import budget_for

    with working("solving"), options.solving(workload):
        found = budget_for(read, jct, **rules.for_solver())
    if json:
        emit_json(budget_document(found))
    else:
        _tell(read, found)


def budget_document(found: "Solution") -> dict[str, float]:
    return {
        "budget_per_hour": found.spend,
        "average_jct_s": found.average_jct,
        "shadow_price_s": found.shadow_price,
        "cheapest_per_hour": found.cheapest,
    }


def _tell(workload: "Workload", found: "Solution") -> None:
    from boa.plots.words import Money

    money, out = Money.of(workload), console()
    out.print(
        f"An average JCT of [bold]{duration(found.average_jct)}[/bold] needs a budget of "
        f"[bold green]{money.rate(found.spend)}[/bold green]."
    )
    if found.spend <= found.cheapest * (1 + 1e-9):
        out.print("That is the cheapest plan there is: no smaller budget keeps up.")
    elif found.shadow_price > 0:
        out.print(f"There, {money.saving(found.shadow_price, found.objective)} per job.")


live = shell.Group("budget", "The budget of a running service.")


def _cap(text: Any) -> float:
    if text == "none":
        return math.inf
    return parsers.number("--max-spend", "USD per hour > 0, such as 40, or none")(text)


def _budget(text: Any) -> float:
    return math.inf if text == "configured" else parsers.money("USD")(text)


@live.add("set")
def set_budget(
    budget: Annotated[
        float | None,
        shell.Argument(
            metavar="[USD|configured]",
            parser=_budget,
            help="Average spend per hour that is steered to; configured: back to what the "
            "configuration says; left out: as it is.",
        ),
    ] = None,
    max_spend: Annotated[
        float | None,
        shell.Option(
            "--max-spend",
            metavar="USD|none",
            parser=_cap,
            help="Never spend more per hour than this at any moment; none: no such cap; left out: "
            "as it is.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Change the budget of the running service, its cap or both.

    It plans anew at once; the average that is steered to counts from now,
    unless only the cap changes. Where a calendar changes the budget by the
    hour, all its periods are scaled to come to this over a week. What is set
    so outlives a restart, until the configuration is changed or "configured"
    is set. Less than the jobs need is set all the same: a warning on stderr
    says what they need, and what will happen.

    [bold]Examples[/bold]
    [dim]$[/dim] boa budget set 14
    [dim]$[/dim] boa budget set 14 --max-spend 30
    [dim]$[/dim] boa budget set --max-spend none
    [dim]$[/dim] boa budget set configured
    """
    if budget is None and max_spend is None:
        raise InputError("USD", None, "USD per hour, --max-spend or both", "missing")
    with connect() as client:
        found = client.set_budget(budget, max_spend)
        average = "" if json else average_words(client.cost())
    _show(found, json, average)
    for warning in found.get("warnings", []):
        note(f"warning: {warning}.")


@live.add("show")
def show_budget(json: Json = False) -> None:
    """Show the budget of the running service, and how spend compares with it.

    "planned with" is the budget that the plan in force was made for: more or
    less than the one that was set, by what was left or overspent so far and by
    what idle and booting nodes add, so that the bill averages to it.

    [bold]Example[/bold]
    [dim]$[/dim] boa budget show
    """
    with connect() as client:
        found = client.budget()
        average = "" if json else average_words(client.cost())
    _show(found, json, average)
    if not json:
        if (calendar := found.get("calendar")) is not None:
            console().print(escape(calendar["words"]))
            for name, spent in calendar["average_per_hour"].items():
                console().print(f"  in {escape(name)} {rate(spent)} on average")
        if parts := found.get("parts"):
            console().print()
            console().print(parts_table(parts))
        for said in (*limits_set(found), *found.get("warnings", [])):
            console().print(f"[yellow]{escape(said)}[/yellow]")


def parts_table(parts: "list[BudgetPart]") -> Table:
    """Those who share the budget, one row each, below the one they are a part of."""
    table = Table()
    table.add_column("part", no_wrap=True, max_width=24)
    columns = ["guaranteed", "now", "at most", "spends now", "has lent"]
    capped = any(part["max_spend_per_hour"] is not None for part in parts)
    on_terms = any("stretch" in part for part in parts)
    columns += ["hard cap"] * capped + ["left of"] * on_terms
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    depth: dict[str | None, int] = {None: -1}
    for part in parts:
        depth[part["name"]] = depth[part["above"]] + 1
        most, cap = part["max_per_hour"], part["max_spend_per_hour"]
        if most is None and not part["borrows"]:
            most = part["right_now_per_hour"]
        more = ["" if cap is None else rate(cap)] * capped
        more += [stretch_words(part["stretch"]) if "stretch" in part else ""] * on_terms
        table.add_row(
            "  " * depth[part["name"]] + escape(part["name"]),
            rate(part["budget_per_hour"]),
            rate(part["right_now_per_hour"]),
            "" if most is None else rate(most),
            rate(part["spend_now_per_hour"]),
            lent_words(part["lent_usd"]),
            *more,
        )
    return table


def stretch_words(stretch: "BudgetStretch") -> str:
    """Such as $120 of $500, 2026-11."""
    left, allowed = dollars(stretch["left_usd"]), dollars(stretch["allowed_usd"])
    return "used up, " * stretch["used_up"] + f"{left} of {allowed}, {stretch['name']}"


def lent_words(lent: float) -> str:
    return f"owes {dollars(-lent)}" if lent < 0 else dollars(lent)


def _show(found: "Budget", json: bool, average: str) -> None:
    if json:
        emit_json(found)
        return
    out = console()
    cap = found["max_spend_per_hour"]
    limit = "" if cap is None else f", never more than {rate(cap)}"
    out.print(
        f"[bold]budget[/bold]   [bold green]{rate(found['budget_per_hour'])}[/bold green]"
        f"{billed_words(found)}{limit}"
    )
    calendar = found.get("calendar")
    if calendar is not None:
        out.print(
            f"[bold]week[/bold]     {rate(calendar['week_budget_per_hour'])} on average, which is "
            "what `boa budget set` sets: the calendar's periods are scaled alike"
        )
    if "stretch" in found:
        out.print(f"[bold]left[/bold]     {stretch_words(found['stretch'])}")
    out.print(f"[bold]average[/bold]  {average}")
    out.print(f"[bold]now[/bold]      {rate(found['spend_now_per_hour'])}")
    out.print(f"[bold]planned[/bold]  with {rate(found['effective_budget_per_hour'])}")


class BudgetCommand(shell.Command):
    """`boa budget WORKLOAD`, but for two first words that are commands of their own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        if args and args[0] in live.commands:
            path = f"{info_name} {args[0]}"
            return live.commands[args[0]].make_context(path, args[1:], parent=parent, **extra)
        return super().make_context(info_name, args, parent=parent, **extra)


command = shell.command(budget, cls=BudgetCommand)
