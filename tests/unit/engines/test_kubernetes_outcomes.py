"""How pods ended, where jobs write what they like into the message that tells it."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from boa.engines.gang import Ending
from boa.engines.kubernetes.cluster import Cluster
from boa.engines.kubernetes.follower import Follower, mirrors_of
from boa.engines.kubernetes.in_pod import exit_code
from boa.engines.kubernetes.marker import Marker, told_by
from boa.engines.kubernetes.names import LAUNCH
from boa.engines.kubernetes.status import Outcome, read
from boa.engines.remote_folders import RemoteFolders
from boa.kubelink import Kube
from boa.model.runs import RunKey
from boa.units import wall_time

BEGAN, ENDED = "2026-11-17T10:00:00Z", "2026-11-17T10:05:00Z"
BEGAN_S, ENDED_S = wall_time(BEGAN) or 0.0, wall_time(ENDED) or 0.0
SAID: dict[str, Any] = {
    "code": 0,
    "stopped": False,
    "reason": "",
    "lost": False,
    "up": True,
    "at": ENDED_S + 0.5,
    "seen": {"0": 12},
}


def pod(message: str = "", code: int = 0, name: str = "one", **of_ended: Any) -> dict[str, Any]:
    ended = {"exitCode": code, "message": message, "startedAt": BEGAN, "finishedAt": ENDED}
    state = {"terminated": {**ended, **of_ended}}
    phase = "Failed" if code else "Succeeded"
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "annotations": {LAUNCH: '{"tag": "t"}'}},
        "spec": {"nodeName": "a"},
        "status": {"phase": phase, "containerStatuses": [{"name": "job", "state": state}]},
    }


def outcome(said: Mapping[str, Any] | str, code: int = 0, **of_ended: Any) -> Outcome:
    text = said if isinstance(said, str) else json.dumps(said)
    found = read(pod(text, code, **of_ended)).outcome
    assert found is not None
    return found


class Listed:
    """A cluster that has these pods."""

    namespace = "boa"

    def __init__(self, *pods: Any) -> None:
        self.pods = list(pods)

    def list(self, path: str, *, labels: str = "") -> list[Any]:
        return self.pods

    def get(self, path: str) -> Any:
        return self.pods[0]


def cluster(*pods: Any) -> Cluster:
    return Cluster(cast(Kube, Listed(*pods)), "boa")


ODD: list[dict[str, Any]] = [
    {"code": 1e999},
    {"code": math.nan},
    {"code": True},
    {"code": 0.0},
    {"code": "0"},
    {"code": 256},
    {"code": -65},
    {"at": math.nan},
    {"at": math.inf},
    {"at": "now"},
    {"at": None},
    {"stopped": 1},
    {"lost": "yes"},
    {"up": None},
    {"reason": {}},
    {"seen": []},
    {"seen": None},
    {"seen": 5},
]
HOSTILE = [
    '{"code":1e999}',
    "[" * 4000,
    '{"a":' * 800,
    "null",
    "5",
    "[]",
    '"text"',
    "9" * 4000,
    *(json.dumps({**SAID, **odd}) for odd in ODD),
]


@pytest.mark.parametrize("message", HOSTILE, ids=range(len(HOSTILE)))
def test_what_no_supervisor_says_is_not_believed(message: str) -> None:
    assert not outcome(message).told
    assert outcome(message, 137).code == -9
    assert math.isfinite(outcome(message).at)


@pytest.mark.parametrize("code", [None, 0, 1, 3, 126, 127, 143, 255, -1, -9, -15, -64])
def test_what_a_supervisor_says_is_believed_where_its_exit_code_is_that(code: int | None) -> None:
    found = outcome({**SAID, "code": code, "reason": "so"}, exit_code(code))
    assert (found.code, found.told, found.reason, found.seen) == (code, True, "so", {0: 12})
    assert 0 <= exit_code(code) <= 255


def test_a_success_that_the_kubelet_knows_nothing_of_is_none() -> None:
    assert outcome(SAID, 137).code == -9
    assert outcome(SAID, 137, reason="OOMKilled").reason.startswith("killed: out of memory")
    failed = outcome(SAID, 3)
    assert (failed.code, failed.told) == (None, False)
    assert failed.reason.startswith("lost: its supervisor ended with exit code 3")
    assert outcome({**SAID, "code": -9, "lost": True}, 137).lost is False
    assert outcome({**SAID, "code": 5}, 0).code is None


@pytest.mark.parametrize(
    ("told", "taken"),
    [
        (-1e300, BEGAN_S),
        (0.0, BEGAN_S),
        (BEGAN_S + 7.25, BEGAN_S + 7.25),
        (ENDED_S + 0.9, ENDED_S + 0.9),
        (1e300, ENDED_S + 1),
    ],
)
def test_a_time_is_within_those_of_the_kubelet(told: float, taken: float) -> None:
    assert outcome({**SAID, "at": told}).at == taken


def test_bytes_of_output_are_numbers_by_rank() -> None:
    seen = {"0": 5, "1": -1, "2": 1e999, "3": True, "4": "7", "x": 1, "9" * 30: 1, "7": 10**30}
    assert outcome({**SAID, "seen": seen}).seen == {0: 5}


def test_a_reason_is_one_short_line_that_can_be_stored() -> None:
    reason = outcome({**SAID, "reason": "a\ud800\x1b[2J\nb " + "c" * 3000}).reason
    assert reason.startswith("a [2J b ccc")
    assert len(reason) <= 300
    assert reason.encode()


def test_a_pod_that_cannot_be_read_costs_itself_alone(caplog: pytest.LogCaptureFixture) -> None:
    odd = pod(name="odd")
    odd["status"] = {"phase": "Failed", "containerStatuses": [5]}
    nameless = pod(name="nameless")
    del nameless["metadata"]["name"]
    asked = cluster(odd, nameless, None, {"metadata": 5}, pod(json.dumps(SAID)))
    found = asked.pods()
    assert set(found) == {"odd", "one"}
    assert found["one"].outcome == outcome(SAID)
    lost = found["odd"].outcome
    assert (found["odd"].stage, found["odd"].tag, found["odd"].uid) == ("over", "t", "uid-odd")
    assert lost is not None
    assert lost.code is None
    assert "makes no sense" in lost.reason
    assert asked.pod("odd") == found["odd"]
    assert caplog.text.count("pod odd in boa") == 1


@pytest.mark.parametrize("annotation", ["[" * 4000, "null", "5", "[1]", "{"])
def test_a_pod_whose_annotation_is_no_run_is_of_none(annotation: str) -> None:
    odd = pod(json.dumps(SAID))
    odd["metadata"]["annotations"] = {LAUNCH: annotation}
    assert cluster(odd).pods()["one"].about == {}


PART = {"name": "p", "node": "n", "label": "0", "gpus": 1, "ranks": [0]}
ABOUT = Marker(tag="t", pods=[PART], gpu_type="v100", image="i").about(RunKey("job-1", 2))


def test_a_run_is_found_again_by_its_pods() -> None:
    found = told_by(ABOUT)
    assert found is not None
    assert found[0] == RunKey("job-1", 2)
    assert found[1].launched


@pytest.mark.parametrize(
    "odd",
    [
        {"attempt": 1e999},
        {"attempt": -1},
        {"job": "../../etc"},
        {"job": "--"},
        {"pieces": 10**9},
        {"pieces": "x"},
        {"tag": 5},
        {"grace_s": math.inf},
        {"grace_s": None},
        {"pods": 5},
        {"pods": [{**PART, "name": 5}]},
        {"pods": [{**PART, "ranks": ["0"]}]},
        {"pods": [{**PART, "ranks": None}]},
    ],
)
def test_nonsense_on_a_pod_is_no_run(odd: Mapping[str, Any]) -> None:
    assert told_by({**ABOUT, **odd}) is None


@pytest.mark.parametrize("at", [math.nan, math.inf, -math.inf, 1e300, -1e300])
def test_an_end_at_no_time_is_written_down_all_the_same(tmp_path: Path, at: float) -> None:
    folders, key = RemoteFolders(tmp_path, Marker), RunKey("job", 1)
    folders.begin(key)
    ending = Ending(exit_code=3, stopped=False, reason="so")
    folders.end(key, ending, at)
    assert folders.ended(key) == ending
    assert 0 <= folders.age(key) < 3600


class Quiet:
    """A cluster whose pods print nothing."""

    @contextmanager
    def stream(self, path: str, **query: str) -> Iterator[Iterator[bytes]]:
        yield iter(())


def test_output_of_ranks_that_are_not_there_is_not_waited_for(tmp_path: Path) -> None:
    mirrors = mirrors_of(os.fspath(tmp_path), [0], 4096)
    follower = Follower(cast(Kube, Quiet()), "boa", "one", mirrors, lambda: None)
    follower.finish({0: 0, 77: 10**12})
    follower._thread.join(300)
    assert follower.done
