"""What every engine on a cluster does: tests that are run against each of them, on real nodes.

Node 0 of `runs` has two T4, nodes 1 and 2 an A100 each. Who imports these has a fixture `runs`.
"""

import signal
from abc import abstractmethod
from dataclasses import replace
from typing import Any

from boa.model.runs import RunKey
from local_runs import Runs, until

POLITE = 'trap "echo bye; exit 0" TERM; echo up $$; while :; do sleep 0.02; done'
STUBBORN = 'trap "" TERM; echo up $$; while :; do sleep 0.02; done'

ON_1: dict[str, Any] = {"slots": ((1, 1),), "gpu_type": "A100"}
ON_BOTH: dict[str, Any] = {"slots": ((2, 1), (1, 1)), "gpu_type": "A100"}
"""One rank on either."""


class ClusterRuns(Runs):
    """`slots` are (index of a node, number of GPUs)."""

    nodes: list[str]
    """Their names in the cluster."""

    @abstractmethod
    def living(self, key: RunKey) -> bool:
        """Whether something of a run that has said `up PID` is still there."""

    def log(self, key: RunKey, rank: int = 0) -> str:
        self.poll()  # which may fetch it
        return super().log(key, rank)


def shell(text: str) -> tuple[str, str, str]:
    return "sh", "-c", text


def test_a_gang_starts_when_all_its_gpus_are_free_and_nothing_of_it_before(
    runs: ClusterRuns,
) -> None:
    first = runs.start(*shell(POLITE), **ON_1)
    runs.until_up(first)
    second = runs.start(*shell("echo up; sleep 0.1"), job="2", **ON_BOTH)
    runs.start("true", job="3")  # begun later, and soon over
    assert runs.end(RunKey("3", 1)).exit_code == 0
    assert runs.told(RunKey("3", 1), ended=False) is not None
    assert runs.told(second, ended=False) is None
    assert not any(runs.log(second, rank) for rank in (0, 1))
    runs.engine.stop(first, 5.0)
    assert runs.end(second).exit_code == 0
    assert [runs.log(second, rank) for rank in (0, 1)] == ["up\n", "up\n"]


def test_secrets_reach_every_rank_and_are_masked_in_what_it_prints(runs: ClusterRuns) -> None:
    value = "hunter2-and-a-lot-more"
    told = 'echo "len ${#KEY} key $KEY"'
    launch = replace(runs.launch(*shell(told), slots=((0, 2),)), secrets={"KEY": value})
    runs.engine.start(launch)
    assert runs.end(launch.key).exit_code == 0
    for rank in (0, 1):
        assert f"len {len(value)} key " in runs.log(launch.key, rank)
        assert value not in runs.log(launch.key, rank)
    kept = [path for path in runs.root.rglob("*") if path.is_file()]
    assert kept
    assert all(value.encode() not in path.read_bytes() for path in kept)


def test_a_secret_is_stars_in_the_log_and_in_the_line_that_tells_why(runs: ClusterRuns) -> None:
    value = "hunter2-and-some-more"
    launch = replace(runs.launch(*shell('echo "KeyError: $KEY"; exit 3')), secrets={"KEY": value})
    runs.engine.start(launch)
    assert runs.end(launch.key).said == f"KeyError: {'*' * len(value)}"
    assert value not in runs.log(launch.key)


def test_asked_to_stop_they_get_sigterm_and_may_finish(runs: ClusterRuns) -> None:
    key = runs.start(*shell(POLITE), slots=((0, 2),))
    for rank in (0, 1):
        runs.until_printed(key, "up ", rank)
    assert runs.living(key)
    runs.engine.stop(key, 120.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped when asked")
    assert [runs.log(key, rank).endswith("bye\n") for rank in (0, 1)] == [True, True]
    assert not runs.living(key)


def test_after_the_grace_time_they_are_killed(runs: ClusterRuns) -> None:
    key = runs.start(*shell(STUBBORN))
    runs.until_printed(key, "up ")
    runs.engine.stop(key, 120.0)
    runs.engine.stop(key, 0.2)
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (-signal.SIGKILL, True)
    assert end.reason == "killed: still running 0.2 s after SIGTERM"
    assert not runs.living(key)


def test_stopped_before_it_began_a_run_takes_no_gpus(runs: ClusterRuns) -> None:
    key = runs.start("true", **ON_BOTH)
    runs.engine.stop(key, 5.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped before it began")
    runs.engine.forget(key)
    assert runs.end(runs.start("true", attempt=2, **ON_BOTH)).exit_code == 0


def test_a_rank_that_fails_ends_the_gang_with_its_exit_code(runs: ClusterRuns) -> None:
    script = f'if [ "$RANK" = 1 ]; then echo up; exit 3; fi; {POLITE}'
    key = runs.start(*shell(script), **ON_BOTH)
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (3, False, "worker 1: exit code 3")
    assert not end.node_lost


def test_a_command_that_is_not_there_says_so(runs: ClusterRuns) -> None:
    key = runs.start("no-such-command")
    end = runs.end(key)
    assert end.exit_code == 127
    assert end.reason == "cannot start no-such-command: No such file or directory"
    assert runs.told(key, ended=False) is None


def test_a_node_that_is_not_there_is_no_failure_of_the_job(runs: ClusterRuns) -> None:
    runs.nodes.append("0" * 56)
    end = runs.end(runs.start("true", slots=((0, 1), (len(runs.nodes) - 1, 1))))
    assert end.exit_code is None
    assert end.node_lost
    assert end.reason == f"lost: node {'0' * 56} is gone"


def test_output_arrives_and_is_kept_within_its_limit(runs: ClusterRuns) -> None:
    runs.log_bytes = 20_000
    runs.crash()
    key = runs.start(*shell("seq 100000; echo last"))
    assert runs.end(key).exit_code == 0
    text = runs.log(key)
    lines = [line for line in text.splitlines() if not line.startswith("[boa] ")]
    assert lines[-3:] == ["99999", "100000", "last"]
    assert 20_000 * 15 // 32 < len(text) <= 20_000  # at least one of two parts, all but full


def test_a_run_that_was_being_started_is_started_anew(runs: ClusterRuns) -> None:
    key = runs.start(*shell("echo up; sleep 0.1"), **ON_BOTH)
    runs.crash()
    assert not runs.engine.runs()
    runs.start(*shell("echo up; sleep 0.1"), **ON_BOTH)
    assert runs.end(key).exit_code == 0
    assert runs.log(key) == "up\n"


def test_an_end_is_told_until_it_is_forgotten_by_whoever_comes_next(runs: ClusterRuns) -> None:
    key = runs.start(*shell("echo up; exit 3"))
    end = runs.end(key)
    runs.crash()
    assert runs.end(key).reason == end.reason
    runs.engine.forget(key)
    runs.crash()
    assert not runs.engine.runs()
    until(lambda: not runs.living(key))
