"""The connection and the words of commands that talk to a running service."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from boa.cli import shell
from boa.cli.console import note
from boa.plots.words import Money, unit_for
from boa.units import Usd, UsdPerHour

if TYPE_CHECKING:
    from boa.api.answers import Job, LivePlan
    from boa.client import Client
    from boa.model.workload import Workload
    from boa.solver.solution import Solution

CENT: Usd = 0.01
LEAST_RATE: UsdPerHour = 0.001
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


def span(seconds: float) -> str:
    """In whole units: 42 s, 5 min, 3 h, 12 d."""
    if seconds < 1:
        return "<1 s"
    length, sign = unit_for(seconds)
    return f"{seconds / length:.0f} {sign}"


def passed(seconds: float | None) -> str:
    return "–" if seconds is None else span(seconds)


def ran(job: "Job", now: float) -> float | None:
    """Seconds since its first start, up to its end; None before it."""
    if job["started_at"] is None:
        return None
    return (now if job["ended_at"] is None else job["ended_at"]) - job["started_at"]


def took(job: "Job") -> float | None:
    """Seconds from its submission to its end, its JCT; None before it."""
    return None if job["ended_at"] is None else job["ended_at"] - job["submitted_at"]


def ago(now: float, then: float | None) -> str:
    """When something was, in words."""
    if then is None:
        return "–"
    passed = now - then
    if abs(passed) < 1:
        return "just now"
    return f"{span(passed)} ago" if passed > 0 else f"in {span(-passed)}"


def coloured(state: str) -> str:
    return f"[{COLOURS[state]}]{state}[/{COLOURS[state]}]"


def gpus(held: Mapping[str, Any] | None) -> str:
    """4×T4, or a dash of a job that holds none."""
    return f"{held['width']}×{held['gpu_type']}" if held and held["width"] else "–"


class Dollars(Money):
    """As a service counts: its budget is in dollars, whatever its GPUs cost. No exponents."""

    __slots__ = ()

    def rate(self, spend: UsdPerHour) -> str:
        if 0 < abs(spend) < LEAST_RATE:
            return f"<${LEAST_RATE}/h"
        return f"${spend:,.2f}/h" if spend == 0 or abs(spend) >= 0.1 else f"${spend:#.2g}/h"

    def job(self, cost: Usd) -> str:
        return f"<${CENT}" if 0 < abs(cost) < CENT else f"${cost:,.2f}"


DOLLARS = Dollars(counts_gpus=False)
rate, dollars = DOLLARS.rate, DOLLARS.job


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
