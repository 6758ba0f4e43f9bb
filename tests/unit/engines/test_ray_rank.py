"""What a rank does on its node, with real processes and without Ray."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boa.engines.ray.rank import Rank
from local_runs import alive, until

WITH_CHILD = "sleep 1000 & echo up $$ $!; wait"


@pytest.fixture
def rank() -> Iterator[Rank]:
    rank = Rank()
    yield rank
    assert rank._supervisor is not None
    assert rank._supervisor.stdin is not None
    assert rank._supervisor.stdout is not None
    rank._supervisor.stdin.close()  # as when the actor's process ends
    until(lambda: told(rank)["state"] == "ended")
    rank._supervisor.stdout.close()


def start(rank: Rank, tmp_path: Path, command: str, grace_s: float = 5.0) -> list[int]:
    """The processes, as the command printed them behind `up`."""
    env = {"BOA_JOB_ID": "1", "BOA_ATTEMPT": "1", "BOA_CHECKPOINT_DIR": str(tmp_path)}
    argv = ["sh", "-c", command]
    plan = {"rank": 0, "argv": argv, "env": env, "code_when_stopped": 0}
    assert rank.start(plan, str(tmp_path), False, grace_s, 10_000)
    until(lambda: b"\n" in told(rank)["output"])
    return [int(word) for word in told(rank)["output"].split()[1:]]


def told(rank: Rank) -> dict[str, Any]:
    return rank.news(0, "")


def supervisor(rank: Rank) -> int:
    (name,) = (name for name in os.listdir(rank._folder) if name.startswith("up."))
    return int(name.split(".")[1])


def test_what_a_command_began_ends_though_its_supervisor_was_killed(
    rank: Rank, tmp_path: Path
) -> None:
    processes = start(rank, tmp_path, WITH_CHILD)
    assert len(processes) == 2
    os.kill(supervisor(rank), signal.SIGKILL)
    until(lambda: told(rank)["state"] == "ended")
    assert told(rank)["outcome"] == (None, False, "lost: its supervisor was killed")
    until(lambda: not any(map(alive, processes)))


def test_an_actor_that_is_gone_takes_its_command_along_though_nothing_can_be_written(
    rank: Rank, tmp_path: Path
) -> None:
    processes = start(rank, tmp_path, WITH_CHILD, grace_s=0.1)
    Path(rank._folder, "stop.new").mkdir()  # where the supervisor would write
    assert rank._supervisor is not None
    assert rank._supervisor.stdin is not None
    rank._supervisor.stdin.close()  # as when the actor's process ends
    until(lambda: not any(map(alive, processes)))


def test_space_is_set_aside_for_how_it_ends(rank: Rank, tmp_path: Path) -> None:
    start(rank, tmp_path, "echo up; sleep 1000")
    assert Path(rank._folder, "reserve").stat().st_size > 0


def test_an_end_is_told_with_how_long_ago_it_was(rank: Rank, tmp_path: Path) -> None:
    start(rank, tmp_path, "echo up; exit 3")
    until(lambda: told(rank)["state"] == "ended")
    first, again = told(rank), told(rank)
    assert first["outcome"] == (3, False, "exit code 3")
    assert 0 < first["ended_ago_s"] < again["ended_ago_s"]


def test_checkpoints_that_a_command_writes_are_told_also_the_last(
    rank: Rank, tmp_path: Path
) -> None:
    start(rank, tmp_path, "echo up; until [ -e .go ]; do sleep 0.01; done; touch a")
    assert told(rank)["saved_at"] == 0.0
    (tmp_path / ".go").touch()
    until(lambda: told(rank)["state"] == "ended")
    assert told(rank)["saved_at"] == pytest.approx((tmp_path / "a").stat().st_mtime, abs=0.001)


def test_of_two_stops_the_shorter_grace_holds_whichever_comes_first(
    rank: Rank, tmp_path: Path
) -> None:
    (process,) = start(rank, tmp_path, "trap '' TERM; echo up $$; while :; do sleep 0.1; done")
    rank.stop(0.2)
    rank.stop(20.0)  # asked before, but on a slower thread
    until(lambda: told(rank)["state"] == "ended")
    assert told(rank)["outcome"][2] == "killed: still running 0.2 s after SIGTERM"
    assert not alive(process)
