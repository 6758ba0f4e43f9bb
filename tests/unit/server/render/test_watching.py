"""What somebody who watches is told: everything once, then what has changed, and not too much."""

from dataclasses import replace
from typing import Any

import pytest

from boa.model.job import JobRecord
from boa.model.records import Hold, NodeRecord
from boa.runtime.snapshot import Snapshot
from boa.scheduler.plan.plan_in_force import PlanState
from boa.server.render.watching import CHUNK, News, Watch
from fakes import MONEY
from stored import hold, job, node, running
from unit.server.routes.test_money import plan_state


def shot(
    *jobs: JobRecord,
    nodes: tuple[NodeRecord, ...] = (),
    holds: tuple[Hold, ...] = (),
    plan: PlanState | None = None,
    last_event: int = 0,
) -> Snapshot:
    return Snapshot(
        now=0.0,
        jobs={record.id: record for record in jobs},
        nodes={record.id: record for record in nodes},
        holds={(held.job, held.node, held.since): held for held in holds},
        charged=lambda: MONEY,
        plan=plan,
        last_event=last_event,
    )


def watching(snapshot: Snapshot) -> Watch:
    """One who has been told everything."""
    watch = Watch()
    watch.begin(snapshot)
    watch.look(snapshot)
    while watch.behind:
        watch.look(snapshot)
    return watch


def ids(news: News) -> list[str]:
    return [record.id for record in news.jobs]


def test_everything_is_told_at_first_the_newest_jobs_before_the_others() -> None:
    snapshot = shot(*(job(n) for n in range(1, 1202)), nodes=(node(2), node(1)))
    watch = Watch()
    watch.begin(snapshot)
    pieces = [watch.look(snapshot)]
    while watch.behind:
        pieces.append(watch.look(snapshot))
    assert [len(piece.jobs) for piece in pieces] == [CHUNK, CHUNK, 201]
    told = [number for piece in pieces for number in ids(piece)]
    assert told == [str(n) for n in range(1201, 0, -1)]
    assert [seen[0].id for seen in pieces[0].nodes] == [1, 2]
    assert not any(piece.nodes for piece in pieces[1:])


def test_nothing_is_told_where_nothing_has_changed() -> None:
    jobs, nodes, holds = (job(1), running(2)), (node(7),), (hold(2, 7, 1.0),)
    watch = watching(shot(*jobs, nodes=nodes, holds=holds))
    assert not watch.look(shot(*jobs, nodes=nodes, holds=holds)), "the same records, newly gathered"


def test_new_and_changed_jobs_are_told_once() -> None:
    first, second = job(1), running(2)
    watch = watching(shot(first, second))
    further = replace(second, progress=5.0)
    snapshot = shot(first, further, job(3))
    news = watch.look(snapshot)
    assert ids(news) == ["3", "2"], "what jobs are at goes before how far they got"
    assert news.jobs[1] is further
    assert news.counts == {"waiting": 2, "running": 1}
    assert not watch.look(snapshot)


def test_a_job_that_is_no_longer_active_has_left() -> None:
    watch = watching(shot(job(1), job(2)))
    news = watch.look(shot(job(2)))
    assert list(news.left) == ["1"]
    assert not watch.look(shot(*news.jobs)).left
    watch.again(["1"])
    assert list(watch.look(shot(*news.jobs)).left) == ["1"], "nobody knew what became of it"


def test_a_job_that_left_before_its_change_was_told_is_told_of_only_as_left() -> None:
    jobs = [running(n) for n in range(1, CHUNK + 3)]
    watch = watching(shot(*jobs))
    watch.look(shot(*(replace(record, progress=1.0) for record in jobs)))
    assert watch.behind
    news = watch.look(shot(jobs[0]))
    assert set(ids(news)) <= {jobs[0].id}
    assert jobs[-1].id in news.left


def test_jobs_that_change_all_the_time_hold_none_back() -> None:
    jobs = [running(n) for n in range(1, 3 * CHUNK + 1)]
    watch = watching(shot(*jobs))
    told: set[str] = set()
    for progress in range(1, 4):
        news = watch.look(shot(*(replace(record, progress=progress) for record in jobs)))
        assert len(news.jobs) == CHUNK, "and no more than that at once"
        told.update(ids(news))
    assert len(told) == 3 * CHUNK


def test_a_job_that_begins_or_ends_something_goes_before_those_that_only_get_on() -> None:
    jobs = [running(n) for n in range(1, 2 * CHUNK)]
    watch = watching(shot(*jobs))
    further = [replace(record, progress=1.0) for record in jobs[:-1]]
    news = watch.look(shot(*further, replace(jobs[-1], state="rescaling", run=None)))
    assert ids(news)[0] == jobs[-1].id
    assert len(news.jobs) == CHUNK


def test_a_row_is_told_as_it_is_when_its_turn_comes() -> None:
    jobs = [running(n) for n in range(1, CHUNK + 2)]
    watch = watching(shot(*jobs))
    watch.look(shot(*(replace(record, progress=1.0) for record in jobs)))
    newest = [replace(record, progress=2.0) for record in jobs]
    news = watch.look(shot(*newest))
    assert news.jobs[0] is newest[-1]


@pytest.mark.parametrize("change", ["record", "hold", "new"])
def test_a_node_is_told_of_when_it_or_what_is_held_of_it_changes(change: str) -> None:
    same, held = node(1), hold(5, 1, 1.0)
    watch = watching(shot(nodes=(same, node(2)), holds=(held,)))
    changes: dict[str, dict[str, Any]] = {
        "record": {"nodes": (replace(same, state="ready"),), "holds": (held,)},
        "hold": {"nodes": (same,), "holds": (held, hold(6, 1, 2.0))},
        "new": {"nodes": (same, node(3)), "holds": (held,)},
    }
    news = watch.look(shot(**changes[change]))
    assert [seen[0].id for seen in news.nodes] == [3 if change == "new" else 1]
    assert list(news.gone) == [2]
    if change == "hold":
        assert [held.job for held in news.nodes[0][1]] == ["5", "6"]


def test_a_new_plan_tells_every_job_again() -> None:
    jobs = (job(1), job(2))
    watch = watching(shot(*jobs))
    news = watch.look(shot(*jobs, plan=plan_state()))
    assert (news.plan, set(ids(news))) == (3, {"1", "2"})


def test_figures_are_told_when_they_change() -> None:
    watch = watching(shot(job(1), last_event=3))
    news = watch.look(shot(job(1), last_event=4))
    assert news.last_event == 4
    assert news.counts is None
    assert news.plan is None
