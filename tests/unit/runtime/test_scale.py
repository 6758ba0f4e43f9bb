"""What is looked up instead of searched for, or put off: the answers are the same."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.cluster import Allocation
from boa.model.job import JobRecord, Run
from boa.model.runs import Launch
from boa.runtime import actor
from boa.runtime.loop import LEAST_PAUSE_S, MOST_PAUSE_S, pause_after
from boa.scheduler.lifecycle import drop_node
from boa.scheduler.state import Draft, State
from boa.server.render import documents
from live import Live, config, prior, profile, spec

KNOWN = profile("a", work=(3600.0, 3600.0), alpha=0.9, rescale_s=30.0)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    made = Live(config(tmp_path, budget=12.0, priors={"a": prior(KNOWN, 2.0)}), {"a": KNOWN})
    yield made
    made.close()


# Who is on a node

nodes = st.lists(st.integers(1, 4), max_size=3, unique=True)
changes = st.lists(st.tuples(st.integers(1, 5), nodes, nodes, st.booleans()), max_size=12)


def record(number: int, given: list[int], runs_on: list[int], ended: bool) -> JobRecord:
    def on(nodes: list[int]) -> Allocation | None:
        return Allocation("T4", tuple((node, 1) for node in sorted(nodes))) if nodes else None

    run, held = None, on(runs_on)
    if held is not None:
        slots = dict.fromkeys(runs_on, (0,))
        run = Run(attempt=1, allocation=held, slots=slots, requested_at=0.0, decided_at=0.0)
    job = JobRecord(id=str(number), spec=spec("a"), serial=0, submitted_at=0.0)
    return replace(job, allocation=on(given), run=run, state="succeeded" if ended else "running")


@settings(max_examples=60)
@given(before=changes, after=changes)
def test_jobs_of_a_node_are_those_that_a_search_finds_whatever_was_written_meanwhile(
    before: list[tuple[int, list[int], list[int], bool]],
    after: list[tuple[int, list[int], list[int], bool]],
) -> None:
    draft = Draft(State(), 0.0)
    for change in before:
        draft.put_job(record(*change))
    agree(draft)
    for change in after:
        draft.put_job(record(*change))
        agree(draft)


def agree(draft: Draft) -> None:
    for node in range(1, 5):
        assert {job.id: job for job in draft.jobs_on(node)} == {
            job.id: job
            for job in draft.jobs.values()
            if (job.allocation is not None and node in dict(job.allocation.nodes))
            or (job.run is not None and node in job.run.slots)
        }


def test_a_lost_node_leaves_jobs_alone_that_have_nothing_to_do_with_it(live: Live) -> None:
    for _ in range(6):
        live.submit(spec("a", epochs=2))
    live.advance(60.0)
    lost = next(iter(live.loop.state.nodes.values()))
    elsewhere = {
        job.id: job
        for job in live.loop.state.jobs.values()
        if job.run is not None and lost.id not in job.run.slots
    }
    assert 0 < len(elsewhere) < 6
    waiting = JobRecord(id="99", spec=spec("a"), serial=9, submitted_at=live.clock.now())
    draft = Draft(live.loop.state, live.clock.now())
    draft.jobs[waiting.id] = waiting
    drop_node(draft, lost.id, draft.now)
    assert draft.changes.jobs.keys() == live.loop.state.jobs.keys() - elsewhere.keys()


# Holds of a job


def test_open_holds_of_a_job_are_those_that_a_search_finds_at_any_time(live: Live) -> None:
    for _ in range(4):
        live.submit(spec("a", epochs=2))
    seen = 0
    for _ in range(40):
        live.advance(97.0)
        snapshot = live.loop.snapshot
        for job in snapshot.jobs.values():
            found = documents.holds_of(job, snapshot)
            assert found == [hold for hold in snapshot.holds.values() if hold.job == job.id]
            seen += len(found)
    assert seen > 40


def test_a_job_as_it_was_is_shown_with_the_holds_that_it_has_now(live: Live) -> None:
    job = live.submit(spec("a", epochs=2))
    live.advance(60.0)
    as_submitted = replace(live.job(job), run=None, allocation=None)
    assert documents.holds_of(as_submitted, live.loop.snapshot) == list(
        live.loop.snapshot.holds.values()
    )


# Money that is added up when somebody looks


def test_money_is_that_of_the_snapshot_even_if_nobody_looked_until_all_had_changed(
    live: Live,
) -> None:
    live.submit(spec("a", epochs=2))
    live.advance(600.0)
    then, expected = (
        live.loop.snapshot,
        live.loop.scheduler.purse.state(live.loop.state, live.clock.now()),
    )
    live.loop.set_budget(3.0)
    live.finish()
    assert then.money == expected
    now = live.loop.snapshot.money
    assert (now.budget, expected.budget) == (3.0, 12.0)
    assert now.total > expected.total > 0


# Where there is much to do


@pytest.mark.parametrize(
    ("step_s", "pause_s"),
    [(0.0, LEAST_PAUSE_S), (0.1, 0.1), (60.0, MOST_PAUSE_S)],
)
def test_a_pause_is_as_long_as_the_step_before_it_within_bounds(
    step_s: float, pause_s: float
) -> None:
    assert pause_after(step_s) == pause_s


def test_jobs_are_told_to_report_less_often_the_more_there_are(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[Launch] = []
    start = live.engine.start

    def started(launch: Launch) -> None:
        launched.append(launch)
        start(launch)

    monkeypatch.setattr(live.engine, "start", started)
    monkeypatch.setattr(actor, "REPORTS_PER_S", 1.0)
    live.submit(spec("a"))
    for _ in range(3):
        live.submit(spec("a"))
    live.submit(spec("a", env={actor.EVERY: "0.5"}))
    told = [launch.env.get(actor.EVERY) for launch in launched if launch.key.attempt == 1]
    assert told == [None, "2", "3", "4", None]  # the first is alone; the last has its own wish
