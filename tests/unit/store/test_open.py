"""Opening a store: which URLs, for whom, and from which earlier form of it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from boa.errors import BoaError, InputError
from boa.model.changes import Changes
from boa.store import migrations, sql, tables
from boa.store.base import Store, StoreTrouble
from boa.store.errors import InUse, Overtaken
from boa.store.migrations import MIGRATIONS, NewerDatabase, migrate, version_of
from boa.store.sql import open_store
from boa.store.writing import rows_of
from postgresql import Database
from stored import changes, event, hold, job, node, point, running, sample

pytest_plugins = ("postgresql",)
ALL = changes(
    jobs=(running(1), job(2, state="failed")),
    nodes=(node(1),),
    holds=(hold(1, 1, 5.0),),
    events=[event("hello")],
    meta={"budget": 40.0},
)


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may do anything, so it steps down to somebody who may not."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "boa.db",
        "/var/lib/boa.db",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///boa.db?mode=ro",
        "sqlite://host/boa.db",
        "mysql://boa@host/boa",
        "postgresql+asyncpg://boa@host/boa",
        "postgresql://boa@host:port/boa",
    ],
)
def test_a_url_of_another_kind_is_refused_with_what_is_accepted(url: str) -> None:
    with pytest.raises(InputError) as caught:
        open_store(url)
    assert caught.value.field == "--db"
    assert str(caught.value) == (
        f"--db: got {url!r}; expected sqlite:///PATH (a file) or "
        "postgresql://USER:PASSWORD@HOST/DATABASE"
    )


@pytest.mark.parametrize("url", ["mysql://me:s3cret@host/db", "postgresql://me:s3:c@ret@host:x/d"])
def test_errors_never_show_a_password(url: str) -> None:
    with pytest.raises(InputError) as caught:
        open_store(url)
    assert "://me:***@host" in str(caught.value)
    assert "cret" not in repr(caught.value)


def test_a_missing_folder_is_made_and_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where" / "boa.db"
    with opened(f"sqlite:///{path}") as store:
        store.commit(ALL)
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(["boa.db", "boa.db-wal", "boa.db-shm", "boa.db.lock"], 0o600)


def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)  # pytest's folders are closed to others: let them look
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    with without_privileges(), pytest.raises(InputError) as caught:
        open_store(f"sqlite:///{closed}/boa.db")
    assert caught.value.field == "--db"
    assert "Permission denied" in str(caught.value)
    assert f"{closed}/boa.db" in str(caught.value)


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected sqlite:///PATH of a file in a folder"):
        open_store(f"sqlite:///{tmp_path}/file/boa.db")


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreTrouble, match="the file cannot be opened"):
        open_store(f"sqlite:///{tmp_path}")


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but somebody's notes\n" * 100)
    with pytest.raises(StoreTrouble, match="the file is no SQLite database"):
        open_store(f"sqlite:///{path}")
    assert path.read_text().startswith("not a database")


def test_without_psycopg_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(BoaError, match=r"pip install 'boa-constrictor\[postgres\]'"):
        open_store("postgresql://boa@host/boa")


def test_a_server_that_is_not_there_is_named_without_the_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreTrouble, match="it cannot be reached") as caught:
        open_store(f"postgresql+psycopg://me:s3cret@/boa?host={tmp_path}")
    assert "s3cret" not in str(caught.value)


# One service per database


def test_a_second_service_is_refused_until_the_first_has_closed(database: Database) -> None:
    with opened(database.url) as first:
        with pytest.raises(InUse, match="is in use by another boa serve"):
            open_store(database.url)
        first.commit(ALL)
    with opened(database.url) as second:
        assert second.load().jobs == [running(1)]


def test_of_two_services_that_start_at_once_one_gets_the_database(database: Database) -> None:
    won: list[Store] = []
    lost: list[InUse] = []
    together = threading.Barrier(2)

    def start() -> None:
        together.wait()
        try:
            won.append(open_store(database.url))
        except InUse as refused:
            lost.append(refused)

    services = [threading.Thread(target=start) for _ in range(2)]
    for service in services:
        service.start()
    for service in services:
        service.join()
    assert (len(won), len(lost)) == (1, 1)
    won[0].commit(ALL)
    assert won[0].load().jobs == [running(1)]
    won[0].close()


KILLED = """
import os, sys, time
from boa.store.sql import open_store
store = open_store(sys.argv[1])
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
    os._exit(0)
