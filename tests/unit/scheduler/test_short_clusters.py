"""Full clusters: priorities, team caps, retries and jobs that wait for long."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from boa.model.budgets import Budget
from boa.model.job import GpuLimits
from boa.model.records import Event
from boa.model.runs import Launch
from boa.model.workload import GpuType
from boa.scheduler.decide.protection import CALM
from boa.scheduler.words.of_keeping import WAITS
from boa.sim.engine import NO_SAVING, SAVES
from live import Live, asked, config, prior, profile, spec

SLOTS = {"slot": 1.0}
ONE = GpuLimits(max=1)
TWO = GpuLimits(min=2, max=2)
PLAIN = profile("plain", work=(36000.0,), alpha=0.9, gpus=SLOTS, rescale_s=3.0)
LONG = profile("long", work=(36000.0,), alpha=0.9, gpus=SLOTS, rescale_s=3.0)
OTHER = profile("other", work=(600.0,), alpha=0.9, gpus=SLOTS, rescale_s=3.0)
WIDE = profile("wide", work=(3000.0,), alpha=0.9, gpus=SLOTS, rescale_s=5.0)
QUICK = profile("quick", work=(20.0,), alpha=0.9, gpus=SLOTS, rescale_s=3.0)
CRASHING = profile("crashing", work=(600.0,), alpha=0.9, gpus=SLOTS, rescale_s=3.0)
CLASSES = (PLAIN, LONG, OTHER, WIDE, QUICK, CRASHING)
Begun = Callable[..., Live]


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Begun]:
    made: list[Live] = []

    def begin(*, nodes: int = 1, gpus: int = 2, known: bool = False, **fields: Any) -> Live:
        fields = {"budget": 100.0, "billing": "node", **fields}
        slot = GpuType(name="slot", price=1.0, gpus_per_node=gpus)
        if known:
            fields["priors"] = {one.name: prior(one, 1.0) for one in CLASSES}
        settings = config(tmp_path, gpu_types={"slot": slot}, max_nodes={"slot": nodes}, **fields)
        live = Live(settings, {one.name: one for one in CLASSES})
        live.engine.saving = lambda launch: NO_SAVING if launch.spec.job_class == "plain" else SAVES
        live.engine.breaks = _crashes
        made.append(live)
        return live

    yield begin
    for live in made:
        live.close()


def _crashes(launch: Launch) -> str:
    return "boom" if launch.spec.job_class == "crashing" else ""


def team(most: float, *classes: str) -> Budget:
    mine = Budget(name="mine", per_hour=50.0, max_spend=most, classes=classes)
    theirs = Budget(name="theirs", per_hour=50.0, classes=("other",))
    return Budget(name="all", per_hour=100.0, parts=(mine, theirs))


def events(live: Live, kind: str) -> list[Event]:
    assert live.store is not None
    return [s.event for s in live.store.events(limit=10_000) if s.event.kind == kind]


def moves(live: Live) -> list[tuple[str | None, str]]:
    assert live.store is not None
    found = [stored.event for stored in live.store.events(limit=10_000)]
    return [(one.job, one.kind) for one in found if one.kind in ("rescaled", "restarted")]


def runs(live: Live, job: str) -> bool:
    run = live.job(job).run
    return run is not None and run.state == "running"


# Caps of teams


def test_a_teammate_stops_no_job_that_cannot_checkpoint_under_the_teams_cap(begun: Begun) -> None:
    live = begun(nodes=2, budget=100.0, sharing=team(2.0, "plain", "quick"))
    plain = live.submit(spec("plain", gpus=TWO))
    live.advance(300.0)
    mate = live.submit(spec("quick", gpus=ONE))
    live.advance(300.0)
    assert runs(live, plain)
    assert live.job(plain).attempts == 1
    assert "mine's cap of $2.00/h" in live.job(mate).reason


def test_a_teammate_that_came_first_and_is_resumed_waits_for_the_one_that_runs(
    begun: Begun,
) -> None:
    live = begun(nodes=2, sharing=team(1.0, "plain", "quick"))
    early = live.submit(spec("quick", gpus=ONE))
    asked(live, live.loop.pause(early))
    live.advance(5.0)
    plain = live.submit(spec("plain", gpus=ONE))
    live.advance(600.0)
    asked(live, live.loop.resume(early))
    live.advance(300.0)
    assert live.job(plain).attempts == 1
    assert not runs(live, early)


def test_retries_of_a_teammate_do_not_stop_the_job_that_has_the_teams_money(begun: Begun) -> None:
    live = begun(nodes=2, sharing=team(1.0, "plain", "crashing"))
    live.submit(spec("crashing", gpus=ONE, retries=30))
    live.advance(1.0)
    plain = live.submit(spec("plain", gpus=ONE))
    live.advance(3600.0, tick=10.0)
    assert live.job(plain).attempts == 1
    assert not events(live, "preempted")


def test_a_teammate_that_arrives_waits_while_a_widened_job_settles(begun: Begun) -> None:
    live = begun(known=True, sharing=team(2.0, "wide", "quick"))
    wide = live.submit(spec("wide", gpus=GpuLimits(max=2)))
    neighbour = live.submit(spec("other", gpus=ONE))
    live.advance(100.0, tick=10.0)
    asked(live, live.loop.stop(neighbour))
    live.advance(30.0, tick=1.0)
    live.submit(spec("quick", gpus=ONE))
    live.advance(600.0, tick=1.0)
    moved = [event for event in events(live, "rescaled") if event.job == wide]
    _, widened, narrowed, *_ = moved
    assert [event.data["width"] for event in moved[:3]] == [1, 2, 1]
    assert narrowed.at - widened.at >= CALM * WIDE.rescale_s


# Higher priorities


@pytest.mark.parametrize("billing", ["node", "gpu"])
def test_an_urgent_job_takes_as_many_gpus_as_it_needs_at_once_and_no_others(
    begun: Begun, billing: str
) -> None:
    live = begun(billing=billing)
    running = [live.submit(spec("long", gpus=ONE)) for _ in range(2)]
    live.advance(120.0, tick=20.0)
    urgent = live.submit(spec("quick", gpus=ONE, priority="urgent"))
    live.advance(600.0, tick=20.0)
    assert live.job(urgent).state == "succeeded"
    (event,) = events(live, "preempted")
    assert event.data["by_job"] == urgent
    assert all(runs(live, job) for job in running)


def test_an_urgent_job_that_needs_several_gpus_gets_them(begun: Begun) -> None:
    live = begun()
    running = [live.submit(spec("long", gpus=ONE)) for _ in range(2)]
    live.advance(120.0, tick=20.0)
    urgent = live.submit(spec("quick", gpus=TWO, priority="urgent"))
    live.advance(300.0, tick=20.0)
    assert live.job(urgent).state == "succeeded"
    assert {event.job for event in events(live, "preempted")} == set(running)


def test_normal_jobs_take_no_gpus_in_the_shadow_of_an_urgent_one(begun: Begun) -> None:
    live = begun(nodes=2)
    running = [live.submit(spec("long", gpus=ONE)) for _ in range(4)]
    live.advance(120.0, tick=20.0)
    heavy = [live.submit(spec("other", gpus=ONE, weight=10.0)) for _ in range(6)]
    live.advance(120.0, tick=20.0)
    urgent = live.submit(spec("quick", gpus=ONE, weight=50.0, priority="urgent"))
    live.advance(60.0, tick=20.0)
    (event,) = events(live, "preempted")
    assert event.data["by_job"] == urgent
    assert live.job(urgent).state == "succeeded"
    live.advance(120.0, tick=20.0)
    assert all(runs(live, job) for job in running)
    assert not any(live.job(job).attempts for job in heavy)


def test_an_urgent_job_that_cannot_start_does_not_end_the_minimum_stay_of_others(
    begun: Begun,
) -> None:
    live = begun(gpus=4, known=True)
    jobs = [live.submit(spec("wide", gpus=GpuLimits(max=3))) for _ in range(2)]
    plain = live.submit(spec("plain", gpus=ONE))
    live.advance(100.0, tick=5.0)
    assert runs(live, plain)
    live.submit(spec("other", gpus=GpuLimits(min=4, max=4), priority="urgent"))
    for _ in range(12):
        live.submit(spec("quick", gpus=ONE))
        live.advance(15.0, tick=5.0)
    moves = [[one.at for one in events(live, "rescaled") if one.job == job] for job in jobs]
    assert sum(map(len, moves)) >= 2
    assert all(later - at >= 50.0 for times in moves for at, later in pairwise(times))


def test_a_preempted_job_that_needs_several_gpus_goes_on_before_newcomers(begun: Begun) -> None:
    live = begun(known=True)
    wide = live.submit(spec("wide", gpus=TWO))
    live.advance(60.0, tick=5.0)
    urgent = live.submit(spec("other", gpus=ONE, priority="urgent", total_work=60.0))
    live.advance(20.0, tick=5.0)
    assert live.job(wide).state == "preempted"
    newcomers = [live.submit(spec("quick", gpus=ONE)) for _ in range(8)]
    while live.job(urgent).state != "succeeded":
        live.advance(20.0, tick=5.0)
        took = [job for job in newcomers if live.job(job).attempts]
        assert len(took) <= 8
    live.advance(30.0, tick=5.0)
    assert runs(live, wide)


# Retries


def test_an_urgent_job_that_keeps_failing_preempts_its_neighbour_only_once(begun: Begun) -> None:
    live = begun()
    neighbours = [live.submit(spec("long", gpus=ONE)) for _ in range(2)]
    live.advance(60.0)
    live.submit(spec("crashing", gpus=ONE, priority="urgent", retries=40))
    live.advance(6 * 3600.0, tick=20.0)
    assert sum(live.job(job).preemptions for job in neighbours) == 1


# Jobs that wait for long


def test_a_job_that_waits_for_its_teams_cap_holds_no_other_team_up(begun: Begun) -> None:
    live = begun(sharing=team(1.0, "long", "quick"))
    live.submit(spec("long", gpus=ONE))
    live.advance(10.0)
    capped = live.submit(spec("quick", gpus=ONE))
    live.advance(700.0)
    other = live.submit(spec("other", gpus=ONE))
    live.advance(30.0)
    assert live.job(capped).attempts == 0
    assert runs(live, other)


def test_jobs_that_end_in_time_start_before_a_wide_one_that_has_to_wait_long(begun: Begun) -> None:
    live = begun(known=True)
    plain = live.submit(spec("plain", gpus=ONE))
    live.advance(10.0)
    wide = live.submit(spec("other", gpus=TWO))
    live.advance(400.0, tick=20.0)
    short = [live.submit(spec("quick", gpus=ONE)) for _ in range(3)]
    live.advance(300.0, tick=20.0)
    assert runs(live, plain)
    assert live.job(wide).attempts == 0
    assert all(live.job(job).state == "succeeded" for job in short)


def test_a_wide_job_is_not_overtaken_for_ever_by_narrow_ones(begun: Begun) -> None:
    live = begun(known=True)
    for _ in range(2):
        live.submit(spec("other", gpus=ONE))
    live.advance(60.0)
    wide = live.submit(spec("other", gpus=TWO))
    for _ in range(60):
        live.submit(spec("other", gpus=ONE))
        live.advance(60.0)
    assert live.job(wide).attempts >= 1
    late = [job for job in live.loop.snapshot.jobs.values() if job.reason.startswith("waits its")]
    assert not late or live.job(wide).attempts


# A cap that is lowered


def test_the_node_that_jobs_lose_least_by_leaving_goes_when_a_cap_is_lowered(begun: Begun) -> None:
    live = begun(nodes=2)
    plain = live.submit(spec("plain", gpus=ONE))
    live.advance(5.0)
    savers = [live.submit(spec("long", gpus=ONE)) for _ in range(3)]
    live.advance(600.0, tick=20.0)
    asked(live, live.loop.stop(savers[0]))
    live.advance(1.0)
    asked(live, live.loop.set_budget(None, 2.0))
    live.advance(120.0, tick=5.0)
    assert live.job(plain).attempts == 1
    assert all(event.job in savers for event in events(live, "preempted"))


# Nodes that were given up


def test_a_newcomer_starts_on_a_node_that_was_to_go_once_its_last_job_has_stopped(
    begun: Begun,
) -> None:
    live = begun()
    stubborn = live.submit(spec("long", gpus=ONE, grace_s=300.0))
    live.advance(60.0)
    live.engine.stop = lambda key, grace_s, then=None: None  # type: ignore[method-assign]
    asked(live, live.loop.stop(stubborn))
    live.advance(10.0)
    newcomer = live.submit(spec("quick", gpus=ONE))
    live.advance(20.0)
    assert live.job(stubborn).run is not None, "it is still being stopped"
    assert runs(live, newcomer)


@pytest.mark.parametrize("billing", ["node", "gpu"])
def test_a_retry_that_is_due_waits_for_free_gpus(begun: Begun, billing: str) -> None:
    live = begun(billing=billing, known=True)
    wide = live.submit(spec("wide", gpus=GpuLimits(max=2)))
    live.advance(200.0, tick=10.0)
    live.submit(spec("crashing", gpus=ONE, priority="urgent", retries=40))
    live.advance(1000.0, tick=10.0)
    assert len([event for event in events(live, "rescaled") if event.job == wide]) <= 3
    assert live.job(wide).preemptions == 0


def test_a_retry_takes_no_gpu_that_a_neighbour_gives_up_for_another_job(begun: Begun) -> None:
    live = begun(gpus=4, billing="gpu", known=True)
    retry = live.submit(spec("crashing", gpus=ONE, priority="urgent", retries=40))
    wide = live.submit(spec("wide", gpus=GpuLimits(max=4)))
    while live.job(retry).reason != WAITS["modest"]:
        live.advance(10.0)
    assert live.job(wide).allocation.width == 4  # type: ignore[union-attr]
    before = moves(live)
    live.submit(spec("quick", gpus=ONE))
    live.advance(60.0)
    later = moves(live)[len(before) :]
    assert later.index((wide, "rescaled")) < later.index((retry, "restarted"))


def test_a_job_that_keeps_failing_holds_no_urgent_job_up(begun: Begun) -> None:
    live = begun()
    for _ in range(2):
        live.submit(spec("long", gpus=ONE))
    live.advance(60.0)
    live.submit(spec("crashing", gpus=ONE, priority="urgent", retries=40))
    live.advance(1800.0, tick=20.0)
    urgent = live.submit(spec("quick", gpus=ONE, priority="urgent"))
    live.advance(20.0)
    assert runs(live, urgent)


def test_a_retry_keeps_the_gpus_that_are_booked_for_it_on_a_node_that_boots(begun: Begun) -> None:
    live = begun(billing="gpu", provision_s=90.0, keep_warm_s=0.0)
    job = live.submit(spec("crashing", gpus=ONE, retries=3))
    live.advance(200.0, tick=20.0)
    assert live.job(job).failures
    live.engine.breaks = lambda launch: ""
    for _ in range(12):
        asked(live, live.loop.set_budget(100.0, None))  # everything is decided anew
        live.advance(20.0)
    assert runs(live, job)
    assert len(events(live, "node_rented")) <= 3
