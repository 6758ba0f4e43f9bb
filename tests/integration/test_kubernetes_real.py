"""The Kubernetes engine on real nodes: kubelets, containerd, containers. Only the GPUs are not."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boa.engines.kubernetes.names import FINALIZER
from boa.kubelink import KubeTrouble, pods
from cluster_contract import POLITE, STUBBORN, shell
from kube.cluster import Cluster
from kube_runs import KubeRuns
from local_runs import until

pytestmark = pytest.mark.kubernetes

ENDS_WHEN_ASKED = (
    'echo up; until [ -e "$BOA_CHECKPOINT_DIR/enough" ]; do sleep 0.1; done; echo done; exit 5'
)
COUNTED = """
import os, pathlib, signal, sys, time
here = pathlib.Path(os.environ["BOA_CHECKPOINT_DIR"], "step")
step = int(here.read_text()) if here.exists() else 0
rank, width = os.environ["RANK"], os.environ["WORLD_SIZE"]
def save(*_):
    if rank == "0":
        here.write_text(str(step))
    os.write(1, f"saved {step}\\n".encode())  # it may be printing when the signal comes
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("from", step, "as", rank, "of", width, flush=True)
while step < 1000:
    time.sleep(0.02)
    step += 1
"""


def mounted(root: Path, **volume: Any) -> dict[str, Any]:
    """A template whose pods have the checkpoints of all runs where the service has them."""
    here = str(root / "checkpoints")
    Path(here).mkdir(exist_ok=True)
    volume = volume or {"hostPath": {"path": here, "type": "Directory"}}
    job = {"name": "job", "volumeMounts": [{"name": "shared", "mountPath": here}]}
    return {"spec": {"volumes": [{"name": "shared", **volume}], "containers": [job]}}


@pytest.fixture
def runs(real_kube: Cluster, tmp_path: Path) -> Iterator[KubeRuns]:
    """Two nodes of four GPUs."""
    runs = KubeRuns(tmp_path, real_kube, list(real_kube.nodes), pod_template=mounted(tmp_path))
    yield runs
    runs.close()


def test_what_a_job_prints_arrives_and_how_it_ended_is_kept(runs: KubeRuns) -> None:
    key = runs.start(*shell("echo up $RANK; sleep 0.5; exit $RANK"))
    runs.until_printed(key, "up 0\n")
    assert runs.end(key).exit_code == 0
    failed = runs.start(*shell("seq 20000; exit 7"), job="2", slots=((1, 2),))
    end = runs.end(failed)
    assert (end.exit_code, end.stopped, end.said) == (7, False, "20000")
    assert end.reason in ("worker 0: exit code 7", "worker 1: exit code 7")
    first = int(end.reason.split()[1].rstrip(":"))
    assert runs.log(failed, first).splitlines() == [str(number) for number in range(1, 20_001)]
    assert runs.pod(failed, node=1)["metadata"]["finalizers"] == [FINALIZER]
    runs.crash()
    assert runs.end(failed).reason == end.reason
    runs.engine.forget(key)
    runs.until_gone(failed)


def test_a_gang_meets_gets_sigterm_and_its_grace(runs: KubeRuns) -> None:
    key = runs.start(*shell(POLITE), slots=((0, 2), (1, 1)))
    stubborn = runs.start(*shell(STUBBORN), job="2")
    for rank in range(3):
        runs.until_printed(key, "up ", rank)
    runs.until_printed(stubborn, "up ")
    runs.engine.stop(key, 30.0)
    runs.engine.stop(stubborn, 1.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped when asked")
    assert [runs.log(key, rank).splitlines()[1:] for rank in range(3)] == [["bye"]] * 3
    end = runs.end(stubborn)
    assert (end.exit_code, end.stopped) == (-signal.SIGKILL, True)
    assert end.reason == "killed: still running 1 s after SIGTERM"
    assert not runs.living(key)


def test_a_job_goes_on_at_another_width_from_a_shared_claim(runs: KubeRuns, tmp_path: Path) -> None:
    claimed(runs, "checkpoints", tmp_path / "checkpoints")
    claim = {"persistentVolumeClaim": {"claimName": "checkpoints"}}
    runs.crash(pod_template=mounted(tmp_path, **claim))
    first = runs.start("python3", "-c", COUNTED)
    runs.until_printed(first, "from 0 as 0 of 1")
    runs.engine.stop(first, 30.0)
    assert runs.end(first).stopped
    step = int((tmp_path / "checkpoints/1/step").read_text())
    runs.engine.forget(first)
    second = runs.start("python3", "-c", COUNTED, attempt=2, slots=((1, 1), (0, 2)))
    for rank in range(3):
        runs.until_printed(second, f"from {step} as {rank} of 3", rank)
    runs.engine.stop(second, 30.0)
    assert runs.end(second).stopped
    assert int((tmp_path / "checkpoints/1/step").read_text()) >= step


def claimed(runs: KubeRuns, name: str, folder: Path) -> None:
    """A claim that all nodes share, on a folder of this machine."""
    spec = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": runs.namespace,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    volume = {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": str(folder)},
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"name": name, "namespace": runs.namespace},
    }
    runs.kube.create(
        "/api/v1/persistentvolumes", {"metadata": {"name": runs.namespace}, "spec": volume}
    )
    claims = f"/api/v1/namespaces/{runs.namespace}/persistentvolumeclaims"
    runs.kube.create(claims, {"metadata": {"name": name}, "spec": spec})


def test_what_cannot_be_had_says_why(runs: KubeRuns) -> None:
    quotas = f"/api/v1/namespaces/{runs.namespace}/resourcequotas"
    hard = {"requests.nvidia.com/gpu": "8"}
    runs.kube.create(quotas, {"metadata": {"name": "gpus"}, "spec": {"hard": hard}})
    until(lambda: bool(runs.kube.get(f"{quotas}/gpus").get("status", {}).get("hard")))
    full = runs.start(*shell(POLITE), slots=((0, 3),))
    runs.until_up(full)
    gang = runs.start("env", job="2", slots=((0, 2), (1, 1)))
    image = runs.start("env", job="3", slots=((1, 1),), image="127.0.0.1:9/nowhere:7")
    quota = runs.start("env", job="4", slots=((1, 4),))  # first: the others make room for it
    runs.out_of_time(quota, lambda member: bool(member.refused))
    end = runs.end(quota)
    assert end.unready
    assert "exceeded quota: gpus" in end.reason
    runs.out_of_time(gang, lambda member: bool(member.pod and member.pod.why))
    end = runs.end(gang)
    assert end.unready
    assert "3 T4 GPUs could not be had within 0 s" in end.reason
    assert "Insufficient nvidia.com/gpu" in end.reason
    runs.out_of_time(image, lambda member: member.broken_since is not None)
    end = runs.end(image)
    assert (end.exit_code, end.node_lost) == (None, False)
    assert end.reason.startswith("image 127.0.0.1:9/nowhere:7 cannot be had on node ")


def test_the_api_server_is_killed_and_back_and_nothing_is_lost(runs: KubeRuns) -> None:
    key = runs.start(*shell(POLITE), slots=((0, 1), (1, 1)))
    ended = runs.start(*shell(ENDS_WHEN_ASKED), job="2")
    for rank in (0, 1):
        runs.until_printed(key, "up ", rank)
    runs.until_up(ended)
    with runs.cluster.without_api():
        (runs.root / "checkpoints" / "2" / "enough").touch()
        with pytest.raises(KubeTrouble):
            until(lambda: runs.told(key, ended=True) is not None)
    until(runs.poll_quietly)
    assert runs.end(ended).exit_code == 5
    assert runs.log(ended) == "up\ndone\n"
    assert runs.told(key, ended=True) is None
    runs.engine.stop(key, 30.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped) == (0, True)
    assert [runs.log(key, rank).splitlines()[1:] for rank in (0, 1)] == [["bye"]] * 2


def test_a_node_that_is_killed_is_lost_and_another_takes_the_job(runs: KubeRuns) -> None:
    key = runs.start(*shell(POLITE), slots=((0, 1), (1, 1)))
    for rank in (0, 1):
        runs.until_printed(key, "up ", rank)
    dead = runs.nodes[1]
    runs.cluster.kill_node(dead)
    end = runs.end(key)
    assert (end.exit_code, end.node_lost) == (None, True)
    assert end.reason == f"lost: node {dead} does not answer (NotReady)"
    left = [pod["spec"]["nodeName"] for pod in runs.kube.list(pods(runs.namespace))]
    assert left == [runs.nodes[0]]
    again = runs.start(*shell("exit 0"), attempt=2, slots=((0, 2),))
    assert runs.end(again).exit_code == 0
