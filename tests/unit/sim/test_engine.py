"""Jobs that are acted out: when they say that they ended."""

import pytest

from boa.clock import VirtualClock
from boa.model.records import Report
from boa.model.runs import Launch, NodeSlots, RunEvent, RunKey
from boa.sim.engine import SimulatedEngine, acting_out
from live import START, profile, spec

KEY = RunKey("1", 1)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
def engine(clock: VirtualClock) -> SimulatedEngine:
    """One job that takes 30 s to start and 100 s on its one GPU."""
    engine = SimulatedEngine(clock, acting_out({"a": profile("a", work=(100.0,), rescale_s=30.0)}))
    engine.start(launch(KEY))
    return engine


def launch(key: RunKey) -> Launch:
    slots = (NodeSlots(1, (0,)),)
    return Launch(key=key, spec=spec("a"), gpu_type="T4", slots=slots, checkpoint_dir="")


def end_of(engine: SimulatedEngine) -> RunEvent:
    (event,) = [event for event in engine.poll() if event.ended]
    return event


def test_a_run_that_ended_while_nobody_looked_says_how_long_ago(
    engine: SimulatedEngine, clock: VirtualClock
) -> None:
    clock.advance_to(START + 1000.0)
    assert end_of(engine).age_s == pytest.approx(870.0)
    clock.advance_to(START + 1060.0)
    assert end_of(engine).age_s == pytest.approx(930.0)


def test_one_that_ends_this_moment_says_now(engine: SimulatedEngine, clock: VirtualClock) -> None:
    clock.advance_to(engine.wakes_at())
    assert 0 <= end_of(engine).age_s < 1e-6


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_one_that_was_made_to_end_says_when(
    engine: SimulatedEngine, clock: VirtualClock, how: str
) -> None:
    clock.advance_to(START + 10.0)  # it is still starting
    engine.stop(KEY, 5.0) if how == "stop" else engine.kill(KEY)
    clock.advance_to(START + 25.0)
    assert end_of(engine).age_s == 15.0


def test_an_end_is_told_until_it_is_forgotten_and_a_beginning_once(
    engine: SimulatedEngine, clock: VirtualClock
) -> None:
    assert [event.ended for event in engine.poll()] == [False]
    clock.advance_to(START + 129.0)
    assert engine.poll() == []
    clock.advance_to(START + 131.0)
    for _ in range(2):
        assert [event.ended for event in engine.poll()] == [True]
    engine.forget(KEY)
    assert engine.poll() == []
    assert engine.wakes_at() == float("inf")


def test_one_that_is_killed_loses_what_it_did_since_it_was_last_looked_at(
    engine: SimulatedEngine, clock: VirtualClock
) -> None:
    clock.advance_to(START + 70.0)  # 40 s of work
    engine.poll()
    clock.advance_to(START + 110.0)
    engine.kill(KEY)
    engine.forget(KEY)
    engine.start(launch(RunKey("1", 2)))
    assert engine.wakes_at() == pytest.approx(START + 110.0 + 30.0 + 60.0)


def test_runs_report_as_often_as_they_are_told_to_and_when_an_epoch_ends(
    clock: VirtualClock,
) -> None:
    said: list[Report] = []
    known = profile("a", work=(100.0, 100.0), rescale_s=30.0)
    engine = SimulatedEngine(clock, acting_out({"a": known}), said.append, report_s=40.0)
    engine.start(launch(KEY))
    while engine.wakes_at() < START + 300.0:
        clock.advance_to(engine.wakes_at())
        engine.poll()
    assert [(report.epoch, report.units) for report in said] == [
        (0, 40.0),
        (0, 80.0),
        (1, 100.0),
        (1, 140.0),
        (1, 180.0),
    ]
