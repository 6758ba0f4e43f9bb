"""The terms of single jobs, kept by the real loop on a virtual clock."""

from dataclasses import replace
from typing import Any

import pytest

from boa.errors import InputError
from boa.model.access import Caller
from boa.model.job import GpuLimits
from boa.scheduler.refusals import NoSuchJob
from live import BILLINGS, LONG, asked, kinds, profile, spec

ONE = GpuLimits(max=1)
ALICE = Caller(name="alice", role="member", address="10.0.0.7")


# Limits


@BILLINGS
def test_a_job_is_warned_and_stopped_before_it_costs_more_than_it_may(
    lives: Any, billing: str
) -> None:
    live = lives(LONG, billing=billing)
    job_id = live.submit(spec("long", max_cost=2.0, grace_s=60.0, gpus=ONE))
    live.advance(3 * 3600.0, tick=10.0)
    job = live.job(job_id)
    assert job.state == "stopped"
    assert job.stop_why == "max_cost"
    assert job.reason.startswith("its limit on cost is reached ($1.9")
    assert 2.0 - 0.05 <= job.cost_usd <= 2.0
    assert kinds(live, job_id) == ["submitted", "started", "limit", "stop", "stopped"]


def test_time_counts_while_a_job_runs_and_not_while_it_waits(lives: Any) -> None:
    live = lives(LONG)
    job_id = live.submit(spec("long", max_time_s=3600.0, grace_s=60.0, gpus=ONE))
    live.advance(1800.0)
    asked(live, live.loop.pause(job_id))
    live.advance(7200.0)
    assert live.job(job_id).ran_s == pytest.approx(1800.0, abs=5)
    asked(live, live.loop.resume(job_id))
    live.advance(1700.0, tick=10.0)
    assert not live.job(job_id).ended
    live.advance(100.0, tick=10.0)
    job = live.job(job_id)
    assert (job.state, job.stop_why) == ("stopped", "max_time")
    assert 3500.0 <= job.ran_s <= 3600.0


# Pauses


@BILLINGS
def test_a_paused_job_holds_nothing_until_it_is_resumed(lives: Any, billing: str) -> None:
    live = lives(billing=billing)
    job_id = live.submit(spec("halves", gpus=ONE))
    live.advance(600.0)
    paused = asked(live, live.loop.pause(job_id, by=ALICE))
    assert paused.paused
    job = live.job(job_id)
    assert (job.state, job.run, job.allocation) == ("waiting", None, None)
    assert job.reason == "paused: boa job resume goes on with it"
    live.advance(3600.0)
    assert live.job(job_id).cost_usd == job.cost_usd
    assert not live.loop.snapshot.nodes
    live.crash()
    assert live.job(job_id).paused
    asked(live, live.loop.resume(job_id, by=ALICE))
    assert live.job(job_id).state in ("running", "rescaling", "starting")
    live.finish()
    done = live.job(job_id)
    assert done.state == "succeeded"
    assert done.run is None
    assert done.restarts == 0, "it is no failure"
    assert "paused" in kinds(live, job_id)
    assert "resumed" in kinds(live, job_id)
    said = [line.entry.what for line in live.store.audit()]
    assert sorted(said) == ["pause", "resume"]


def test_what_was_waited_is_no_part_of_the_rescaling_after_it(lives: Any) -> None:
    live = lives(LONG)
    job_id = live.submit(spec("long", gpus=ONE))
    live.advance(600.0)
    asked(live, live.loop.pause(job_id))
    live.advance(7200.0)
    before = live.clock.now()
    asked(live, live.loop.resume(job_id))
    run = live.job(job_id).run
    assert run is not None
    assert run.decided_at >= before


def test_pausing_what_has_ended_is_refused_and_pausing_twice_is_nothing(lives: Any) -> None:
    live = lives()
    job_id = live.submit(spec("halves", gpus=ONE))
    asked(live, live.loop.pause(job_id))
    assert asked(live, live.loop.pause(job_id)).paused
    assert kinds(live, job_id).count("paused") == 1
    asked(live, live.loop.stop(job_id))
    with pytest.raises(InputError, match=f"job {job_id} stopped"):
        asked(live, live.loop.resume(job_id))
    with pytest.raises(NoSuchJob):
        asked(live, live.loop.pause("77"))


# Changes


@BILLINGS
def test_more_gpus_at_least_are_in_force_at_once(lives: Any, billing: str) -> None:
    live = lives(LONG, per_hour=0.1, budget=20.0, billing=billing)
    job_id = live.submit(spec("long", gpus=ONE))
    live.advance(300.0)
    asked(live, live.loop.change(job_id, {"gpus": {"min": 2, "max": 4}}, by=ALICE))
    live.advance(600.0)
    wider = live.job(job_id).run
    assert wider is not None
    assert wider.allocation.width >= 2


