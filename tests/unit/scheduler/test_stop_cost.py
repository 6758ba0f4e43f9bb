"""What a stop costs: one figure for decisions, events and the ledger; and what is not stopped."""

from dataclasses import replace
from typing import Any

import pytest

from boa.model.cluster import Allocation
from boa.model.job import GpuLimits, JobRecord
from boa.model.records import Event, Report
from boa.model.runs import RunEvent, RunKey
from boa.model.sweep import Halving, Sweep
from boa.scheduler import lifecycle
from boa.scheduler.moving import keep_protected, move
from boa.scheduler.state import Draft, State
from boa.scheduler.stop_cost import StopCost, can_checkpoint, lost_s, may_stop
from boa.scheduler.terms import changing, halving
from stored import node, running, spec

NODES = {number: node(number, state="ready") for number in (7, 9, 11)}
KEY = RunKey("1", 3)
BEGAN = 120.5
"""When the run of `running` was requested."""
NOW = 1120.5


def believed(job: JobRecord) -> bool:
    return True


def on_gpus(**fields: Any) -> JobRecord:
    """A job that runs; fields of its run can be given as well."""
    job = running(1)
    assert job.run is not None
    names = [name for name in fields if not hasattr(job, name)]
    of_run = {name: fields.pop(name) for name in names}
    return replace(job, run=replace(job.run, **of_run), **fields)


def draft_of(*jobs: JobRecord, now: float = NOW) -> Draft:
    return Draft(State(jobs={job.id: job for job in jobs}, nodes=NODES), now)


def report(**fields: Any) -> Report:
    given = {"uptime_s": 10.0, "epoch": 0, "progress": 0.0, "units": 0.0, **fields}
    return Report(job="1", attempt=3, **given)


def told(draft: Draft, kind: str) -> list[Event]:
    return [event for event in draft.changes.events if event.kind == kind]


def ended(draft: Draft, **fields: Any) -> JobRecord:
    """The job after its run has ended, as one that was asked to."""
    event = RunEvent(key=KEY, ended=True, **{"exit_code": 0, "stopped": True, **fields})
    lifecycle.run_ended(draft, event, NOW + 5.0, 10.0, lambda job: frozenset(), believed)
    return draft.changes.jobs["1"]


def stopping(**fields: Any) -> JobRecord:
    job = on_gpus(**fields)
    assert job.run is not None
    run = replace(job.run, state="stopping", stopping_at=NOW)
    return replace(job, run=run, allocation=None)


# Jobs that can checkpoint


def restarted(**fields: Any) -> JobRecord:
    return on_gpus(progress=500.0, moved=True, reported_at=None, **fields)


@pytest.mark.parametrize("fields", [{"saved_at": 600.0}, {"saves": True, "saved_at": 600.0}])
def test_a_job_that_began_from_zero_after_a_stop_is_not_stopped_again(
    fields: dict[str, Any],
) -> None:
    draft = draft_of(restarted(**fields))
    job = lifecycle.reported(draft, draft.jobs["1"], report())
    assert not may_stop(job, saves=True)
    lifecycle.run_saved(draft, RunEvent(key=KEY, ended=False, saved=True))
    seen = draft.jobs["1"]
    assert seen.saved_at == NOW
    assert not may_stop(seen, saves=True), "a new file proves nothing"
    assert lost_s(seen, seen.run, NOW, True) == NOW - BEGAN


def test_a_job_that_kept_its_work_at_a_later_stop_is_believed_again() -> None:
    draft = draft_of(restarted(starts_over=True, saves=True, saved_at=600.0))
    job = lifecycle.reported(draft, draft.jobs["1"], report(progress=500.0))
    assert can_checkpoint(job, saves=None)


def test_a_job_that_had_nothing_to_keep_is_believed_once_it_has_a_checkpoint() -> None:
    draft = draft_of(restarted())
    lifecycle.reported(draft, draft.jobs["1"], report())
    lifecycle.run_saved(draft, RunEvent(key=KEY, ended=False, saved=True))
    assert can_checkpoint(draft.jobs["1"], saves=None)


def test_a_checkpoint_that_a_crashed_run_did_not_go_on_from_counts_no_more() -> None:
    draft = draft_of(on_gpus(progress=500.0, saved_at=600.0))
    job = lifecycle.reported(draft, draft.jobs["1"], report())
    assert not can_checkpoint(job, saves=None)


