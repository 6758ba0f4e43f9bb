"""Failures that belong to where a job was put: the real loop on a virtual clock.

Jobs act a profile out, and break as soon as they begin where `breaks` says so.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boa.api.classes import FailedWidth
from boa.model.cluster import Policy
from boa.model.exit_codes import AGAIN
from boa.model.job import GpuLimits
from boa.model.placements import Placement
from boa.model.runs import Launch, RunKey
from boa.policy.rivals.pollux_autoscale import PolluxAutoscale
from boa.policy.rivals.sia_autoscale import SiaAutoscale
from boa.scheduler.lifecycle import MOST_AGAIN
from live import A100, BILLINGS, T4, Live, config, kinds, prior, profile, spec

NET = profile("net", work=(1500.0,) * 3, alpha=0.95)
MEMORY = "CUDA out of memory"
HOUR = 3600.0


def breaks_at(broken: Callable[[int], bool]) -> Callable[[Launch], str]:
    return lambda launch: MEMORY if broken(launch.width) else ""


def only_alone(launch: Launch) -> str:
    return MEMORY if launch.width > 1 else ""


@pytest.fixture
def lived(tmp_path: Path) -> Any:
    """Services of a class that nothing is known of, whose jobs report every minute."""
    made: list[Live] = []

    def begin(breaks: Callable[[Launch], str] = only_alone, **settings: object) -> Live:
        policy = settings.pop("policy", None)
        profiles = {"net": settings.pop("profile", NET)}
        folder = tmp_path / f"{len(made)}"
        folder.mkdir()
        live = Live(
            config(folder, **settings),
            profiles,  # type: ignore[arg-type]
            policy=policy,  # type: ignore[arg-type]
        )
        live.engine.report_s = 60.0
        live.engine.breaks = breaks
        made.append(live)
        return live

    yield begin
    for live in made:
        live.close()


def net(**fields: object) -> Any:
    fields.setdefault("gpus", GpuLimits(max=4))
    return spec("net", epochs=3, **fields)


def failed(live: Live, gpu: str = "T4") -> list[FailedWidth]:
    document = live.loop.class_document("net")
    assert document is not None
    return next(kind["failed"] for kind in document["gpu_types"] if kind["name"] == gpu)


def widths(live: Live) -> list[int]:
    """Widths that runs were started at, in order."""
    assert live.store is not None
    events = live.store.events(limit=10_000)
    starts = ("started", "rescaled", "restarted")
    return [stored.event.data["width"] for stored in events if stored.event.kind in starts]


def told(live: Live, job: str) -> list[dict[str, Any]]:
    assert live.store is not None
    events = [stored.event for stored in live.store.events(job=job, limit=10_000)]
    return [dict(event.data) for event in events if event.kind == "retry"]


def planned(live: Live) -> set[int]:
    plan = live.loop.snapshot.plan
    assert plan is not None
    return {
        int(width) for variant in plan.solution.plan["net"].variants for width in variant.widths
    }


@BILLINGS
def test_a_job_that_only_works_on_one_gpu_succeeds_and_its_class_plans_one(
    lived: Any, billing: str
) -> None:
    live = lived(billing=billing)
    job_id = live.submit(net(retries=0))
    live.finish()
    job = live.job(job_id)
    assert (job.state, job.failures) == ("succeeded", 0)
    assert max(widths(live)) > 1, "it was never widened: the test shows nothing"
    assert planned(live) == {1}
    (found,) = failed(live)
    assert found["width"] == min(width for width in widths(live) if width > 1)
    assert (found["reason"], found["said"]) == ("exit code 1", MEMORY)
    assert found["job"] == job_id


@BILLINGS
def test_the_next_job_of_the_class_is_not_widened(lived: Any, billing: str) -> None:
    live = lived(billing=billing)
    live.submit(net())
    live.finish()
    tried = len(widths(live))
    after = live.submit(net())
    live.finish()
    assert live.job(after).state == "succeeded"
    assert set(widths(live)[tried:]) == {1}


def test_a_failed_width_is_told_with_the_way_back_and_counts_as_no_failure(lived: Any) -> None:
    live = lived()
    job_id = live.submit(net())
    live.finish()
    (event, *_) = told(live, job_id)
    assert event["why"] == "width_failed"
    assert (event["detail"], event["said"]) == ("exit code 1", MEMORY)
    assert (event["back_gpu_type"], event["back_width"], event["wait_s"]) == ("T4", 1, 0.0)
    assert "failed" not in kinds(live, job_id)


def test_the_job_goes_back_at_once_without_a_new_plan(lived: Any) -> None:
    live = lived()
    job_id = live.submit(net())
    while live.job(job_id).attempts < 3:
        assert not live.job(job_id).ended
        live.advance(15.0, tick=15.0)
    assert told(live, job_id)
    job = live.job(job_id)
    assert job.run is not None
    assert job.run.allocation.width == 1
    assert job.run.requested_at - told_at(live, job_id) == pytest.approx(0.0)


def told_at(live: Live, job: str) -> float:
    assert live.store is not None
    events = [stored.event for stored in live.store.events(job=job, limit=10_000)]
    return next(event.at for event in events if event.kind == "retry")


def test_a_failure_where_nothing_ever_worked_counts_as_the_jobs_own(lived: Any) -> None:
    live = lived(breaks=lambda launch: "no such file")
    job_id = live.submit(net(retries=2))
    live.finish()
    job = live.job(job_id)
    assert (job.state, job.failures, job.attempts) == ("failed", 3, 3)
    assert job.reason == "exit code 1, 3 times without progress"
    assert job.said == "no such file"
    assert failed(live) == []


def test_a_run_that_made_progress_there_before_it_failed_counts_as_its_own(lived: Any) -> None:
    live = lived(breaks=lambda launch: "", gpu_types={"T4": T4})
    job_id = live.submit(net(gpus=GpuLimits(max=1), retries=1))
    live.advance(600.0)
    live.engine.kill(RunKey(job_id, 1), exit_code=1)
    live.settle()
    assert live.job(job_id).failures == 1
    assert failed(live) == []


def test_a_job_that_fails_where_others_work_fails_on_its_own_account(lived: Any) -> None:
    live = lived(breaks=lambda launch: "typo" if launch.key.job == "2" else "")
    live.submit(net())
    live.advance(1200.0)
    job_id = live.submit(net(retries=3))
    live.finish()
    assert live.job("1").state == "succeeded"
    assert live.job(job_id).state == "failed"
    assert failed(live) == [], "it was the job: the class has learned nothing of its widths"


def test_a_job_never_falls_below_the_least_it_asks_for(lived: Any) -> None:
    live = lived(breaks=breaks_at(lambda width: width > 2))
    live.submit(net(gpus=GpuLimits(max=1)))
    live.finish()
    before = len(widths(live))
    job_id = live.submit(net(gpus=GpuLimits(min=2, max=8), retries=0))
    live.finish()
    assert live.job(job_id).state == "succeeded"
    assert min(widths(live)[before:]) == 2


def test_a_class_with_a_profile_that_is_wrong_falls_back_step_by_step(lived: Any) -> None:
    known = prior(NET, per_hour=2.0)
    live = lived(priors={"net": known}, budget=20.0)
    live.settle()
    assert min(planned(live)) > 1
    job_id = live.submit(net())
    live.finish()
    assert live.job(job_id).state == "succeeded"
    assert planned(live) == {1}
    before = len(widths(live))
    live.submit(net())
    live.finish()
    assert set(widths(live)[before:]) == {1}


def test_a_type_on_which_nothing_works_is_left_for_the_one_that_does(lived: Any) -> None:
    two = profile("net", work=(3600.0,) * 3, alpha=0.9, gpus={"T4": 1.0, "A100": 4.0})
    live = lived(
        breaks=lambda launch: "no kernel image" if launch.gpu_type == "A100" else "",
        profile=two,
        gpu_types={"T4": T4, "A100": A100},
        priors={"net": prior(two, per_hour=2.0)},
        budget=20.0,
    )
    first = live.submit(net(gpus=GpuLimits(max=4, types=("T4",))))
    live.advance(600.0)
    job_id = live.submit(net(gpus=GpuLimits(max=2)))  # on one node: of others that says all
    live.advance(300.0)
    assert failed(live, "A100")
    plan = live.loop.snapshot.plan
    assert plan is not None
    used = {gpu for variant in plan.solution.plan["net"].variants for gpu in variant.gpu_types}
    assert used == {"T4"}
    live.finish()
    assert live.job(first).state == live.job(job_id).state == "succeeded"
    assert live.job(job_id).failures == 0


def test_what_failed_is_remembered_over_a_restart(lived: Any) -> None:
    live = lived()
    live.submit(net())
    live.finish()
    before = failed(live)
    assert before
    live.crash()
    assert failed(live) == before
    tried = len(widths(live))
    live.submit(net())
    live.finish()
    assert set(widths(live)[tried:]) == {1}


def test_what_works_again_is_no_longer_barred(lived: Any) -> None:
    live = lived()
    live.submit(net())
    live.finish()
    assert failed(live)
    live.engine.breaks = lambda launch: ""
    live.advance(7 * HOUR)  # two failures bar it for six
    for _ in range(5):  # of these the last is one that tries things
        live.submit(net())
    live.finish()
    assert failed(live) == []
    assert max(planned(live)) > 1


def test_progress_elsewhere_proves_a_width_that_others_may_keep(lived: Any) -> None:
    """Widths at which a job of the class got somewhere are used, whatever failed beyond them."""
    live = lived(breaks=breaks_at(lambda width: width > 2))
    for _ in range(4):
        live.submit(net())
        live.finish()
    assert all(found["width"] > 2 for found in failed(live))
    assert max(planned(live)) == 2


@pytest.mark.parametrize("policy", [PolluxAutoscale(0.5), SiaAutoscale(0.5)])
def test_no_rival_gives_a_width_that_failed(lived: Any, policy: Policy) -> None:
    live = lived(policy=policy, priors={"net": prior(NET, per_hour=2.0)})
    job_id = live.submit(net(retries=1))
    live.finish()
    assert live.job(job_id).state == "succeeded"
    before = len(widths(live))
    after = live.submit(net())
    live.finish()
    assert live.job(after).state == "succeeded"
    assert set(widths(live)[before:]) == {1}


def test_a_job_remembers_where_it_went_well(lived: Any) -> None:
    live = lived()
    job_id = live.submit(net())
    live.finish()
    assert live.job(job_id).worked == (Placement("T4", 1, across=False),)


# Runs that ask for another start


def test_a_run_that_asks_for_it_is_started_again_at_once_where_it_was(lived: Any) -> None:
    starts: list[int] = []

    def learns(launch: Launch) -> str:
        starts.append(launch.width)
        return MEMORY if launch.key.attempt <= 3 else ""

    live = lived(learns)
    live.engine.code = AGAIN
    job_id = live.submit(net(retries=0))
    live.finish()
    assert live.job(job_id).state == "succeeded"
    assert starts[:4] == [1] * 4
    assert [event["why"] for event in told(live, job_id)] == ["asked"] * 3
    assert failed(live) == []


def test_a_run_that_asks_for_ever_has_failed(lived: Any) -> None:
    live = lived(lambda launch: MEMORY)
    live.engine.code = AGAIN
    job_id = live.submit(net(retries=0))
    live.finish()
    job = live.job(job_id)
    assert (job.state, job.exit_code) == ("failed", AGAIN)
    assert len(live.engine.started) == MOST_AGAIN + 1


def test_a_run_that_asks_for_another_start_uses_up_no_retries(lived: Any) -> None:
    live = lived(lambda launch: MEMORY if launch.key.attempt <= 3 else "")
    live.engine.code = AGAIN
    job_id = live.submit(net(retries=1))
    live.finish()
    waits = [event["wait_s"] for event in told(live, job_id)]
    assert waits == [0.0, 1.0, 2.0], "a pause from the second in a row on"
    assert live.job(job_id).failures == 0
