"""Background jobs: on GPUs that are paid for and empty, and out of the way at once."""

from dataclasses import replace
from pathlib import Path

import pytest

from boa.model.job import GpuLimits
from boa.scheduler.decide.background import CALM, LEAST_EMPTY_S
from boa.scheduler.money.paid_for import paid_for
from boa.scheduler.words.of_keeping import waits_in_background
from live import BILLINGS, Live, asked, config, prior, profile, spec

KNOWN = profile("known", work=(7200.0,), rescale_s=20.0)
QUIET = replace(KNOWN, name="quiet")
"""A class that only comes in the background."""
NOTHING_EMPTY = waits_in_background(0, 1)


def begun(folder: Path, **fields: object) -> Live:
    priors = {"known": prior(KNOWN, per_hour=2.0)}
    settings = config(folder, priors=priors, **{"billing": "node", **fields})
    return Live(settings, {"known": KNOWN, "quiet": QUIET})


def width(live: Live, job: str) -> int:
    given = live.job(job).allocation
    return 0 if given is None else given.width


@BILLINGS
def test_nothing_is_rented_for_it(tmp_path: Path, billing: str) -> None:
    live = begun(tmp_path, billing=billing)
    job = live.submit(spec("quiet", priority="background"))
    live.advance(4 * 3600.0)
    assert not live.loop.snapshot.nodes
    assert live.job(job).state == "waiting"
    assert live.job(job).reason == NOTHING_EMPTY
    live.close()


@BILLINGS
def test_it_takes_what_a_paying_job_leaves_of_its_node(tmp_path: Path, billing: str) -> None:
    live = begun(tmp_path, billing=billing)
    paying = live.submit(spec("known", gpus=GpuLimits(max=1)))
    live.advance(60.0, tick=10.0)
    background = live.submit(spec("quiet", priority="background"))
    assert width(live, background) == 0, "the gap is young"
    live.advance(LEAST_EMPTY_S + 20.0, tick=5.0)
    assert (width(live, paying), width(live, background) > 0) == (1, True)
    live.close()


@BILLINGS
def test_a_paying_job_has_its_gpus_at_once(tmp_path: Path, billing: str) -> None:
    live = begun(tmp_path, billing=billing, max_nodes={"T4": 1})
    live.submit(spec("known", gpus=GpuLimits(max=1)))
    live.advance(60.0, tick=10.0)
    background = live.submit(spec("quiet", priority="background", gpus=GpuLimits(min=3, max=3)))
    live.advance(1200.0, tick=10.0)
    assert width(live, background) == 3
    second = live.submit(spec("known", gpus=GpuLimits(max=1)))
    live.settle()
    assert live.job(second).run is not None, "what it stopped for has no grace to wait for here"
    assert live.job(background).run is None
    assert live.job(background).reason == waits_in_background(2, 3)
    live.close()


@BILLINGS
def test_a_node_goes_although_it_is_on_it(tmp_path: Path, billing: str) -> None:
    live = begun(tmp_path, billing=billing)
    paying = live.submit(spec("known", gpus=GpuLimits(max=1)))
    live.advance(60.0, tick=10.0)
    background = live.submit(spec("quiet", priority="background", total_work=1e9))
    live.advance(600.0, tick=10.0)
    assert width(live, background) > 0
    asked(live, live.loop.stop(paying))
    live.advance(7200.0, tick=60.0)
    assert not live.loop.snapshot.nodes
    assert live.job(background).reason == NOTHING_EMPTY
    live.close()


def test_a_class_that_comes_in_the_background_alone_is_not_planned_for(tmp_path: Path) -> None:
    live = begun(tmp_path)
    live.submit(spec("known", gpus=GpuLimits(max=1)))
    background = live.submit(spec("quiet", priority="background"))
    live.advance(3600.0)
    plan = live.loop.snapshot.plan
    assert plan is not None
    assert [found.name for found in plan.workload.classes] == ["known"]
    asked(live, live.loop.change(background, {"priority": "normal"}))
    live.advance(3600.0)
    plan = live.loop.snapshot.plan
    assert plan is not None
    assert {found.name for found in plan.workload.classes} == {"known", "quiet"}
    live.close()


def test_it_is_moved_for_more_gpus_only_now_and_then(tmp_path: Path) -> None:
    live = begun(tmp_path, max_nodes={"T4": 1})
    paying = [live.submit(spec("known", gpus=GpuLimits(max=1))) for _ in range(2)]
    live.advance(60.0, tick=10.0)
    background = live.submit(spec("known", priority="background"))
    live.advance(120.0, tick=10.0)
    assert width(live, background) == 2
    asked(live, live.loop.stop(paying[0]))
    live.advance(60.0, tick=10.0)
    assert width(live, background) == 2, f"it has not run for {CALM:g} times its start"
    live.advance(600.0, tick=10.0)
    assert width(live, background) == 3
    live.close()


def test_an_urgent_job_counts_as_often_as_is_configured(tmp_path: Path) -> None:
    live = begun(tmp_path)
    urgent = live.submit(spec("known", priority="urgent"))
    normal = live.submit(spec("known"))
    live.advance(60.0, tick=10.0)
    assert (live.job(urgent).urgency, live.job(normal).urgency) == (4.0, 1.0)
    asked(live, live.loop.change(normal, {"priority": "urgent"}))
    asked(live, live.loop.change(urgent, {"priority": "normal"}))
    live.settle()
    assert (live.job(urgent).urgency, live.job(normal).urgency) == (1.0, 4.0)
    live.close()


@pytest.mark.parametrize(("was", "becomes"), [("normal", "background"), ("background", "normal")])
def test_what_it_held_before_its_priority_changed_stays_as_paid_for_as_it_was(
    tmp_path: Path, was: str, becomes: str
) -> None:
    live = begun(tmp_path, max_nodes={"T4": 1})
    live.submit(spec("known", gpus=GpuLimits(max=1)))
    live.advance(60.0, tick=10.0)
    job = live.submit(spec("known", gpus=GpuLimits(min=3, max=3), priority=was))
    live.advance(1800.0, tick=10.0)
    assert width(live, job) == 3
    before = paid_for(live.loop.state, live.clock.now())
    asked(live, live.loop.change(job, {"priority": becomes}))
    assert paid_for(live.loop.state, live.clock.now()).jobs == pytest.approx(before.jobs)
    live.advance(600.0, tick=10.0)
    after = paid_for(live.loop.state, live.clock.now())
    held = (1 if becomes == "background" else 4) * 600.0 / 3600.0
    assert after.jobs - before.jobs == pytest.approx(held, rel=0.1)
    live.close()
