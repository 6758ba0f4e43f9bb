"""`boa store`: what it says, in words and as JSON, and how it ends."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from boa.cli import main
from boa.store.memory import FolderMemory
from boa.store.sql import SqlStore, backend_of
from stored import changes, job

META = {
    "cluster": "boa-1-a",
    "secret": "ab",
    "clock": [1.0, 2.0],
    "serials": {"resnet18": 9},
    "began": 1.0,
    "money": {"terms": None},
    "tally": {"since": 1.0, "closed": {}},
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with closing(SqlStore(backend_of(f"sqlite:///{tmp_path}/boa.db"), FolderMemory(tmp_path))) as s:
        s.commit(changes(jobs=(job(1), job(2)), meta=META))
    return tmp_path


def test_a_whole_store_is_said_to_be_whole(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "check", "--data", str(data)]) == 0
    assert "2 jobs (2 active)" in capsys.readouterr().out
    assert main(["store", "check", "--data", str(data), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["whole"]
    assert document["highest"] == {"job": 2, "node": 0, "event": 0}


def test_damaged_and_missing_jobs_are_named_and_the_exit_code_is_1(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(data / "boa.db")) as found:
        found.execute("DELETE FROM jobs WHERE number = 1")
        found.execute("UPDATE jobs SET spec = '{' WHERE number = 2")
        found.commit()
    assert main(["store", "check", "--data", str(data), "--json"]) == 1
    said = capsys.readouterr()
    faults = {fault["kind"]: fault["jobs"] for fault in json.loads(said.out)["faults"]}
    assert faults == {"row": ["2"], "missing": ["1"]}
    assert said.err.startswith("error: the store is not whole")
    assert main(["store", "check", "--data", str(data)]) == 1
    assert "jobs are missing: 1" in capsys.readouterr().out


def test_a_copy_is_taken_listed_and_put_back(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", "restore", "--data", str(data)]) == 0
    assert "no snapshots" in capsys.readouterr().out
    assert main(["store", "snapshot", "--data", str(data)]) == 0
    name = Path(capsys.readouterr().out.strip()).name
    assert main(["store", "restore", "--data", str(data), "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["snapshots"]] == [name]
    assert main(["store", "restore", "--data", str(data)]) == 0
    assert name in capsys.readouterr().out
    with closing(SqlStore(backend_of(f"sqlite:///{data}/boa.db"), FolderMemory(data))) as store:
        store.commit(changes(jobs=(job(3),)))
    assert main(["store", "restore", name, "--data", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lost_jobs"] == ["3"]
    assert main(["store", "check", "--data", str(data)]) == 0
    said = capsys.readouterr().out
    assert "the next boa serve goes on from it" in said
    assert "jobs that it does not know: 3" in said


def test_a_folder_that_is_none_and_a_copy_that_is_none_end_with_2(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", "check", "--data", str(data / "nowhere")]) == 2
    assert main(["store", "restore", "none.db", "--data", str(data)]) == 2
    assert "Traceback" not in capsys.readouterr().err
