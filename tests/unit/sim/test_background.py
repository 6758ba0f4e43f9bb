"""Background jobs in simulations: all others, and the bill, are as without them."""

from dataclasses import replace
from random import Random

import pytest

from boa.catalogue.traces import parse_trace
from boa.errors import InputError
from boa.model.priorities import Priority
from boa.model.trace import Trace, TraceJob
from boa.policy.registry import Knobs, choose
from boa.sim.report import SimulationReport
from boa.sim.run import simulate
from boa.sim.settings import Settings
from simulations import job, world

HEAD = "name,arrival_s,application,priority\n"


def test_a_trace_may_say_priorities() -> None:
    trace = parse_trace("t.csv", HEAD + "a,0,bert,urgent\nb,1,bert,\nc,2,bert,background\n")
    said: list[Priority] = ["urgent", "normal", "background"]
    assert [job.priority for job in trace.jobs] == said
    assert [job.name for job in trace.paying.jobs] == ["a", "b"]
    assert trace.jobs[2].again("d", 5.0).priority == "background"
    with pytest.raises(InputError, match="urgent, normal, background"):
        parse_trace("t.csv", HEAD + "a,0,bert,high\n")


def test_a_trace_without_priorities_is_paid_for_as_a_whole() -> None:
    trace = parse_trace("t.csv", "name,arrival_s,application\na,0,bert\n")
    assert not trace.has_priorities
    assert trace.paying is trace
    assert replace(trace, jobs=()) == Trace(())


def history(seed: int) -> list[TraceJob]:
    rng = Random(seed)
    paying = [job(f"p{n}", 600.0 * n * rng.random(), "patient") for n in range(16)]
    paying.append(job("last", 9600.0, "patient"))
    return paying


def run(jobs: list[TraceJob], keep_warm_s: float) -> tuple[SimulationReport, list[object]]:
    events: list[object] = []
    settings = Settings(
        interval_s=None,
        provision_s=100.0,
        reclaim_s=50.0,
        learning="perfect",
        billing="node",
        max_nodes={"T4": 1000},
        keep_warm_s=keep_warm_s,
    )
    report = simulate(
        world(jobs, {"T4": 4}),
        choose("boa", Knobs(budget=9.0), "node"),
        settings,
        listener=events.append,
        keep_jcts=True,
    )
    return report, events


@pytest.mark.parametrize("seed", range(6))
def test_with_background_jobs_the_others_and_the_nodes_are_as_without_them(seed: int) -> None:
    rng, paying = Random(seed), history(seed)
    background = [
        job(f"b{n}", 8000.0 * rng.random(), "patient", priority="background") for n in range(6)
    ]
    alone, told = run(paying, 0.0)
    both, told_with = run([*paying, *background], 0.0)
    theirs = [event for event in told_with if not _is_background(event)]
    assert both.tally.named == pytest.approx(alone.tally.named, rel=1e-9)
    assert both.bill_per_hour == pytest.approx(alone.bill_per_hour)
    assert both.idle_per_hour == pytest.approx(alone.idle_per_hour)
    assert sorted(map(_what, theirs), key=repr) == sorted(map(_what, told), key=repr)
    assert both.background_per_hour <= both.idle_per_hour + 1e-9


def _is_background(event: object) -> bool:
    assert isinstance(event, dict)
    return str(event.get("job", "")).startswith("b")


def _what(event: object) -> tuple[object, ...]:
    """Who or which node, what, when and on how many GPUs."""
    assert isinstance(event, dict)
    at = round(event["time_s"], 6)
    return at, event["event"], event.get("job"), event.get("node"), event.get("width")
