"""The real loop on a virtual clock: what cannot be stored has not happened."""

from typing import Any

import pytest

from boa.model.changes import Changes
from boa.scheduler.refusals import NotNow
from boa.store.base import StoreTrouble
from live import spec


def test_what_cannot_be_stored_has_not_happened(lives: Any, monkeypatch: Any) -> None:
    live = lives()
    real = live.store.commit

    def locked(changes: Changes) -> int:
        raise StoreTrouble("the database is locked")

    monkeypatch.setattr(live.store, "commit", locked)
    asked = live.loop.submit(spec("halves"))
    live.loop.step()
    with pytest.raises(NotNow, match=r"nothing was changed.*locked"):
        asked.result(timeout=0)
    assert not live.loop.snapshot.jobs
    assert not live.engine.started
    monkeypatch.setattr(live.store, "commit", real)
    assert live.job(live.submit(spec("halves"))).state == "running"


def test_an_end_that_could_not_be_stored_is_told_again(lives: Any, monkeypatch: Any) -> None:
    live = lives()
    job_id = live.submit(spec("halves"))
    real = live.store.commit
    failing = True

    def sometimes(changes: Changes) -> int:
        if failing and job_id in changes.jobs and changes.jobs[job_id].ended:
            raise StoreTrouble("disk full")
        return int(real(changes))

    monkeypatch.setattr(live.store, "commit", sometimes)
    live.clock.advance_to(live.clock.now() + 36_000)
    for _ in range(3):
        live.loop.actor.watch_engine()
        live.loop.step()
    assert live.job(job_id).state == "running"
    failing = False
    live.settle()
    assert live.job(job_id).state == "succeeded"


def test_a_budget_that_could_not_be_stored_is_not_in_force(lives: Any, monkeypatch: Any) -> None:
    live = lives()

    def full(changes: Changes) -> int:
        raise StoreTrouble("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(live.store, "commit", full)
        asked = live.loop.set_budget(99.0)
        live.loop.step()
    with pytest.raises(NotNow):
        asked.result(timeout=0)
    assert live.loop.snapshot.money.budget == 12.0


def test_a_start_that_could_not_be_stored_is_looked_at_again(lives: Any, monkeypatch: Any) -> None:
    live = lives()
    real, failing = live.store.commit, True

    def sometimes(changes: Changes) -> int:
        if failing and any(job.state == "running" for job in changes.jobs.values()):
            raise StoreTrouble("database is locked")
        return int(real(changes))

    monkeypatch.setattr(live.store, "commit", sometimes)
    asked = live.loop.submit(spec("halves"))
    for _ in range(6):
        live.loop.actor.watch_cloud()
        live.loop.actor.watch_engine()
        live.loop.step()
    job_id = asked.result(timeout=0).id
    assert live.job(job_id).state == "starting"
    failing = False
    live.settle()
    assert live.job(job_id).state == "running"


class Broken:
    by_job, at_events, follows_plan = False, True, False

    def decide(self, view: Any) -> Any:
        raise RuntimeError("a bug")


def test_a_bug_in_a_step_is_answered_and_undone(lives: Any, monkeypatch: Any) -> None:
    live = lives()
    with monkeypatch.context() as patched:
        patched.setattr(live.loop.scheduler.decider, "policy", Broken())
        asked = live.loop.submit(spec("halves"))
        live.loop.step()
    with pytest.raises(NotNow, match="nothing was changed"):
        asked.result(timeout=0)
    assert not live.loop.snapshot.jobs
    assert any("step failed" in line for line in live.logged)
    assert live.job(live.submit(spec("halves"))).state == "running"
