"""What a store keeps and how it is found again, on SQLite and on PostgreSQL."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.dialects import sqlite

from boa.model.changes import Changes
from boa.model.history_kept import HistoryKept
from boa.model.records import Cell, CellKey, ClassRecord
from boa.store import queries, writing
from boa.store.base import Store
from boa.store.sql import open_store
from postgresql import Database
from stored import changes, event, hold, job, node, point, running, sample, spec

pytest_plugins = ("postgresql",)


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    opened = open_store(database.url)
    yield opened
    opened.close()


def ids(found: object) -> list[str]:
    return [record.id for record in found]  # type: ignore[attr-defined]


def texts(store: Store, **asked: object) -> list[str]:
    return [stored.event.text for stored in store.events(**asked)]  # type: ignore[arg-type]


def test_a_new_store_is_empty_and_numbers_begin_at_one(store: Store) -> None:
    saved = store.load()
    assert (saved.jobs, saved.nodes, saved.holds, saved.cells) == ([], [], [], [])
    assert (saved.classes, saved.meta, saved.next_job, saved.next_node) == ([], {}, 1, 1)
    assert store.events() == []


def test_all_that_was_committed_is_there_after_a_restart(database: Database) -> None:
    key = CellKey("resnet18", "T4", True, 4, 2)
    written = changes(
        jobs=(running(1), job(2)),
        nodes=(node(7), node(9, state="ready", billed_from=11.0, ready_at=12.0)),
        holds=(hold(1, 7, 120.5), hold(1, 9, 120.5)),
        cells=[Cell(key, 10.0, 3.5, 4)],
        classes=[ClassRecord(name="resnet18", document={"arrivals": [1.5, None]})],
        events=[event("hello", job="1", data={"width": 3})],
        meta={"budget": {"per_hour": 40.0}},
    )
    store = open_store(database.url)
    store.commit(written)
    store.close()
    store = open_store(database.url)
    saved, events = store.load(), store.events()
    store.close()
    assert saved.jobs == list(written.jobs.values())
    assert saved.nodes == list(written.nodes.values())
    assert saved.holds == list(written.holds.values())
    assert (saved.cells, saved.classes, saved.meta) == (
        written.cells,
        written.classes,
        written.meta,
    )
    assert (saved.next_job, saved.next_node) == (3, 10)
    assert [stored.event for stored in events] == written.events


def test_what_has_ended_is_kept_but_not_loaded(store: Store) -> None:
    ended = job(1, state="succeeded", ended_at=200.0)
    gone = node(4, state="gone", billed_from=10.0, gone_at=300.0)
    closed = hold(1, 4, 100.0, 200.0)
    store.commit(changes(jobs=(ended,), nodes=(gone,), holds=(closed,)))
    saved = store.load()
    assert (saved.jobs, saved.nodes, saved.holds) == ([], [], [])
    assert (saved.next_job, saved.next_node) == (2, 5)
    assert store.job("1") == ended
    assert store.nodes_between(0.0, 1000.0) == [gone]
    assert store.holds_between(0.0, 1000.0) == [closed]


def test_a_record_replaces_its_like(store: Store) -> None:
    cell = Cell(CellKey("a", "T4", False, 1, 0), 1.0, 1.0, 1)
    store.commit(
        changes(
            jobs=(job(1),),
            nodes=(node(1),),
            holds=(hold(1, 1, 5.0),),
            cells=[cell],
            classes=[ClassRecord(name="a", document={})],
            meta={"plan": 1},
        )
    )
    later = changes(
        jobs=(running(1),),
        nodes=(node(1, state="ready"),),
        holds=(hold(1, 1, 5.0, 6.0),),
        cells=[replace(cell, reports=2), replace(cell, reports=3)],
        classes=[ClassRecord(name="a", document={"x": 1})],
        meta={"plan": 2},
    )
    store.commit(later)
    saved = store.load()
    assert (saved.jobs, saved.nodes) == ([running(1)], [node(1, state="ready")])
    assert store.holds_between(0.0, 10.0) == [hold(1, 1, 5.0, 6.0)]
    assert (saved.cells, saved.meta) == ([replace(cell, reports=3)], {"plan": 2})
    assert saved.classes == later.classes


def test_what_a_user_sent_is_written_once(store: Store) -> None:
    store.commit(changes(jobs=(job(1),)))
    store.commit(changes(jobs=(job(1, spec=spec("other"), state="running"),)))
    assert store.job("1") == job(1, state="running")


def test_events_are_numbered_without_gaps_across_restarts(database: Database) -> None:
    store = open_store(database.url)
    assert store.commit(Changes()) == 0
    assert store.commit(changes(events=[event("a"), event("b")])) == 2
    assert store.commit(changes(meta={"no": "event"})) == 2
    store.close()
    store = open_store(database.url)
    assert store.commit(changes(events=[event("c")])) == 3
    assert [stored.number for stored in store.events()] == [1, 2, 3]
    store.close()


def test_events_by_number_and_by_job(store: Store) -> None:
    told = [event(str(number), job="1" if number % 2 else None) for number in range(1, 8)]
    store.commit(changes(events=told))
    assert texts(store, after=4) == ["5", "6", "7"]
    assert texts(store, after=2, limit=2) == ["3", "4"]
    assert texts(store, newest=True, limit=2) == ["6", "7"]
    assert texts(store, after=6, newest=True, limit=5) == ["7"]
    assert texts(store, job="1") == ["1", "3", "5", "7"]
    assert texts(store, job="1", newest=True, limit=2) == ["5", "7"]
    assert texts(store, job="2") == texts(store, limit=0) == texts(store, after=10**30) == []


def test_jobs_newest_first_by_end_class_time_and_number(store: Store) -> None:
    ended = {2: "failed", 4: "succeeded", 5: "stopped"}
    store.commit(
        changes(
            jobs=tuple(
                job(
                    number,
                    spec=spec("bert" if number > 3 else "resnet18"),
                    state=ended.get(number, "waiting"),
                )
                for number in range(1, 12)
            )
        )
    )
    assert ids(store.jobs(limit=3)) == ["11", "10", "9"]
    assert ids(store.jobs(limit=2, before=10)) == ["9", "8"]
    assert ids(store.jobs(ended=True)) == ["5", "4", "2"]
    assert ids(store.jobs(ended=False, before=7)) == ["6", "3", "1"]
    assert ids(store.jobs(job_class="resnet18", ended=False)) == ["3", "1"]
    assert ids(store.jobs(since=1000.0)) == ["11", "10"]
    assert store.jobs(job_class="nobody's") == store.jobs(before=0) == []


def test_names_that_no_job_has_find_nothing(store: Store) -> None:
    store.commit(changes(jobs=(job(1),), holds=(hold(1, 1, 0.0),), events=[event("x", job="1")]))
    for name in ("2", "01", "+1", " 1", "-1", "", "x", "1.0", "١", "9" * 30):
        assert store.job(name) is None
        assert store.events(job=name) == []
        assert store.holds_between(0.0, 9.0, job=name) == []


def test_nodes_charged_between_two_moments(store: Store) -> None:
    never = node(1)
    before = node(2, state="gone", billed_from=1.0, gone_at=10.0)
    into = node(3, state="gone", billed_from=5.0, gone_at=11.0)
    still = node(4, state="ready", billed_from=19.0)
    after = node(5, state="ready", billed_from=20.0)
    store.commit(changes(nodes=(never, before, into, still, after)))
    assert store.nodes_between(10.0, 20.0) == [into, still]
    assert store.nodes_between(0.0, 100.0) == [before, into, still, after]


def test_holds_that_overlap_two_moments(store: Store) -> None:
    before, into = hold(1, 1, 0.0, 10.0), hold(2, 1, 5.0, 11.0)
    still, after = hold(1, 2, 19.0), hold(3, 2, 20.0)
    store.commit(changes(holds=(after, still, into, before)))
    assert store.holds_between(10.0, 20.0) == [into, still]
    assert store.holds_between(0.0, 100.0, job="1") == [before, still]
    assert store.load().holds == [still, after]


def test_old_events_are_dropped_now_and_then(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "keep", HistoryKept(events=25))
    monkeypatch.setattr(writing, "PRUNE_EVERY", 10)
    for first in range(0, 99, 3):
        store.commit(changes(events=[event(str(first + k)) for k in range(3)]))
        assert 25 <= len(store.events()) <= 25 + 10 or first < 25
    assert texts(store, newest=True, limit=1) == ["98"]
    assert store.commit(changes(events=[event("next")])) == 100


def test_old_samples_and_points_of_old_jobs_are_dropped_now_and_then(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "keep", HistoryKept(samples_days=10_000.0 / 86_400))
    old, long_lived = job(1, submitted_at=1.0), job(2, submitted_at=2.0)
    store.commit(changes(jobs=(old, long_lived, job(3, submitted_at=9000.0))))
    store.commit(changes(samples=[sample(100.0)], points=(point(1, 100.0), point(2, 100.0))))
    store.commit(changes(points=(point(2, 9500.0), point(3, 9500.0))))
    store.commit(changes(samples=[sample(3700.0)]))
    assert len(store.samples_between(0.0, 1e9)) == 2
    store.commit(changes(samples=[sample(11_000.0)]))
    assert [s.at for s in store.samples_between(0.0, 1e9)] == [3700.0, 11_000.0]
    assert [p.at for n in "123" for p in store.points(n)] == [9500.0, 9500.0]
    store.commit(changes(samples=[sample(14_000.0)]))
    assert len(store.samples_between(0.0, 1e9)) == 3, "not every time"


def test_a_sample_or_a_point_of_the_same_moment_replaces_the_other(store: Store) -> None:
    for loss in (2.0, 1.0):
        store.commit(changes(samples=[sample(5.0, active=9)], points=(point(1, 5.0, loss=loss),)))
    assert store.samples_between(5.0, 5.0) == [sample(5.0, active=9)]
    assert store.points("1") == [point(1, 5.0, loss=1.0)]
    assert store.points("x") == []


def test_the_last_point_of_every_job_that_goes_on_is_loaded(store: Store) -> None:
    store.commit(changes(jobs=(running(1), running(2), job(3, state="failed"))))
    for at in (10.0, 30.0, 20.0):
        store.commit(changes(points=(point(1, at), point(3, at))))
    assert store.load().points == {"1": point(1, 30.0)}


def test_many_nodes_are_found_by_their_ids(store: Store) -> None:
    store.commit(changes(nodes=tuple(node(number) for number in range(1, 1201))))
    found = store.nodes({*range(2, 1200), 5000})
    assert [one.id for one in found] == list(range(2, 1200))
    assert store.nodes(()) == []


def test_a_reader_in_the_middle_of_reading_does_not_hold_up_a_commit(
    store: Store, database: Database
) -> None:
    store.commit(changes(jobs=(job(1),)))
    with database.engine().connect() as other:
        reading = other.exec_driver_sql("SELECT number FROM jobs")
        other.exec_driver_sql("SELECT record FROM jobs").all()
        store.commit(changes(jobs=(job(2),)))
        assert reading.all() == [(1,)]
    assert ids(store.jobs()) == ["2", "1"]


def test_many_threads_read_while_one_commits(store: Store) -> None:
    done, wrong = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            jobs, events = store.jobs(), store.events()
            if len(events) < len(jobs):  # each commit adds one of both
                wrong.append((len(jobs), len(events)))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for number in range(1, 60):
        store.commit(changes(jobs=(job(number),), events=[event("new", job=str(number))]))
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert len(store.jobs()) == 59


def test_text_that_databases_refuse_is_kept(store: Store) -> None:
    odd = "nul \0, half a pair \udc80, back\\slash \\x00, naïve ü 😀"
    key = CellKey(odd, odd, False, 1, 1)
    written = changes(
        jobs=(job(1, spec=spec(odd, env={odd: odd}), reason=odd),),
        holds=(replace(hold(1, 1, 0.0), stream=odd),),
        cells=[Cell(key, 1.0, 1.0, 1)],
        classes=[ClassRecord(name=odd, document={odd: odd})],
        events=[event(odd)],
        meta={odd: odd},
    )
    store.commit(written)
    saved = store.load()
    assert saved.jobs == store.jobs(job_class=odd) == list(written.jobs.values())
    assert saved.holds == list(written.holds.values())
    assert (saved.cells, saved.classes, saved.meta) == (
        written.cells,
        written.classes,
        written.meta,
    )
    assert texts(store) == [odd]


def test_every_question_is_answered_by_an_index(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/boa.db"
    open_store(url).close()
    asked = [
        queries.jobs(None, None, None, 100, 5000),
        queries.jobs(True, None, None, 100, 5000),
        queries.jobs(None, "bert", None, 100, None),
        queries.events(10, None, 100, False),
        queries.events(10, 7, 100, True),
        queries.nodes_between(1.0, 2.0),
        queries.holds_between(1.0, 2.0, None),
        queries.holds_between(1.0, 2.0, 7),
        queries.active_jobs(),
        queries.nodes_not_gone(),
        queries.open_holds(),
        queries.held_between(1.0, 2.0, 1.5),
        queries.nodes([1, 2]),
        queries.samples_between(1.0, 2.0),
        queries.points(7),
        queries.last_points(),
    ]
    with Database(url).engine().connect() as connection:
        for query in asked:
            question = query.compile(
                dialect=sqlite.dialect(paramstyle="named"),
                compile_kwargs={"render_postcompile": True},
            )
            explain = f"EXPLAIN QUERY PLAN {question}"
            plan = connection.exec_driver_sql(explain, question.params).all()
            assert [step[3] for step in plan if step[3].startswith("SCAN")] == [], explain


def test_a_loss_that_is_no_number_any_more_is_kept(store: Store) -> None:
    store.commit(changes(jobs=(job(1, loss=float("nan")), job(2, loss=float("inf")))))
    diverged, grown = store.load().jobs
    assert diverged.loss is not None
    assert diverged.loss != diverged.loss
    assert grown.loss == float("inf")
