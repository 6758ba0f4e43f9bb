"""Whatever is committed, in whatever order and through whatever crashes, comes back equal."""

import itertools
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import make_url

import stored
from boa.model.changes import Changes
from boa.model.held import Held
from boa.model.history_kept import HistoryKept
from boa.model.job import JobRecord
from boa.model.job_spec import amended
from boa.model.records import Cell, CellKey, ClassRecord, Event, Hold, NodeRecord, Point, Sample
from boa.model.sampled import Sampled
from boa.store import codec, pages, sqlite
from boa.store.base import Store, StoreTrouble
from boa.store.sql import open_store
from postgresql import Postgresql

pytest_plugins = ("postgresql",)
EVERYTHING = HistoryKept(samples_days=float("inf"))


@given(record=stored.jobs)
def test_a_job_comes_back_equal(record: JobRecord) -> None:
    assert codec.job_of(codec.job_row(record)) == record


@given(record=stored.nodes)
def test_a_node_comes_back_equal(record: NodeRecord) -> None:
    assert codec.node_of(codec.node_row(record)) == record


@given(record=stored.holds)
def test_a_hold_comes_back_equal(record: Hold) -> None:
    assert codec.hold_of(codec.hold_row(record)) == record


@given(record=stored.cells)
def test_a_cell_comes_back_equal(record: Cell) -> None:
    assert codec.cell_of(codec.cell_row(record)) == record


@given(record=stored.class_records)
def test_a_class_comes_back_equal(record: ClassRecord) -> None:
    assert codec.class_of(codec.class_row(record)) == record


@given(record=stored.events)
def test_an_event_comes_back_equal(record: Event) -> None:
    assert codec.event_of(codec.event_row(1, record)) == record


@given(record=stored.samples)
def test_a_sample_comes_back_equal(record: Sample) -> None:
    assert codec.sample_of(codec.sample_row(record)) == record


@given(record=stored.points)
def test_a_point_comes_back_equal(record: Point) -> None:
    assert codec.point_of(codec.point_row(record)) == record


@given(key=stored.texts, value=stored.json_values)
def test_a_setting_comes_back_equal(key: str, value: Any) -> None:
    assert codec.meta_of(codec.meta_row(key, value)) == (key, value)


@given(text=st.text())
def test_any_text_goes_into_a_column_and_back(text: str) -> None:
    column = codec.to_text(text)
    assert "\0" not in column
    column.encode()
    assert codec.from_text(column) == text


@dataclass
class Model:
    """What a store is: some dictionaries."""

    jobs: dict[int, JobRecord] = field(default_factory=dict)
    first: dict[int, JobRecord] = field(default_factory=dict)
    """Jobs as they were submitted: their specs stay, but for what was amended since."""
    nodes: dict[int, NodeRecord] = field(default_factory=dict)
    holds: dict[tuple[str, int, float], Hold] = field(default_factory=dict)
    cells: dict[CellKey, Cell] = field(default_factory=dict)
    classes: dict[str, ClassRecord] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    samples: dict[float, Sample] = field(default_factory=dict)
    points: dict[tuple[str, float], Point] = field(default_factory=dict)

    def commit(self, changes: Changes) -> int:
        for job in changes.jobs.values():
            first = self.first.setdefault(int(job.id), job)
            self.jobs[int(job.id)] = replace(
                job,
                spec=amended(first.spec, job.amended),
                serial=first.serial,
                submitted_at=first.submitted_at,
            )
        self.nodes.update(changes.nodes)
        self.holds.update(changes.holds)
        self.cells.update((cell.key, cell) for cell in changes.cells)
        self.classes.update((record.name, record) for record in changes.classes)
        self.events += changes.events
        self.meta.update(changes.meta)
        self.samples.update((sample.at, sample) for sample in changes.samples)
        self.points.update(((p.job, p.at), p) for p in changes.points.values())
        return len(self.events)

    def newest_jobs(self) -> list[JobRecord]:
        return [self.jobs[number] for number in sorted(self.jobs, reverse=True)]

    def points_of(self, job: str) -> list[Point]:
        return [self.points[key] for key in sorted(self.points) if key[0] == job]


