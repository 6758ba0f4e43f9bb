"""Simulations in which GPUs cost more at some hours than at others."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from boa.model.calendar import Calendar, Period
from boa.model.cluster import Node
from boa.model.records import NodeRecord
from boa.model.workload import GpuType
from boa.policy.registry import Knobs, choose
from boa.server.what_if import traces
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.rental import Rental
from boa.sim.run import World
from boa.sim.scheduled import ScheduledSimulation
from boa.sim.sweep import Asked, document_of, run_one
from changing_prices import charged, rate

CALENDAR = Calendar(
    periods=(
        Period(name="cheap", budget=120.0, begins=60, ends=180, price_factor=0.5),
        Period(name="dear", budget=120.0, begins=180, ends=240, prices={"T4": 3.0}),
        Period(name="usual", budget=120.0),
    )
).begun_on_a_monday()
CAP = 120.0
USUAL = 1.0


class Watched(Rental):
    """Remembers when nodes were there, whatever is said of their prices."""

    def __init__(self, gpu_types: Mapping[str, GpuType]) -> None:
        super().__init__(gpu_types)
        self.seen: list[NodeRecord] = []

    def closed(
        self, node: Node, since: float, released: float | None, gone: float, **more: Any
    ) -> None:
        self.seen.append(
            NodeRecord(
                id=node.id,
                token=str(node.id),
                gpu=node.gpu,
                gpus=node.gpus,
                price=0.0,
                requested_at=since,
                billed_from=since,
                gone_at=gone,
            )
        )
        super().closed(node, since, released, gone, **more)


@pytest.fixture(scope="module")
def world() -> World:
    trace = traces.generated_trace("day")
    jobs = tuple(
        replace(job, arrival_s=job.arrival_s / 4) for job in trace.jobs if job.arrival_s < 40_000
    )[:24]
    found = traces.catalogue_world("few", replace(trace, jobs=jobs), None, {})
    types = {name: replace(kind, price=USUAL) for name, kind in found.gpu_types.items()}
    return replace(found, gpu_types=types)


@pytest.mark.parametrize("billing", ["gpu", "node"])
def test_every_node_is_paid_for_at_the_price_of_the_hour_and_no_rise_crosses_the_cap(
    world: World, billing: Any
) -> None:
    asked = Asked(
        calendar=CALENDAR, billing=billing, provision_s=90.0, reclaim_s=30.0, max_spend=CAP
    )
    choice = choose("boa", Knobs(budget=120.0), billing)
    settings = asked.settings("boa", None)
    knowledge = Knowledge(world.truths, world.gpu_types, ExpectedArrivals.of(world.trace), settings)
    simulation = ScheduledSimulation(
        world.trace.jobs,
        knowledge,
        choice.policy,
        settings,
        span_s=world.trace.span_s,
        budget=choice.budget,
    )
    simulation.rental = watched = Watched(knowledge.gpu_types)
    report = simulation.run()
    nodes = watched.seen
    assert len(report.tally.jcts) == len(world.trace.jobs)
    prices, end = simulation.prices, max(node.gone_at or 0.0 for node in nodes)
    spent = charged(nodes, USUAL, prices, end)
    usd = report.rental.usd
    assert usd["rented"] + usd["reclaiming"] == pytest.approx(spent)
    hours = world.trace.span_s / 3600
    assert report.bill_per_hour == pytest.approx(spent / hours)
    parts = ("spend_per_hour", "idle_per_hour")
    held, idle = (getattr(report, part) for part in parts)
    assert held + idle + (usd["booting"] + usd["reclaiming"]) / hours == pytest.approx(
        report.bill_per_hour
    )
    moments, at = {node.billed_from or 0.0 for node in nodes}, 0.0
    while (at := prices.next_change(at)) < end:
        moments.add(at)
    most = max(rate(nodes, USUAL, prices, moment) for moment in moments)
    assert most <= CAP * (1 + 1e-9)
    assert report.rental.peak == pytest.approx(most, rel=0.3), "told as it was"


def test_budgets_of_a_calendar_are_scaled_to_the_one_that_is_asked_for_and_no_bound_is_told(
    world: World,
) -> None:
    few = replace(world, trace=replace(world.trace, jobs=world.trace.jobs[:4]))
    report = run_one(few, "boa", Knobs(budget=30.0), Asked(calendar=CALENDAR))
    assert report.settings.calendar is not None
    assert report.settings.calendar.average == pytest.approx(30.0)
    assert document_of(report, "boa", few)["bound_jct_s"] is None
