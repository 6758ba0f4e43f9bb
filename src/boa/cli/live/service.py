"""The connection and the words of commands that talk to a running service."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from boa.amounts import duration
from boa.cli import shell
from boa.cli.console import note
from boa.plots.words import Money

if TYPE_CHECKING:
    from boa.api.answers import Job, LivePlan
    from boa.client import Client
    from boa.model.workload import Workload
    from boa.solver.solution import Solution

COLOURS = {
    "waiting": "yellow",
    "preempted": "magenta",
    "starting": "cyan",
    "rescaling": "cyan",
    "running": "green",
    "succeeded": "dim",
    "stopped": "dim",
    "failed": "red",
}
JobId: TypeAlias = Annotated[str, shell.Argument(metavar="JOB", help="The job's id.")]


@contextmanager
def connect() -> "Iterator[Client]":
    """The service at $BOA_SERVER."""
    from boa.client import Client

    with Client() as client:
        yield client


def page_of(client: "Client", of: str = "") -> str | None:
    """Where a browser shows a job, a sweep or, by default, all jobs; None: there is no dashboard,
    or nobody says so now."""
    from boa.errors import BoaError

    try:
        built = client.health().get("page", False)
    except BoaError:  # what was asked before has been done all the same
        return None
    return f"{client.url}/#/jobs{f'/{of}' if of else ''}" if built else None


def where_to_look(what: str, *places: str | None) -> None:
    """A line on stderr: results are for other programs."""
    note(f"{what}: {', '.join(place for place in places if place)}")


def times(job: "Job") -> dict[str, float]:
    """Its three figures by name; none of a service that does not say."""
    said = {
        "on GPUs": job.get("on_gpus_s"),
        "waiting": job.get("waiting_s"),
        "since submission": job.get("since_submission_s"),
    }
    return {name: seconds for name, seconds in said.items() if seconds is not None}


def ago(now: float, then: float | None) -> str:
    """When something was, in words."""
    if then is None:
        return "–"
    passed = now - then
    if abs(passed) < 1:
        return "just now"
    return f"{duration(passed)} ago" if passed > 0 else f"in {duration(-passed)}"


def coloured(state: str) -> str:
    return f"[{COLOURS[state]}]{state}[/{COLOURS[state]}]"


def gpus(held: Mapping[str, Any] | None) -> str:
    """4×T4, or a dash of a job that holds none."""
    return f"{held['width']}×{held['gpu_type']}" if held and held["width"] else "–"


DOLLARS = Money(counts_gpus=False)
"""Words of a service: its budget is in dollars, whatever its GPUs cost."""


def rebuilt(live: "LivePlan") -> "tuple[Workload, Solution]":
    """The solution that the service plans with, from what it said of it."""
    from boa.formats.plain_yaml import load_yaml
    from boa.formats.plan import parse_plan
    from boa.formats.workload import parse_workload
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