time.sleep(60)
"""


def test_a_killed_service_leaves_the_database_free_though_a_child_lives(
    database: Database,
) -> None:
    command = [sys.executable, "-c", KILLED, database.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        child = int(service.stdout.readline())
        try:
            with pytest.raises(InUse):
                open_store(database.url)
            service.send_signal(signal.SIGKILL)
            service.wait()
            with opened(database.url) as store:
                store.commit(ALL)
            os.kill(child, 0)  # it is still there
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_service_that_was_overtaken_writes_nothing(database: Database) -> None:
    with opened(database.url) as store:
        store.commit(ALL)
        with database.engine().begin() as other:  # as if the lock had been lost for a while
            other.execute(text("UPDATE writer SET opened = opened + 1, commits = 0"))
        for _ in range(2):
            with pytest.raises(Overtaken, match="Restart boa serve"):
                store.commit(changes(jobs=(job(9),)))
        assert store.job("9") is None
    with opened(database.url) as again:
        again.commit(changes(jobs=(job(9),)))
        assert again.job("9") == job(9)


# Migrations

EXTRA = (
    "ALTER TABLE jobs ADD COLUMN colour TEXT NOT NULL DEFAULT 'green'",
    "CREATE INDEX jobs_by_colour ON jobs (colour)",
)


def test_migrations_lead_to_the_tables_that_queries_use(database: Database) -> None:
    open_store(database.url).close()
    made = inspect(database.engine())
    assert set(made.get_table_names()) == set(tables.metadata.tables)
    for name, table in tables.metadata.tables.items():
        columns = {c["name"]: c["nullable"] for c in made.get_columns(name)}
        keys = made.get_pk_constraint(name)["constrained_columns"]
        assert set(columns) == {column.name for column in table.columns}
        assert keys == [column.name for column in table.primary_key]
        assert {c for c, nullable in columns.items() if nullable} - set(keys) == {
            column.name for column in table.columns if column.nullable
        }


def test_an_older_database_is_brought_up_to_date_without_loss(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(database.url) as store:
        store.commit(ALL)
        before = store.load()
    monkeypatch.setattr(sql, "MIGRATIONS", (*MIGRATIONS, EXTRA))
    for _ in range(2):  # the second time there is nothing to do
        with opened(database.url) as store:
            assert store.load() == before
            assert store.job("2") == job(2, state="failed")
    with database.engine().connect() as other:
        assert version_of(other) == len(MIGRATIONS) + 1
        colours = other.exec_driver_sql("SELECT colour FROM jobs").scalars().all()
    assert colours == ["green", "green"]


def as_older(database: Database, version: int, written: Changes) -> None:
    """A database as an earlier version made and filled it."""
    with database.engine().connect() as connection:
        migrate(connection, MIGRATIONS[:version])
        for table, rows in rows_of(written, 1, 1):
            known = [column["name"] for column in inspect(connection).get_columns(table.name)]
            kept = [{name: row[name] for name in known} for row in rows]
            connection.execute(text(_insert(table.name, known)), kept)
        connection.commit()


def _insert(table: str, columns: list[str]) -> str:
    values = ", ".join(f":{name}" for name in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"


def test_a_database_of_the_first_version_is_brought_up_to_date(database: Database) -> None:
    as_older(database, 1, ALL)
    with opened(database.url) as store:
        assert store.load().jobs == [running(1)]
        assert store.load().points == {}
        assert store.holds_between(0.0, 9.0) == [hold(1, 1, 5.0)]
        store.commit(changes(samples=[sample(7.0)], points=(point(1, 8.0),)))
        assert store.samples_between(0.0, 9.0) == [sample(7.0)]
        assert store.load().points == {"1": point(1, 8.0)}


def test_jobs_of_an_older_database_no_longer_count_their_first_start_as_a_rescaling(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a job has only failed since, has not started yet, or has ended; nothing else of a
    record changes, whatever text is in it."""
    monkeypatch.setattr(migrations, "_AT_ONCE", 2)
    odd = "half a \ud800, none \0, é"
    before = (
        running(1, rescalings=3, loss=float("nan"), reason=odd),
        job(2, attempts=2, rescalings=1, restarts=1),
        job(3),
        job(4, state="succeeded", attempts=4, rescalings=3, restarts=1, ended_at=900.0),
        job(5, state="failed", attempts=3, rescalings=0, restarts=2),
    )
    as_older(database, 2, changes(jobs=before))
    for _ in range(2):  # the second time there is nothing to do
        with opened(database.url) as store:
            after = {found.id: found for found in store.jobs(limit=9)}
    assert [after[old.id].rescalings for old in before] == [2, 0, 0, 2, 0]
    as_before = [replace(after[old.id], rescalings=old.rescalings) for old in before]
    assert repr(as_before) == repr([*before]), "by their text: NaN is not itself"


def test_a_migration_that_fails_leaves_everything_as_it_was(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(database.url) as store:
        store.commit(ALL)
    broken = (*EXTRA, "CREATE TABLE jobs (twice INTEGER)")
    with monkeypatch.context() as newer:
        newer.setattr(sql, "MIGRATIONS", (*MIGRATIONS, broken))
        with pytest.raises(StoreTrouble, match="already exists"):
            open_store(database.url)
    with opened(database.url) as store:
        assert store.load().jobs == [running(1)]
    assert "colour" not in {c["name"] for c in inspect(database.engine()).get_columns("jobs")}


def test_a_database_of_a_newer_boa_is_refused_and_left_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(sql, "MIGRATIONS", (*MIGRATIONS, EXTRA))
        open_store(database.url).close()
    for _ in range(2):  # and the lock is not kept either
        with pytest.raises(NewerDatabase, match=r"newer boa .*Upgrade boa-constrictor"):
            open_store(database.url)


def test_a_database_with_tables_of_somebody_else_is_refused(database: Database) -> None:
    with database.engine().begin() as other:
        other.execute(text("CREATE TABLE jobs (mine INTEGER)"))
    with pytest.raises(StoreTrouble, match="already exists"):
        open_store(database.url)
    assert inspect(database.engine()).get_table_names() == ["jobs"]