class Place(Protocol):
    """Where databases are, and how a service on one dies."""

    def new(self) -> str: ...

    def crash(self, url: str, store: Store) -> str:
        """The service is gone without a word; the database that it leaves."""
        ...

    def trouble(self, url: str) -> AbstractContextManager[None]:
        """Inside it, a commit may fail."""
        ...


class Files:
    def __init__(self, folder: Path) -> None:
        self.folder, self.numbers = folder, itertools.count()

    def new(self) -> str:
        return f"sqlite:///{self.folder}/{next(self.numbers)}/boa.db"

    def crash(self, url: str, store: Store) -> str:
        """What is in the files at this moment is what a killed process leaves."""
        left = self.new()
        before, after = (Path(u.removeprefix("sqlite:///")) for u in (url, left))
        after.parent.mkdir()
        for end in ("", "-wal"):
            shutil.copy(f"{before}{end}", f"{after}{end}")
        store.close()
        return left

    @contextmanager
    def trouble(self, url: str) -> Iterator[None]:
        other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        with closing(other):
            other.execute("BEGIN IMMEDIATE")
            yield


class Server:
    def __init__(self, server: Postgresql) -> None:
        self.server = server

    def new(self) -> str:
        return self.server.url(self.server.new_database())

    def crash(self, url: str, store: Store) -> str:
        self._cut_off(url)
        store.close()
        return url

    @contextmanager
    def trouble(self, url: str) -> Iterator[None]:
        self._cut_off(url)
        yield

    def _cut_off(self, url: str) -> None:
        name = make_url(url).database
        assert name is not None
        self.server.cut_off(name)


