"""A job that puts pipes, links and folders for the engine's files hurts itself at most."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_runs import Runs
from replacing import make, promptly

SLEEP = ("sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done")
KINDS = ("pipe", "link", "folder")


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    promptly(runs.close)


@pytest.mark.parametrize("kind", KINDS)
def test_a_replaced_outcome_is_none(runs: Runs, kind: str) -> None:
    key = runs.start(*SLEEP)
    runs.until_printed(key, "up")
    make(kind, runs.folder(key) / "outcome")
    promptly(runs.crash)
    promptly(runs.poll)
    os.kill(runs.supervisor(key), signal.SIGKILL)
    assert "lost" in promptly(lambda: runs.end(key)).reason


@pytest.mark.parametrize("kind", KINDS)
def test_a_replaced_reserve_or_outcome_does_not_hide_how_a_run_ended(runs: Runs, kind: str) -> None:
    key = runs.start(*SLEEP)
    runs.until_printed(key, "up")
    make(kind, runs.folder(key) / "reserve")
    make(kind, runs.folder(key) / "outcome")
    runs.engine.stop(key, 30.0)
    event = promptly(lambda: runs.end(key))
    assert (event.exit_code, event.stopped) == (0, True)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_replaced_stop_is_written_anew_and_nothing_else_is(runs: Runs, kind: str) -> None:
    key = runs.start(*SLEEP)
    runs.until_printed(key, "up")
    make(kind, runs.folder(key) / "stop")
    promptly(lambda: runs.engine.stop(key, 30.0))
    assert promptly(lambda: runs.end(key)).exit_code == 0
    if kind == "link":
        assert (runs.folder(key) / "elsewhere").read_text() == "somebody else's"


def test_a_supervisor_does_not_wait_for_a_stop_that_is_a_pipe(runs: Runs) -> None:
    key = runs.start("sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done", grace_s=0.2)
    runs.until_printed(key, "up")
    make("pipe", runs.folder(key) / "stop")
    os.kill(runs.supervisor(key), signal.SIGTERM)
    assert "killed" in promptly(lambda: runs.end(key)).reason


def test_stray_logs_are_none_of_ours(runs: Runs) -> None:
    key = runs.start(*SLEEP)
    runs.until_printed(key, "up")
    for name in ("x.log", "1.2.log", "0.new.log", ".log", "²,.log"):
        (runs.folder(key) / name).touch()
    (runs.folder(key).parent / "²").mkdir()
    assert [(file.attempt, file.rank) for file in runs.engine.logs("1")] == [(1, 0)]


def test_a_log_that_is_a_pipe_does_not_stop_its_job(tmp_path: Path) -> None:
    runs, go = Runs(tmp_path, log_bytes=2048), tmp_path / "go"
    waits = f"echo up; until [ -e {go} ]; do sleep 0.02; done"
    prints = "i=0; while [ $i -lt 400 ]; do echo 0123456789; i=$((i+1)); done"
    key = runs.start("sh", "-c", f"{waits}; {prints}")
    runs.until_printed(key, "up")
    make("pipe", runs.folder(key) / "0.log")
    make("folder", runs.folder(key) / "0.old.log")  # so that it stays where it is
    go.touch()
    assert promptly(lambda: runs.end(key)).exit_code == 0
    promptly(runs.close)
