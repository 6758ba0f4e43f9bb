"""One run on a cluster that does as it is told: what follows from what its pods are."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.engines.base import NotOver
from boa.engines.kubernetes import engine as module
from boa.engines.kubernetes.engine import KubernetesEngine
from boa.engines.kubernetes.frames import Unframed
from boa.engines.kubernetes.status import Outcome, PodState, read
from boa.kubelink import Exists, Kube, KubeTrouble, Refused
from boa.model.job import JobSpec
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.runs import Launch, NodeSlots, RunEvent, RunKey

KEY = RunKey("1", 1)


class Scripted:
    """In the place of the cluster: pods are objects in a dictionary."""

    def __init__(self, *_: object) -> None:
        self.kube, self.namespace, self.owner = None, "ns", "boa"
        self.objects: dict[str, dict[str, Any]] = {}
        self.secrets: set[str] = set()
        self.lost: dict[str, str] = {}
        self.done: list[tuple[str, str]] = []
        self.trouble: Callable[[str], None] = lambda what: None

    def pods(self, jobs: Collection[str] = ()) -> dict[str, PodState]:
        self.trouble("list")
        return {name: read(body) for name, body in self.objects.items()}

    def pod(self, name: str) -> PodState | None:
        return read(self.objects[name]) if name in self.objects else None

    def create_pod(self, body: Mapping[str, Any]) -> None:
        name = body["metadata"]["name"]
        self.trouble("create")
        if name in self.objects:
            raise Exists(name)
        metadata = {**body["metadata"], "uid": f"uid-{len(self.done)}"}
        self.objects[name] = {**body, "metadata": metadata, "status": {"phase": "Pending"}}
        self.done.append(("create", name))
        self.trouble("created")

    def open_gate(self, name: str, tag: str, address: str) -> None:
        self.done.append(("gate", name))
        annotations = self.objects[name]["metadata"]["annotations"]
        annotations["boa-constrictor.dev/go"] = f"{tag} {address}"

    def end(self, name: str, uid: str, grace_s: int) -> None:
        self.done.append((f"end {grace_s}", name))
        self.objects[name]["metadata"]["deletionTimestamp"] = "now"

    def remove(self, pod: PodState, *, forced: bool = False) -> None:
        self.trouble("remove")
        self.done.append(("force" if forced else "remove", pod.name))
        self.objects.pop(pod.name, None)

    def why(self, name: str) -> str:
        return ""

    def create_secret(self, body: Mapping[str, Any]) -> None:
        self.secrets.add(body["metadata"]["name"])

    def remove_secrets(self, names: Collection[str]) -> None:
        self.secrets -= set(names)

    def why_lost(self, node: str) -> str:
        return self.lost.get(node, "")

    def runs(self, *numbers: int) -> None:
        """Containers of these pods run."""
        for number in numbers:
            body = self.objects[f"boa-1-1-{number}"]
            state = {"name": "job", "state": {"running": {"startedAt": "now"}}}
            body["spec"]["nodeName"] = f"n{number}"
            body["status"] = {
                "phase": "Running",
                "podIP": f"10.0.0.{number}",
                "containerStatuses": [state],
            }

    def ended(self, number: int, code: int, message: str = "") -> None:
        terminated = {"exitCode": code, "reason": "Error", "message": message}
        state = {"name": "job", "state": {"terminated": terminated}}
        status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [state]}
        self.objects[f"boa-1-1-{number}"]["status"] = status


class Heard:
    """In the place of a follower: all that there is was heard."""

    up = following = done = True
    end = ""

    def __init__(self, *_: object) -> None:
        return

    def finish(self, expected: Mapping[int, int]) -> None:
        return

    def leave(self) -> None:
        return

    def hurry(self) -> None:
        return


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    cluster = Scripted()
    monkeypatch.setattr(module, "Cluster", lambda *_: cluster)
    monkeypatch.setattr(module, "BUSY_S", 0.0)
    monkeypatch.setattr(module, "STEADY_S", 0.0)
    monkeypatch.setattr("boa.engines.kubernetes.run.Follower", Heard)
    monkeypatch.setattr("boa.engines.kubernetes.run.mirrors_of", lambda *_: {})
    return cluster


def engine(folder: Path, **settings: Any) -> KubernetesEngine:
    told = KubernetesSettings(**{"image": "img", **settings})
    kube: Kube = None  # type: ignore[assignment]
    return KubernetesEngine(folder, kube=kube, settings=told, log_bytes=1000)


def launch(*widths: int, attempt: int = 1) -> Launch:
    slots = tuple(NodeSlots(i, tuple(range(n)), f"n{i}") for i, n in enumerate(widths))
    return Launch(
        key=replace(KEY, attempt=attempt),
        spec=JobSpec(job_class="c", run=("true",)),
        gpu_type="T4",
        slots=slots,
        checkpoint_dir="/ckpt",
    )


def end_of(engine: KubernetesEngine) -> RunEvent | None:
    return next((event for event in engine.poll() if event.ended), None)


def test_the_gate_opens_when_all_are_up_and_not_before(cluster: Scripted, tmp_path: Path) -> None:
    one = engine(tmp_path)
    one.start(launch(1, 1))
    cluster.runs(0)
    one.poll()
    assert ("gate", "boa-1-1-0") not in cluster.done
    cluster.runs(1)
    assert [event.ended for event in one.poll()] == [False]
    assert cluster.done[-2:] == [("gate", "boa-1-1-0"), ("gate", "boa-1-1-1")]


def test_a_pod_that_its_kubelet_rejects_is_made_again(cluster: Scripted, tmp_path: Path) -> None:
    one = engine(tmp_path)
    one.start(launch(1))
    rejected = {"phase": "Failed", "reason": "OutOfnvidia.com/gpu", "message": "no room"}
    cluster.objects["boa-1-1-0"]["status"] = rejected
    assert end_of(one) is None
    assert cluster.done[-1] == ("force", "boa-1-1-0")
    one.poll()
    assert cluster.done[-1] == ("create", "boa-1-1-0")
    assert end_of(one) is None


def test_a_pod_whose_making_was_not_answered_is_not_left_behind(
    cluster: Scripted, tmp_path: Path
) -> None:
    def lost(what: str) -> None:
        if what == "created":
            raise KubeTrouble("no answer")

    one = engine(tmp_path)
    cluster.trouble = lost
    with pytest.raises(KubeTrouble):
        one.start(launch(1))
    one.poll()
    assert not cluster.objects
    assert not cluster.secrets
    cluster.trouble = lambda what: None
    one.start(launch(1))
    assert list(one.runs()) == [KEY]


def test_what_cannot_be_removed_yet_is_known_until_it_is(cluster: Scripted, tmp_path: Path) -> None:
    def away(what: str) -> None:
        if what in ("created", "remove"):
            raise KubeTrouble("no answer")

    one = engine(tmp_path)
    cluster.trouble = away
    with pytest.raises(KubeTrouble):
        one.start(launch(1))
    with pytest.raises(NotOver):
        one.start(launch(1))
    cluster.trouble = lambda what: None
    again = engine(tmp_path)  # the service was killed meanwhile: what it had begun is known
    assert list(again.runs()) == [KEY]
    assert list(cluster.objects) == ["boa-1-1-0"]


def test_a_stop_of_what_could_not_begin_is_told(cluster: Scripted, tmp_path: Path) -> None:
    def away(what: str) -> None:
        if what in ("created", "remove"):
            raise KubeTrouble("no answer")

    one = engine(tmp_path)
    cluster.trouble = away
    with pytest.raises(KubeTrouble):
        one.start(launch(1))
    one.stop(KEY, 5.0)
    end = end_of(one)
    assert end is not None
    assert (end.exit_code, end.stopped) == (0, True)


def test_while_nobody_can_be_asked_nothing_is_lost_and_no_time_passes(
    cluster: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(what: str) -> None:
        raise KubeTrouble("away")

    one = engine(tmp_path, placed_s=30.0)
    one.start(launch(1))
    one.poll()
    cluster.trouble = away
    with pytest.raises(KubeTrouble):
        one.poll()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 3600)
    cluster.trouble = lambda what: None
    assert end_of(one) is None
    monkeypatch.setattr(time, "monotonic", lambda: now + 3605)
    assert end_of(one) is None


def test_what_a_run_waits_for_is_told_once(
    cluster: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boa.engines.kubernetes.run.TOLD_S", -1.0)
    one = engine(tmp_path)
    one.start(launch(1))
    scheduled = {"type": "PodScheduled", "status": "False", "message": "no GPU is free"}
    cluster.objects["boa-1-1-0"]["status"] = {"phase": "Pending", "conditions": [scheduled]}
    assert [event.awaits for event in one.poll()] == ["node n0: no GPU is free"]
    assert one.poll() == []


def test_a_quota_is_asked_again(cluster: Scripted, tmp_path: Path) -> None:
    def full(what: str) -> None:
        if what == "create":
            raise Refused("exceeded quota: few")

    one = engine(tmp_path)
    cluster.trouble = full
    one.start(launch(1))
    one.poll()
    assert not cluster.objects
    cluster.trouble = lambda what: None
    one.poll()
    assert list(cluster.objects) == ["boa-1-1-0"]


def test_a_stop_is_carried_out_by_who_comes_next(cluster: Scripted, tmp_path: Path) -> None:
    one = engine(tmp_path)
    one.start(launch(1))
    cluster.runs(0)
    one.poll()
    run = one._runs[KEY]
    run.marker.asked_s = 5.0  # written down, and killed before anybody was told
    one._folders.mark(KEY, run.marker)
    again = engine(tmp_path)
    again.stop(KEY, 5.0)
    again.poll()
    assert cluster.done[-1] == ("end 5", "boa-1-1-0")
    cluster.ended(0, 137)
    end = end_of(again)
    assert end is not None
    assert (end.stopped, end.reason) == (True, "killed: still running 5 s after SIGTERM")


def test_a_lost_node_is_told_and_its_pod_removed_by_force(
    cluster: Scripted, tmp_path: Path
) -> None:
    one = engine(tmp_path)
    one.start(launch(1))
    cluster.runs(0)
    one.poll()
    cluster.lost["n0"] = "node n0 is gone"
    end = end_of(one)
    assert end is not None
    assert (end.node_lost, end.reason) == (True, "lost: node n0 is gone")
    assert cluster.done[-1] == ("force", "boa-1-1-0")


def test_two_attempts_of_a_job_are_never_there_at_once(cluster: Scripted, tmp_path: Path) -> None:
    one = engine(tmp_path)
    one.start(launch(1))
    with pytest.raises(NotOver, match="attempt 1"):
        one.start(launch(1, attempt=2))


def test_pods_that_do_not_end_are_named(
    cluster: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine(tmp_path)
    one.start(launch(1))
    cluster.runs(0)
    one.poll()
    one.stop(KEY, 1.0)
    now = time.monotonic()
    for later in range(5, 60, 5):  # lists keep coming
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        told = [event.hindrance for event in one.poll() if event.hindrance]
        if told:
            break
    assert told == ["pods that do not end: boa-1-1-0"]


LOST = {"exitCode": 137, "reason": "ContainerStatusUnknown"}


def test_a_kubelet_that_lost_the_last_word_is_helped_by_the_log(
    cluster: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = (
        '{"code": 0, "stopped": true, "lost": false, "reason": "stopped when asked", '
        '"up": true, "at": 1.0, "seen": {}}'
    )
    frames = Unframed()
    frames.feed(b"!up\n!end " + said.encode() + b"\n")
    monkeypatch.setattr(Heard, "end", frames.end)
    one = engine(tmp_path)
    one.start(launch(1))
    cluster.runs(0)
    one.poll()
    one.stop(KEY, 5.0)
    terminated = {"exitCode": 137, "reason": "ContainerStatusUnknown"}
    state = {"name": "job", "state": {"terminated": terminated}}
    cluster.objects["boa-1-1-0"]["status"] = {"phase": "Failed", "containerStatuses": [state]}
    end = end_of(one)
    assert end is not None
    assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped when asked")


@pytest.mark.parametrize(
    ("phase", "states"),
    [
        ("Failed", {"state": {"terminated": LOST}}),
        (
            "Running",
            {
                "state": {"waiting": {"reason": "PodInitializing"}},
                "lastState": {"terminated": LOST},
            },
        ),
    ],
)
def test_an_unknown_end_is_told_as_such(phase: str, states: dict[str, Any]) -> None:
    found = read(
        {
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"nodeName": "n"},
            "status": {"phase": phase, "containerStatuses": [{"name": "job", **states}]},
        }
    ).outcome
    assert found == Outcome(
        code=None, reason="lost: how its container ended is not known", unknown=True
    )
