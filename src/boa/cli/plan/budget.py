"""`boa budget`: the least budget for an average JCT; the budget of a running service."""

import math
from typing import TYPE_CHECKING, Annotated, Any

from boa.cli import options, parsers, shell
from boa.cli.console import console, emit_json, working
from boa.cli.live.cost import billed_words
from boa.cli.live.service import connect, rate
from boa.cli.options import Json, WorkloadPath
from boa.cli.plan.planning_rules import PlanningRules
from boa.errors import InputError
from boa.plots.words import duration, percent

if TYPE_CHECKING:
    from boa.api.answers import Budget
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


@live.add("set")
def set_budget(
    budget: Annotated[
        float | None,
        shell.Argument(
            metavar="[USD]",
            parser=parsers.money("USD"),
            help="Average spend per hour that is steered to; left out: as it is.",
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
    unless only the cap changes.

    [bold]Examples[/bold]
    [dim]$[/dim] boa budget set 14
    [dim]$[/dim] boa budget set 14 --max-spend 30
    [dim]$[/dim] boa budget set --max-spend none
    """
    if budget is None and max_spend is None:
        raise InputError("USD", None, "USD per hour, --max-spend or both", "missing")
    with connect() as client:
        found = client.set_budget(budget, max_spend)
    _show(found, json)


@live.add("show")
def show_budget(json: Json = False) -> None:
    """Show the budget of the running service, and how spend compares with it.

    [bold]Example[/bold]
    [dim]$[/dim] boa budget show
    """
    with connect() as client:
        found = client.budget()
    _show(found, json)


def _show(found: "Budget", json: bool) -> None:
    if json:
        emit_json(found)
        return
    out, average = console(), found["average_spend_per_hour"]
    cap = found["max_spend_per_hour"]
    limit = "" if cap is None else f", never more than {rate(cap)}"
    out.print(
        f"[bold]budget[/bold]   [bold green]{rate(found['budget_per_hour'])}[/bold green]"
        f"{billed_words(found)}{limit}"
    )
    over = found["now"] - found["since"]
    share = percent(average / found["budget_per_hour"])
    said = f"{rate(average)} over {duration(over)}: {share} of it"
    out.print(f"[bold]average[/bold]  {said if over >= 1 else 'too soon to say'}")
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