@BILLINGS
def test_fewer_gpus_are_in_force_at_once_and_after_a_crash(lives: Any, billing: str) -> None:
    live = lives(LONG, per_hour=0.1, budget=20.0, billing=billing)
    job_id = live.submit(spec("long"))
    live.advance(300.0)
    wide = live.job(job_id).run
    assert wide is not None
    assert wide.allocation.width > 1
    changed = asked(live, live.loop.change(job_id, {"gpus": {"max": 1}}, by=ALICE))
    assert changed.spec.gpus == GpuLimits(max=1)
    live.advance(600.0)
    narrow = live.job(job_id).run
    assert narrow is not None
    assert narrow.allocation.width == 1
    live.crash()
    assert live.job(job_id).spec.gpus.max == 1
    assert "changed" in kinds(live, job_id)
    (line,) = live.store.audit()
    assert line.entry.what == "job set"
    assert line.entry.after == {"gpus": "1 to 1 of any type"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpus": {"max": 0}}, "gpus.max"),
        ({"gpus": {"types": ["H900"]}}, "H900"),
        ({"gpus": {"min": 5000}}, "gpus.min"),
        ({"weight": -1}, "weight"),
        ({"weight": None}, "weight"),
        ({"max_cost": "40"}, "max_cost"),
        ({"run": ["rm"]}, "run"),
        ({"class": "other"}, "class"),
        ({}, "at least one"),
        ([], "at least one"),
        ({"weight\0": 1}, "weight"),
    ],
)
def test_changes_that_cannot_be_are_refused_and_change_nothing(
    lives: Any, changes: Any, words: str
) -> None:
    live = lives()
    job_id = live.submit(spec("halves"))
    before = live.job(job_id)
    with pytest.raises(InputError, match=words):
        asked(live, live.loop.change(job_id, changes))
    assert live.job(job_id).spec == before.spec
    assert live.job(job_id).amended == {}


def test_a_limit_can_be_raised_and_taken_away(lives: Any) -> None:
    live = lives(LONG)
    job_id = live.submit(spec("long", max_cost=1.0, gpus=ONE))
    live.advance(3200.0, tick=10.0)
    assert "max_cost" in live.job(job_id).told
    asked(live, live.loop.change(job_id, {"max_cost": None, "max_time_s": 1e6}))
    live.advance(3600.0)
    job = live.job(job_id)
    assert not job.ended
    assert (job.spec.max_cost, job.spec.max_time_s, job.told) == (None, 1e6, ())


def test_tags_are_changed_for_good_and_told_and_nothing_is_planned_anew(lives: Any) -> None:
    live = lives(LONG)
    job_id = live.submit(spec("long", gpus=ONE, tags={"project": "cats"}))
    live.advance(600.0)
    before = live.loop.snapshot.plan
    asked(live, live.loop.change(job_id, {"tags": {"project": "zoo", "year": "2026"}}))
    live.advance(60.0)
    assert live.loop.snapshot.plan is before
    assert live.store is not None
    (told,) = [
        one.event.data["fields"] for one in live.store.events() if one.event.kind == "changed"
    ]
    assert told == {"tags.project": "zoo", "tags.year": "2026"}
    live.crash()
    assert live.job(job_id).spec.tags == {"project": "zoo", "year": "2026"}
    asked(live, live.loop.change(job_id, {"tags": {"project": None, "year": None}}))
    assert live.job(job_id).spec.tags == {}
    assert "tags.project none, tags.year none" in live.store.events()[-1].event.text


# Keys


def test_the_same_key_is_the_same_job_also_after_it_has_ended(lives: Any) -> None:
    live = lives()
    again = spec("halves", key="nightly-1", gpus=ONE)
    first, twin = live.loop.submit(again), live.loop.submit(again)
    job = asked(live, first)
    assert twin.result(timeout=0).id == job.id, "in the same turn"
    live.crash()
    assert asked(live, live.loop.submit(again)).id == job.id
    live.finish()
    assert asked(live, live.loop.submit(again)).state == "succeeded"
    assert asked(live, live.loop.submit(again, owner="bob")).id != job.id, "each owner has his own"
    many = asked(live, live.loop.submit_many([spec("halves"), again]))
    assert [one.id == job.id for one in many] == [False, True]
    with pytest.raises(InputError, match=f"was used for job {job.id}"):
        asked(live, live.loop.submit(replace(again, epochs=2)))
    with pytest.raises(InputError, match=r"jobs\[1\]\.key.*once"):
        asked(live, live.loop.submit_many([spec("halves", key="b"), spec("halves", key="b")]))
    live.advance(31 * 86_400.0, tick=86_400.0)
    assert asked(live, live.loop.submit(again)).id != job.id, "forgotten after a month"


# Submitted again


