"""A store that is another user's: what cannot be read is not damaged, and nothing is left there
that its service could not open."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from boa.errors import FileError, InputError
from boa.model.service import ServiceConfig
from boa.server import keeping, opening
from boa.server.folder import DataFolder
from boa.server.opening import open_kept
from live import config
from stored import changes, job

META = {
    "cluster": "boa-one",
    "clock": [1.0, 2.0],
    "serials": {"resnet18": 9},
    "began": 1.0,
    "money": {"terms": None},
    "tally": {"since": 1.0, "closed": {}},
}
OTHER = 12345


@pytest.fixture
def settings(tmp_path: Path) -> ServiceConfig:
    found = config(tmp_path / "data")
    with closing(DataFolder(found.data_dir)) as folder:
        store, _ = open_kept(found, folder, accept=False)
        with closing(store):
            store.commit(changes(jobs=(job(1),), meta=META))
    return found


@pytest.mark.parametrize("accept", [False, True])
def test_a_file_that_may_not_be_read_is_refused_knowingly_too_and_stays(
    settings: ServiceConfig, accept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (settings.data_dir / "boa.db").read_bytes()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "boa.db")
    with (
        closing(DataFolder(settings.data_dir)) as folder,
        pytest.raises(FileError, match=r"boa\.db: permission denied; expected .*chown"),
    ):
        open_kept(settings, folder, accept=accept)
    assert (settings.data_dir / "boa.db").read_bytes() == before
    assert not (settings.data_dir / "quarantine").exists()


def test_a_quarantine_that_may_not_be_changed_is_told_of_by_its_name(
    settings: ServiceConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path, aside: Path) -> None:
        raise PermissionError(13, "Permission denied", str(aside))

    monkeypatch.setattr(opening, "salvage", denied)
    (settings.data_dir / "boa.db").write_bytes(b"no database" * 1000)
    with (
        closing(DataFolder(settings.data_dir)) as folder,
        pytest.raises(FileError, match=r"quarantine/.*: permission denied"),
    ):
        open_kept(settings, folder, accept=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_nobody_copies_or_restores_for_the_service_of_somebody_else(
    settings: ServiceConfig,
) -> None:
    where = keeping.place(settings.data_dir, None)
    taken = keeping.take_snapshot(where, 1_800_000_000.0)
    os.chown(settings.data_dir, OTHER, OTHER)
    for do in (
        lambda: keeping.put_back(where, taken.path.name),
        lambda: keeping.take_snapshot(where, 1_800_000_001.0),
    ):
        with pytest.raises(FileError, match=r"is user 12345's, not yours"):
            do()
    assert not (settings.data_dir / "quarantine").exists()
    assert keeping.status(where).faults == []


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "", "."])
def test_a_name_that_no_file_can_have_is_no_snapshot(settings: ServiceConfig, name: str) -> None:
    with pytest.raises(InputError, match="SNAPSHOT: there is no "):
        keeping.put_back(keeping.place(settings.data_dir, None), name)