class StoreMachine(RuleBasedStateMachine):
    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place, self.model = place, Model()

    @initialize()
    def begin(self) -> None:
        self.url = self.place.new()
        self.store = open_store(self.url, EVERYTHING)

    @rule(changes=stored.any_changes())
    def commit(self, changes: Changes) -> None:
        assert self.store.commit(changes) == self.model.commit(changes)

    @rule(changes=stored.any_changes().filter(bool))
    def commit_in_trouble(self, changes: Changes) -> None:
        """All of it or nothing. (A connection that was lost before is no trouble any more.)"""
        with self.place.trouble(self.url):
            try:
                self.store.commit(changes)
            except StoreTrouble:
                return
        self.model.commit(changes)

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = open_store(self.url, EVERYTHING)

    @rule()
    def crash(self) -> None:
        self.url = self.place.crash(self.url, self.store)
        self.store = open_store(self.url, EVERYTHING)

    @rule(
        ended=stored.maybe(st.booleans()),
        job_class=stored.maybe(stored.names),
        since=stored.maybe(stored.times),
        limit=st.integers(0, 6),
        before=stored.maybe(stored.numbers),
    )
    def jobs(
        self,
        ended: bool | None,
        job_class: str | None,
        since: float | None,
        limit: int,
        before: int | None,
    ) -> None:
        expected = [
            job
            for job in self.model.newest_jobs()
            if ended in (None, job.ended)
            and job_class in (None, job.job_class)
            and (since is None or job.submitted_at >= since)
            and (before is None or int(job.id) < before)
        ]
        found = self.store.jobs(
            ended=ended, job_class=job_class, since=since, limit=limit, before=before
        )
        assert found == expected[:limit]

    @rule(
        after=st.integers(0, 30),
        job=stored.maybe(stored.numbers.map(str)),
        limit=st.integers(0, 6),
        newest=st.booleans(),
    )
    def events(self, after: int, job: str | None, limit: int, newest: bool) -> None:
        expected = [
            (number, event)
            for number, event in enumerate(self.model.events, start=1)
            if number > after and job in (None, event.job)
        ]
        expected = expected[-limit:] if newest and limit else expected[:limit]
        found = self.store.events(after=after, job=job, limit=limit, newest=newest)
        assert [(one.number, one.event) for one in found] == expected

    @rule(since=stored.times, until=stored.times)
    def nodes_between(self, since: float, until: float) -> None:
        expected = [
            self.model.nodes[number]
            for number in sorted(self.model.nodes)
            if self._meets(
                self.model.nodes[number].billed_from,
                self.model.nodes[number].gone_at,
                since,
                until,
            )
        ]
        assert self.store.nodes_between(since, until) == expected

    @rule(since=stored.times, until=stored.times, job=stored.maybe(stored.numbers.map(str)))
    def holds_between(self, since: float, until: float, job: str | None) -> None:
        expected = (
            hold
            for hold in self.model.holds.values()
            if self._meets(hold.since, hold.until, since, until) and job in (None, hold.job)
        )
        found = self._by_time(expected)
        assert self.store.holds_between(since, until, job=job) == found
        if job is None:
            held = self.store.held_between(since, until)
            assert columns_of(held) == sorted(map(columns, found))

    @rule(ids=st.sets(stored.numbers))
    def nodes(self, ids: set[int]) -> None:
        expected = [self.model.nodes[number] for number in sorted(ids & self.model.nodes.keys())]
        assert self.store.nodes(ids) == expected

    @rule(since=stored.times, until=stored.times)
    def samples_between(self, since: float, until: float) -> None:
        expected = [self.model.samples[at] for at in sorted(self.model.samples)]
        found = self.store.samples_between(since, until)
        assert found == [sample for sample in expected if since <= sample.at <= until]
        by_column, columns = Sampled.of(found), self.store.sampled_between(since, until)
        for one in ("at", "every_s", "budget", "active", "waiting"):
            assert getattr(columns, one).tolist() == getattr(by_column, one).tolist()
        wanted = {gpu: column.tolist() for gpu, column in columns.wanted.items()}
        assert wanted == {gpu: column.tolist() for gpu, column in by_column.wanted.items()}

    @rule(number=stored.numbers)
    def points(self, number: int) -> None:
        assert self.store.points(str(number)) == self.model.points_of(str(number))

    @invariant()
    def what_goes_on_is_all_that_has_not_ended(self) -> None:
        saved, model = self.store.load(), self.model
        assert saved.jobs == [job for job in model.newest_jobs()[::-1] if not job.ended]
        assert saved.nodes == [
            model.nodes[number]
            for number in sorted(model.nodes)
            if model.nodes[number].state != "gone"
        ]
        open_holds = (hold for hold in model.holds.values() if hold.until is None)
        assert saved.holds == self._by_time(open_holds)
        assert {cell.key: cell for cell in saved.cells} == model.cells
        assert len(saved.cells) == len(model.cells)
        assert {record.name: record for record in saved.classes} == model.classes
        assert saved.meta == model.meta
        assert saved.points == {
            job.id: points[-1] for job in saved.jobs if (points := model.points_of(job.id))
        }
        assert saved.next_job == max(model.jobs, default=0) + 1
        assert saved.next_node == max(model.nodes, default=0) + 1

    @invariant()
    def by_column_there_is_every_hold_once(self) -> None:
        ever = [hold for hold in self.model.holds.values() if end(hold) > -1.0]
        assert columns_of(self.store.held_between(-1.0, 5e9)) == sorted(map(columns, ever))

    @rule(number=stored.numbers)
    def job(self, number: int) -> None:
        assert self.store.job(str(number)) == self.model.jobs.get(number)

    @staticmethod
    def _by_time(holds: Iterable[Hold]) -> list[Hold]:
        return sorted(holds, key=lambda hold: (hold.since, int(hold.job), hold.node))

    @staticmethod
    def _meets(begin: float | None, end: float | None, since: float, until: float) -> bool:
        return begin is not None and begin < until and (end is None or end > since)

    def teardown(self) -> None:
        self.store.close()


def end(hold: Hold) -> float:
    return float("inf") if hold.until is None else hold.until


def columns(hold: Hold) -> tuple[Any, ...]:
    return hold.stream, int(hold.job), hold.node, hold.gpus, hold.since, end(hold)


def columns_of(held: Held) -> list[tuple[Any, ...]]:
    found = (held.stream, held.job, held.node, held.gpus, held.since, held.until)
    return sorted(zip(*found, strict=True))


def run(place: Place, examples: int) -> None:
    class Here(StoreMachine):
        def __init__(self) -> None:
            super().__init__(place)

    run_state_machine_as_test(
        Here, settings=settings(max_examples=examples, stateful_step_count=20)
    )


def test_any_history_agrees_with_the_model_on_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LOCK_WAIT_S", 0.0)
    monkeypatch.setattr(pages, "PAGE", 2)  # most holds that have ended are in pages
    run(Files(tmp_path), 40)


def test_any_history_agrees_with_the_model_on_postgresql(
    postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE", 2)  # most holds that have ended are in pages
    run(Server(postgresql), 12)