def test_a_job_that_does_not_save_on_request_but_writes_checkpoints_loses_what_came_after() -> None:
    job = on_gpus(saved_at=NOW - 60.0, reported_at=BEGAN)
    assert can_checkpoint(job, saves=None)
    assert lost_s(job, job.run, NOW, saves=None) == 60.0


@pytest.mark.parametrize("speed", [1.0, 60.0])
def test_the_age_of_a_checkpoint_is_in_the_services_seconds(lives: Any, speed: float) -> None:
    live = lives(speed=speed)
    live.submit(spec("halves", gpus=GpuLimits(max=1)))
    live.advance(600.0)
    key = next(iter(live.engine.started))
    age_s = 240.0 / speed
    news = RunEvent(key=key, ended=False, saved=True, saved_age_s=age_s)
    live.engine.poll = lambda: [news]
    live.settle()
    assert live.job("1").saved_at == pytest.approx(live.clock.now() - 240.0)


# One figure


def test_the_event_of_a_preemption_tells_what_the_decision_counted() -> None:
    silent = on_gpus(allocation=None)
    draft = draft_of(silent)
    expected = lost_s(silent, silent.run, NOW, saves=True)
    move(draft, saves=believed)
    (event,) = told(draft, "preempted")
    assert (event.data["lost_s"], event.data["saves"]) == (expected, True) == (0.0, True)


@pytest.mark.parametrize(
    ("job", "end", "lost"),
    [
        ({}, {}, 0.0),
        ({}, {"exit_code": -15}, 1000.0),
        ({}, {"exit_code": -15, "saved": True, "saved_age_s": 3.0}, 0.0),
        ({"saves": True}, {"exit_code": 143}, 0.0),
        ({"saves": True}, {"exit_code": -9}, 1000.0),
        ({"saves": True, "saved_at": NOW - 60.0}, {"exit_code": 137}, 60.0),
        ({"saves": False}, {}, 1000.0),
        ({"saves": False}, {"saved": True, "saved_age_s": 65.0}, 60.0),
    ],
)
def test_the_ledger_counts_the_work_that_the_end_of_a_run_shows_to_be_lost(
    job: dict[str, Any], end: dict[str, Any], lost: float
) -> None:
    draft = draft_of(stopping(**job), now=NOW + 5.0)
    found = ended(draft, **end)
    assert found.lost_s == pytest.approx(lost)
    assert found.preemptions == 0


def test_work_lost_with_a_node_or_by_a_pause_is_no_cost_of_boas_decisions() -> None:
    gone = Draft(State(jobs={"1": stopping(saves=False)}, nodes={9: NODES[9]}), NOW + 5.0)
    assert ended(gone).lost_s == 0.0
    paused = replace(on_gpus(saves=False), allocation=None, paused=True)
    draft = draft_of(paused)
    move(draft)
    assert ended(draft).lost_s == 0.0


def test_stops_are_counted_in_the_month_that_they_are_in() -> None:
    draft = draft_of(on_gpus(saves=False, allocation=None))
    move(draft)
    assert dict(ended(draft).stops) == {"1970-01": (1, NOW - BEGAN, 0.0)}


@pytest.mark.parametrize("fields", [{"priority": "background"}, {"preemptible": True}])
def test_a_pause_asks_only_owners_that_have_not_agreed_to_lose_work(fields: Any) -> None:
    cost = StopCost(30.0, 1000.0, False, 1.0)
    agreed = replace(on_gpus(), spec=spec(**fields))
    draft = draft_of(agreed)
    assert changing.pause(draft, agreed, cost).paused


# Jobs that are done


def test_the_newest_report_says_whether_a_job_is_done() -> None:
    draft = draft_of(on_gpus())
    job = lifecycle.reported(draft, draft.jobs["1"], report(done=True))
    assert job.run is not None
    assert job.run.done
    job = lifecycle.reported(draft, job, report(uptime_s=20.0))
    assert job.run is not None
    assert not job.run.done


@pytest.mark.parametrize(
    ("job", "end", "state"),
    [
        ({"done": True}, {}, "succeeded"),
        ({"done": True}, {"exit_code": 143}, "succeeded"),
        ({"done": True}, {"exit_code": -9}, "succeeded"),
        ({"done": True}, {"exit_code": 1}, "preempted"),
        ({}, {"done": True}, "succeeded"),
        ({}, {}, "preempted"),
        ({"done": True, "stop_requested": True, "stop_why": "max_time"}, {}, "succeeded"),
        ({"stop_requested": True, "stop_why": "max_time"}, {}, "stopped"),
        ({"done": True, "stop_requested": True}, {}, "stopped"),
    ],
)
def test_a_stop_that_finds_a_job_done_is_a_success(
    job: dict[str, Any], end: dict[str, Any], state: str
) -> None:
    draft = draft_of(stopping(**job), now=NOW + 5.0)
    assert ended(draft, **end).state == state


