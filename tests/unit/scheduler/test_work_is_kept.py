"""A running job keeps its work: what BOA may stop, for whom, and what it tells of it."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from boa.model.job import GpuLimits, JobRecord
from boa.model.records import Event, Report
from boa.model.runs import Launch
from boa.model.workload import GpuType
from boa.scheduler.refusals import WouldLoseWork
from boa.sim.engine import NO_SAVING, SAVES, Checkpointing
from live import Live, asked, config, profile, spec

SLOT = GpuType(name="slot", price=1.0, gpus_per_node=2)
SLOTS = {"slot": 1.0}
PLAIN = profile("plain", work=(3600.0,), alpha=0.9, gpus=SLOTS, rescale_s=3.0)
SAVING = profile("saving", work=(3600.0,), alpha=0.9, gpus=SLOTS, rescale_s=3.0)
QUICK = profile("quick", work=(20.0,), alpha=0.9, gpus=SLOTS, rescale_s=3.0)
WIDE = profile("wide", work=(600.0,), alpha=0.9, gpus=SLOTS, rescale_s=3.0)
CRASHING = profile("crashing", work=(60.0,), alpha=0.9, gpus=SLOTS, rescale_s=3.0)
FLAT = profile("flat", work=(7200.0,), alpha=0.0, gpus=SLOTS, rescale_s=3.0)
PROFILES = {one.name: one for one in (PLAIN, SAVING, QUICK, WIDE, CRASHING, FLAT)}
ONE = GpuLimits(max=1)


def saving(launch: Launch) -> Checkpointing:
    return NO_SAVING if launch.spec.job_class in ("plain", "crashing") else SAVES


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """One node of two slots, and no other."""
    settings = config(
        tmp_path, gpu_types={"slot": SLOT}, max_nodes={"slot": 1}, budget=100.0, billing="node"
    )
    made = Live(settings, PROFILES)
    made.engine.saving = saving
    yield made
    made.close()


def events(live: Live, kind: str, job: str | None = None) -> list[Event]:
    assert live.store is not None
    return [s.event for s in live.store.events(job=job, limit=10_000) if s.event.kind == kind]


def starts(live: Live, job: str) -> int:
    return live.job(job).attempts


def two_running(live: Live, name: str) -> tuple[str, str]:
    first, second = (live.submit(spec(name, gpus=ONE)) for _ in range(2))
    live.advance(60.0)
    assert all(_runs(live.job(job)) for job in (first, second))
    return first, second


def _runs(job: JobRecord) -> bool:
    return job.run is not None and job.run.state != "stopping"


# Jobs that cannot checkpoint


def test_an_urgent_job_does_not_stop_one_that_cannot_checkpoint(live: Live) -> None:
    plain = two_running(live, "plain")
    urgent = live.submit(spec("quick", priority="urgent", gpus=ONE))
    live.advance(600.0)
    assert [starts(live, job) for job in plain] == [1, 1]
    assert starts(live, urgent) == 0
    live.finish()
    assert all(live.job(job).state == "succeeded" for job in (*plain, urgent))
    assert [starts(live, job) for job in plain] == [1, 1]


def test_a_job_that_says_that_it_does_not_save_is_believed_whatever_was_said_before(
    live: Live,
) -> None:
    said: list[Report] = []
    live.engine.report = said.append
    jobs = two_running(live, "saving")
    for saves in (True, False):
        for report in said:
            live.loop.report(replace(report, saves=saves))
        live.settle()
        assert [live.job(job).saves for job in jobs] == [saves, saves]
    live.submit(spec("quick", priority="urgent", gpus=ONE))
    live.advance(600.0)
    assert [starts(live, job) for job in jobs] == [1, 1]


def test_a_preemptible_job_is_stopped_for_an_urgent_one_and_told_what_it_loses(live: Live) -> None:
    jobs = [live.submit(spec("plain", gpus=ONE, preemptible=True)) for _ in range(2)]
    live.advance(60.0)
    urgent = live.submit(spec("quick", priority="urgent", gpus=ONE))
    live.advance(300.0)
    assert live.job(urgent).state == "succeeded"
    (event,) = [one for job in jobs for one in events(live, "preempted", job)]
    assert event.data["by_job"] == urgent
    assert event.data["lost_s"] >= 55.0
    assert "of work is lost unless it saves a checkpoint first" in event.text
    assert sum(live.job(job).lost_s for job in jobs) >= 55.0
    (again,) = [one for job in jobs for one in events(live, "rescaled", job)]
    assert again.data["lost_s"] >= 55.0
    assert again.text.endswith("of work again, which was in no checkpoint")


def test_a_newcomer_of_the_same_priority_takes_no_running_jobs_last_gpu(live: Live) -> None:
    running = two_running(live, "saving")
    newcomers = [live.submit(spec("quick", gpus=ONE)) for _ in range(3)]
    live.advance(900.0)
    assert [starts(live, job) for job in running] == [1, 1]
    assert not events(live, "preempted")
    live.finish()
    assert all(live.job(job).state == "succeeded" for job in (*running, *newcomers))


def test_an_urgent_job_takes_gpus_of_one_that_saves_which_goes_on_before_newcomers(
    live: Live,
) -> None:
    running = two_running(live, "saving")
    urgent = live.submit(spec("quick", priority="urgent", gpus=ONE))
    newcomer = live.submit(spec("quick", gpus=ONE))
    live.advance(10.0)
    (victim,) = [job for job in running if live.job(job).run is None or not _runs(live.job(job))]
    assert live.job(victim).state in ("preempted", "rescaling")
    (event,) = events(live, "preempted", victim)
    assert event.data["by_job"] == urgent
    assert f"was preempted by job {urgent}" in event.text
    live.advance(200.0)
    assert live.job(urgent).state == "succeeded"
    assert _runs(live.job(victim)), "it goes on before the newcomer"
    assert starts(live, newcomer) == 0
    assert live.job(victim).lost_s == 0.0


def test_many_narrow_jobs_do_not_starve_a_wide_one(live: Live) -> None:
    wide = live.submit(spec("wide", gpus=GpuLimits(min=2, max=2)))
    live.advance(60.0)
    narrow = [live.submit(spec("quick", gpus=ONE)) for _ in range(13)]
    live.finish()
    assert starts(live, wide) == 1
    assert all(live.job(job).state == "succeeded" for job in (wide, *narrow))


# Pauses


def test_a_pause_that_would_lose_work_is_refused_and_says_how_much(live: Live) -> None:
    (job, _) = two_running(live, "plain")
    with pytest.raises(WouldLoseWork, match="last 1 min of work"):
        asked(live, live.loop.pause(job))
    assert _runs(live.job(job))
    asked(live, live.loop.pause(job, force=True))
    live.advance(5.0)
    assert live.job(job).run is None
    (event,) = events(live, "paused", job)
    assert event.data["lost_s"] >= 55.0


def test_a_pause_of_a_job_that_saves_is_not_refused(live: Live) -> None:
    (job, _) = two_running(live, "saving")
    asked(live, live.loop.pause(job))
    live.advance(5.0)
    assert live.job(job).run is None
    assert live.job(job).lost_s == 0.0


def test_a_job_that_would_lose_work_is_made_a_background_job_only_if_forced(live: Live) -> None:
    (job, _) = two_running(live, "plain")
    with pytest.raises(WouldLoseWork, match=r"last 1 min of work.*repeat the command with --force"):
        asked(live, live.loop.change(job, {"priority": "background"}))
    assert live.job(job).amended == {}
    asked(live, live.loop.change(job, {"weight": 3.0}))
    asked(live, live.loop.change(job, {"priority": "background"}, force=True))
    assert live.job(job).spec.priority == "background"


# Jobs that crash


def crash(live: Live, name: str, after: Any = None) -> None:
    live.engine.breaks = lambda launch: "boom" if launch.spec.job_class == name else ""


@pytest.mark.parametrize("priority", ["normal", "urgent"])
def test_a_crash_looping_job_does_not_rescale_its_neighbour_at_every_retry(
    live: Live, priority: str
) -> None:
    neighbour = live.submit(spec("saving"))
    live.advance(120.0)
    crash(live, "crashing")
    live.submit(spec("crashing", gpus=ONE, priority=priority, retries=8))
    live.advance(600.0)
    assert live.job(neighbour).rescalings <= 2
    assert live.job(neighbour).preemptions == 0


def test_retries_back_off_by_failures_within_a_window_whatever_progress_is_made(live: Live) -> None:
    crash(live, "crashing")
    job = live.submit(spec("crashing", gpus=ONE, retries=20))
    live.advance(600.0)
    first = live.job(job).attempts
    live.advance(600.0)
    assert live.job(job).attempts - first <= 2


# After a rescaling


def test_a_job_that_was_rescaled_keeps_its_gpus_for_ten_rescaling_times(live: Live) -> None:
    job = live.submit(spec("saving"))
    live.advance(300.0)
    for _ in range(6):
        live.submit(spec("quick", gpus=ONE))
        live.advance(25.0)
    live.finish()
    moves = [one.at for one in events(live, "rescaled", job)]
    assert all(later - sooner >= 30.0 - 1e-6 for sooner, later in pairwise(moves))


# GPUs that bring nothing


def test_gpus_that_measurably_bring_nothing_are_given_back(live: Live) -> None:
    live.engine.report_s = 5.0
    job = live.submit(spec("flat"))
    live.advance(3000.0, tick=5.0)
    run, widths = live.job(job).run, [one.data["width"] for one in events(live, "rescaled", job)]
    assert run is not None
    assert widths == [2, 1], "two GPUs were tried, and one of them was given back"
