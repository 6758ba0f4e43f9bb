"""Simulations in which jobs may wait for other hours."""

from dataclasses import replace

import pytest

from boa.catalogue.arrivals import spec_of_mix, synthetic_trace
from boa.model.calendar import Calendar, Period
from boa.policy.registry import Knobs, choose
from boa.scheduler.state import Draft
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings
from boa.solver.planner import frontier


@pytest.fixture(scope="module")
def world() -> World:
    """One class, whose runs are long against an hour and short against a night."""
    spec = spec_of_mix({"yolov3": 1.0}, hours=24, arrivals_per_hour=2.0)
    return world_of(synthetic_trace(spec, 1), None, ("T4",))


def test_whoever_is_put_off_begins_with_a_period_and_has_waited(world: World) -> None:
    put_off: dict[str, float] = {}
    first: dict[str, float] = {}

    def watch(draft: Draft) -> None:
        for job in draft.changes.jobs.values():
            if job.waits_until is not None and job.reason.startswith("waits for night"):
                put_off[job.id] = job.waits_until
            if job.run is not None:
                first.setdefault(job.id, draft.now)

    needed = frontier(world.workload).cheapest
    night = Period(name="night", budget=4 * needed, begins=9 * 60, ends=19 * 60)
    day = Period(name="day", budget=1.01 * needed)
    calendar = Calendar(periods=(night, day)).begun_on_a_monday()
    settings = Settings(calendar=replace(calendar, may_wait=6 * 3600.0), learning="perfect")
    choice = choose("boa", Knobs(budget=calendar.average))
    report = simulate(world, choice, settings, watch=watch)
    assert report.jobs == len(report.tally.jcts)
    assert put_off
    for job, until in put_off.items():
        assert calendar.at(until) != calendar.at(until - 1.0)
        assert first[job] == until
    waited = sum(until - world.trace.jobs[int(job) - 1].arrival_s for job, until in put_off.items())
    assert sum(report.tally.jcts) > waited, "a JCT has the waiting in it"
