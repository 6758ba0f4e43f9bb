"""Logs that jobs have replaced: refused, with the file and what stands in its place."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from boa.engines.folders import RunFolders
from fakes import FakeService

REPLACEMENTS: dict[str, Callable[[Path], None]] = {
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "a pipe": lambda path: os.mkfifo(path),
    "a folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("kind", REPLACEMENTS)
def test_what_stands_in_the_place_of_a_log_is_refused_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    service = FakeService(tmp_path / "service")
    job = service.submit()
    folders = RunFolders(tmp_path / "runs")
    monkeypatch.setattr(service.engine, "logs", folders.logs)
    run = Path(folders.root) / job / "1"
    run.mkdir(parents=True)
    (run / "0.old.log").write_text("printed\n")
    (run / "1.log").write_text("printed by rank 1\n")
    REPLACEMENTS[kind](run / "0.log")
    answer = service.ask("GET", f"/api/v1/jobs/{job}/logs")
    assert answer.status_code == 409
    assert answer.json()["error"]["message"] == (
        f"the log of attempt 1, rank 0 is {kind}, not a plain file: the job has replaced 0.log, "
        "which is not read. Name another attempt or rank"
    )
    assert service.ask("GET", f"/api/v1/jobs/{job}/logs?rank=1").text == "printed by rank 1\n"
    assert service.ask("GET", f"/api/v1/jobs/{job}/logs/runs").status_code == 200
