"""What the commands that talk to a running service share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from boa.plots.words import Money, unit_for

if TYPE_CHECKING:
    from rich.table import Table

    from boa.client import Client
    from boa.client.answers import LivePlan
    from boa.model.workload import Workload
    from boa.solver.solution import Solution

DOLLARS = Money(counts_gpus=False)
COLOURS = {
    "waiting": "yellow",
    "starting": "cyan",
    "rescaling": "cyan",
    "running": "green",
    "succeeded": "dim",
    "stopped": "dim",
    "failed": "red",
}
JobId: TypeAlias = Annotated[
    str, typer.Argument(metavar="JOB", help="The job's id.", show_default=False)
]


@contextmanager
def connect() -> "Iterator[Client]":
    """The service at $BOA_SERVER."""
    from boa.client import Client

    with Client() as client:
        yield client


def table(*columns: str, right: tuple[str, ...] = ()) -> "Table":
    from rich.table import Table

    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", no_wrap=True)
    return made


def span(seconds: float) -> str:
    """In whole units: 42 s, 5 min, 3 h, 12 d."""
    length, sign = unit_for(seconds)
    return f"{seconds / length:.0f} {sign}"


def ago(now: float, then: float | None) -> str:
    """When something was, in words."""
    if then is None:
        return "–"
    passed = now - then
    if passed < 0:
        return f"in {span(-passed)}"
    return "just now" if passed < 1 else f"{span(passed)} ago"


def coloured(state: str) -> str:
    return f"[{COLOURS[state]}]{state}[/{COLOURS[state]}]"


def gpus(held: Mapping[str, Any] | None) -> str:
    """4×T4, or a dash of a job that holds none."""
    return f"{held['width']}×{held['gpu_type']}" if held and held["width"] else "–"


def rate(amount: float) -> str:
    return DOLLARS.rate(amount)


def dollars(amount: float) -> str:
    return DOLLARS.job(amount)


def rebuilt(live: "LivePlan") -> "tuple[Workload, Solution]":
    """The solution that the service plans with, from what it said of it."""
    from boa.model.plain_yaml import load_yaml
    from boa.model.plan_file import parse_plan
    from boa.model.workload_file import parse_workload
    from boa.solver.objective import Rules, evaluate
    from boa.solver.solution import Frugal, Solution

    workload, document = parse_workload(load_yaml(live["workload"])), live["plan"]
    plan, settings = parse_plan(document, workload)
    rules = Rules(rescaling=settings.rescaling, routing=settings.routing, billing=settings.billing)
    return workload, Solution(
        workload=workload,
        plan=plan,
        rules=rules,
        solver=document["solver"],
        budget=document["budget_per_hour"],
        outcome=evaluate(workload, plan, rules),
        lower_bound=document["lower_bound_s"],
        shadow_price=document["shadow_price_s"],
        proven=document["proven_optimal"],
        solve_time=document["solve_time_s"],
        frugal=tuple(
            Frugal(jct=got["cheapest_jct_s"], cost=got["cheapest_cost_per_job"])
            for got in document["classes"]
        ),
        cheapest=document["cheapest_per_hour"],
    )
