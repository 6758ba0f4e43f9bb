"""The real loop on a virtual clock: what breaks, and what then does not."""

from dataclasses import replace
from typing import Any

import pytest

from boa.errors import InputError
from boa.model.changes import Changes
from boa.model.job import GpuLimits
from boa.model.records import Report
from boa.model.runs import Launch, RunEvent, RunKey
from boa.policy.rivals.pollux_autoscale import PolluxAutoscale
from boa.scheduler.money.ledger import bill, committed
from boa.scheduler.refusals import NotNow
from boa.store.base import StoreTrouble
from live import A100, BILLINGS, LONG, T4, Live, kinds, profile, spec


def _say(live: Live, job: str, progress: float) -> None:
    attempt = live.job(job).attempts
    live.loop.report(
        Report(
            job=job, attempt=attempt, uptime_s=progress, epoch=0, progress=progress, units=progress
        )
    )
    live.settle()


@BILLINGS
def test_doing_again_what_was_done_is_no_progress(lives: Any, billing: str) -> None:
    live = lives(LONG, backoff_s=1.0, billing=billing)
    job_id = live.submit(spec("long", retries=3))
    for _ in range(10):
        for progress in (0.0, 10.0, 20.0):  # as far as it ever gets
            _say(live, job_id, progress)
        live.engine.kill(RunKey(job_id, live.job(job_id).attempts), exit_code=1)
        live.settle()
        if live.job(job_id).ended:
            break
        live.advance(20.0, tick=1.0)
    assert live.job(job_id).state == "failed"
    assert kinds(live, job_id).count("restarted") == 3, "as often as it may be tried again"


def _lose(live: Live, job: str) -> None:
    """End a run as if its job had removed its folder."""
    key = RunKey(job, live.job(job).attempts)
    lost = RunEvent(key=key, ended=True, run_lost=True, reason="lost: its folder is gone")
    live.engine._end(live.engine._runs[key], lost)
    live.settle()


def test_a_run_that_is_lost_again_and_again_waits_longer_and_counts_as_a_failure(
    lives: Any,
) -> None:
    live = lives(LONG, backoff_s=5.0)
    job_id = live.submit(spec("long", retries=0))
    live.advance(10.0, tick=1.0)
    waits = []
    for _ in range(66):
        _lose(live, job_id)
        job = live.job(job_id)
        if job.ended:
            break
        assert job.retry_at is not None
        waits.append(job.retry_at - live.loop.now())
        live.advance(waits[-1] + 10.0, tick=1.0)
    assert waits == pytest.approx([5.0, 10.0, 20.0, 40.0, 80.0], abs=1.0)
    assert live.job(job_id).state == "failed"
    assert "its folder is gone" in live.job(job_id).reason


def test_runs_that_are_lost_now_and_then_are_no_failures(lives: Any) -> None:
    live = lives(LONG, backoff_s=5.0)
    job_id = live.submit(spec("long", retries=0))
    live.advance(10.0, tick=1.0)
    for round in range(8):
        if round % 2:
            live.advance(700.0, tick=10.0)  # it ran for a while
        else:
            _say(live, job_id, 10.0 * (round + 1))  # it got further
        _lose(live, job_id)
        job = live.job(job_id)
        assert (job.ended, job.failures) == (False, 0)
        live.advance(60.0, tick=1.0)


def test_a_bug_while_acting_is_survived_and_everything_is_said_again(
    lives: Any, monkeypatch: Any
) -> None:
    live = lives()

    def broken(draft: Any) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(live.loop.actor, "act", broken)
        live.loop.submit(spec("halves"))
        for _ in range(3):
            live.loop.actor.watch_cloud()
            with pytest.raises(RuntimeError):
                live.loop.step()
    live.loop.actor.say_all_again()
    live.settle()
    assert live.job("1").state == "running"


def test_a_bug_in_a_question_is_answered(lives: Any) -> None:
    live = lives()
    asked = live.loop._ask(lambda draft: 1 / 0)
    live.loop.step()
    with pytest.raises(NotNow, match="ZeroDivisionError"):
        asked.result(timeout=0)


def test_a_bug_in_what_was_said_answers_everybody(lives: Any, monkeypatch: Any) -> None:
    live = lives()

    def broken(*given: Any) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr("boa.scheduler.scheduler.observe_cloud", broken)
        live.loop.actor.watch_cloud()
        asked = [live.loop.submit(spec("halves")) for _ in range(3)]
        live.loop.step()
    for one in asked:
        with pytest.raises(NotNow):
            one.result(timeout=0)


def test_a_job_whose_gpu_type_was_dropped_waits_and_stops_nobody_else(lives: Any) -> None:
    types = {"T4": T4, "A100": A100}
    both = profile("both", gpus={"T4": 1.0, "A100": 2.0})
    live = lives(both, gpu_types=types, budget=30.0)
    only = live.submit(spec("other", gpus=GpuLimits(types=("A100",))))
    live.config = replace(live.config, gpu_types={"T4": T4})
    live.cloud = None
    live.crash()
    live.advance(60.0, tick=5.0)
    assert live.job(live.submit(spec("both"))).state == "running"
    assert not live.job(only).ended
    assert not [line for line in live.logged if "step failed" in line]


