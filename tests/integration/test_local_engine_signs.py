"""Signs of silent jobs on the local engine: that they are done, and that they save."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from boa.engines.processes import run_files
from boa.model.runs import RunEvent, RunKey
from local_runs import Runs, until

AT_STOP = "trap '{}; exit 0' TERM; echo ready; while :; do sleep 0.01; done"


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    runs.close()


def sh(runs: Runs, script: str, attempt: int = 1) -> RunKey:
    return runs.start("sh", "-c", script, attempt=attempt)


def stopped(runs: Runs, script: str, attempt: int = 1) -> RunEvent:
    key = sh(runs, script, attempt)
    runs.until_printed(key, "ready")
    runs.engine.stop(key, 30.0)
    return runs.end(key)


def test_a_job_that_is_stopped_and_leaves_its_sign_is_done_and_another_is_not(runs: Runs) -> None:
    end = stopped(runs, AT_STOP.format("touch $BOA_DONE"))
    assert (end.exit_code, end.stopped, end.done) == (0, True, True)
    assert end.reason == "done when asked to stop"
    end = stopped(runs, AT_STOP.format("true"), attempt=2)
    assert (end.exit_code, end.stopped, end.done) == (0, True, False)


def test_a_job_that_ends_by_itself_with_its_sign_is_done(runs: Runs) -> None:
    end = runs.end(sh(runs, "touch $BOA_DONE"))
    assert (end.exit_code, end.stopped, end.done) == (0, False, True)


def test_a_job_that_fails_is_not_done_whatever_sign_it_left(runs: Runs) -> None:
    end = runs.end(sh(runs, "touch $BOA_DONE; exit 3"))
    assert (end.exit_code, end.done) == (3, False)


def test_the_sign_of_an_earlier_attempt_does_not_count_nor_one_that_was_there_before(
    runs: Runs, tmp_path: Path
) -> None:
    runs.end(sh(runs, "touch $BOA_DONE; exit 3"))
    (tmp_path / "checkpoints" / "1" / ".boa-done-2").touch()
    assert not stopped(runs, AT_STOP.format("true"), attempt=2).done


def test_a_sign_is_gone_when_the_run_is_over(runs: Runs, tmp_path: Path) -> None:
    assert runs.end(sh(runs, "touch $BOA_DONE")).done
    assert not (tmp_path / "checkpoints" / "1" / ".boa-done-1").exists()


def test_done_is_found_again_by_a_service_that_was_away(runs: Runs) -> None:
    key = sh(runs, AT_STOP.format("touch $BOA_DONE"))
    runs.until_printed(key, "ready")
    runs.engine.stop(key, 30.0)
    folder = Path(runs.engine._folders.folder(key))
    until(lambda: (folder / run_files.OUTCOME).exists())
    runs.crash()
    assert runs.end(key).done


def test_a_checkpoint_of_a_job_that_does_not_report_is_told_once_with_its_age(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "checkpoints" / "1"
    home.mkdir(parents=True)
    (home / "old").touch()
    os.utime(home / "old", (1e9, 1e9))
    key = sh(runs, "touch $BOA_CHECKPOINT_DIR/.hidden; echo ready; sleep 1000")
    runs.until_printed(key, "ready")
    assert not [event for event in runs.events.get(key, []) if event.saved]
    (home / "model").mkdir()
    (home / "model" / "weights").touch()

    def told() -> list[RunEvent]:
        runs.poll()
        return [event for event in runs.events[key] if event.saved]

    until(lambda: bool(told()))
    (event,) = told()
    assert not event.ended
    assert 0 <= event.saved_age_s < time.time() - os.stat(home / "model" / "weights").st_mtime + 1
    runs.poll()
    assert told() == [event]
    runs.engine.stop(key, 0.0)
    assert runs.end(key).saved


def test_a_checkpoint_written_last_of_all_is_told_with_the_end(runs: Runs) -> None:
    assert runs.end(sh(runs, "sleep 0.05; touch $BOA_CHECKPOINT_DIR/model")).saved
    assert not runs.end(sh(runs, "true", attempt=2)).saved


def test_logs_in_a_checkpoint_folder_are_no_checkpoint(tmp_path: Path) -> None:
    names = ("train.log", "out.txt", "metrics.csv", "losses.jsonl", "events.out.tfevents.17.host")
    for name in names:
        (tmp_path / name).touch()
    assert run_files.newest_file(str(tmp_path), 0.0) == 0.0
    (tmp_path / "model.pt").touch()
    assert run_files.newest_file(str(tmp_path), 0.0) > 0


def test_the_end_of_a_run_says_how_old_its_newest_checkpoint_is(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = sh(runs, "sleep 0.05; touch $BOA_CHECKPOINT_DIR/model")
    runs.end(key)
    then = time.time() + 1000.0
    monkeypatch.setattr(time, "time", lambda: then)
    (event,) = runs.engine.poll()
    assert event.saved_age_s == pytest.approx(1000.0, abs=60.0)


def test_one_look_at_a_folder_takes_in_a_bounded_number_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        (tmp_path / str(number)).touch()
    assert run_files.newest_file(str(tmp_path), 0.0) > 0
    looked = []
    monkeypatch.setattr(run_files, "MOST_LOOKED_AT", 10)
    scandir = os.scandir

    class Counted:
        def __init__(self, path: str) -> None:
            self.entries = scandir(path)

        def __enter__(self) -> "Counted":
            return self

        def __exit__(self, *_: object) -> None:
            self.entries.close()

        def __iter__(self) -> Iterator[os.DirEntry[str]]:
            for entry in self.entries:
                looked.append(entry.name)
                yield entry

    monkeypatch.setattr(os, "scandir", Counted)
    assert run_files.newest_file(str(tmp_path), 0.0) > 0
    assert len(looked) == 11
    assert run_files.newest_file(str(tmp_path / "none"), 0.0) == 0.0
