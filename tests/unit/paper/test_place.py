"""A folder of results is one command's at a time, and is tried before anything is simulated."""

from pathlib import Path

import pytest

from boa.cli import main
from boa.paper.place import held


@pytest.fixture(autouse=True)
def _no_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boa.paper.data.NEEDED", ())
    monkeypatch.setattr("boa.paper.results.redo", None)


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The line that it ends with."""
    assert main(["paper", "run", "usage", *words]) == 2
    problem = capsys.readouterr().err
    assert problem.count("\n") == 1
    return problem


def test_two_commands_on_one_folder_are_not_let_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with held(tmp_path / "out"):
        problem = refused(["-o", str(tmp_path / "out"), "--data", str(tmp_path)], capsys)
    assert f"--output {tmp_path}/out: another boa paper is writing to it" in problem
    with held(tmp_path / "out"):
        pass  # it is free again


@pytest.mark.parametrize("below", ["file", "file/out", "file/out/more"])
def test_a_place_that_is_no_folder_is_refused_at_once(
    below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    problem = refused(["-o", str(tmp_path / below), "--data", str(tmp_path)], capsys)
    assert f"--output {tmp_path / below}: " in problem


def test_a_place_where_nothing_can_be_made_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--output /proc/x: " in refused(["-o", "/proc/x", "--data", str(tmp_path)], capsys)


def test_a_file_in_the_place_of_the_runs_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").touch()
    problem = refused(["-o", str(tmp_path), "--data", str(tmp_path)], capsys)
    assert f"--output {tmp_path}: {tmp_path}/runs: " in problem


@pytest.mark.parametrize("name", ["summary.json", "usage.csv", "usage.svg", "usage.png"])
def test_a_folder_in_the_place_of_a_file_is_refused_at_once(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).mkdir()
    problem = refused(["-o", str(tmp_path), "--data", str(tmp_path)], capsys)
    assert f"--output {tmp_path}: {tmp_path}/{name}: is no regular file" in problem


@pytest.mark.parametrize("option", ["--output", "--data"])
def test_no_name_at_all_is_not_the_current_folder(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"{option}: got ''; expected a folder" in refused([option, ""], capsys)
