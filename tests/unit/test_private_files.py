"""What the service writes is for its own user alone, whatever the umask is."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from boa.client.spawn import OwnService
from boa.clock import VirtualClock
from boa.clouds.local import LocalCloud
from boa.engines.ray.folders import Folders, Marker
from boa.model.runs import RunKey
from boa.model.workload import GpuType
from boa.private_files import is_open, private_file, private_folder, tighten
from boa.server.folder import KEPT, DataFolder
from boa.server.what_if.shelf import Shelf
from boa.store.sql import open_store
from local_runs import Runs
from unit.server.what_if.test_kept import kept


@pytest.fixture(autouse=True)
def open_handed() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """Whatever under it others may read, write or list."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if is_open(path)]


def test_folders_are_made_for_one_user_with_all_above_them(tmp_path: Path) -> None:
    private_folder(tmp_path / "a" / "b" / "c")
    private_folder(tmp_path / "a" / "b" / "c")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/c")] == [
        0o700
    ] * 3
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        private_folder(tmp_path / "file")


def test_a_file_is_new_or_an_error(tmp_path: Path) -> None:
    private_file(tmp_path / "file", b"words")
    assert (tmp_path / "file").read_bytes() == b"words"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "none")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            private_file(tmp_path / name)


def test_what_others_may_is_taken_from_them_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o644)
    (tmp_path / "program").touch(mode=0o755)
    (tmp_path / "elsewhere").touch(mode=0o644)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe", 0o666)
    names = ("file", "program", "link", "pipe", "none")
    assert tighten(tmp_path / name for name in names) == []
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {
        "file": 0o600,
        "program": 0o700,
        "elsewhere": 0o644,
        "link": 0o644,
        "pipe": 0o600,
    }


def test_nothing_that_the_service_writes_is_open_to_others(tmp_path: Path) -> None:
    data = tmp_path / "state" / "boa"
    folder = DataFolder(data)
    folder.belongs_to("boa-1-a")
    open_store(f"sqlite:///{tmp_path}/elsewhere/deep/boa.db").close()
    open_store(f"sqlite:///{data}/boa.db").close()
    LocalCloud(data / "cloud.json", {"T4": GpuType(name="T4")}, {}, VirtualClock()).rent("a", "T4")
    Shelf(data / "what-if").put(kept(1))
    Folders(data / "ray").begin(RunKey("1", 1), Marker())
    OwnService(tmp_path / "own", {})
    folder.close()
    assert open_to_others(tmp_path) == []


def test_nothing_that_an_engine_writes_is_open_to_others(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    key = runs.start("sh", "-c", "seq 100; sleep 60")
    runs.until_printed(key, "100\n")
    assert open_to_others(tmp_path) == []
    runs.close()
    assert open_to_others(tmp_path) == []


def test_a_data_folder_of_an_earlier_version_is_closed_to_others(tmp_path: Path) -> None:
    for name in KEPT:
        (tmp_path / name).touch(mode=0o644)
    tmp_path.chmod(0o755)
    DataFolder(tmp_path).close()
    assert open_to_others(tmp_path.parent / tmp_path.name) == []
    assert not is_open(tmp_path)


def test_somebody_s_folder_is_left_as_it_is_and_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "letters").touch(mode=0o644)
    tmp_path.chmod(0o755)
    with caplog.at_level(logging.WARNING):
        DataFolder(tmp_path).close()
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "letters").stat().st_mode & 0o777 == 0o644
    assert "is open to other users: chmod 700 it" in caplog.text


def test_a_database_that_is_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/boa.db").close()
    for path in tmp_path.iterdir():
        path.chmod(0o644)
    open_store(f"sqlite:///{tmp_path}/boa.db").close()
    assert open_to_others(tmp_path) == []
