"""Reasons that were false on small clusters short of GPUs, and the check that finds such."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from boa.model.cluster import Allocation
from boa.model.job import GpuLimits, JobRecord, Run
from boa.model.records import Event, NodeRecord
from boa.model.workload import GpuType
from boa.scheduler.check_reasons import Checker, kept_problems
from boa.scheduler.state import State
from boa.scheduler.words.of_keeping import WAITS, WaitCode, kept, waits_for_cap
from live import Live, config, prior, profile, spec
from stored import job as record
from stored import spec as stored_spec

SLOT = GpuType(name="slot", price=1.0, gpus_per_node=2)
LONG = profile("long", work=(3600.0,), alpha=0.8, gpus={"slot": 1.0}, rescale_s=2.0)
SHORT = profile("short", work=(20.0,), alpha=0.5, gpus={"slot": 1.0}, rescale_s=2.0)


@pytest.fixture
def slots(tmp_path: Path) -> Iterator[Any]:
    """Make a service on one node of two slots that checks every reason."""
    made: list[Live] = []

    def make(*known: Any, **fields: Any) -> Live:
        settings = {"gpu_types": {"slot": SLOT}, "max_nodes": {"slot": 1}, **fields}
        live = Live(
            config(tmp_path, **{"budget": 8.0, "provision_s": 45.0, **settings}),
            {one.name: one for one in (LONG, SHORT)},
        )
        live.loop.checker = Checker(live.config.max_nodes)
        made.append(live)
        live.settle()
        return live

    yield make
    for live in made:
        assert not [line for line in live.logged if "check:" in line]
        live.close()


def told(live: Live, kind: str, job: str | None = None) -> list[Event]:
    assert live.store is not None
    found = [stored.event for stored in live.store.events(job=job, limit=1000)]
    return [event for event in found if event.kind == kind]


def narrow(name: str, **fields: Any) -> Any:
    return spec(name, gpus=GpuLimits(max=1), **fields)


def test_a_job_that_gets_its_gpus_back_does_not_say_that_it_moves(slots: Any) -> None:
    live = slots()
    first = [live.submit(narrow("long")) for _ in range(2)]
    live.advance(120.0, tick=10.0)
    live.submit(narrow("short", priority="urgent"))
    live.advance(200.0, tick=10.0)
    (back,) = [event for job in first for event in told(live, "rescaled", job)]
    assert back.data["why"] == "returned"
    assert back.data["nodes"] == back.data["before_nodes"]
    assert back.text.endswith("1×slot: has GPUs again")


def test_no_wait_for_a_node_is_told_where_none_may_be_rented(slots: Any) -> None:
    live = slots(priors={"long": prior(LONG, 0.1), "short": prior(SHORT, 1.0)})
    live.submit(spec("long", gpus=GpuLimits(max=2)))
    live.advance(400.0, tick=10.0)
    live.submit(narrow("short", priority="urgent"))
    live.advance(100.0, tick=5.0)
    squeezed = [e for e in told(live, "rescaled", "1") if e.data["why"] == "squeezed"]
    assert squeezed
    assert not any("wait" in event.text for event in squeezed)


def test_a_node_saves_no_more_than_its_jobs_still_have_to_go(slots: Any) -> None:
    live = slots(priors={"short": prior(SHORT, 1.0)})
    live.submit(narrow("short"))
    (rented,) = told(live, "node_rented")
    assert rented.data["saves_s"] <= rented.data["left_s"] == pytest.approx(22.0)
    assert rented.data["over_s"] <= rented.data["left_s"]


def test_a_node_for_an_unknown_class_saves_no_time_that_is_told(slots: Any) -> None:
    live = slots()
    live.submit(narrow("short"))
    live.advance(15.0, tick=1.0)
    (rented,) = told(live, "node_rented")
    assert "save" not in rented.text


def test_plans_are_counted_on_after_a_restart(slots: Any) -> None:
    live = slots()
    live.submit(narrow("long"))
    live.advance(60.0, tick=10.0)
    before = [event.data["number"] for event in told(live, "planned")]
    live.crash()
    live.submit(narrow("short"))
    live.advance(60.0, tick=10.0)
    after = [event.data["number"] for event in told(live, "planned")]
    assert len(after) > len(before)
    assert after == sorted(set(after))


# The check itself

NODES = {
    id: NodeRecord(
        id=id, token=f"t-{id}", gpu="slot", gpus=4, price=1.0, state="ready", requested_at=0.0
    )
    for id in (1, 3)
}


FIGURES = {"saves_s": 5.0, "extra_usd": 0.0, "left_s": 5.0, "left_usd": 0.1}


def started(width: int, node: int = 1, **data: Any) -> tuple[State, Event]:
    """Return a state in which job 1 starts on GPUs of a node, and the event that says so."""
    given = Allocation("slot", ((node, width),))
    run = Run(attempt=2, allocation=given, slots={node: ()}, requested_at=0.0, decided_at=0.0)
    job = replace(record(1, run=run, allocation=given, attempts=2), state="running")
    fields = {"attempt": 2, "gpu_type": "slot", "width": width, "epoch": 0, "epochs": 1, **data}
    event = Event(at=0.0, kind="rescaled", text="text", job="1", data=fields)
    return State(jobs={"1": job}, nodes=dict(NODES), next_job=2), event


def seen(checker: Checker, width: int = 2) -> State:
    """Have the checker see job 1 on two GPUs of node 1."""
    given = Allocation("slot", ((1, width),))
    run = Run(attempt=1, allocation=given, slots={1: ()}, requested_at=0.0, decided_at=0.0)
    job = record(1, run=run, allocation=given, attempts=1)
    state = State(jobs={"1": job}, nodes=dict(NODES), next_job=2)
    assert checker.violations(State(), state, []) == []
    return state


@pytest.mark.parametrize(
    ("width", "data", "wrong"),
    [
        (2, {"why": "nodes"}, "same nodes"),
        (1, {"why": "widened"}, "it has had 2×slot"),
        (2, {"why": "squeezed"}, "it has had 2×slot"),
        (1, {"why": "squeezed", "for_job": "7"}, "no job 7"),
        (1, {"why": "squeezed", "for_job": "1"}, "named as another"),
        (1, {"why": "squeezed", "wait_s": 9.0}, "none may be rented"),
        (2, {"why": "returned"}, "never been without"),
        (1, {"why": "round", **FIGURES, "saves_s": 9.0}, "more than was left"),
        (1, {"why": "round", **FIGURES, "extra_usd": -0.2}, "more dollars than"),
        (1, {"why": "plan"}, "no new plan"),
        (1, {"why": "epoch"}, "no epoch has begun"),
        (1, {"why": "again", "before_width": 4}, "it has had 2 GPUs"),
        (1, {"why": "again", "before_nodes": [3]}, "on other nodes"),
    ],
)
def test_a_false_reason_is_found(width: int, data: dict[str, Any], wrong: str) -> None:
    checker = Checker({"slot": 0})
    before = seen(checker)
    after, event = started(width, **data)
    found = checker.violations(before, after, [event])
    assert any(wrong in one for one in found), found


def test_a_true_reason_is_not() -> None:
    for width, node, why in [(2, 3, "nodes"), (4, 1, "widened"), (1, 1, "squeezed")]:
        checker = Checker()
        before = seen(checker)
        after, event = started(width, node, why=why, before_width=2, before_nodes=[1])
        assert checker.violations(before, after, [event]) == []


def test_a_stop_that_no_event_tells_of_is_found() -> None:
    checker = Checker()
    runs = seen(checker)
    run = runs.jobs["1"].run
    assert run is not None
    stopping = replace(runs.jobs["1"], run=replace(run, state="stopping"), allocation=None)
    without = replace(stopping, run=None, state="waiting")
    later = (stopping, without, without)
    states = [runs, *(replace(runs, jobs={"1": job}) for job in later)]
    found = [checker.violations(a, b, []) for a, b in pairwise(states)]
    assert found == [[], [], ["job 1: its run was stopped without an event"]]


def test_a_job_that_says_that_a_node_boots_waits_for_one() -> None:
    waits = record(1, state="waiting", reason=WAITS["boot"])
    state = State(jobs={"1": waits}, next_job=2)
    (found,) = Checker().violations(state, state, [])
    assert "no node boots" in found


def on(number: int, node: int = 1, width: int = 2, **fields: Any) -> JobRecord:
    """Return a job that runs on GPUs of a node."""
    given = Allocation("slot", ((node, width),))
    slots = {node: tuple(range(width))}
    run = Run(attempt=1, allocation=given, slots=slots, requested_at=0.0, decided_at=0.0)
    fields = {"run": run, "allocation": given, "attempts": 1, "state": "running", **fields}
    return record(number, **fields)


def having(*jobs: JobRecord, **fields: Any) -> State:
    return State(jobs={job.id: job for job in jobs}, nodes=dict(NODES), next_job=100, **fields)


def problems(checker: Checker, before: State, after: State, *events: Event) -> str:
    return "\n".join(checker.violations(before, after, events))


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        ({}, ""),
        ({"by_job": "9"}, "job 9 is not there"),
        ({"by_job": "3"}, "job 3 has no higher priority"),
        ({"by_job": "4"}, "job 4 has no GPUs on its nodes"),
        ({"why": "room"}, "names a job for another reason"),
        ({"why": "node", "by_job": None}, "its nodes stay"),
        ({"why": "cap", "by_job": None}, "no cap is in force"),
        ({"why": "ended", "by_job": None}, "the budget goes on"),
        ({"lost_s": 3000.0}, "only 100 s have passed"),
        ({"lost_s": 5.0}, "100 s are in no checkpoint"),
        ({"saves": True, "lost_s": 0.0}, "said otherwise of its saving"),
    ],
)
def test_a_preemption_is_held_to_its_job_its_cause_and_its_loss(
    data: dict[str, Any], wrong: str
) -> None:
    urgent = stored_spec(priority="urgent")
    loser, waits = on(1), record(2, spec=urgent)
    others = (on(3, width=1), on(4, node=3, spec=urgent))
    assert loser.run is not None
    run = replace(loser.run, state="stopping", stopping_at=100.0)
    stopped = replace(loser, run=run, allocation=None)
    taker = replace(waits, allocation=loser.allocation)
    told = {"name": "net", "why": "job", "by_job": "2", "gpu_type": "slot", "width": 2}
    told = {**told, "saves": False, "lost_s": 100.0, **data}
    told = {name: value for name, value in told.items() if value is not None}
    event = Event(at=100.0, kind="preempted", text="text", job="1", data=told)
    checker = Checker(capped=lambda: False)
    before, after = having(loser, waits, *others), having(stopped, taker, *others)
    found = problems(checker, before, after, event)
    assert (wrong in found) if wrong else not found, found


def test_room_that_no_job_needs_is_no_cause_of_a_preemption() -> None:
    loser = on(1)
    assert loser.run is not None
    run = replace(loser.run, state="stopping", stopping_at=100.0)
    told = {"name": "net", "why": "room", "gpu_type": "slot", "width": 2, "saves": False}
    event = Event(at=100.0, kind="preempted", text="", job="1", data={**told, "lost_s": 100.0})
    after = having(replace(loser, run=run, allocation=None))
    assert "no job needs its GPUs" in problems(Checker(), having(loser), after, event)


def test_a_job_that_saves_loses_nothing() -> None:
    loser = on(1, saves=True)
    assert loser.run is not None
    run = replace(loser.run, state="stopping", stopping_at=100.0)
    told = {"name": "net", "why": "node", "gpu_type": "slot", "width": 2, "saves": True}
    event = Event(at=100.0, kind="preempted", text="", job="1", data={**told, "lost_s": 9.0})
    after = having(replace(loser, run=run, allocation=None))
    assert "it saves, and loses nothing" in problems(Checker(), having(loser), after, event)


def test_a_job_is_squeezed_for_one_that_has_gpus_where_it_gives_some_up() -> None:
    for node, wrong in ((1, False), (3, True)):
        checker = Checker()
        before = seen(checker)
        after, event = started(1, why="squeezed", for_job="2")
        after.jobs["2"] = on(2, node=node, width=1)
        after.next_job = 3
        assert ("job 2 has no GPUs where" in problems(checker, before, after, event)) == wrong


@pytest.mark.parametrize("attempt", [1, 2])
def test_nothing_is_said_of_what_was_before_the_first_look(attempt: int) -> None:
    runs = seen(Checker())
    after, event = started(2, why="returned")
    if attempt == 2:  # it already waits
        runs.jobs["1"] = replace(runs.jobs["1"], run=None, allocation=None)
    else:
        assert runs.jobs["1"].run is not None
        run = replace(runs.jobs["1"].run, state="stopping")
        runs.jobs["1"] = replace(runs.jobs["1"], run=run)
    assert Checker().violations(runs, after, [event]) == []


def test_the_past_that_a_first_look_shows_counts() -> None:
    runs = seen(Checker())
    after, event = started(2, why="returned")
    assert "never been without" in problems(Checker(), runs, after, event)


FIRST, SECOND = record(1), record(2)


@pytest.mark.parametrize(
    ("said", "others", "fields", "wrong"),
    [
        ("turn", [FIRST], {}, ""),
        ("turn", [], {}, "no job that is ahead of it"),
        ("turn", [on(1)], {}, "no job that is ahead of it"),
        ("turn", [record(3)], {}, "no job that is ahead of it"),
        ("turn", [replace(FIRST, spec=stored_spec(priority="background"))], {}, "no job that"),
        ("modest", [], {"failed_at": (50.0,)}, ""),
        ("modest", [], {}, "it has not failed"),
        ("modest", [], {"failed_at": (-3900.0,)}, "it failed 4000 s ago"),
        ("others", [on(1, width=4)], {"allocation": Allocation("slot", ((1, 2),))}, ""),
        ("others", [on(1, width=4)], {}, "it has no GPUs to wait for"),
        ("others", [], {"allocation": Allocation("slot", ((1, 2),))}, "its GPUs are free"),
        ("worth", [], {}, "for any money"),
        ("no_room", [], {}, ""),
    ],
)
def test_a_wait_is_held_to_what_the_job_waits_for(
    said: WaitCode, others: list[JobRecord], fields: dict[str, Any], wrong: str
) -> None:
    waits = replace(SECOND, reason=WAITS[said], **fields)
    state, clock = having(waits, *others), Event(at=100.0, kind="clock", text="")
    checker = Checker({"slot": 2}, {"slot"})
    found = problems(checker, state, state, clock)
    assert (wrong in found) if wrong else not found, found


def test_a_wait_for_a_cap_is_false_where_there_is_none() -> None:
    state = having(replace(SECOND, reason=waits_for_cap("the cap of $2/h")))
    assert "no cap is in force" in problems(Checker(capped=lambda: False), state, state)
    assert not problems(Checker(capped=lambda: True), state, state)


def test_a_refusal_is_believed_for_as_long_as_it_says() -> None:
    state, checker = having(replace(SECOND, reason=WAITS["no_room"])), Checker({"slot": 5})
    data = {"why": "refused", "gpu_type": "slot", "again_s": 60.0}
    refused = Event(at=100.0, kind="shortage", text="", data=data)
    assert "may be rented" in problems(Checker({"slot": 5}), state, state)
    assert not problems(checker, state, state, refused)
    later = Event(at=170.0, kind="clock", text="")
    assert "another slot node may be rented" in problems(checker, state, state, later)


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        ({"moved": ["1"], "pause_s": 2.0}, ""),
        ({"moved": ["2"], "pause_s": 2.0}, "job 2 was never on it"),
        ({"moved": ["3"], "pause_s": 2.0}, "job 3 does not move: it has ended"),
        ({"moved": [], "pause_s": 2.0}, "a pause of no job"),
        ({"moved": ["1"], "pause_s": -2.0}, "a pause of no job"),
    ],
)
def test_a_node_is_given_back_with_jobs_that_were_on_it_and_move(
    data: dict[str, Any], wrong: str
) -> None:
    checker, elsewhere = Checker(), on(2, node=3)
    before = having(on(1), elsewhere, on(3))
    moved = having(replace(on(1), run=None, allocation=None), elsewhere)
    checker.violations(before, before, [])
    released = {"gpu_type": "slot", "why": "unwanted", **data}
    event = Event(at=100.0, kind="node_released", text="", node=1, data=released)
    found = problems(checker, before, moved, event)
    assert (wrong in found) if wrong else not found, found


@pytest.mark.parametrize(
    ("text", "figures", "wrong"),
    [
        ("1×slot: cheaper: as fast", {"extra_usd": 0.01, "saves_s": 0.0}, "does not cost less"),
        ("1×slot: for $1 as fast", {"extra_usd": 0.01, "saves_s": -9.0}, "not as fast"),
        ("1×slot: 2 before; saves 9 s", {"extra_usd": 0.01, "saves_s": -9.0}, "saves no time"),
        ("1×slot: cheaper: as fast", {"extra_usd": -0.01, "saves_s": 0.0}, ""),
    ],
)
def test_words_follow_from_the_figures(text: str, figures: dict[str, Any], wrong: str) -> None:
    checker = Checker()
    before = seen(checker)
    after, event = started(1, why="round", **{**FIGURES, **figures})
    found = problems(checker, before, after, replace(event, text=text))
    assert (wrong in found) if wrong else not found, found


@pytest.mark.parametrize("worth", [0.1, 0.6, 0.7, 3.0])
def test_a_node_is_kept_by_the_worth_that_is_shown(worth: float) -> None:
    said = kept(replace(NODES[1], gpus=1), worth, weighed=True, draining=False)
    assert not list(kept_problems(said))
    shown = said.replace("kept all the same:", "kept:")
    other = shown if shown != said else said.replace("kept:", "kept all the same:")
    assert list(kept_problems(other))
