"""What is kept to show later how things went: samples of the service, points of its jobs."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from boa.model.cluster import Share
from boa.model.records import Point, Report, Sample
from boa.scheduler.observe.sampling import Sampling, wanted
from boa.scheduler.state import Draft, State
from boa.store.base import StoreTrouble
from live import spec
from stored import job, running

HALVES = "halves"


def draft(now: float, **jobs: Any) -> Draft:
    return Draft(State(jobs={one.id: one for one in jobs.get("jobs", ())}), now)


def taken(sampling: Sampling, now: float, budget: float = 10.0, stored: bool = True) -> bool:
    """Whether a sample was taken then."""
    step = draft(now)
    sampling.look(step, budget, budget)
    if stored:
        sampling.stored(step)
    return bool(step.changes.samples)


def report(uptime_s: float, **fields: Any) -> Report:
    given = {"attempt": 3, "epoch": 0, "progress": uptime_s, "units": uptime_s}
    return Report(job="1", uptime_s=uptime_s, **{**given, **fields})


def kept(sampling: Sampling, now: float, *reports: Report, stored: bool = True) -> Point | None:
    """What is kept of reports that come in one step; the job started at 0."""
    step = draft(now)
    for one in reports:
        sampling.reported(step, running(1, started_at=0.0), one)
    if stored:
        sampling.stored(step)
    return step.changes.points.get("1")


# Samples


def test_a_sample_is_taken_at_once_and_then_every_minute() -> None:
    sampling = Sampling(1.0, {})
    times = [0.0, 1.0, 59.0, 60.5, 100.0, 120.0, 121.0]
    assert [at for at in times if taken(sampling, at)] == [0.0, 60.5, 121.0]


def test_a_fast_clock_takes_no_more_than_one_a_second_of_the_wall() -> None:
    sampling = Sampling(500.0, {})
    assert [at for at in range(0, 1200, 60) if taken(sampling, at)] == [0, 540, 1080]


def test_a_new_budget_is_noted_at_once() -> None:
    sampling = Sampling(1.0, {})
    assert taken(sampling, 0.0)
    assert taken(sampling, 1.0, budget=20.0)
    assert not taken(sampling, 2.0, budget=20.0)


def test_a_sample_that_was_not_stored_is_taken_again() -> None:
    sampling = Sampling(1.0, {})
    assert taken(sampling, 0.0, stored=False)
    assert taken(sampling, 1.0)
    assert not taken(sampling, 2.0)


def test_wanted_is_what_the_plan_has_for_all_active_jobs() -> None:
    jobs = [
        running(1),
        job(2, share=Share("T4", 2, None)),
        job(3, share=Share("A100", 8, None)),
        job(4),
    ]
    assert wanted(jobs) == {"T4": 5, "A100": 8}


# Points


def test_points_get_sparser_as_a_job_gets_older() -> None:
    sampling = Sampling(1.0, {})
    at = [float(t) for t in range(1, 86_400, 2) if kept(sampling, float(t), report(float(t)))]
    assert at[:4] == [1.0, 11.0, 21.0, 31.0]
    assert 100 <= len(at) <= 150, "in a day"
    assert at[-1] > 0.94 * 86_400


def test_a_new_epoch_is_kept_but_not_for_ever() -> None:
    sampling = Sampling(1.0, {})
    counts = [n for n in range(2000) if kept(sampling, 3600.0 + n / 100, report(n / 100, epoch=n))]
    assert len(counts) == 1 + 100


def test_a_new_attempt_is_kept() -> None:
    sampling = Sampling(1.0, {})
    assert kept(sampling, 1000.0, report(10.0))
    assert kept(sampling, 1001.0, report(11.0)) is None
    assert kept(sampling, 1002.0, report(1.0, attempt=4))
    assert kept(sampling, 1003.0, report(2.0, attempt=4)) is None


def test_reports_of_one_step_leave_one_point() -> None:
    sampling = Sampling(1.0, {})
    assert kept(sampling, 5.0, report(1.0), report(2.0)) == replace(
        kept(Sampling(1.0, {}), 5.0, report(1.0)) or pytest.fail("nothing was kept"), at=5.0
    )
    found = kept(sampling, 6.0, report(3.0, epoch=1), report(4.0, epoch=2, loss=0.5))
    assert found is not None
    assert (found.epoch, found.loss, found.turns) == (2, 0.5, 2)


def test_a_point_that_was_not_stored_is_kept_next_time() -> None:
    sampling = Sampling(1.0, {})
    assert kept(sampling, 1.0, report(1.0), stored=False)
    assert kept(sampling, 2.0, report(2.0))
    assert kept(sampling, 3.0, report(3.0)) is None


def test_a_service_that_comes_back_goes_on_where_it_was() -> None:
    first = kept(Sampling(1.0, {}), 1000.0, report(10.0, epoch=2, metrics={"batch_size": 256.0}))
    assert first is not None
    assert first.batch_size == 256.0
    again = Sampling(1.0, {"1": first})
    assert kept(again, 1001.0, report(11.0, epoch=2)) is None
    assert kept(again, 1051.0, report(61.0, epoch=2)) is None
    assert kept(again, 1053.0, report(63.0, epoch=2))


def test_the_last_thing_that_a_job_said_is_kept_and_then_it_is_forgotten() -> None:
    sampling = Sampling(1.0, {})
    assert kept(sampling, 1000.0, report(10.0))
    said = report(20.0, loss=0.25)
    assert kept(sampling, 1010.0, said) is None
    over = draft(1015.0)
    ended = over.put_job(job(1, state="succeeded", ended_at=1014.0))
    sampling.ended(over, ended, said)
    assert over.changes.points["1"].at == 1014.0
    assert over.changes.points["1"].loss == 0.25
    sampling.stored(over)
    assert sampling._points == {}


# In a service


def samples(live: Any) -> list[Sample]:
    return list(live.store.samples_between(0.0, 1e12))


def test_a_service_samples_every_minute_whatever_happens(lives: Any) -> None:
    live = lives()
    live.submit(spec(HALVES, epochs=2))
    live.advance(1800.0, tick=20.0)
    found = samples(live)
    gaps = [after.at - before.at for before, after in pairwise(found)]
    assert 28 <= len(found) <= 31
    assert min(gaps) >= 60.0
    assert max(gaps) <= 80.0
    assert found[0].active == 0
    share = live.job("1").share
    assert (found[3].active, found[3].wanted) == (1, {share.gpu: share.width})
    assert (found[-1].active, found[-1].wanted) == (0, {}), "it has ended"
    assert found[-1].budget == 12.0


def test_points_of_a_job_follow_it_through_a_restart_of_the_service(lives: Any) -> None:
    live = lives()
    live.engine.report_s = 5.0
    number = live.submit(spec(HALVES, epochs=2))
    live.advance(300.0)
    before = live.store.points(number)
    assert len(before) > 5
    live.crash()
    live.finish()
    points = live.store.points(number)
    assert list(points[: len(before)]) == list(before)
    assert len({point.at for point in points}) == len(points) <= 150
    assert {point.epoch for point in points} >= {0, 1}
    progress = [(point.epoch, point.progress) for point in points]
    assert progress == sorted(progress)
    ended = live.job(number)
    assert ended.ended_at is not None
    assert points[-1].at <= ended.ended_at
    assert (points[-1].epoch, points[-1].progress) == (ended.epoch, ended.progress)


def test_trouble_with_the_store_loses_no_point_and_doubles_no_sample(
    lives: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = lives()
    live.engine.report_s = 5.0
    number = live.submit(spec(HALVES, epochs=2))
    live.advance(300.0)
    commit, store = live.store.commit, live.store

    def locked(changes: object) -> int:
        raise StoreTrouble("locked")

    had = len(samples(live))
    monkeypatch.setattr(store, "commit", locked)
    live.clock.advance_to(live.clock.now() + 120.0)
    for _ in range(3):
        live.loop.step()
    monkeypatch.setattr(store, "commit", commit)
    assert len(samples(live)) == had
    live.settle()
    assert len(samples(live)) == had + 1
    live.finish()
    ended = live.job(number)
    last = store.points(number)[-1]
    assert (last.epoch, last.progress) == (ended.epoch, ended.progress)
