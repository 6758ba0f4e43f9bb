"""Trouble that passes: nothing is written while it lasts, and then all goes on."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event

from boa.model.changes import Changes
from boa.store.base import Store, StoreTrouble
from boa.store.sql import open_store
from postgresql import Database
from stored import changes, job, running
from stored import event as told

pytest_plugins = ("postgresql",)
FIRST = changes(jobs=(job(1),), events=[told("first")])
SECOND = changes(jobs=(running(1), job(2)), events=[told("second", job="2")])


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


def large() -> Changes:
    return changes(jobs=tuple(running(number, reason="x" * 4000) for number in range(1, 200)))


def check_nothing_came_of_it(store: Store) -> None:
    assert store.load().jobs == [job(1)]
    assert [stored.number for stored in store.events()] == [1]


def check_it_goes_on(store: Store) -> None:
    assert store.commit(SECOND) == 2
    assert store.load().jobs == [running(1), job(2)]
    assert [stored.event.text for stored in store.events()] == ["first", "second"]


LOCKING = """
import sys
from sqlalchemy import NullPool, create_engine
engine = create_engine(sys.argv[1], poolclass=NullPool)
with engine.connect() as connection:
    connection.exec_driver_sql(sys.argv[2])
    print("locked", flush=True)
    sys.stdin.read()
"""


@contextmanager
def locked(database: Database) -> Iterator[None]:
    """By another process."""
    engine = database.engine()
    lock = "BEGIN EXCLUSIVE" if engine.dialect.name == "sqlite" else "LOCK TABLE writer"
    command = [sys.executable, "-c", LOCKING, str(engine.url), lock]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        yield
        other.communicate()


def test_a_locked_database_is_trouble_until_the_lock_is_gone(database: Database) -> None:
    with opened(database.url) as store:
        store.commit(FIRST)
        with locked(database):
            for _ in range(2):
                with pytest.raises(StoreTrouble, match="it is locked by another"):
                    store.commit(SECOND)
            check_nothing_came_of_it(store)
        check_it_goes_on(store)


def test_a_full_disk_is_trouble_until_there_is_room(tmp_path: Path) -> None:
    connections: list[Any] = []

    def limit(connection: Any, _record: object) -> None:
        connections.append(connection)

    event.listen(Engine, "connect", limit)
    try:
        with opened(f"sqlite:///{tmp_path}/boa.db") as store:
            store.commit(FIRST)
            for connection in connections:
                connection.execute("PRAGMA max_page_count = 40")
            for _ in range(2):
                with pytest.raises(StoreTrouble, match=r"boa\.db: the disk is full"):
                    store.commit(large())
            check_nothing_came_of_it(store)
            for connection in connections:
                connection.execute("PRAGMA max_page_count = 1000000")
            check_it_goes_on(store)
    finally:
        event.remove(Engine, "connect", limit)


def test_a_disk_that_fails_in_the_middle_of_a_commit_is_trouble_until_it_works(
    tmp_path: Path,
) -> None:
    """Writing beyond a limit on the size of files fails as a broken disk does."""
    with opened(f"sqlite:///{tmp_path}/boa.db") as store:
        store.commit(FIRST)
        size = (tmp_path / "boa.db-wal").stat().st_size
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10_000, before[1]))
        try:
            for _ in range(2):
                with pytest.raises(StoreTrouble, match=r"the disk (is full|failed)"):
                    store.commit(large())
            check_nothing_came_of_it(store)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        check_it_goes_on(store)


@pytest.mark.parametrize("begins", [True, False])
def test_a_file_that_could_once_only_be_opened_for_reading_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: bool
) -> None:
    """As SQLite does by itself where the disk, or a descriptor, fails while the file (`begins`) or
    the index of its log is opened."""
    reading = create_engine(f"sqlite:///file:{tmp_path}/boa.db?mode=ro&uri=true")
    if not begins:
        event.listen(reading, "connect", lambda one, _: one.execute("PRAGMA query_only = ON"))
    event.listen(reading, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    closed: list[Any] = []
    with opened(f"sqlite:///{tmp_path}/boa.db") as store:
        store.commit(FIRST)
        check_nothing_came_of_it(store)
        readers = store._backend.readers  # type: ignore[attr-defined]
        event.listen(readers, "close", lambda connection, record: closed.append(connection))
        with monkeypatch.context() as failing:
            failing.setattr(store._backend, "connect", reading.connect)  # type: ignore[attr-defined]
            store._disconnect()  # type: ignore[attr-defined]
            for _ in range(2):
                with pytest.raises(StoreTrouble, match="may not be written"):
                    store.commit(SECOND)
            assert closed, "the index of the log is open once for readers and writer"
            check_nothing_came_of_it(store)
        check_it_goes_on(store)
    reading.dispose()


def test_a_mistake_in_the_program_is_not_taken_for_trouble(database: Database) -> None:
    with opened(database.url) as store:
        store.commit(FIRST)
        wrong = changes(jobs=(job(2), job(3, serial=None)), events=[told("never")])
        with pytest.raises(Exception, match=r"(?i)not.null"):
            store.commit(wrong)
        check_nothing_came_of_it(store)
        check_it_goes_on(store)
