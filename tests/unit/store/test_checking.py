"""Looking through a store: what is damaged is found and named, and nothing is changed by it."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from boa.model.access import AuditEntry, TokenRecord
from boa.store.checking import check
from boa.store.faults import Found, listed
from boa.store.history import compare
from boa.store.memory import FolderMemory, Mark, read_mark
from boa.store.migrations import MIGRATIONS, NewerDatabase
from boa.store.salvage import salvage
from boa.store.sql import SqlStore, backend_of
from boa.store.sqlite import checkers, reason_of
from postgresql import Database
from stored import changes, event, hold, job, node, point, running, sample

pytest_plugins = ("postgresql",)
META = {
    "cluster": "boa-1-a",
    "clock": [1.0, 2.0],
    "serials": {"resnet18": 9},
    "began": 1.0,
    "money": {"terms": None},
    "tally": {"since": 1.0, "closed": {}},
}
ALL = changes(
    jobs=(running(1), job(2, state="failed"), job(3)),
    nodes=(node(1), node(2), node(7), node(9)),
    holds=(hold(1, 1, 5.0),),
    events=[event("hello"), event("world")],
    meta={**META, "odd": "half \udc80, none \0"},
    samples=[sample(7.0)],
    points=(point(1, 8.0, loss=float("nan")),),
    tokens={"alice": TokenRecord(name="alice", role="viewer", digest="ab" * 32, created_at=5.0)},
    audit=[AuditEntry(at=5.0, who="alice", role="viewer", address="10.0.0.7", what="stop")],
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(SqlStore(backend_of(f"sqlite:///{tmp_path}/boa.db"), FolderMemory(tmp_path))) as s:
        s.commit(ALL)
    return tmp_path / "boa.db"


def look(path: Path) -> Found:
    engine = checkers(path)
    try:
        return check(engine, path, reason_of)
    finally:
        engine.dispose()


def sql(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


def test_a_whole_store_has_no_faults(database: Database) -> None:
    backend = backend_of(database.url)
    file = getattr(backend, "path", None)
    with closing(SqlStore(backend)) as store:
        store.commit(ALL)
        found = check(backend.checkers, file, backend.reason)
    assert found.faults == []
    assert (found.job, found.node, found.event, found.active) == (3, 9, 2, 2)
    assert found.cluster == "boa-1-a"


@pytest.mark.parametrize("table", ["jobs", "nodes", "holds", "events", "meta", "tokens", "audit"])
def test_a_row_that_was_changed_is_found_by_its_checksum(database: Database, table: str) -> None:
    column = {"holds": "gpus", "meta": "value"}.get(table, "record")
    changed = "gpus + 1" if table == "holds" else f"{column} || ' '"
    backend = backend_of(database.url)
    file = getattr(backend, "path", None)
    with closing(SqlStore(backend)) as store:
        store.commit(ALL)
        with database.engine().begin() as other:
            other.execute(text(f"UPDATE {table} SET {column} = {changed}"))
        faults = check(backend.checkers, file, backend.reason).faults
    assert any(fault.kind == "row" and table in fault.text for fault in faults)


def test_a_job_whose_text_is_older_than_this_version_is_whole(path: Path) -> None:
    """Its spec is written once; what else of it changes has a checksum of its own."""
    with closing(SqlStore(backend_of(f"sqlite:///{path}"))) as store:
        known = store.job("3")
        assert known is not None
        newer = replace(known, spec=replace(known.spec, retries=77), epoch=1)
        store.commit(changes(jobs=(newer,)))
    assert look(path).faults == []


@pytest.mark.parametrize(
    ("statement", "kind", "words", "jobs"),
    [
        ("DELETE FROM jobs WHERE number = 2", "missing", "jobs are missing: 2", [2]),
        ("UPDATE jobs SET record = '{' WHERE number = 3", "row", "jobs are damaged: 3", [3]),
        ("UPDATE jobs SET serial = 'x' WHERE number = 3", "row", "jobs are damaged: 3", [3]),
        ("UPDATE jobs SET ended = 1, checksum = NULL WHERE number = 1", "row", "damaged: 1", [1]),
        ("UPDATE points SET record = '{'", "row", "table points", []),
        ("UPDATE tokens SET record = '{'", "row", "table tokens are damaged: alice", []),
        ("UPDATE audit SET record = '{'", "row", "table audit are damaged: 1", []),
        ("DELETE FROM nodes WHERE id = 1", "reference", "nodes that are not there: 1", []),
        ("DELETE FROM meta WHERE key = 'clock'", "missing", "settings are missing: clock", []),
        ("DELETE FROM writer", "schema", "writer has 0 rows", []),
        ("DROP TABLE openings", "schema", "tables are missing: openings", []),
        ("DROP TABLE holds", "pages", "table holds cannot be read", []),
        ("DROP TABLE schema_version", "schema", "none of boa's version", []),
    ],
)
def test_what_is_wrong_is_named(
    path: Path, statement: str, kind: str, words: str, jobs: list[int]
) -> None:
    sql(path, statement)
    before = path.read_bytes()
    faults = look(path).faults
    fault = next(fault for fault in faults if fault.kind == kind and words in fault.text)
    assert list(fault.jobs) == jobs
    assert path.read_bytes() == before


@pytest.mark.parametrize("key", ["began", "money", "tally", "totals", "plan"])
def test_a_setting_that_this_store_must_have_is_missed(path: Path, key: str) -> None:
    with closing(SqlStore(backend_of(f"sqlite:///{path}"))) as store:
        closed = replace(hold(1, 2, 5.0), until=5.0)
        totals = {"jobs_usd": 0.0, "total_usd": 0.0, "provisioning_usd": 0.0}
        planned = replace(event("a plan"), kind="planned")
        meta = {"totals": totals, "plan": {"number": 1}}
        store.commit(changes(holds=(closed,), meta=meta, events=[planned]))
    assert look(path).faults == []
    sql(path, f"DELETE FROM meta WHERE key = '{key}'")
    fault = next(fault for fault in look(path).faults if fault.kind == "missing")
    assert fault.text.startswith(f"settings are missing: {key} (")


def test_a_store_without_an_ended_hold_or_a_plan_needs_neither_totals_nor_a_plan(
    path: Path,
) -> None:
    assert {"totals", "plan"}.isdisjoint(META)
    assert look(path).faults == []


def test_a_store_of_a_newer_version_is_not_called_whole(path: Path) -> None:
    sql(path, f"INSERT INTO schema_version VALUES ({len(MIGRATIONS) + 1})")
    with pytest.raises(NewerDatabase):
        look(path)


def test_rows_of_the_ledger_that_are_gone_are_missed_in_its_sums(path: Path) -> None:
    with closing(SqlStore(backend_of(f"sqlite:///{path}"))) as store:
        closed = replace(hold(1, 2, 5.0), until=3605.0)
        cost = closed.price * closed.gpus
        totals = {"jobs_usd": cost, "total_usd": 0.0, "provisioning_usd": 0.0}
        store.commit(changes(holds=(closed,), meta={"totals": totals}))
    assert look(path).faults == []
    sql(path, "DELETE FROM holds WHERE node = 2")
    assert [fault.kind for fault in look(path).faults] == ["ledger"]


@pytest.mark.parametrize("damage", ["page", "head", "index", "noise", "folder", "dangling"])
def test_a_file_that_is_damaged_is_told_of_in_words(path: Path, damage: str) -> None:
    data = bytearray(path.read_bytes())
    if damage == "page":
        data[4096 * 2 : 4096 * 4] = bytes(4096 * 2)
    elif damage == "head":
        data[:40] = b"x" * 40
    elif damage == "noise":
        data = bytearray(b"notes\n" * 1000)
    elif damage == "index":
        with closing(sqlite3.connect(path)) as found:
            query = "SELECT rootpage FROM sqlite_master WHERE name = 'jobs_by_end'"
            at = (found.execute(query).fetchone()[0] - 1) * 4096
        data[at : at + 4096] = bytes(4096)
    path.write_bytes(data)
    if damage in ("folder", "dangling"):
        path.unlink()
        path.mkdir() if damage == "folder" else path.symlink_to("nowhere")
    faults = look(path).faults
    assert faults
    assert faults[0].kind in ("file", "pages")
    assert "Error" not in faults[0].text


# Against the folder's memory


def mark_of(path: Path) -> Mark:
    found = read_mark(path.parent)
    assert found is not None
    return found


def test_a_store_is_known_again(path: Path) -> None:
    assert compare(look(path), mark_of(path), {1, 2}) == []
    with closing(SqlStore(backend_of(f"sqlite:///{path}"))) as store:  # from another folder
        store.commit(changes(jobs=(job(4),)))
    assert compare(look(path), mark_of(path), set()) == []


def test_a_store_that_lost_its_last_commits_is_older_and_its_jobs_are_named(path: Path) -> None:
    found, known = look(path), mark_of(path)
    later = replace(known, commits=known.commits + 2, job=5)
    (fault,) = compare(found, later, set())
    assert fault.kind == "older"
    assert "2 commits behind" in fault.text
    assert list(fault.jobs) == [4, 5]
    (fault,) = compare(found, replace(known, opened=9), set())
    assert fault.kind == "older"


def test_a_copy_that_went_its_own_way_is_foreign(path: Path) -> None:
    found, known = look(path), mark_of(path)
    (fault,) = compare(found, replace(known, nonce="other"), set())
    assert fault.kind == "foreign"
    with closing(SqlStore(backend_of(f"sqlite:///{path}"))):
        pass
    (fault,) = compare(look(path), replace(known, commits=known.commits + 1), set())
    assert fault.kind == "foreign"


def test_runs_of_jobs_that_it_does_not_know_tell_that_it_is_older(path: Path) -> None:
    (fault,) = compare(look(path), None, {2, 7})
    assert fault.kind == "older"
    assert list(fault.jobs) == [4, 5, 6, 7]


def test_a_store_that_is_gone_is_missed_only_where_there_was_one(path: Path) -> None:
    known = mark_of(path)
    path.unlink()
    found = look(path)
    assert not found.there
    assert compare(found, None, set()) == []
    (fault,) = compare(found, known, set())
    assert list(fault.jobs) == [1, 2, 3]


def test_numbers_are_listed_in_few_words() -> None:
    assert listed({3, 5, 6, 7}) == "3, 5–7"
    assert listed(set(range(1, 90))) == "1–89 (89)"


# Salvage


def test_what_is_whole_of_a_damaged_store_is_kept(path: Path, tmp_path: Path) -> None:
    sql(path, "UPDATE jobs SET record = '{' WHERE number = 2")
    sql(path, "DELETE FROM nodes WHERE id = 7")
    salvage(path, tmp_path / "aside")
    found = look(path)
    assert {fault.kind for fault in found.faults} == {"missing"}
    assert found.jobs == {1, 3}
    assert (tmp_path / "aside" / "boa.db").exists()
    with closing(SqlStore(backend_of(f"sqlite:///{path}"))) as store:
        waiting = store.job("1")
        assert waiting is not None
        assert (waiting.state, waiting.run) == ("waiting", None)
        assert store.load().meta["cluster"] == "boa-1-a"


@pytest.mark.parametrize("odd", ["noise", "folder", "gone"])
def test_of_what_is_no_store_nothing_is_kept_but_aside(
    path: Path, tmp_path: Path, odd: str
) -> None:
    path.unlink()
    if odd == "noise":
        path.write_bytes(b"notes" * 1000)
    elif odd == "folder":
        path.mkdir()
    salvage(path, tmp_path / "aside")
    found = look(path)
    assert (found.faults, found.jobs) == ([], set())
    assert (tmp_path / "aside" / "boa.db").exists() == (odd != "gone")