def test_a_job_that_reported_done_and_is_killed_by_its_stop_has_succeeded(lives: Any) -> None:
    live = lives(max_nodes={"T4": 1}, billing="node")
    job = live.submit(spec("halves", gpus=GpuLimits(min=4, max=4)))
    live.advance(600.0)
    run = live.job(job).run
    live.loop.report(
        Report(
            job=job,
            attempt=1,
            uptime_s=600.0,
            epoch=1,
            progress=900.0,
            units=2700.0,
            done=True,
        )
    )
    live.settle()
    live.loop.pause(job, force=True)
    key = RunKey(job, run.attempt)
    live.engine.stop = lambda *_: live.engine.kill(key, 143)
    live.settle()
    live.advance(5.0)
    assert live.job(job).state == "succeeded"


# Jobs that stay


ELSEWHERE = Allocation("T4", ((11, 3),))


def test_a_job_that_says_on_the_way_to_a_booting_node_that_it_does_not_save_stays() -> None:
    leaving = replace(on_gpus(saves=False), allocation=ELSEWHERE)
    held = leaving.run.allocation if leaving.run else None
    newcomer = replace(running(2), run=None)
    draft = draft_of(leaving, newcomer)
    keep_protected(draft, believed)
    assert draft.jobs["1"].allocation == held
    assert draft.replan
    assert draft.jobs["2"].allocation == held, "both fit on these nodes"
    full = draft_of(leaving, *(replace(newcomer, id=str(id)) for id in (2, 3)))
    keep_protected(full, believed)
    assert full.jobs["1"].allocation == held
    assert [full.jobs[id].allocation for id in ("2", "3")].count(None) == 1
    move(full, saves=believed)
    assert full.jobs["1"].run is not None
    assert full.jobs["1"].run.state == "running"


@pytest.mark.parametrize("fields", [{"saves": True}, {"saved_at": 600.0}])
def test_a_job_that_can_checkpoint_moves_as_decided(fields: dict[str, Any]) -> None:
    draft = draft_of(replace(on_gpus(reported_at=BEGAN, **fields), allocation=ELSEWHERE))
    keep_protected(draft, believed)
    assert draft.jobs["1"].allocation == ELSEWHERE
    assert not draft.replan


# Sweeps


def swept(**fields: Any) -> Draft:
    """One job that is undecided at its rung, and another without GPUs that this depends on."""
    rule = Halving(factor=2)
    sweep = Sweep(
        id="s1",
        name="",
        job_class="resnet18",
        made_at=0.0,
        jobs=("1", "2"),
        epochs=4,
        halving=rule,
    )
    first = on_gpus(epoch=1, loss=1.0, sweep="s1", **fields)
    other = replace(running(2), run=None, allocation=None, state="waiting", sweep="s1")
    draft = draft_of(first, other)
    draft.state.sweeps["s1"] = sweep
    for job in (first, other):
        draft.put_job(job)
    return draft


def test_a_sweep_parks_no_job_that_would_lose_its_work() -> None:
    draft = swept(reported_at=BEGAN)
    halving.look(draft)
    assert not draft.jobs["1"].parked
    assert draft.jobs["1"].allocation is not None


@pytest.mark.parametrize(
    ("fields", "lost"), [({"saves": True}, None), ({"saved_at": NOW - 60.0}, 60.0)]
)
def test_a_job_that_its_sweep_parks_has_an_event_with_the_work_it_loses(
    fields: dict[str, Any], lost: float | None
) -> None:
    draft = swept(reported_at=BEGAN, **fields)
    halving.look(draft)
    assert draft.jobs["1"].parked
    (event,) = told(draft, "paused")
    assert event.data.get("lost_s") == lost
    assert "was paused: it waits until others of its sweep have got as far" in event.text


# Pauses


def test_a_pause_is_no_rescaling(lives: Any) -> None:
    live = lives()
    job = live.submit(spec("halves", gpus=GpuLimits(max=1)))
    live.advance(600.0)
    live.loop.pause(job, force=True)
    live.advance(60.0)
    live.loop.resume(job)
    live.advance(300.0)
    found = live.job(job)
    assert found.attempts == 2
    assert (found.rescalings, found.restarts) == (0, 0)
    assert found.run is not None
    assert (found.run.moved, found.run.resumed) == (False, True)
