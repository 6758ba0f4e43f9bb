"""The campaign's own observer: what it is there to see, it sees."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from _campaign.faults import _damaged
from _campaign.observer import Journal, Rented, dearest_moment
from _campaign.processes import send
from _campaign.world import TRAINEE
from local_runs import until


def _run(folder: Path, attempt: int, units: int, child: str = "none") -> "subprocess.Popen[bytes]":
    for name in ("locks", "checkpoints"):
        (folder / name).mkdir(exist_ok=True)
    own = {
        "RANK": "0",
        "BOA_ATTEMPT": str(attempt),
        "BOA_JOB_ID": "7",
        "BOA_CHECKPOINT_DIR": str(folder / "checkpoints"),
        "BOA_REPORT_URL": "http://127.0.0.1:9/none",
        "BOA_REPORT_TOKEN": "none",
    }
    words = [folder / "journal", folder / "locks", "j1", units, 0.001, child]
    command = [sys.executable, "-S", str(TRAINEE), *map(str, words)]
    return subprocess.Popen(command, env={**os.environ, **own})


@contextmanager
def _running(folder: Path, journal: Journal, child: str = "none") -> Iterator[int]:
    """A first attempt that does not end by itself."""
    first = _run(folder, 1, 10**6, child)
    try:
        until(lambda: any(line.what == "unit" for line in journal.lines()))
        yield first.pid
    finally:
        first.kill()
        first.wait()


def _seen(journal: Journal) -> list[str]:
    return [line.what for line in journal.lines() if line.what in ("double", "stranger")]


def test_a_second_attempt_beside_the_first_is_seen(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    with _running(tmp_path, journal):
        assert _run(tmp_path, 2, 1).wait() == 0
    assert _seen(journal) == ["double"]


def test_a_child_without_environment_that_outlives_its_worker_is_seen(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    with _running(tmp_path, journal, "bare"):
        pass
    (child,) = journal.pids("child")
    assert _run(tmp_path, 2, 1).wait() == 0
    assert _seen(journal) == ["double"]
    os.kill(child, 9)


def test_one_attempt_after_the_other_is_nothing_to_see_and_goes_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    for attempt, units in ((1, 8), (2, 12)):
        assert _run(tmp_path, attempt, units, "plain").wait() == 0
    assert not _seen(journal)
    assert journal.done()["j1"] == set(range(1, 13))
    assert journal.by_attempt() == {("7", 1): 8, ("7", 2): 4}


def test_a_strangers_checkpoint_is_seen(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    assert _run(tmp_path, 1, 4).wait() == 0
    state = tmp_path / "checkpoints" / "state.json"
    state.write_text(state.read_text().replace("j1", "j2"))
    assert _run(tmp_path, 2, 4).wait() == 0
    assert _seen(journal) == ["stranger"]


def test_the_dearest_moment_counts_who_is_there_at_once() -> None:
    times = {"a": (0.0, 10.0), "b": (5.0, None), "c": (10.0, 20.0)}
    rented = {
        name: Rented(token=name, price=4.0, since=since, until=end)
        for name, (since, end) in times.items()
    }
    assert dearest_moment(rented) == 8.0
    assert rented["a"].cost() == pytest.approx(4.0 * 10 / 3600)


@pytest.mark.parametrize(
    "pid",
    [-1, 0, 1, os.getpid(), os.getppid()],
    ids=["everybody", "our group", "init", "ourselves", "our parent"],
)
def test_nobody_is_struck_who_was_not_begun_by_the_campaign(
    pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append(pid))
    assert not send(pid, signal.SIGCONT)
    assert not sent


def test_whoever_was_begun_by_the_campaign_can_be_struck() -> None:
    child = subprocess.Popen(["sleep", "600"])
    assert send(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert not send(child.pid, signal.SIGKILL)


def test_what_was_damaged_is_damaged_again_without_waiting(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    for seed in range(40):  # every kind of damage after every other
        if not path.is_dir() or path.is_symlink():
            _damaged(path, random.Random(seed))
        else:
            path.rmdir()
