"""A stop tells the engine which run follows, so that it can prepare it."""

from dataclasses import replace
from typing import Any

import pytest

from boa.model.cluster import Allocation
from boa.model.job import JobRecord
from boa.model.profile import ClassProfile
from boa.model.runs import Launch, RunEvent, RunKey
from boa.scheduler import lifecycle
from boa.scheduler.moving import next_slots
from boa.scheduler.state import Draft, State
from live import Live, profile, spec
from stored import node, running


class Heard:
    """Calls of the engine that a service has made."""

    def __init__(self, live: Live) -> None:
        self.then: list[Launch | None] = []
        self.started: list[Launch] = []
        stop, start = live.engine.stop, live.engine.start

        def stopping(key: RunKey, grace_s: float, then: Launch | None = None) -> None:
            self.then.append(then)
            stop(key, grace_s, then)

        def starting(launch: Launch) -> None:
            self.started.append(launch)
            start(launch)

        live.engine.stop, live.engine.start = stopping, starting  # type: ignore[method-assign]


def both_widths() -> ClassProfile:
    """Narrow at first, then wide."""
    found = profile("both", work=(3600.0, 36_000.0), alpha=0.05)
    found.rates["T4"][1] = profile("steep", alpha=1.0).rates["T4"][0]
    return found


def test_the_run_that_follows_is_told_with_the_stop(lives: Any) -> None:
    live = lives(both_widths(), per_hour=1.0, budget=20.0)
    heard = Heard(live)
    job_id = live.submit(spec("both", epochs=2))
    live.finish()
    assert live.job(job_id).rescalings == 1
    (then,) = heard.then
    _, run = heard.started
    assert then is not None
    assert replace(then, env={}) == replace(run, env={})
    assert then.env | {"BOA_DECIDED_AT": ""} == dict(run.env) | {"BOA_DECIDED_AT": ""}


def test_nothing_follows_a_job_that_is_stopped_for_good(lives: Any) -> None:
    live = lives()
    heard = Heard(live)
    job_id = live.submit(spec("halves"))
    live.advance(60.0)
    live.loop.stop(job_id)
    live.settle()
    assert heard.then == [None]


def moving(**fields: Any) -> JobRecord:
    """From three GPUs on two nodes to four on one of them."""
    return replace(running(1), allocation=Allocation("T4", ((7, 4),)), **fields)


@pytest.mark.parametrize("other", [None, 9, 7])
def test_gpus_of_its_own_run_are_free_then_and_those_of_others_are_not(other: int | None) -> None:
    nodes = {number: node(number, state="ready") for number in (7, 9)}
    jobs = {"1": moving()}
    if other is not None:
        run = replace(jobs["1"].run, slots={other: (3,)})  # type: ignore[type-var]
        jobs["2"] = replace(running(2), run=run)
    found = next_slots(State(jobs=jobs, nodes=nodes), jobs["1"])
    assert found == (None if other == 7 else {7: (0, 1, 2, 3)})


def test_nobody_knows_what_follows_on_nodes_that_boot_or_after_a_last_stop() -> None:
    booting = State(jobs={"1": moving()}, nodes={7: node(7)})
    assert next_slots(booting, moving()) is None
    ready = State(jobs={"1": moving()}, nodes={7: node(7, state="ready")})
    assert next_slots(ready, moving(stop_requested=True)) is None
    assert next_slots(ready, replace(moving(), allocation=None)) is None


@pytest.mark.parametrize(("prepared_s", "since"), [(0.0, 200.0), (3.0, 203.0), (50.0, 210.0)])
def test_a_rescaling_counts_from_the_stop_that_the_run_hears(
    prepared_s: float, since: float
) -> None:
    job = moving(state="rescaling")
    assert job.run is not None
    job = replace(job, run=replace(job.run, state="stopping", stopping_at=200.0))
    nodes = {number: node(number, state="ready") for number in (7, 9)}
    draft = Draft(State(jobs={"1": job}, nodes=nodes), 210.0)
    event = RunEvent(
        key=RunKey("1", 3), ended=True, exit_code=0, stopped=True, prepared_s=prepared_s
    )
    lifecycle.run_ended(draft, event, 210.0, 10.0, lambda job: frozenset())
    assert draft.jobs["1"].moved_at == since
