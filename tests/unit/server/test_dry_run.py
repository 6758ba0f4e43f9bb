"""A dry run refuses the store that a start would refuse, and changes nothing of it."""

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.errors import InputError
from boa.model.service import ServiceConfig
from boa.server import engine_and_cloud
from boa.server.dry_run import dry_run
from boa.store.errors import StoreRefused
from boa.store.memory import FolderMemory
from boa.store.sql import SqlStore, backend_of
from live import config
from stored import changes, job, node

META = {
    "cluster": "boa-1-a",
    "clock": [1.0, 2.0],
    "serials": {"resnet18": 9},
    "began": 1.0,
    "money": {"terms": None},
    "tally": {"since": 1.0, "closed": {}},
    "totals": {},
}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceConfig:
    """A store with a job and a node, of a service whose cloud shows what it is told."""

    def shown(owner: str, known: Collection[str] = ()) -> Sequence[Any]:
        return [owner, *known]

    monkeypatch.setattr("boa.clouds.aws.dry_run.dry_run", shown)
    monkeypatch.setattr(engine_and_cloud, "aws_cloud", lambda _config, _clock, owner, _: owner)
    monkeypatch.setattr(engine_and_cloud, "check", lambda _: None)
    found = replace(config(tmp_path / "data"), cloud="aws")
    found.data_dir.mkdir()
    with closing(SqlStore(backend_of(found.db), FolderMemory(found.data_dir))) as store:
        store.commit(changes(jobs=(job(1),), nodes=(node(1), node(2, state="gone")), meta=META))
    return found


def files(folder: Path) -> dict[str, bytes]:
    """But for what SQLite keeps beside a database that somebody reads."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if not path.name.endswith(("-shm", "-wal"))
    }


def test_what_is_stored_is_told_and_left_as_it_is(settings: ServiceConfig) -> None:
    before = files(settings.data_dir)
    assert [str(told) for told in dry_run(settings)] == ["boa-1", "boa-1"]
    assert files(settings.data_dir) == before


def test_a_folder_without_a_store_is_left_without_one(settings: ServiceConfig) -> None:
    for path in settings.data_dir.iterdir():
        path.unlink()
    assert len(dry_run(settings)) == 1
    assert not files(settings.data_dir)


def test_a_damaged_store_is_refused_as_a_start_would(settings: ServiceConfig) -> None:
    with closing(sqlite3.connect(settings.data_dir / "boa.db")) as found:
        found.execute("UPDATE nodes SET record = '{}'")
        found.commit()
    before = files(settings.data_dir)
    with pytest.raises(StoreRefused, match="table nodes are damaged"):
        dry_run(settings)
    assert files(settings.data_dir) == before


def test_another_service_s_folder_is_refused(settings: ServiceConfig) -> None:
    (settings.data_dir / "owner").write_text("boa-somebody-else")
    with pytest.raises(InputError, match="belongs to another database"):
        dry_run(settings)
