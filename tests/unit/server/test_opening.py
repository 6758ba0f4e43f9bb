"""A data folder's store is opened whole, refused, or opened knowingly; no number is used twice."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from boa.errors import InputError
from boa.model.service import ServiceConfig
from boa.scheduler.state import owner_of
from boa.server.folder import DataFolder
from boa.server.keeping import all_snapshots, place, put_back, status, take_snapshot
from boa.server.opening import open_kept
from boa.store.base import Saved, Store
from boa.store.errors import InUse, StoreRefused
from boa.store.migrations import MIGRATIONS
from live import config
from stored import changes, job, node

CLUSTER = "boa-service-one"
META = {
    "cluster": CLUSTER,
    "clock": [1.0, 2.0],
    "serials": {"resnet18": 9},
    "began": 1.0,
    "money": {"terms": None},
    "tally": {"since": 1.0, "closed": {}},
}


@contextmanager
def opened(settings: ServiceConfig, *, accept: bool = False) -> Iterator[tuple[Store, Saved]]:
    with closing(DataFolder(settings.data_dir)) as folder:
        store, saved = open_kept(settings, folder, accept=accept)
        with closing(store):
            folder.belongs_to(saved.meta.get("cluster", CLUSTER))
            yield store, saved


@pytest.fixture
def settings(tmp_path: Path) -> ServiceConfig:
    """A service with two jobs, whose older copy knows the first, and runs of both."""
    found = config(tmp_path / "data")
    with opened(found) as (store, _):
        store.commit(changes(jobs=(job(1),), nodes=(node(1),), meta=META))
    shutil.copy(found.data_dir / "boa.db", tmp_path / "older.db")
    with opened(found) as (store, _):
        store.commit(changes(jobs=(job(2),), nodes=(node(2),)))
    for number in (1, 2):
        for path in (f"runs/{number}/1", f"checkpoints/{number}"):
            (found.data_dir / path).mkdir(parents=True)
            (found.data_dir / path / "kept").write_text(f"of job {number}")
        (found.data_dir / "runs/.runs").mkdir(exist_ok=True)
        (found.data_dir / f"runs/.runs/{number}.1").touch()
    return found


def put_older_back(settings: ServiceConfig) -> None:
    shutil.copy(settings.data_dir.parent / "older.db", settings.data_dir / "boa.db")


def test_a_whole_store_is_opened_as_often_as_one_likes(settings: ServiceConfig) -> None:
    for _ in range(3):
        with opened(settings) as (_, saved):
            assert [found.id for found in saved.jobs] == ["1", "2"]
            assert (saved.next_job, saved.next_node) == (3, 3)
            assert saved.meta["cluster"] == CLUSTER


def test_an_older_store_is_refused_and_its_jobs_and_what_to_do_are_named(
    settings: ServiceConfig,
) -> None:
    put_older_back(settings)
    before = (settings.data_dir / "boa.db").read_bytes()
    with pytest.raises(StoreRefused) as refused, opened(settings):
        pass
    assert refused.value.exit_code == 2
    assert "acknowledged jobs that are not in it: 2" in str(refused.value)
    for words in ("boa store check", "boa store restore", "boa serve --accept-store"):
        assert words in str(refused.value)
    assert len(str(refused.value)) < 480
    assert (settings.data_dir / "boa.db").read_bytes() == before


def test_an_older_store_that_is_accepted_gives_no_number_out_again_and_hands_nothing_down(
    settings: ServiceConfig,
) -> None:
    put_older_back(settings)
    with opened(settings, accept=True) as (store, saved):
        assert [found.id for found in saved.jobs] == ["1"]
        assert (saved.next_job, saved.next_node) == (3, 3)
        assert saved.meta["lost_jobs"] == [[2, 2]]
        (told,) = store.events()
        assert told.event.data["why"] == "store"
        assert "not in it: 2" in told.event.text
        assert "quarantine" in told.event.text
    data = settings.data_dir
    assert (data / "runs/1/1/kept").exists()
    assert not (data / "runs/2").exists()
    assert not (data / "checkpoints/2").exists()
    assert not (data / "runs/.runs/2.1").exists()
    (aside,) = (data / "quarantine").iterdir()
    assert (aside / "checkpoints/2/kept").read_text() == "of job 2"
    with opened(settings) as (_, saved):
        assert saved.next_job == 3


def test_nodes_of_an_accepted_store_have_tokens_that_were_never_used(
    settings: ServiceConfig,
) -> None:
    """But the service's own part of them stays: the cloud's nodes are found by it."""
    put_older_back(settings)
    with opened(settings, accept=True) as (_, saved):
        assert saved.meta["cluster"] != CLUSTER
        assert owner_of(saved.meta["cluster"]) == owner_of(CLUSTER)


def test_a_service_that_was_killed_between_its_two_names_comes_up(settings: ServiceConfig) -> None:
    put_older_back(settings)
    with opened(settings, accept=True):
        pass
    (settings.data_dir / "owner").write_text(CLUSTER)  # the store has its new name already
    with opened(settings):
        pass


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_store_that_is_gone_is_refused_where_there_was_one(
    settings: ServiceConfig, how: str
) -> None:
    path = settings.data_dir / "boa.db"
    path.unlink() if how == "gone" else path.write_bytes(b"")
    with pytest.raises(StoreRefused, match=r"gone or empty.*1–2"), opened(settings):
        pass
    with opened(settings, accept=True) as (_, saved):
        assert (saved.next_job, saved.next_node) == (3, 3)
        assert not (settings.data_dir / "checkpoints/1").exists()


def test_runs_alone_tell_of_an_older_store_though_the_folder_has_lost_its_memory(
    settings: ServiceConfig,
) -> None:
    put_older_back(settings)
    (settings.data_dir / "store.mark").unlink()
    with pytest.raises(StoreRefused, match="not in it: 2"), opened(settings):
        pass
    with opened(settings, accept=True) as (store, saved):  # which may have been the last or not
        assert saved.next_job == 1003
        assert "numbers up to 1002 are not given out" in store.events()[-1].event.text


def test_stray_names_among_the_runs_tell_of_no_job(settings: ServiceConfig) -> None:
    runs = settings.data_dir / "runs"
    (runs / ".runs" / "9999.1").touch()
    (runs / "8888").touch()
    (runs / "7777").mkdir()
    (runs / "7777" / "notes").touch()
    (runs / "6666" / "1").mkdir(parents=True)
    (runs / "6666" / "1" / "outcome").touch()
    with opened(settings) as (_, saved):
        assert saved.next_job == 3
    assert not (runs / "6666").exists(), "no job is to find it one day"
    (aside,) = (settings.data_dir / "quarantine").iterdir()
    assert (aside / "runs" / "6666" / "1" / "outcome").exists()
    assert (runs / "2" / "1" / "kept").exists()


def test_a_folder_without_a_memory_takes_its_store_under_another_name(
    settings: ServiceConfig,
) -> None:
    (settings.data_dir / "store.mark").unlink()
    with opened(settings) as (_, saved):
        assert saved.meta["cluster"] != CLUSTER
        assert saved.next_job == 3
    with opened(settings):
        pass


def test_another_service_s_store_is_refused_knowingly_too(
    settings: ServiceConfig, tmp_path: Path
) -> None:
    """Its job 1 is another one than the folder's."""
    other = config(tmp_path / "other")
    with opened(other) as (store, _):
        meta = {**META, "cluster": "boa-other-two"}
        store.commit(changes(jobs=(job(1), job(2), job(3)), meta=meta))
    shutil.copy(other.data_dir / "boa.db", settings.data_dir / "boa.db")
    for accept in (False, True):
        refused = pytest.raises(StoreRefused, match="a folder of its own")
        with refused, opened(settings, accept=accept):
            pass
    assert (settings.data_dir / "checkpoints/1").exists()


