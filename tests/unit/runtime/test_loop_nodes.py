"""Whole nodes by price, in the real loop on a virtual clock."""

from typing import Any

import pytest

from boa.model.job import GpuLimits
from boa.scheduler.money.ledger import committed
from live import LONG, kinds, profile, spec


@pytest.mark.parametrize("cap", [{"max_spend": 13.0}, {"max_nodes": {"T4": 3}}])
def test_a_cap_binds_without_flapping(lives: Any, cap: dict[str, Any]) -> None:
    live = lives(LONG, per_hour=4.0, budget=300.0, provision_s=60.0, release_s=60.0, **cap)
    for _ in range(4):
        live.submit(spec("long"))
        live.advance(900.0, tick=20.0)
        assert committed(live.loop.snapshot.nodes.values(), live.loop.now()) <= 13.0
    assert all(job.run is not None for job in live.loop.snapshot.jobs.values())
    assert "node_released" not in kinds(live)
    if "max_nodes" in cap:
        assert len(live.loop.snapshot.nodes) == 3, "all that may be had"


def test_a_job_that_no_plan_knows_starts_on_the_least(lives: Any, monkeypatch: Any) -> None:
    live = lives()
    monkeypatch.setattr(live.loop.scheduler.planner, "step", lambda *_: False)
    live.loop.scheduler.decider.planned(None)
    job_id = live.submit(spec("halves", gpus=GpuLimits(min=2, max=4)))
    assert live.job(job_id).run is None, "a plan may come yet"
    live.advance(11.0, tick=1.0)
    assert live.job(job_id).run.allocation.width == 2


def test_a_restart_without_a_plan_leaves_jobs_alone(lives: Any, monkeypatch: Any) -> None:
    live = lives(LONG, provision_s=60.0)
    job_id = live.submit(spec("long"))
    live.advance(200.0, tick=20.0)
    run = live.job(job_id).run
    monkeypatch.setattr("boa.scheduler.plan.planning.Planner.step", lambda *_: False)
    live.crash()
    live.advance(120.0, tick=20.0)
    assert live.job(job_id).run == run


def test_what_was_rented_while_money_was_left_over_is_used_though_it_gets_short(
    lives: Any, monkeypatch: Any
) -> None:
    live = lives(LONG, provision_s=90.0)  # two jobs an hour of $10 each: too much for $12/h
    job_id = live.submit(spec("long"))
    monkeypatch.setattr("boa.scheduler.money.steering.patience_s", lambda *_: 1800.0)
    live.advance(80.0, tick=20.0)
    assert live.loop.scheduler.decider.patience_s == 1800.0, "newcomers would wait"
    live.advance(20.0, tick=10.0)
    assert live.job(job_id).state == "running"
    live.advance(900.0, tick=20.0)
    assert (live.job(job_id).attempts, live.job(job_id).state) == (1, "running")
    assert "node_released" not in kinds(live)


def test_a_node_is_told_to_be_worth_what_jobs_gain_and_not_that_one_has_to_run(lives: Any) -> None:
    live = lives(LONG)
    live.submit(spec("long"))
    rented = next(s.event for s in live.store.events() if s.event.kind == "node_rented")
    assert 0 < rented.data["worth_per_hour"] < 2 * rented.data["price_per_hour"]
    live.advance(61.0, tick=1.0)
    kept = live.loop.snapshot.weighed[rented.node]
    assert 0 < kept.worth_per_hour < 2 * kept.price_per_hour


def test_a_job_that_needs_a_whole_node_does_not_wait_for_half_empty_ones(lives: Any) -> None:
    """GPUs enough are free, so that none is rented for it; but no node has them alone."""
    live = lives(LONG, profile("short", work=(3000.0,), alpha=0.9), budget=40.0)
    for _ in range(2):  # a node of a short and a long one each
        for name in ("short", "long"):
            live.submit(spec(name, gpus=GpuLimits(min=2, max=2)))
    live.advance(4000.0, tick=60.0)
    assert sorted(job.job_class for job in live.loop.snapshot.jobs.values()) == ["long", "long"]
    job_id = live.submit(spec("short", gpus=GpuLimits(min=4, max=4)))
    live.advance(300.0, tick=60.0)
    assert live.job(job_id).state == "running"


def test_a_step_in_which_nothing_happens_asks_no_market(lives: Any) -> None:
    live = lives(LONG)
    live.submit(spec("long"))
    live.advance(61.0, tick=1.0)
    asked: list[Any] = []
    decider = live.loop.scheduler.decider
    decider.policy = _Watched(decider.policy, asked)
    decider.next_round = live.clock.now() + 60.0
    for _ in range(5):
        live.loop.step()
    assert not asked
    live.submit(spec("long"))
    assert asked


class _Watched:
    by_job, at_events, name = False, True, "boa"

    def __init__(self, policy: Any, asked: list[Any]) -> None:
        self._policy, self._asked = policy, asked

    def decide(self, view: Any) -> Any:
        self._asked.append(view)
        return self._policy.decide(view)
