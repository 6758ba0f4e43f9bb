"""Runs that the store believes in against those that the engine knows: both ways, always."""

from typing import Any

import pytest

from boa.engines.base import NotOver
from boa.model.runs import RunEvent, RunKey
from boa.runtime import actor
from boa.scheduler.money.ledger import bill
from boa.scheduler.observe.messages import EngineSaid
from live import LONG, Live, kinds, spec


def _vanish(live: Live, job: str) -> None:
    """The engine's knowledge of a run goes, as with its folder in a power cut."""
    live.engine._runs.clear()
    live.engine._pending.clear()
    assert live.job(job).state == "running"


@pytest.mark.parametrize("restarted", [True, False])
def test_a_run_that_the_engine_does_not_know_is_told_of_and_retried_as_no_failure(
    lives: Any, restarted: bool
) -> None:
    live = lives(LONG, backoff_s=1.0)
    job = live.submit(spec("long", retries=0))
    live.advance(600.0)
    _vanish(live, job)
    if restarted:
        live.crash()
    else:
        live.loop.actor._reconcile_at = 0.0  # its time has come
        live.settle()
    assert live.job(job).run is None
    live.advance(60.0, tick=1.0)
    record = live.job(job)
    assert (record.state, record.attempts, record.failures) == ("running", 2, 0)
    assert live.store is not None
    told = [s.event for s in live.store.events(job=job, limit=100) if s.event.kind == "retry"]
    assert [(event.data["why"], event.data["detail"]) for event in told] == [
        ("run_lost", actor.UNKNOWN)
    ]


def test_nodes_of_a_run_that_the_engine_does_not_know_are_not_paid_for_ever(lives: Any) -> None:
    live = lives(LONG, backoff_s=1.0)
    job = live.submit(spec("long"))
    live.advance(600.0)
    _vanish(live, job)
    live.crash()
    live.loop.stop(job)  # so that nothing is started again
    live.advance(600.0, tick=60.0)
    record = live.job(job)
    assert record.ended
    assert not live.loop.snapshot.nodes
    assert live.store is not None
    nodes = live.store.nodes_between(0.0, float("inf"))
    holds = live.store.holds_between(0.0, float("inf"))
    assert bill(nodes, holds, 0.0, float("inf")).jobs == pytest.approx(record.cost_usd)


def test_a_run_that_only_the_engine_knows_is_stopped_also_long_after_the_start(lives: Any) -> None:
    live = lives(LONG)
    job = live.submit(spec("long"))
    live.advance(60.0)
    stray = RunKey("999", 1)
    live.engine._runs[stray] = live.engine._runs[RunKey(job, 1)]
    stopped: list[RunKey] = []
    live.engine.stop = lambda key, grace_s, then: stopped.append(key)
    live.loop.actor._reconcile_at = 0.0
    live.settle()
    del live.engine._runs[stray], live.engine.stop
    assert stopped == [stray]
    assert "retry" not in kinds(live)


def test_comparing_before_anything_is_stored_stops_nothing(lives: Any) -> None:
    live = lives(LONG)
    job = live.submit(spec("long"))
    live.advance(60.0)
    assert live.store is not None
    live.store.close()
    live.loop = live._begin()
    live.loop.actor.watch_engine()  # before the first step
    live.settle()
    assert live.job(job).attempts == 1
    assert live.job(job).state == "running"


def test_a_job_whose_last_run_cannot_be_ended_waits_with_a_reason_and_is_told_of_once(
    lives: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = lives(LONG)
    real = live.engine.start

    def hindered(launch: Any) -> None:
        raise NotOver("process 7 (dd) of attempt 1 cannot be ended")

    with monkeypatch.context() as patched:
        patched.setattr(live.engine, "start", hindered)
        job = live.submit(spec("long"))
        for _ in range(3):
            _due(live)
        said = "waits until its run is over: process 7 (dd) of attempt 1 cannot be ended"
        assert live.job(job).reason == said
        assert live.job(job).state == "starting"
    assert live.engine.start == real
    _due(live)
    assert (live.job(job).state, live.job(job).reason) == ("running", "")
    assert live.store is not None
    told = [s.event for s in live.store.events(job=job, limit=100) if s.event.kind == "trouble"]
    assert [event.data["why"] for event in told] == ["not_over"]


def _due(live: Live) -> None:
    """The time has come to ask again."""
    later = live.loop.actor._later
    live.loop.actor._later = type(later)((0.0, task) for _, task in later)
    live.settle()


def test_a_run_that_is_not_over_says_so_and_is_not_replaced(lives: Any) -> None:
    live = lives(LONG)
    job = live.submit(spec("long"))
    live.advance(60.0)
    key = RunKey(job, 1)
    live.loop.tell(EngineSaid([RunEvent(key=key, ended=False, hindrance="process 7 (dd) lives")]))
    live.settle()
    assert live.job(job).reason == "waits until its run is over: process 7 (dd) lives"
    assert live.job(job).run is not None
    assert kinds(live, job).count("trouble") == 1
