"""Copies of the store: taken when due, whole or not at all, the newest kept."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from boa.store import snapshots
from boa.store.snapshots import FIRST_S, SnapshotKeeper, SnapshotTrouble, take
from boa.store.sql import open_store
from stored import changes, job

START = 1_800_000_000.0
HOUR_S = 3600.0


class Wall:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(open_store(f"sqlite:///{tmp_path}/boa.db")) as store:
        store.commit(changes(jobs=(job(1),)))
    return tmp_path / "boa.db"


def keeper(path: Path | None, folder: Path, wall: Wall, **fields: float) -> SnapshotKeeper:
    settings = {"every_h": 1.0, "keep": 2, **fields}
    return SnapshotKeeper(path, folder, clock=wall, **settings)  # type: ignore[arg-type]


def test_a_copy_is_taken_beside_a_service_and_has_what_was_committed(path: Path) -> None:
    folder = path.parent / "snapshots"
    with closing(open_store(f"sqlite:///{path}")) as store:
        store.commit(changes(jobs=(job(2),)))
        taken = take(path, folder, START)
        store.commit(changes(jobs=(job(3),)))
    assert taken.path.name == "boa-20270115-080000.db"
    assert taken.path.stat().st_mode & 0o777 == 0o600
    with closing(open_store(f"sqlite:///{taken.path}")) as copy:
        assert [found.id for found in copy.jobs()] == ["2", "1"]
    assert take(path, folder, START).path.name == "boa-20270115-080000-1.db"


def test_copies_are_taken_when_due_and_the_newest_are_kept(path: Path, tmp_path: Path) -> None:
    wall, folder = Wall(), tmp_path / "snapshots"
    keeping = keeper(path, folder, wall)
    assert keeping.step() is None
    for hours in range(4):
        wall.now = START + FIRST_S + hours * HOUR_S
        assert keeping.step() is not None
        assert keeping.step() is None
    assert len(snapshots.snapshots(folder)) == 2
    assert snapshots.snapshots(folder)[0].at == wall.now


def test_a_service_that_is_started_again_goes_on_from_the_last_copy(
    path: Path, tmp_path: Path
) -> None:
    wall, folder = Wall(), tmp_path / "snapshots"
    take(path, folder, START)
    keeping = keeper(path, folder, wall)
    wall.now += HOUR_S - 1
    assert keeping.step() is None
    wall.now += 1
    assert keeping.step() is not None


def test_a_clock_that_is_set_back_delays_a_copy_by_an_hour_at_most(
    path: Path, tmp_path: Path
) -> None:
    wall = Wall()
    keeping = keeper(path, tmp_path / "snapshots", wall)
    wall.now -= 1000 * HOUR_S
    assert keeping.step() is None
    wall.now += HOUR_S
    assert keeping.step() is not None


def test_none_are_taken_of_a_server_s_database_or_where_none_are_wanted(
    path: Path, tmp_path: Path
) -> None:
    wall = Wall()
    for keeping in (
        keeper(None, tmp_path / "a", wall),
        keeper(path, tmp_path / "b", wall, every_h=0.0),
    ):
        wall.now += 1000 * HOUR_S
        assert keeping.step() is None
        assert not keeping.wanted


def test_a_copy_that_fails_is_told_of_once_and_leaves_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(store: Path, draft: Path) -> None:
        draft.write_bytes(b"half")
        raise sqlite3.OperationalError("database or disk is full")

    wall, folder = Wall(), tmp_path / "snapshots"
    keeping = keeper(path, folder, wall)
    with monkeypatch.context() as broken:
        broken.setattr(snapshots, "_write", full)
        for _ in range(3):
            wall.now += HOUR_S
            assert keeping.step() is None
        with pytest.raises(SnapshotTrouble, match="disk is full"):
            take(path, folder, START)
    assert caplog.text.count("disk is full") == 1
    assert list(folder.iterdir()) == []
    wall.now += HOUR_S
    assert keeping.step() is not None


def test_a_copy_of_a_damaged_store_is_none(path: Path, tmp_path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 5] = bytes(4096 * 3)
    path.write_bytes(data)
    with pytest.raises(SnapshotTrouble):
        take(path, tmp_path / "snapshots", START)
    assert list((tmp_path / "snapshots").iterdir()) == []


def test_something_else_in_the_place_of_the_folder_hinders_no_start(
    path: Path, tmp_path: Path
) -> None:
    (tmp_path / "in-the-way").write_text("")
    wall = Wall()
    kept = keeper(path, tmp_path / "in-the-way", wall)
    wall.now += 7200.0
    assert kept.step() is None, "told of in the log, and tried again"
    assert snapshots.snapshots(tmp_path / "in-the-way") == []
