"""The service as it is deployed: a pod of the cluster that its jobs are pods of.

Its image is made of the wheel, its objects are the chart's; kubelets, containerd and the API server
are real. What a whole cluster has beside: a Service's address, which a port of this machine stands
for.
"""

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import chart
import wheel_image
from boa.client import Client
from boa.errors import BoaError
from forwarding import forwarding
from kube.cluster import Cluster
from kube.waiting import until

pytestmark = pytest.mark.kubernetes

IMAGE, USER = f"{wheel_image.NAME}:{wheel_image.VERSION}", 10001
TOKEN = secrets.token_hex(32)
PATIENCE_S = 300.0
"""Seconds for images, kubelets and the service's start, on a machine that is busy otherwise."""
GPU = "boa-constrictor.dev/gpu"
TRAINS = """
import os
import secrets
from boa import train
print("user", os.getuid(), "on", os.environ["BOA_GPU_TYPE"], "of", train.context().width)
for epoch in train.epochs():
    train.report(samples=64, loss=0.25)
with train.new_checkpoint() as folder:
    (folder / "model").write_text("trained")
with open(os.environ["BOA_ARTIFACTS"] + "/result.txt", "w") as file:
    file.write("42")
"""
CAREFUL = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: exit(0))
print("attempt", os.environ["BOA_ATTEMPT"], flush=True)
while not os.path.exists(os.environ["BOA_CHECKPOINT_DIR"] + "/enough"):
    time.sleep(0.1)
"""
CONFINED = """
import os
import secrets
try:
    open("/etc/mine", "w")
except OSError as trouble:
    print(os.getuid(), os.getgid(), trouble.strerror)
"""


class Deployed:
    """`boa` in a namespace of its own, and a client of it."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.cluster, self.namespace, self.folder = cluster, namespace, folder
        self.pods = f"/api/v1/namespaces/{namespace}/pods"

    def pod(self) -> dict[str, Any]:
        """The service's own, once it is up. Raises LookupError where there is none."""
        named = "app.kubernetes.io/name=boa-constrictor"
        for one in self.cluster.api.get(self.pods, labelSelector=named)["items"]:
            if "podIP" in one["status"] and "deletionTimestamp" not in one["metadata"]:
                return dict(one)
        raise LookupError

    def address(self) -> tuple[str, int]:
        return self.pod()["status"]["podIP"], 8420

    def kubectl(self, *args: str) -> str:
        return self.cluster.kubectl("-n", self.namespace, *args)

    def told(self) -> str:
        """What became of the service, for who looks why it is not up."""
        try:
            log = self.kubectl("logs", "deployment/boa", "--tail=20")
        except RuntimeError as none:
            log = str(none)
        return self.kubectl("describe", "pods") + log

    def of_job(self, job: str) -> list[dict[str, Any]]:
        """Pods of it that are there."""
        found = self.cluster.api.get(self.pods, labelSelector=f"boa-constrictor.dev/job={job}")
        return list(found["items"])


def values(url: str, home: str, folder: Path) -> dict[str, Any]:
    return {
        "image": {"repository": wheel_image.NAME, "tag": wheel_image.VERSION},
        "token": {"existingSecret": "boa-token"},
        "data": {"existingClaim": "data"},
        "checkpoints": {"existingClaim": "checkpoints"},
        "nodeSelector": {"kubernetes.io/hostname": home},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "jobs": {"image": IMAGE},
        "config": {
            "url": url,
            "budget_per_hour": 10,
            "gpu_types": {"T4": {"price": 1, "gpus_per_node": 4}},
        },
    }


@pytest.fixture(scope="module")
def deployed(
    real_kube_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Deployed, Client]]:
    """The service on one node, as `kubectl apply` has made it; GPUs that it may use on another."""
    cluster, folder = real_kube_cluster, tmp_path_factory.mktemp("deployed")
    with cluster.image(wheel_image.archive(folder)), cluster.clean_after():
        home, gpus = (*cluster.nodes, *cluster.add_nodes(max(2 - len(cluster.nodes), 0)))[:2]
        found = Deployed(cluster, cluster.namespace("boa"), folder)
        for claim in ("data", "checkpoints"):
            (folder / claim).mkdir()
            os.chown(folder / claim, USER, USER)
            cluster.shared_claim(claim, found.namespace, folder / claim)
        found.kubectl("create", "secret", "generic", "boa-token", f"--from-literal=token={TOKEN}")
        host = urlsplit(cluster.server).hostname
        assert host is not None
        with labelled(cluster, gpus), forwarding(host, found.address) as port:
            url = f"http://{host}:{port}"
            said = values(url, home, folder)
            text = chart.rendered(chart.values_of("fixed"), said, namespace=found.namespace)
            cluster.kubectl("apply", "-f", "-", stdin=text)
            with Client(url, TOKEN) as client:
                until_up(found, client)
                yield found, client
                found.kubectl("delete", "deployment", "boa", "--wait=false")
                cluster.empty(found.namespace)


