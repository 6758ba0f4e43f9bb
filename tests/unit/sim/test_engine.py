"""Jobs that are acted out: when they say that they ended."""

import pytest

from boa.clock import VirtualClock
from boa.model.records import Report
from boa.model.runs import Launch, NodeSlots, RunEvent, RunKey
from boa.sim.engine import NO_SAVING, SAVES, Checkpointing, SimulatedEngine, acting_out
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
    assert [event.ended for event in engine.poll()] == [False]  # training begins
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
    clock.advance_to(engine.wakes_at())
    engine.poll()
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
        (0, 0.0),
        (0, 40.0),
        (0, 80.0),
        (1, 100.0),
        (1, 140.0),
        (1, 180.0),
    ]


def ran_for(engine: SimulatedEngine, clock: VirtualClock, seconds: float) -> None:
    end = clock.now() + seconds
    while clock.now() < end:
        clock.advance_to(min(max(engine.wakes_at(), clock.now()), end))
        engine.poll()


def saving(clock: VirtualClock, how: Checkpointing) -> tuple[SimulatedEngine, list[Report]]:
    said: list[Report] = []
    known = profile("a", work=(100.0,), rescale_s=30.0)
    engine = SimulatedEngine(clock, acting_out({"a": known}), said.append)
    engine.saving = lambda launch: how
    engine.start(launch(KEY))
    return engine, said


def begins_again(engine: SimulatedEngine) -> None:
    engine.forget(KEY)
    engine.start(launch(RunKey("1", 2)))


def test_every_report_says_that_the_job_saves_the_one_before_any_work_first(
    clock: VirtualClock,
) -> None:
    engine, said = saving(clock, SAVES)
    ran_for(engine, clock, 70.0)
    engine.stop(KEY, 5.0)
    begins_again(engine)
    ran_for(engine, clock, 30.0)
    told = [(report.uptime_s, report.units, report.saves, report.saved_s) for report in said]
    assert told == [(30.0, 0.0, True, None), (30.0, 0.0, True, 0.0)]
    assert said[1].progress == 40.0


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_job_that_saves_nothing_starts_over_after_a_stop_and_never_says_that_it_saves(
    clock: VirtualClock, how: str
) -> None:
    engine, said = saving(clock, NO_SAVING)
    ran_for(engine, clock, 70.0)
    engine.stop(KEY, 5.0) if how == "stop" else engine.kill(KEY)
    begins_again(engine)
    assert engine.wakes_at() == clock.now() + 30.0
    ran_for(engine, clock, 30.0)
    assert [(report.saves, report.saved_s, report.progress) for report in said] == [
        (None, None, 0.0)
    ] * 2
    assert engine.wakes_at() == pytest.approx(clock.now() + 100.0)


def test_a_job_that_saves_now_and_then_falls_back_to_its_last_save_and_says_when_that_was(
    clock: VirtualClock,
) -> None:
    engine, said = saving(clock, Checkpointing(at_stop=False, every_s=25.0))
    ran_for(engine, clock, 90.0)
    assert [report.saved_s for report in said] == [None, 55.0, 80.0]
    engine.stop(KEY, 5.0)
    begins_again(engine)
    ran_for(engine, clock, 30.0)
    assert (said[-1].progress, said[-1].saved_s, said[-1].saves) == (50.0, 0.0, None)


def test_of_checkpoints_of_a_job_that_does_not_report_the_engine_tells(
    clock: VirtualClock,
) -> None:
    engine, said = saving(clock, Checkpointing(at_stop=False, every_s=25.0, reports=False))
    engine.poll()
    clock.advance_to(START + 57.0)
    assert [(event.saved, event.saved_age_s, event.ended) for event in engine.poll()] == [
        (True, 2.0, False)
    ]
    assert engine.poll() == []
    assert said == []