def test_a_job_is_submitted_again_and_may_go_on_from_its_checkpoints(lives: Any) -> None:
    live = lives()
    job_id = live.submit(spec("halves", gpus=ONE))
    same = live.job(job_id).spec
    with pytest.raises(InputError, match="active"):
        asked(live, live.loop.resubmit(job_id, same, continued=True))
    second = asked(live, live.loop.resubmit(job_id, same, by=ALICE))
    assert second.id != job_id
    assert second.spec == same
    assert [line.entry.what for line in live.store.audit()] == ["resubmit"]


def test_only_one_job_at_a_time_goes_on_from_the_same_checkpoints(lives: Any) -> None:
    live = lives(LONG)
    first = live.submit(spec("long"))
    live.loop.stop(first)
    live.settle()
    same = live.job(first).spec
    second = asked(live, live.loop.resubmit(first, same, continued=True))
    with pytest.raises(InputError, match=f"job {second.id} is active"):
        asked(live, live.loop.resubmit(first, same, continued=True))
    live.loop.stop(second.id)
    live.settle()
    third = asked(live, live.loop.resubmit(second.id, second.spec, continued=True))
    assert third.spec.checkpoint_dir == second.spec.checkpoint_dir


# Deadlines and weights

EPOCHS = profile("epochs", work=(3600.0,) * 10, alpha=0.9)


@BILLINGS
def test_a_deadline_is_kept_that_would_else_be_missed_and_costs_more(
    lives: Any, billing: str
) -> None:
    ends, costs = [], []
    for deadline in (None, 3600.0):
        live = lives(EPOCHS, per_hour=1.0, budget=11.5, billing=billing)
        job_id = live.submit(spec("epochs", epochs=10, deadline_s=deadline))
        live.finish()
        job = live.job(job_id)
        assert job.state == "succeeded"
        ends.append(job.ended_at - job.submitted_at)
        costs.append(job.cost_usd)
        assert ("deadline" in kinds(live, job_id)) == (deadline is not None)
        live.close()
        (live.config.data_dir / "boa.db").unlink()
        (live.config.data_dir / "cloud.json").unlink()
    late, kept = ends
    assert late > 3600.0 > kept
    assert costs[1] > costs[0]


@BILLINGS
def test_a_weight_that_is_set_counts_for_that_job_alone(lives: Any, billing: str) -> None:
    live = lives(EPOCHS, per_hour=1.0, budget=11.5, billing=billing)
    one = live.submit(spec("epochs", epochs=10))
    other = live.submit(spec("epochs", epochs=10))
    live.advance(60.0)
    before = live.job(one).run.allocation.width
    asked(live, live.loop.change(one, {"weight": 50}))
    live.advance(600.0)
    assert live.job(one).run.allocation.width > before
    assert live.job(one).urgency == pytest.approx(50.0)
    assert live.job(other).urgency == 1.0
    asked(live, live.loop.change(one, {"weight": 1}))
    assert live.job(one).urgency == 1.0


def test_a_deadline_that_cannot_be_kept_is_told_at_once_and_one_that_passed_counts_no_more(
    lives: Any,
) -> None:
    live = lives(EPOCHS, per_hour=1.0, budget=11.5, billing="node")
    job_id = live.submit(spec("epochs", epochs=10, deadline_s=600.0))
    told = [one.event.data["why"] for one in live.store.events(job=job_id, limit=50)[1:2]]
    assert told == ["out_of_reach"]
    assert live.job(job_id).urgency > 1.0
    live.advance(900.0)
    assert live.job(job_id).urgency == 1.0
    assert "missed" in live.job(job_id).told
    asked(live, live.loop.change(job_id, {"deadline_s": 100_000}))
    assert live.job(job_id).told == (), "another deadline"


@pytest.mark.parametrize("billing", ["gpu", "node"])
@pytest.mark.parametrize("deadline_s", [60.0, 300.0, 600.0, 900.0, 1200.0, 2400.0, 4800.0, 9600.0])
def test_a_deadline_is_called_out_of_reach_only_where_the_told_seconds_exceed_what_is_left(
    lives: Any, billing: str, deadline_s: float
) -> None:
    live = lives(EPOCHS, per_hour=1.0, budget=11.5, billing=billing)
    job_id = live.submit(spec("epochs", epochs=10, deadline_s=deadline_s))
    live.submit(spec("epochs", epochs=10))
    live.advance(deadline_s, tick=30.0)
    for stored in live.store.events(job=job_id, limit=500):
        data = stored.event.data
        if stored.event.kind == "deadline" and data["why"] == "out_of_reach":
            assert data["takes_s"] + data.get("boot_s", 0.0) > data["in_s"]
            certain = data["takes_s"] > data["in_s"]
            assert f"{'will' if certain else 'may'} miss" in stored.event.text