def test_a_copy_that_went_its_own_way_is_accepted_without_any_of_the_folder_s_runs(
    settings: ServiceConfig, tmp_path: Path
) -> None:
    put_older_back(settings)
    apart = replace(settings, data_dir=tmp_path / "apart")
    for number in (2, 3, 4):  # by then it has been opened more often than the folder's own
        with opened(apart) as (store, _):
            store.commit(changes(jobs=(job(number),)))
    with pytest.raises(StoreRefused, match="went its own way"), opened(settings):
        pass
    with opened(settings, accept=True) as (_, saved):
        assert saved.next_job == 5
        assert not (settings.data_dir / "checkpoints/1").exists()


def test_another_database_is_refused_by_name_where_nothing_else_tells(
    settings: ServiceConfig, tmp_path: Path
) -> None:
    folder = tmp_path / "third"
    folder.mkdir()
    (folder / "owner").write_text("boa-somebody-else")
    moved = replace(settings, data_dir=folder)
    with pytest.raises(InputError, match="belongs to another database"), opened(moved):
        pass


def test_a_damaged_store_is_refused_and_what_is_whole_of_it_can_be_gone_on_with(
    settings: ServiceConfig,
) -> None:
    with closing(sqlite3.connect(settings.data_dir / "boa.db")) as found:
        found.execute("UPDATE jobs SET record = '{' WHERE number = 1")
        found.commit()
    with pytest.raises(StoreRefused, match="table jobs are damaged: 1"), opened(settings):
        pass
    with opened(settings, accept=True) as (_, saved):
        assert [found.id for found in saved.jobs] == ["2"]
        assert saved.meta["lost_jobs"] == [[1, 1]]
        assert not (settings.data_dir / "checkpoints/1").exists()
        assert (settings.data_dir / "checkpoints/2").exists()
    (aside,) = (settings.data_dir / "quarantine").iterdir()
    assert (aside / "store/boa.db").exists()
    with opened(settings):
        pass


