"""A process that is asked: what it tells, how it is killed, and when it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from boa.worker_process import WorkerClosed, WorkerKilled, WorkerProcess, WorkerTooSlow
from worker_answers import counted, environment

Worker: TypeAlias = WorkerProcess[int, tuple[int, int]]
ENDLESS = -1
FORGETFUL = """
from boa.worker_process import WorkerProcess
from worker_answers import counted
if __name__ == "__main__":
    print(WorkerProcess(counted, "counting").ask(3)[1])
"""


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker: Worker = WorkerProcess(counted, "counting")
    yield worker
    worker.close()
    worker.let_go()


def test_news_come_in_order_before_the_answer(worker: Worker) -> None:
    heard: list[Any] = []
    answer, pid = worker.ask(3, heard=heard.append)
    assert (heard, answer) == ([0, 1, 2], 3)
    assert pid == worker.pid != os.getpid()
    assert worker.ask(5) == (5, pid), "one process for all questions"


def test_killed_while_it_is_at_it_it_is_begun_again_when_it_is_asked_again(worker: Worker) -> None:
    pids: list[int] = []

    def kill(pid: int) -> None:
        pids.append(pid)
        worker.kill()

    with pytest.raises(WorkerKilled):
        worker.ask(ENDLESS, heard=kill, tries=2)
    assert len(set(pids)) == 2, "as often as it was to be tried"
    answer, pid = worker.ask(1)
    assert answer == 1
    assert pid not in pids


def test_killed_before_it_is_up_it_is_killed_all_the_same(worker: Worker) -> None:
    worker.kill()
    with pytest.raises(WorkerKilled):
        worker.ask(1)
    assert worker.ask(1)[0] == 1, "but not the one after"


def test_what_takes_too_long_is_killed_and_not_tried_again(worker: Worker) -> None:
    worker.ask(1)  # beginning it may take longer
    pids: list[int] = []
    with pytest.raises(WorkerTooSlow):
        worker.ask(ENDLESS, limit_s=0.1, tries=2, heard=pids.append)
    assert len(pids) <= 1
    assert worker.pid is None


def test_signals_that_are_meant_for_the_parent_are_not_heard(worker: Worker) -> None:
    _, pid = worker.ask(1)
    for signalled in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, signalled)
    assert worker.ask(1) == (1, pid)


def test_closed_it_does_not_come_back(worker: Worker) -> None:
    worker.ask(1)
    worker.close()
    with pytest.raises(WorkerClosed):
        worker.ask(1)
    assert worker.pid is None


def test_who_forgets_to_close_it_ends_all_the_same(tmp_path: Path) -> None:
    script = tmp_path / "forgetful.py"
    script.write_text(FORGETFUL)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, str(script)]
    said = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, timeout=300, check=True
    ).stdout
    assert not Path(f"/proc/{int(said)}").exists()


def children(pid: int) -> set[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for path in found for child in path.read_text().split()}


def test_no_process_is_started_with_secrets_of_the_parents_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("BOA_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "PYTHON_KEYRING_TOKEN"):
        monkeypatch.setenv(name, "planted")
    before = children(os.getpid())
    worker: WorkerProcess[int, dict[str, str]] = WorkerProcess(environment, "environment")
    try:
        seen = worker.ask(0)
        assert "planted" not in seen.values()
        assert seen["PATH"] == os.environ["PATH"]
        started = children(os.getpid()) - before
        assert worker.pid in started
        for pid in started:  # a resource tracker of multiprocessing's would be one of them
            with suppress(PermissionError):  # closed to its own user altogether
                assert b"planted" not in Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        worker.close()
        worker.let_go()


def test_a_process_that_is_up_is_closed_to_others_of_its_user() -> None:
    worker: WorkerProcess[int, dict[str, str]] = WorkerProcess(environment, "environment")
    try:
        worker.ask(0)
        assert Path(f"/proc/{worker.pid}/environ").stat().st_uid == 0, "the kernel's: not dumpable"
    finally:
        worker.close()
        worker.let_go()
