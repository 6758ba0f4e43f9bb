"""Keys of the service's own, outside of the database."""

import logging
import stat
from pathlib import Path

import pytest

from boa.errors import FileError
from boa.model.changes import Changes
from boa.server.keys import report_key
from boa.store.base import Store
from boa.store.sql import open_store
from stored import running

OLD = "ab" * 32


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path}/boa.db")


def test_the_report_key_is_made_once_for_its_owner_alone(tmp_path: Path, store: Store) -> None:
    key = report_key(tmp_path, store, store.load())
    assert report_key(tmp_path, store, store.load()) == key
    assert len(key) == 32
    assert stat.S_IMODE((tmp_path / "report.key").stat().st_mode) == 0o600
    assert store.load().meta.get("secret") is None
    store.close()


def test_one_that_an_earlier_version_left_in_the_database_is_moved(
    tmp_path: Path, store: Store
) -> None:
    store.commit(Changes(meta={"secret": OLD}))
    assert report_key(tmp_path, store, store.load()).hex() == OLD
    assert store.load().meta["secret"] is None
    assert report_key(tmp_path, store, store.load()).hex() == OLD, (
        "runs that go on report as before"
    )
    store.commit(Changes(meta={"secret": "cd" * 32}))  # an old database is back
    assert report_key(tmp_path, store, store.load()).hex() == OLD
    assert store.load().meta["secret"] is None
    store.close()


@pytest.mark.parametrize("damage", ["gone", "cut", "folder"])
def test_one_that_is_lost_is_made_anew_and_who_it_concerns_is_told(
    tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    key, path = report_key(tmp_path, store, store.load()), tmp_path / "report.key"
    store.commit(Changes(jobs={"1": running(1)}))
    if damage == "cut":
        path.write_text(path.read_text()[:10])
    else:
        path.unlink()
    with caplog.at_level(logging.WARNING):
        if damage == "folder":
            path.symlink_to("/etc/hostname")
        other = report_key(tmp_path, store, store.load())
    assert other != key
    assert "reports of the runs that go on (1) are refused" in caplog.text
    assert report_key(tmp_path, store, store.load()) == other
    store.close()


def test_one_that_cannot_be_written_is_told_of_by_its_name(tmp_path: Path, store: Store) -> None:
    (tmp_path / "report.key").mkdir()
    with pytest.raises(FileError, match=r"report\.key: is a directory; expected a file"):
        report_key(tmp_path, store, store.load())
    store.close()
