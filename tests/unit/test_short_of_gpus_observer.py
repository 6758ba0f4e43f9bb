"""The observer of `bench/campaign.py --virtual` finds what is wrong, and excuses by the truth."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from _campaign.virtual import HIGHER_S, IDLE_S, Kind, Stop, World
from boa.model.budgets import Budget
from boa.model.changes import Changes
from boa.model.cluster import Allocation
from boa.model.job import GpuLimits, JobRecord, Run
from boa.model.records import Event, NodeRecord
from boa.model.runs import RunKey
from boa.model.workload import GpuType
from boa.scheduler.state import State
from boa.scheduler.words.of_keeping import WAITS
from boa.sim.engine import SAVES
from live import config, profile, spec
from stored import job as record

SLOT = GpuType(name="slot", price=1.0, gpus_per_node=2)
TRUTH = profile("net", work=(3600.0,), gpus={"slot": 1.0}, rescale_s=5.0, widest=2)
KIND = Kind(name="net", kind="saves", saving=SAVES, truth=TRUTH, spec=spec("net"))
TEAM = Budget(
    name="all", per_hour=8.0, parts=(Budget(name="team", max_spend=2.0, classes=("net",)),)
)


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """One node of two slots, and an observer that is shown states."""
    settings = config(
        tmp_path,
        gpu_types={"slot": SLOT},
        max_nodes={"slot": 1},
        sharing=getattr(request, "param", None),
    )
    made = World(settings, {"net": TRUTH}, kinds={"net": KIND})
    yield made
    made.close()


def job(number: int, priority: Any = "normal", least: int = 1, **fields: Any) -> JobRecord:
    asked = spec("net", priority=priority, gpus=GpuLimits(min=least, max=2))
    return record(number, spec=asked, **fields)


def on(job: JobRecord, width: int = 2, at: float = 0.0) -> JobRecord:
    given = Allocation("slot", ((1, width),))
    slots = {1: tuple(range(width))}
    run = Run(attempt=1, allocation=given, slots=slots, requested_at=at, decided_at=at)
    return replace(job, run=run, allocation=given, attempts=1, state="running")


def state(*jobs: JobRecord) -> State:
    node = NodeRecord(
        id=1, token="t-1", gpu="slot", gpus=2, price=1.0, state="ready", requested_at=0.0
    )
    return State(jobs={one.id: one for one in jobs}, nodes={1: node}, next_job=100)


def kinds(world: World) -> Counter[str]:
    return Counter(kind for kind, _ in world.found.violations)


def shown(world: World, seen: State, seconds: float) -> Counter[str]:
    """Return the violations found when a state stays unchanged for the given seconds."""
    world.loop.state = seen
    world._look()
    world.clock.advance_to(world.clock.now() + seconds)
    world._look()
    return kinds(world)


def rescaled(world: World, seen: State, after_s: float) -> Counter[str]:
    """Return the violations found when a second rescaling follows after the given seconds."""
    at = world.clock.now()
    data = {"why": "round", "gpu_type": "slot", "width": 1, "attempt": 2}
    for moment in (at, at + after_s):
        world.said(seen, [Event(at=moment, kind="rescaled", text="", job="1", data=data)])
        world.left_at["1"] = at + after_s
    return kinds(world)


def test_no_word_excuses_a_wait_next_to_empty_gpus(world: World) -> None:
    waits = job(1, reason=WAITS["turn"], submitted_at=0.0)
    assert shown(world, state(waits), IDLE_S + 1.0) == {"waits next to empty GPUs": 1}


def test_empty_gpus_may_be_kept_for_a_job_that_came_first(world: World) -> None:
    wide, narrow = job(1, least=2), job(2)
    seen = state(on(job(3), width=1), wide, narrow)
    assert not shown(world, seen, IDLE_S + 1.0)


@pytest.mark.parametrize(("world", "found"), [(None, 1), (TEAM, 0)], indirect=["world"])
def test_a_job_waits_for_the_cap_of_its_team_only_where_there_is_one(
    world: World, found: int
) -> None:
    seen = state(on(job(1)), job(2))
    seen.nodes[2] = replace(seen.nodes[1], id=2, token="t-2")
    assert shown(world, seen, IDLE_S + 1.0)["waits next to empty GPUs"] == found


@pytest.mark.parametrize("world", [TEAM], indirect=True)
def test_a_cap_bars_no_job_for_what_later_ones_of_its_team_took(world: World) -> None:
    waits = job(1, submitted_at=0.0)
    world.loop.state = state(waits)
    world._look()
    later = replace(on(job(2), at=world.clock.now() + 1.0), attempts=0)
    assert not world._barred(state(waits, later), waits)
    earlier = on(job(0), at=0.0)
    assert world._barred(state(waits, earlier), waits)
    assert not world._barred(state(job(1, "urgent"), earlier), job(1, "urgent"))


def test_a_higher_priority_does_not_wait_behind_jobs_that_can_be_stopped(world: World) -> None:
    seen = state(on(job(1)), job(2, "urgent", reason=WAITS["no_room"]))
    kind = "a higher priority waits behind a lower one"
    assert shown(world, seen, HIGHER_S + 1.0) == {kind: 1}


def test_a_job_that_failed_lately_may_wait_behind_others(world: World) -> None:
    now = world.clock.now()
    world.failures["2"] = (now - 60.0,)
    assert not shown(world, state(on(job(1)), job(2, "urgent")), HIGHER_S + 1.0)


def test_a_second_rescaling_is_too_soon_whatever_its_reason(world: World) -> None:
    assert rescaled(world, state(on(job(1))), 20.0) == {"rescaled again too soon": 1}


def test_a_second_rescaling_is_in_time_after_ten_rescale_times(world: World) -> None:
    assert not rescaled(world, state(on(job(1))), 51.0)


def test_a_preemption_excuses_a_rescaling_only_if_the_job_had_no_gpus(world: World) -> None:
    seen, at = state(on(job(1))), world.clock.now()
    data = {"why": "returned", "gpu_type": "slot", "width": 1, "attempt": 2}
    told = {"why": "cap", "gpu_type": "slot", "width": 2, "saves": True, "lost_s": 0.0}
    preempted = Event(at=at + 10.0, kind="preempted", text="", job="1", data=told)
    first = Event(at=at, kind="rescaled", text="", job="1", data=data)
    world.said(seen, [first, preempted])
    world.left_at["1"] = at + 10.0
    world.said(seen, [replace(first, at=at + 10.0)])
    assert kinds(world) == {"rescaled again too soon": 1}
    world.left_at["1"] = at + 12.0
    world.said(seen, [replace(first, at=at + 30.0)])
    assert kinds(world) == {"rescaled again too soon": 1}


def test_a_higher_priority_that_got_its_gpus_excuses_a_rescaling(world: World) -> None:
    loser, urgent = on(job(1)), job(2, "urgent")
    fewer = replace(loser, allocation=Allocation("slot", ((1, 1),)))
    takes = replace(urgent, allocation=Allocation("slot", ((1, 1),)))
    world.decided(state(loser, urgent), state(fewer, takes))
    assert world.excused == {"1"}
    world.excused.clear()
    peer = replace(takes, spec=job(2).spec)
    world.decided(state(loser, job(2)), state(fewer, peer))
    assert not world.excused, "the cluster is full"
    empty = replace(state(loser), nodes={})
    world.decided(empty, replace(state(fewer), nodes={}))
    assert world.excused == {"1"}, "a node could be rented"


def test_a_preemption_by_a_job_of_no_higher_priority_is_found(world: World) -> None:
    told = {"why": "job", "by_job": "2", "gpu_type": "slot", "width": 2}
    event = Event(at=0.0, kind="preempted", text="", job="1", data=told)
    world.said(state(job(1), job(2)), [event])
    assert kinds(world) == {"preempted by a job of no higher priority": 1}
    world.said(state(job(1), job(2, "urgent")), [event])
    assert kinds(world).total() == 1


def test_a_stop_is_for_a_cap_only_if_more_was_held_than_it_allows(world: World) -> None:
    world.loop.state = state(on(job(1)))
    world.stopped(RunKey("1", 1), lost_s=60.0, cannot=True)
    assert kinds(world) == {"work of a job that cannot checkpoint lost": 1}
    world.most = 2.0
    world.stopped(RunKey("1", 1), lost_s=60.0, cannot=True)
    assert kinds(world).total() == 2
    world.most = 1.0
    world.stopped(RunKey("1", 1), lost_s=60.0, cannot=True)
    assert kinds(world).total() == 2
    assert world.found.stops["for a cap that was lowered"] == 1


def test_a_job_that_forgets_is_stopped_once_at_most(world: World) -> None:
    world.kinds_of["1"] = "forgets"
    world.loop.state = state(on(job(1)))
    world.stopped(RunKey("1", 1), lost_s=60.0, cannot=True)
    assert not kinds(world)
    world.stopped(RunKey("1", 1), lost_s=60.0, cannot=True)
    assert kinds(world) == {"work of a job that cannot checkpoint lost": 1}


def test_later_jobs_that_start_first_again_and_again_starve_a_job(world: World) -> None:
    waits, since = job(1), world.clock.now()
    world.known = {"net"}
    world.waits["1"] = since
    for number in (2, 3, 4):
        world.clock.advance_to(since + 500.0 + 200.0 * number)
        later = job(number)
        world.decided(state(waits, later), state(waits, on(later)))
    world.loop.state = state(waits, on(job(5)))
    world._look()
    assert kinds(world)["starves"] == 1
    assert kinds(world)["overtaken after its turn had come"] == 3


@pytest.mark.parametrize(("told_s", "found"), [(0.0, 1), (250.0, 1), (290.0, 0)])
def test_work_lost_is_what_the_event_says(world: World, told_s: float, found: int) -> None:
    at = world.clock.now()
    world.lossy.append(Stop(job="1", at=at, lost_s=300.0, width=1, forgets=False))
    data = {"name": "net", "why": "job", "by_job": "2", "gpu_type": "slot", "width": 1}
    data = {**data, "saves": False, "lost_s": told_s}
    assert world.store is not None
    event = Event(at=at, kind="preempted", text="", job="1", data=data)
    world.store.commit(Changes(events=[event]))
    world.close_books()
    assert kinds(world)["more work lost than was told"] == found