def test_a_stop_that_fails_is_asked_again(lives: Any, monkeypatch: Any) -> None:
    live = lives(LONG)
    job_id = live.submit(spec("long"))
    real = live.engine.stop

    def full(key: RunKey, *_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(live.engine, "stop", full)
        live.loop.stop(job_id)
        live.settle()
        assert not live.job(job_id).ended
    assert live.store is not None
    told = [found.event for found in live.store.events(job=job_id, limit=100)]
    assert [event.data["detail"] for event in told if event.kind == "trouble"] == [
        f"job {job_id} cannot be stopped yet: [Errno 28] No space left on device"
    ]
    assert live.engine.stop == real
    later = live.loop.actor._later
    live.loop.actor._later = type(later)((0.0, task) for _, task in later)  # it is due
    live.settle()
    assert live.job(job_id).state == "stopped"


def test_a_round_policy_under_a_cap_keeps_jobs_running_within_it(lives: Any) -> None:
    live = lives(LONG, policy=PolluxAutoscale(0.5), max_spend=12.0)
    ids = [live.submit(spec("long")) for _ in range(8)]
    live.advance(3600.0, tick=60.0)
    running = [live.job(i) for i in ids if live.job(i).run is not None]
    assert len(running) == 8
    assert committed(live.loop.snapshot.nodes.values(), live.loop.now()) <= 12.0
    assert kinds(live).count("node_rented") <= 12
    live.loop.set_budget(12.0, 4.0)
    live.advance(600.0, tick=60.0)
    assert committed(live.loop.snapshot.nodes.values(), live.loop.now()) <= 4.0


def test_a_node_that_one_list_leaves_out_is_neither_lost_nor_paid_twice(
    lives: Any, monkeypatch: Any
) -> None:
    live = lives(LONG, budget=4.0)
    job_id = live.submit(spec("long"))
    live.advance(3600.0)
    with monkeypatch.context() as patched:
        patched.setattr(live.cloud, "nodes", list)
        live.loop.actor.watch_cloud()
        live.loop.step()
    live.settle()
    assert live.job(job_id).restarts == 0
    assert "node_lost" not in kinds(live)


def test_a_lost_node_that_turns_up_again_is_paid_for_once(lives: Any, monkeypatch: Any) -> None:
    live = lives(LONG, budget=4.0)
    live.submit(spec("long"))
    live.advance(3600.0)
    with monkeypatch.context() as patched:
        patched.setattr(live.cloud, "nodes", list)
        for _ in range(2):
            live.loop.actor.watch_cloud()
            live.loop.step()
    assert "node_lost" in kinds(live)
    live.advance(60.0)
    listed = next(node for node in live.cloud.nodes() if node.gone_at is not None)
    assert live.store is not None
    stored = live.store.nodes_between(0.0, float("inf"))
    ours = bill([n for n in stored if n.token == listed.token], (), 0.0, float("inf"))
    charged = listed.price * listed.gpus * (listed.gone_at - listed.billed_from) / 3600
    assert ours.total == pytest.approx(charged)


def test_a_job_pays_for_a_lost_node_until_it_was_lost(lives: Any) -> None:
    live = lives(LONG, budget=4.0)
    job_id = live.submit(spec("long"))
    live.advance(3600.0)
    node = next(iter(live.loop.snapshot.nodes.values()))
    live.cloud.release(node.token)
    live.clock.advance_to(live.clock.now() + 1800.0)  # and nobody looks for half an hour
    live.settle()
    live.finish()
    live.advance(60.0)
    job = live.job(job_id)
    assert live.store is not None
    nodes = live.store.nodes_between(0.0, float("inf"))
    holds = live.store.holds_between(0.0, float("inf"))
    assert bill(nodes, holds, 0.0, float("inf")).jobs == pytest.approx(job.cost_usd)
    assert live.loop.snapshot.money.jobs == pytest.approx(job.cost_usd)


def test_a_job_that_ended_while_the_service_was_away_is_charged_until_it_ended(lives: Any) -> None:
    live = lives()
    job_id = live.submit(spec("halves", gpus=GpuLimits(max=1)))
    live.clock.advance_to(live.clock.now() + 36_000.0)
    live.crash()
    job = live.job(job_id)
    assert job.state == "succeeded"
    assert job.ended_at - job.submitted_at == pytest.approx(3630.0)
    assert job.cost_usd == pytest.approx(3630.0 / 3600)


def test_a_cap_below_the_budget_winds_nothing_up(lives: Any) -> None:
    live = lives(LONG, per_hour=4.0, budget=20.0, max_spend=8.0)
    for _ in range(24):
        live.submit(spec("long"))
        live.advance(3 * 3600.0, tick=1800.0)
    assert live.loop.snapshot.money.effective <= 8.0


def test_a_cap_that_is_added_leaves_the_budget_that_was_set(lives: Any) -> None:
    live = lives(budget=8.0)
    live.loop.set_budget(20.0)
    live.settle()
    live.config = replace(live.config, max_spend=30.0)
    live.crash()
    money = live.loop.snapshot.money
    assert (money.budget, money.max_spend) == (20.0, 30.0)
    live.config = replace(live.config, budget=9.0)
    live.crash()
    assert live.loop.snapshot.money.budget == 9.0


def test_a_cap_can_be_removed(lives: Any) -> None:
    live = lives(max_spend=8.0)
    live.loop.set_budget(12.0, float("inf"))
    live.settle()
    assert live.loop.snapshot.money.max_spend is None
    live.crash()
    assert live.loop.snapshot.money.max_spend is None


def test_nodes_of_another_service_are_left_alone(lives: Any) -> None:
    live = lives()
    live.cloud.rent("somebody-1", "T4")
    live.settle()
    assert next(n for n in live.cloud.nodes() if n.token == "somebody-1").gone_at is None


def test_a_submission_that_was_refused_is_no_arrival(lives: Any, monkeypatch: Any) -> None:
    live = lives()

    def locked(changes: Changes) -> int:
        raise StoreTrouble("locked")

    before = live.loop.class_document("halves")["arrivals_per_hour"]
    with monkeypatch.context() as patched:
        patched.setattr(live.store, "commit", locked)
        for _ in range(100):
            live.loop.submit(spec("halves"))
            live.loop.step()
    assert live.loop.class_document("halves")["arrivals_per_hour"] == pytest.approx(before)


def test_a_node_that_never_gets_ready_is_given_back(lives: Any) -> None:
    live = lives(provision_s=1e6, refused_s=600.0)
    limits = live.loop.scheduler.limits
    live.loop.scheduler.limits = replace(limits, provision_s=0.0)  # what was to be expected
    job_id = live.submit(spec("halves"))
    first = set(live.loop.snapshot.nodes)
    assert first
    live.advance(2000.0)
    assert not first & set(live.loop.snapshot.nodes)
    assert live.job(job_id).state in ("waiting", "starting")


def test_new_classes_that_come_one_after_the_other_do_not_wait_for_each_other(lives: Any) -> None:
    live = lives()
    for name in ("one", "two", "three"):
        live.profiles[name] = profile(name)
        job = live.job(live.submit(spec(name)))
        assert job.state == "running"
        live.clock.advance_to(live.clock.now() + 0.5)


def test_names_that_were_only_tried_out_take_nothing_from_the_budget(lives: Any) -> None:
    live = lives()
    for n in range(5):
        live.profiles[f"typo{n}"] = LONG
        job_id = live.submit(spec(f"typo{n}", retries=0))
        live.engine.kill(RunKey(job_id, 1), exit_code=127)
        live.settle()
        assert live.job(job_id).state == "failed"
    live.advance(1000.0)
    plan = live.loop.snapshot.plan
    assert [job_class.name for job_class in plan.workload.classes] == ["halves"]


def test_a_job_that_could_never_run_is_refused(lives: Any) -> None:
    live = lives(max_nodes={"T4": 2})
    asked = live.loop.submit(spec("halves", gpus=GpuLimits(min=9, max=16)))
    live.settle()
    with pytest.raises(InputError, match=r"gpus.min: got 9; expected at most 8"):
        asked.result(timeout=0)


def test_a_cap_below_the_cheapest_node_is_refused(lives: Any) -> None:
    live = lives()
    asked = live.loop.set_budget(12.0, 3.0)
    live.settle()
    with pytest.raises(InputError, match="at least 4"):
        asked.result(timeout=0)
    assert live.loop.snapshot.money.max_spend is None


def test_a_restart_is_counted_when_it_comes(lives: Any) -> None:
    live = lives(LONG, backoff_s=60.0)
    job_id = live.submit(spec("long"))
    live.engine.kill(RunKey(job_id, 1), exit_code=1)
    live.settle()
    assert live.job(job_id).restarts == 0
    live.advance(61.0)
    job = live.job(job_id)
    assert (job.restarts, job.rescalings, job.attempts) == (1, 0, 2)


def test_the_engine_is_told_what_follows_a_stop_and_when_nothing_does(
    lives: Any, monkeypatch: Any
) -> None:
    both = profile("both", work=(3600.0, 36_000.0), alpha=0.05)
    both.rates["T4"][1] = profile("steep", alpha=1.0).rates["T4"][0]  # wider from there on
    live = lives(both, per_hour=1.0, budget=20.0)
    job_id = live.submit(spec("both", epochs=2))
    told: list[Launch | None] = []
    monkeypatch.setattr(live.engine, "stop", lambda key, grace_s, then=None: told.append(then))
    while not told:
        live.advance(60.0)
        assert not live.job(job_id).ended
    (then,) = told
    assert then is not None
    assert then.key == RunKey(job_id, 2)
    live.loop.stop(job_id)
    live.settle()
    assert told == [then, None]
    live.settle()
    assert told == [then, None]
