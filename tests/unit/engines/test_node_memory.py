"""Memory for training state on a Ray node, without Ray: where it is, and whose."""

import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from boa.engines.ray.node_memory import OLD_S, NodeMemory
from boa.train.keeper.client import KeeperClient, begun, listens
from boa.train.keeper.process import LOCK
from keeping import keeper, until
from local_runs import alive

TOLD = {"share": 0.05, "service": "a/b", "node": "n1", "host": "127.0.0.1"}


@pytest.fixture(autouse=True)
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def memory(job: str = "1", **told: Any) -> NodeMemory:
    return NodeMemory({**TOLD, **told}, job, sys.executable, os.environ)


def test_each_node_and_job_has_a_folder_of_its_own_for_nobody_else(tmp: Path) -> None:
    here = memory()
    assert here.offered()
    place = tmp / f"boa-memory-{os.getuid()}"
    assert Path(here.folder) == place / "a%2Fb" / "n1" / "1"
    for folder in (place, Path(here.folder), place / "ledger"):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not memory(share=0.0).offered()


def test_a_place_that_others_may_enter_is_not_used(tmp: Path) -> None:
    place = tmp / f"boa-memory-{os.getuid()}"
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(PermissionError, match="not ours alone"):
        memory()
    place.rmdir()
    place.symlink_to(tmp)
    with pytest.raises(PermissionError, match="not ours alone"):
        memory()


def test_a_keeper_comes_when_it_is_asked_for_and_is_nobodys_child(tmp: Path) -> None:
    here = memory()
    assert here.offered()
    here.look()
    found: list[KeeperClient] = []
    folder = Path(here.folder)
    asking = threading.Thread(target=lambda: found.append(begun(folder, threading.Event())))
    asking.start()

    def there() -> bool:
        here.look()
        return not asking.is_alive()

    until(there)
    (client,) = found
    where = client.where()
    client.close()
    assert (where.node, where.address and where.address.host) == ("n1", "127.0.0.1")
    status = Path(f"/proc/{where.pid}/status").read_text()
    assert f"PPid:\t{os.getpid()}\n" not in status
    assert os.getsid(where.pid) != os.getsid(0)
    shutil.rmtree(folder)
    until(lambda: not alive(where.pid))


def test_folders_of_jobs_that_are_long_gone_go_and_those_with_a_keeper_stay(tmp: Path) -> None:
    old, kept = memory("old"), memory("kept")
    for here in (old, kept):
        assert here.offered()
        (Path(here.folder) / LOCK).touch()
    with keeper(Path(kept.folder)):
        for here in (old, kept):
            os.utime(here.folder, (1.0, OLD_S))
        assert memory("new").offered()
        assert not Path(old.folder).exists()
        assert listens(Path(kept.folder))
