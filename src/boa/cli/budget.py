"""`boa budget`: the least budget for an average JCT."""

from typing import Annotated

import typer

from boa.cli import options
from boa.cli.console import console, emit_json, working
from boa.cli.options import BillingOption, Json, NoRescaling, RoutingOption, WorkloadPath


def budget(
    workload: WorkloadPath,
    jct: Annotated[
        float,
        typer.Option(
            "--jct",
            metavar="SECONDS",
            parser=options.number("--jct", "a finite number of seconds > 0, such as 3600"),
            help="The average JCT to reach.",
            show_default=False,
        ),
    ],
    no_rescaling: NoRescaling = False,
    routing: RoutingOption = "class",
    billing: BillingOption = "gpu",
    json: Json = False,
) -> None:
    """Find the least budget at which jobs take SECONDS on average.

    The answer of `boa plan` turned round. A JCT that no budget reaches ends
    with exit code 3 and names the shortest; one longer than the cheapest
    plan's costs no less than that plan.

    [bold]Examples[/bold]
    [dim]$[/dim] boa budget jobs.yaml --jct 3600
    [dim]$[/dim] boa budget jobs.yaml --jct 3600 --json | jq .budget_per_hour
    """
    from boa.plots.words import Money, duration
    from boa.solver.planner import budget_for

    read = options.read_workload(workload)
    with working("solving"), options.solving(workload):
        found = budget_for(read, jct, rescaling=not no_rescaling, routing=routing, billing=billing)
    if json:
        emit_json(
            {
                "budget_per_hour": found.spend,
                "average_jct_s": found.average_jct,
                "shadow_price_s": found.shadow_price,
                "cheapest_per_hour": found.cheapest,
            }
        )
        return
    money, out = Money.of(read), console()
    out.print(
        f"An average JCT of [bold]{duration(found.average_jct)}[/bold] needs a budget of "
        f"[bold green]{money.rate(found.spend)}[/bold green]."
    )
    if found.spend <= found.cheapest * (1 + 1e-9):
        out.print("That is the cheapest plan there is: no smaller budget keeps up.")
    elif found.shadow_price > 0:
        out.print(f"There, {money.saving(found.shadow_price, found.objective)} per job.")
