"""Jobs that start after others, kept by the real loop on a virtual clock."""

from typing import Any

import pytest

from boa.errors import InputError
from boa.model.access import Caller
from boa.model.job import After, GpuLimits
from boa.model.runs import RunKey
from live import BILLINGS, LONG, asked, spec

ONE = GpuLimits(max=1)
ALICE = Caller(name="alice", role="member", address="10.0.0.7")


@BILLINGS
def test_a_job_starts_when_those_that_it_is_after_have_succeeded(lives: Any, billing: str) -> None:
    live = lives(billing=billing)
    first, second = live.submit(spec("halves", gpus=ONE)), live.submit(spec("halves", gpus=ONE))
    later = live.submit(spec("halves", after=(After(first), After(second))))
    assert live.job(later).state == "waiting"
    assert live.job(later).reason == f"waits for job {first}, job {second}"
    live.advance(600.0)
    assert live.job(later).run is None
    live.finish()
    done = live.job(later)
    assert done.state == "succeeded"
    ends = [live.job(job).ended_at for job in (first, second)]
    assert done.started_at is not None
    assert done.started_at >= max(ends)


def test_a_job_that_others_were_to_start_after_takes_them_along_when_it_fails(lives: Any) -> None:
    live = lives(LONG, backoff_s=1.0)
    first = live.submit(spec("long", retries=0))
    second = live.submit(spec("long", after=(After(first),)))
    third = live.submit(spec("long", after=(After(second),)))
    cleanup = live.submit(spec("long", after=(After(first, "failure"),)))
    whatever = live.submit(spec("long", after=(After(second, "end"),)))
    live.engine.kill(RunKey(first, 1), exit_code=1)
    live.settle()
    assert live.job(first).state == "failed"
    assert live.job(second).state == "stopped"
    said = f"job {first} failed; this one was to start once it succeeds"
    assert live.job(second).reason == said
    assert live.job(third).state == "stopped", "and so on"
    assert live.job(third).stop_why == "dependency"
    assert live.job(cleanup).state == live.job(whatever).state == "running"


def test_a_job_stopped_before_it_starts_frees_or_ends_those_after_it(lives: Any) -> None:
    live = lives(LONG)
    first = live.submit(spec("long"))
    second = live.submit(spec("long", after=(After(first),)))
    third = live.submit(spec("long", after=(After(second, "end"),)))
    live.loop.stop(second)
    assert live.loop.accept(), "no decision is made in this turn"
    live.settle()
    assert live.job(second).state == "stopped"
    assert live.job(third).state == "running"


def test_what_a_job_waits_for_is_remembered_after_a_crash(lives: Any) -> None:
    live = lives()
    first = live.submit(spec("halves", gpus=ONE))
    later = live.submit(spec("halves", gpus=ONE, after=(After(first),)))
    live.crash()
    assert live.job(later).awaits == (After(first),)
    live.finish()
    assert live.job(later).state == "succeeded"


def test_a_job_that_waits_for_many_is_written_a_few_times_and_starts_after_the_last(
    lives: Any,
) -> None:
    live, written = lives(LONG), 0
    many = [live.submit(spec("long", gpus=ONE)) for _ in range(40)]
    later = live.submit(spec("long", after=tuple(After(one, "end") for one in many)))
    seen = live.job(later).awaits
    for one in many:
        assert live.job(later).state == "waiting"
        live.loop.stop(one)
        live.settle()
        written += live.job(later).awaits != seen
        seen = live.job(later).awaits
        if one == many[9]:
            live.crash()
    assert live.job(later).awaits == ()
    assert live.job(later).state == "running"
    assert written <= 22


def test_what_a_batch_waits_for_is_looked_up_once(
    lives: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, seen = lives(), list[str]()
    ended = live.submit(spec("halves"))
    live.finish()
    look = live.store.job

    def looked(job: str) -> Any:
        seen.append(job)
        return look(job)

    monkeypatch.setattr(live.store, "job", looked)
    many = [spec("halves", after=(After(ended),))] * 50
    assert len(asked(live, live.loop.submit_many(many))) == 50
    assert seen == [ended]


def test_a_job_after_one_that_cannot_end_so_is_refused(lives: Any) -> None:
    live = lives()
    first = live.submit(spec("halves", gpus=ONE))
    live.finish()
    for after, problem in ((After("77"), "after[0]"), (After(first, "failure"), "succeeded")):
        with pytest.raises(InputError, match=problem.replace("[", r"\[")):
            asked(live, live.loop.submit(spec("halves", after=(after,))))
    many = live.loop.submit_many([spec("halves"), spec("halves", after=(After("77"),))])
    with pytest.raises(InputError, match=r"jobs\[1\]\.after\[0\]"):
        asked(live, many)
    assert not live.loop.snapshot.jobs, "neither of the two"
    assert live.job(live.submit(spec("halves", after=(After(first),)))).state == "running"