@pytest.mark.parametrize("part", ["-wal", "-shm"])
def test_a_folder_in_place_of_the_log_is_refused_and_moved_away_knowingly(
    settings: ServiceConfig, part: str
) -> None:
    (settings.data_dir / f"boa.db{part}").mkdir()
    with pytest.raises(StoreRefused, match="is a folder, not a file"), opened(settings):
        pass
    with opened(settings, accept=True) as (_, saved):
        assert [found.id for found in saved.jobs] == ["1", "2"]
        assert saved.meta["lost_jobs"] == []


# boa store


def test_a_snapshot_is_put_back_and_gone_on_from(settings: ServiceConfig) -> None:
    where = place(settings.data_dir, None)
    taken = take_snapshot(where, 1_800_000_000.0)
    with opened(settings) as (store, _):
        store.commit(changes(jobs=(job(3),)))
        assert status(where).faults == []
        with pytest.raises(InputError, match="in use by another boa serve"):
            put_back(where, taken.path.name)
    assert [one.path for one in all_snapshots(where)] == [taken.path]
    done = put_back(where, taken.path.name)
    assert done.lost == {3}
    assert (done.aside / "boa.db").exists()
    seen = status(where)
    assert (seen.restored, seen.faults, seen.lost) == (True, (), {3})
    with opened(settings) as (store, saved):
        assert [found.id for found in saved.jobs] == ["1", "2"]
        assert saved.next_job == 4
        assert "not in it: 3" in store.events()[-1].event.text
    put_older_back(settings)  # by hand, and not by restore: that was for once
    with pytest.raises(StoreRefused), opened(settings):
        pass


def test_a_snapshot_that_is_damaged_is_not_put_back(settings: ServiceConfig) -> None:
    where = place(settings.data_dir, None)
    taken = take_snapshot(where, 1_800_000_000.0)
    data = bytearray(taken.path.read_bytes())
    data[8192:16384] = bytes(8192)
    taken.path.write_bytes(data)
    with pytest.raises(StoreRefused, match="damaged"):
        put_back(where, taken.path.name)
    assert status(where).faults == []
    taken.path.write_bytes(b"")
    with pytest.raises(StoreRefused, match="the file is empty"):
        put_back(where, taken.path.name)
    with pytest.raises(InputError, match="SNAPSHOT"):
        put_back(where, "nothing.db")


def test_nothing_is_put_back_under_a_service_that_has_the_database_alone(
    settings: ServiceConfig, tmp_path: Path
) -> None:
    """By --db it may have another folder."""
    where = place(settings.data_dir, None)
    taken = take_snapshot(where, 1_800_000_000.0)
    elsewhere = replace(settings, data_dir=tmp_path / "elsewhere")
    with opened(elsewhere), pytest.raises(InUse):
        put_back(where, taken.path.name)


def test_postgresql_is_left_to_its_own_means(tmp_path: Path) -> None:
    where = place(tmp_path, "postgresql://boa:s3cret@host/boa")
    for ask in (all_snapshots, lambda found: put_back(found, "x")):
        with pytest.raises(InputError, match="pg_dump") as refused:
            ask(where)
        assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("remembers", [True, False])
def test_a_store_of_an_earlier_version_is_brought_up_to_date_beside_its_runs(
    settings: ServiceConfig, remembers: bool
) -> None:
    """Its rows are looked at once it is: until then no job of it is missed."""
    with closing(sqlite3.connect(settings.data_dir / "boa.db")) as found:
        found.execute("DROP TABLE held_pages")
        found.execute("DROP TABLE notices")
        for table in ("tokens", "audit"):
            found.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
        if not remembers:  # as from before folders had a memory
            found.execute("DROP TABLE openings")
            (settings.data_dir / "store.mark").unlink()
            for table in ("jobs", "nodes", "holds", "cells", "classes", "events", "meta"):
                found.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
            found.execute("ALTER TABLE jobs DROP COLUMN constant_checksum")
            found.execute("DROP TABLE tokens")
            found.execute("DROP TABLE audit")
        version = len(MIGRATIONS) - 3 if remembers else 3
        found.execute("DELETE FROM schema_version WHERE version > ?", (version,))
        found.commit()
    with opened(settings) as (_, saved):
        assert [found.id for found in saved.jobs] == ["1", "2"]
        assert saved.next_job == 3
    assert not (settings.data_dir / "quarantine").exists()
    assert (settings.data_dir / "runs/2/1/kept").exists()
