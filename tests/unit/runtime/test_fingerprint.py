"""Fingerprints of what jobs run."""

from pathlib import Path

from boa.model.job import JobSpec
from boa.runtime.fingerprint import MOST_BYTES, fingerprint


def of(folder: Path | str, *run: str) -> str:
    return fingerprint(JobSpec(job_class="net", run=run, workdir=str(folder)))


def test_it_changes_with_a_script_and_not_with_options_or_data(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("one")
    (tmp_path / "data.csv").write_text("1,2")
    first = of(tmp_path, "python", "train.py", "--lr", "1e-4", "data.csv")
    assert first
    (tmp_path / "data.csv").write_text("3,4")
    assert of(tmp_path, "python", "train.py", "--lr", "3e-4", "data.csv") == first
    assert of(tmp_path, "sh", "-c", "python train.py --lr=2") == first
    (tmp_path / "train.py").write_text("two")
    assert of(tmp_path, "python", "train.py", "--lr", "1e-4") != first


def test_modules_shell_scripts_and_programs_by_their_first_line_count(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "__main__.py").write_text("one")
    (tmp_path / "run").write_text("#!/bin/sh")
    assert of(tmp_path, "python", "-m", "net")
    assert of(tmp_path, "./run")


def test_of_nothing_that_can_be_read_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "large.py").write_bytes(b"x" * (MOST_BYTES + 1))
    for run in (["true"], ["python", "gone.py"], ["python", "folder.py"], ["python", "large.py"]):
        assert of(tmp_path, *run) == ""
    assert of("", "python", "train.py") == ""
    assert of(tmp_path, "sh", "-c", "python 'open") == ""
    assert of(tmp_path, "a\0b.py") == ""
