"""Kept runs are taken up only where they are what would be made again."""

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from boa.errors import BoaError, FileError
from boa.paper import pool
from boa.paper.data_hash import data_hash
from boa.paper.pool import ResultStore, run_all
from boa.paper.runs import Run

RUN = Run(setting="rubick", policy="boa", knob=1.5, draw=0)


def made(run: Run, data: Path) -> dict[str, Any]:
    """A result without its simulation."""
    return {"run": asdict(run), "jobs": 4, "completed": 4, "average_jct_s": 600.0}


def public_data(folder: Path) -> Path:
    """As much of the public data as the run reads."""
    for name in ("workloads/workload-base.csv", "iteration_times/bert.csv"):
        file = folder / "rubick" / name
        file.parent.mkdir(parents=True)
        file.write_text(
            "name,time,application,num_replicas,batch_size,requested_iterations\n", "utf-8"
        )
    return folder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pool, "execute", made)
    monkeypatch.setattr(Run, "cost", lambda run, data: 1.0)
    return public_data(tmp_path / "data")


@pytest.mark.parametrize("changed", ["workloads/workload-base.csv", "iteration_times/bert.csv"])
def test_a_run_that_read_other_data_is_made_again(data: Path, tmp_path: Path, changed: str) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    run_all(ResultStore(out, data), [RUN], jobs=1, say=lambda line: None)
    shutil.copytree(data, other)
    assert ResultStore(out, other).missing([RUN]) == [], "it is not the place that counts"
    shutil.copytree(data, tmp_path / "changed")
    with (tmp_path / "changed" / "rubick" / changed).open("a", encoding="utf-8") as file:
        file.write("bert-1,0,bert,1,1,1\n")
    assert ResultStore(out, tmp_path / "changed").missing([RUN]) == [RUN]


def test_a_file_that_no_run_reads_changes_nothing(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "other")
    (tmp_path / "other" / "rubick" / "README.md").write_text("A note.", "utf-8")
    assert data_hash(RUN, data) == data_hash(RUN, tmp_path / "other")


def with_text(old: str, new: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")


def with_bytes(content: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(content)


def as_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "damage",
    [
        with_text("600.0", "1.0"),
        with_text("600.0", "NaN"),
        with_text("600.0", '"600"'),
        with_text('"average_jct_s": 600.0, ', ""),
        with_bytes(b"[" * 200_000),
        with_bytes(b"[]"),
        with_bytes(b"\xff"),
        with_bytes(b""),
        as_pipe,
    ],
)
def test_a_damaged_record_is_made_again(
    data: Path, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    run_all(ResultStore(tmp_path, data), [RUN], jobs=1, say=lambda line: None)
    (file,) = (tmp_path / "runs").iterdir()
    whole = file.read_bytes()
    damage(file)
    again = ResultStore(tmp_path, data)
    assert again.missing([RUN]) == [RUN]
    run_all(again, [RUN], jobs=1, say=lambda line: None)
    assert file.read_bytes() == whole
    assert ResultStore(tmp_path, data).missing([RUN]) == []


def test_a_folder_in_the_place_of_a_record_is_refused_before_anything_runs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "attempt", None)
    (tmp_path / "runs" / f"{RUN.key}.json").mkdir(parents=True)
    with pytest.raises(FileError, match="is a folder"):
        run_all(ResultStore(tmp_path, data), [RUN], jobs=1, say=lambda line: None)


def killed(run: Run, data: Path) -> dict[str, Any]:
    """In a process of the pool, as the kernel does it where memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def test_a_process_that_is_killed_is_no_bug_of_ours(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "attempt", killed)
    store, runs = ResultStore(tmp_path, data), [RUN, replace(RUN, knob=1.2)]
    with pytest.raises(BoaError, match=r"killed .* goes on from there") as problem:
        run_all(store, runs, jobs=2, say=lambda line: None)
    assert problem.value.exit_code == 1
    assert store.missing(runs) == runs
