"""`boa evaluate`: what any plan does to a workload, by the formulas of the theorems."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.cli import options, shell
from boa.cli.console import console, emit_json
from boa.cli.options import Json, WorkloadPath

if TYPE_CHECKING:
    from boa.model.workload import Billing, Workload
    from boa.solver.objective import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Rules that win over those of the plan file."""

    rescaling: Annotated[
        bool | None,
        shell.Option(
            "--rescaling/--no-rescaling",
            help="Whether rescaling takes time; as the plan file says, else yes.",
        ),
    ] = None
    billing: Annotated[
        "Billing | None",
        options.choice(
            "--billing",
            options.BILLINGS,
            "Pay for GPUs used or for whole nodes; as the plan file says, else gpu.",
        ),
    ] = None


def evaluate(
    workload: WorkloadPath,
    plan: Annotated[
        Path,
        shell.Option(
            "--plan",
            metavar="PLAN.json",
            help="Plan file, as `boa plan -o` writes it (`boa schema plan` describes it).",
        ),
    ],
    overrides: Overrides,
    json: Json = False,
) -> None:
    """Compute average JCT and spend of any plan: one of ours, edited, or written
    by hand.

    The least that a plan file needs is a name and variants per class:

    [dim]{"classes": [{"name": "resnet18", "variants": [{"share": 1,
    "gpu_type": "T4", "widths": [2, 4, 4]}]}]}[/dim]

    [bold]Examples[/bold]
    [dim]$[/dim] boa evaluate jobs.yaml --plan plan.json
    [dim]$[/dim] boa evaluate jobs.yaml --plan plan.json --billing node --json
    """
    from boa.formats.plan import load_plan
    from boa.solver.planner import evaluate as evaluate_plan

    jobs = options.read_workload(workload)
    read, settings = options.read(lambda path: load_plan(path, jobs), plan)
    outcome = evaluate_plan(
        jobs,
        read,
        rescaling=settings.rescaling if overrides.rescaling is None else overrides.rescaling,
        billing=overrides.billing or settings.billing,
    )
    if json:
        emit_json(outcome_document(outcome))
    else:
        _print(jobs, outcome)


def outcome_document(outcome: "Outcome") -> dict[str, Any]:
    return {
        "average_jct_s": outcome.average_jct,
        "spend_per_hour": outcome.spend,
        "objective_s": outcome.objective,
        "classes": [
            {
                "name": got.name,
                "average_jct_s": got.jct,
                "spend_per_hour": got.spend,
                "cost_per_job": got.cost,
                "rescalings": got.rescalings,
            }
            for got in outcome.classes
        ],
    }


def _print(workload: "Workload", outcome: "Outcome") -> None:
    from boa.amounts import duration, percent
    from boa.cli.markup import escape
    from boa.cli.plan.plan_table import spelled
    from boa.cli.tables import Table
    from boa.plots.words import Money

    money, out = Money.of(workload), console()
    out.print(f"[bold]spend[/bold]        {money.rate(outcome.spend)}")
    out.print(f"[bold]average JCT[/bold]  {spelled(outcome.average_jct)}")
    if outcome.objective != outcome.average_jct:
        out.print(f"[bold]objective[/bold]    {spelled(outcome.objective)}, weighted by class")
    out.print()
    table = Table()
    table.add_column("class", no_wrap=True, max_width=40)
    for column in ("JCT", "spend", "of all", "cost per job", "rescalings"):
        table.add_column(column, justify="right", no_wrap=True)
    for got in outcome.classes:
        table.add_row(
            escape(got.name),
            duration(got.jct),
            money.rate(got.spend),
            percent(got.spend / outcome.spend),
            money.job(got.cost),
            f"{got.rescalings:.3g}",
        )
    out.print(table)