@contextlib.contextmanager
def labelled(cluster: Cluster, node: str) -> Iterator[None]:
    """Its GPUs are the service's meanwhile."""
    path = f"/api/v1/nodes/{node}"
    cluster.api.patch(path, {"metadata": {"labels": {GPU: "T4"}}})
    yield
    cluster.api.patch(path, {"metadata": {"labels": {GPU: None}}})


def until_up(service: Deployed, client: Client) -> None:
    def is_up() -> bool:
        try:
            return client.health()["status"] == "ok"
        except BoaError:
            return False

    try:
        until("the service answers", is_up, PATIENCE_S)
    except TimeoutError as late:
        late.add_note(service.told())
        raise


def submit(client: Client, script: str, **more: Any) -> str:
    job = {"class": "demo", "run": ["python3", "-c", script], "gpus": {"max": 2}, **more}
    return client.submit(job)["id"]


def test_the_service_is_nobody_and_its_root_is_not_to_be_written(
    deployed: tuple[Deployed, Client],
) -> None:
    service, _ = deployed
    said = service.kubectl("exec", "deploy/boa", "--", "python3", "-c", CONFINED)
    assert said.split(maxsplit=2) == ["10001", "10001", "Read-only file system\n"]


def test_commands_in_the_pod_find_their_service(deployed: tuple[Deployed, Client]) -> None:
    service, _ = deployed
    said = json.loads(service.kubectl("exec", "deploy/boa", "--", "boa", "cost", "--json"))
    assert said["budget_per_hour"] == 10


def test_a_job_runs_as_another_pod_to_its_end(deployed: tuple[Deployed, Client]) -> None:
    service, client = deployed
    job = submit(client, TRAINS, launcher="single", epochs=2)
    ended = client.wait(job)
    log = "".join(client.logs(job))
    assert ended["state"] == "succeeded", log
    assert "user 10001 on T4" in log
    assert ended["loss"] == 0.25, "it has reported"
    assert [one["path"] for one in client.artifacts(job)["files"]] == ["result.txt"]
    kept = service.folder / "checkpoints" / "checkpoints" / job
    assert [one.read_text() for one in kept.rglob("model")] == ["trained"]
    until("its pod is gone", lambda: not service.of_job(job), PATIENCE_S)


def ended_of(pod: Any) -> Any:
    """How its container ended; a kubelet may have removed it before it looked."""
    container = pod["status"]["containerStatuses"][0]
    return container["state"].get("terminated") or container["lastState"].get("terminated")


def test_a_restart_leaves_jobs_as_they_are(deployed: tuple[Deployed, Client]) -> None:
    service, client = deployed
    job = submit(client, CAREFUL, launcher="single")
    until("it runs", lambda: "attempt 1" in "".join(client.logs(job)), PATIENCE_S)
    (before,) = service.of_job(job)
    old = service.pod()["metadata"]["name"]
    path = f"{service.pods}/{old}"
    service.cluster.api.patch(path, {"metadata": {"finalizers": ["boa.test/look"]}})
    service.kubectl("rollout", "restart", "deployment/boa")
    left = service.cluster.api.until(
        "it has ended",
        path,
        lambda pod: pod and ended_of(pod),
        PATIENCE_S,
    )
    assert ended_of(left)["exitCode"] == 0 or ended_of(left)["reason"] == "ContainerStatusUnknown"
    service.cluster.api.patch(path, {"metadata": {"finalizers": None}})
    until_up(service, client)
    assert service.pod()["metadata"]["name"] != old
    (after,) = service.of_job(job)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    (service.folder / "checkpoints" / "checkpoints" / job / "enough").touch()
    ended = client.wait(job)
    assert (ended["state"], ended["attempts"]) == ("succeeded", 1)
