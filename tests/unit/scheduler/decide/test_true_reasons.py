"""Reasons that were false on small clusters short of GPUs, and the check that finds such."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from boa.model.cluster import Allocation
from boa.model.job import GpuLimits, Run
from boa.model.records import Event, NodeRecord
from boa.model.workload import GpuType
from boa.scheduler.check_reasons import Checker
from boa.scheduler.state import State
from boa.scheduler.words.of_keeping import WAITS
from live import Live, config, prior, profile, spec
from stored import job as record

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
        (1, {"why": "round", "saves_s": 9.0, "extra_usd": 0.0}, "more than was left"),
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
    assert found
    assert all(wrong in one or "dollars" in one for one in found), found


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
