"""Jobs that are acted out: when they say that they ended."""

import pytest

from boa.clock import VirtualClock
from boa.engines.base import Launch, NodeSlots, RunEvent, RunKey
from boa.engines.scripted import ScriptedEngine
from live import START, profile, spec

KEY = RunKey("1", 1)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
def engine(clock: VirtualClock) -> ScriptedEngine:
    """One job that takes 30 s to start and 100 s on its one GPU."""
    engine = ScriptedEngine(clock, {"a": profile("a", work=(100.0,), rescale_s=30.0)})
    engine.start(
        Launch(
            key=KEY,
            spec=spec("a"),
            gpu_type="T4",
            slots=(NodeSlots(1, (0,)),),
            checkpoint_dir="",
        )
    )
    return engine


def end_of(engine: ScriptedEngine) -> RunEvent:
    (event,) = [event for event in engine.poll() if event.ended]
    return event


def test_a_run_that_ended_while_nobody_looked_says_how_long_ago(
    engine: ScriptedEngine, clock: VirtualClock
) -> None:
    clock.advance_to(START + 1000.0)
    assert end_of(engine).age_s == pytest.approx(870.0)
    clock.advance_to(START + 1060.0)
    assert end_of(engine).age_s == pytest.approx(930.0)


def test_one_that_ends_this_moment_says_now(engine: ScriptedEngine, clock: VirtualClock) -> None:
    clock.advance_to(engine.wakes_at())
    assert 0 <= end_of(engine).age_s < 1e-6


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_one_that_was_made_to_end_says_when(
    engine: ScriptedEngine, clock: VirtualClock, how: str
) -> None:
    clock.advance_to(START + 10.0)  # it is still starting
    engine.stop(KEY, 5.0) if how == "stop" else engine.kill(KEY)
    clock.advance_to(START + 25.0)
    assert end_of(engine).age_s == 15.0
