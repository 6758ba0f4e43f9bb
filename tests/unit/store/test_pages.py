"""Pages of holds: they tell the same as the rows that they are of, whatever comes when."""

import math
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from boa.model.held import Held
from boa.model.records import Hold
from boa.store import pages
from boa.store.base import StoreTrouble
from boa.store.checking import check
from boa.store.salvage import salvage
from boa.store.sql import SqlStore, backend_of, open_store
from boa.store.sqlite import checkers, reason_of
from postgresql import Database
from stored import changes, hold, job, node

pytest_plugins = ("postgresql",)
ENDED = [hold(n, 1, 10.0 * n, 10.0 * n + 5.0) for n in range(1, 8)]
META = {
    "cluster": "boa-1-a",
    "clock": [1.0, 2.0],
    "serials": {"resnet18": 99},
    "began": 1.0,
    "money": {"terms": None},
    "tally": {"since": 1.0, "closed": {}},
}
USD = sum(h.price * h.gpus * 5.0 / 3600.0 for h in ENDED)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE", 3)


def columns(held: Held) -> list[tuple[object, ...]]:
    names = (held.stream, held.job, held.node, held.gpus, held.since, held.until)
    return sorted(zip(*names, strict=True))


def told(holds: Iterable[Hold]) -> list[tuple[object, ...]]:
    return sorted(
        (h.stream, int(h.job), h.node, h.gpus, h.since, math.inf if h.until is None else h.until)
        for h in holds
    )


@contextmanager
def counting(database: Database) -> Iterator[tuple[SqlStore, "list[int]"]]:
    """A store, and how many holds each of its pages has, as of when it is closed."""
    sizes: list[int] = []
    with closing(SqlStore(backend_of(database.url))) as store:
        yield store, sizes
        sizes += [row["holds"] for row in page_rows(store)]


def page_rows(store: SqlStore) -> list[dict[str, Any]]:
    with store._backend.readers.connect() as connection:
        found = connection.exec_driver_sql("SELECT * FROM held_pages ORDER BY number").mappings()
        return [dict(row) for row in found]


def test_a_pageful_of_holds_is_packed_with_the_commit_that_ends_the_last_of_them(
    database: Database,
) -> None:
    with closing(SqlStore(backend_of(database.url))) as store:
        for ended, whole in zip(ENDED, (0, 0, 1, 1, 1, 2, 2), strict=True):
            store.commit(changes(holds=(ended,)))
            assert [row["holds"] for row in page_rows(store)] == [3] * whole
        assert columns(store.held_between(0.0, 1e9)) == told(ENDED)
        assert columns(store.held_between(24.0, 40.0)) == told(ENDED[1:3]), "overlapping ones only"


def test_holds_that_go_on_are_in_no_page(database: Database) -> None:
    still = [hold(n, 2, 1.0 * n) for n in range(1, 9)]
    with counting(database) as (store, sizes):
        store.commit(changes(holds=(*still, *ENDED[:2])))
        assert columns(store.held_between(0.0, 1e9)) == told([*still, *ENDED[:2]])
    assert sizes == []


def test_those_that_end_at_one_moment_are_in_one_page(database: Database) -> None:
    at_once = [hold(n, 1, 1.0 * n, 50.0) for n in range(1, 6)]
    with counting(database) as (store, sizes):
        store.commit(changes(holds=tuple(at_once)))
        store.commit(changes(holds=(ENDED[-1],)))
        assert columns(store.held_between(0.0, 1e9)) == told([*at_once, ENDED[-1]])
    assert sizes == [5]


def test_a_store_from_before_there_were_pages_is_packed_when_it_is_opened(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(pages, "PAGE", 1000)
        with counting(database) as (store, sizes):
            store.commit(changes(holds=tuple(ENDED)))
        assert sizes == []
    with counting(database) as (store, sizes):
        assert columns(store.held_between(0.0, 1e9)) == told(ENDED)
    assert sizes == [3, 3]


def test_a_hold_whose_end_is_heard_of_late_counts_once(database: Database) -> None:
    late = hold(9, 1, 2.0)
    with closing(open_store(database.url)) as store:
        store.commit(changes(holds=(late, *ENDED)))
        ended = hold(9, 1, 2.0, 12.0)
        store.commit(changes(holds=(ended,)))
        assert columns(store.held_between(0.0, 1e9)) == told([ended, *ENDED])
        assert columns(store.held_between(0.0, 5.0)) == told([ended])


def test_a_hold_that_is_changed_after_it_was_packed_counts_as_it_is_now(
    database: Database,
) -> None:
    """No service does so; but then a figure must not depend on it."""
    with closing(open_store(database.url)) as store:
        store.commit(changes(holds=tuple(ENDED)))
        longer, again = hold(1, 1, 10.0, 12.0), hold(2, 1, 20.0)
        store.commit(changes(holds=(longer, again)))
        assert columns(store.held_between(0.0, 1e9)) == told([longer, again, *ENDED[2:]])


def test_a_commit_that_fails_packs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqlStore(backend_of(f"sqlite:///{tmp_path}/boa.db"))) as store:
        store.commit(changes(holds=tuple(ENDED[:2])))

        def fail(*_: object) -> None:
            raise StoreTrouble("away")

        with monkeypatch.context() as broken:
            broken.setattr("boa.store.sql.prune", fail)
            with pytest.raises(StoreTrouble):
                store.commit(changes(holds=(ENDED[2],)))
        assert page_rows(store) == []
        store.commit(changes(holds=(ENDED[3],)))
        assert columns(store.held_between(0.0, 1e9)) == told([*ENDED[:2], ENDED[3]])


# Damage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    jobs = tuple(job(n, state="succeeded") for n in range(1, 8))
    meta = {**META, "totals": {"total_usd": 0.0, "provisioning_usd": 0.0, "jobs_usd": USD}}
    with closing(open_store(f"sqlite:///{tmp_path}/boa.db")) as store:
        store.commit(changes(jobs=jobs, nodes=(node(1),), holds=tuple(ENDED), meta=meta))
        store.commit(changes(meta={"more": 1}))
    return tmp_path / "boa.db"


def faults(path: Path) -> list[tuple[str, str]]:
    engine = checkers(path)
    try:
        return [(fault.kind, fault.text) for fault in check(engine, path, reason_of).faults]
    finally:
        engine.dispose()


def sql(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


def test_a_page_that_was_changed_is_found_by_its_checksum(path: Path) -> None:
    assert faults(path) == []
    sql(path, "UPDATE held_pages SET columns = zeroblob(length(columns)) WHERE number = 2")
    assert [kind for kind, _ in faults(path)] == ["row", "ledger"]


def test_a_page_that_is_gone_is_missed(path: Path) -> None:
    sql(path, "DELETE FROM held_pages WHERE number = 1")
    (fault,) = faults(path)
    assert fault[0] == "ledger"
    assert "by pages" in fault[1]


def test_holds_of_which_neither_row_nor_page_is_there_are_missed(path: Path) -> None:
    sql(path, "DELETE FROM holds")
    assert faults(path) != [], "the last one was in no page"


def test_of_a_damaged_page_the_holds_are_kept_by_their_rows_and_the_other_way_round(
    path: Path, tmp_path: Path
) -> None:
    sql(path, "UPDATE held_pages SET classes = 'x' WHERE number = 1")
    sql(path, "DELETE FROM holds WHERE job = 5")
    salvage(path, tmp_path / "aside")
    with closing(open_store(f"sqlite:///{path}")) as store:
        assert columns(store.held_between(0.0, 1e9)) == told(ENDED)
        assert store.holds_between(0.0, 1e9) == ENDED
