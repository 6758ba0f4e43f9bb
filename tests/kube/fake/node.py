"""A fake node: its registration, its beats, its pods and the server of their logs."""

import asyncio
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube.fake.client import MERGE, STRATEGIC, Client, Refused
from kube.fake.container import stamp
from kube.fake.host import Host
from kube.fake.log_server import LogServer
from kube.fake.logs import now
from kube.fake.pod import Pod
from kube.fake.values import Object

BEAT_S = 2.0
_STATUS_EVERY = 5
_INFO = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a node is asked to be."""

    name: str
    gpus: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[dict[str, str]] = field(default_factory=list)
    cpus: int = 64
    memory: str = "256Gi"
    pods: int = 600
    provider_id: str = ""
    gpus_after_s: float = 0.0
    """How long its device plugin takes, once the node is ready."""


class Node:
    """Lives until `die`."""

    def __init__(self, shape: Shape, host: Host, client: Client, folder: Path) -> None:
        self.shape, self.host, self.client, self.folder = shape, host, client, folder
        self.name, self.gpus = shape.name, shape.gpus
        folder.mkdir(parents=True, exist_ok=True)
        self._pods: dict[str, Pod] = {}
        self._logs = LogServer(self._find, host.serving)
        self._tasks: list[asyncio.Task[None]] = []
        self._born = stamp()
        self._has_gpus = shape.gpus_after_s <= 0

    async def start(self) -> None:
        """Registered, with all that it has."""
        await self._logs.start()
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **self.shape.labels,
        }
        provider = self.shape.provider_id or f"fake:///{self.name}"
        body = {
            "metadata": {"name": self.name, "labels": labels},
            "spec": {"taints": self.shape.taints, "providerID": provider},
            "status": self._status(),
        }
        await self._beat()  # before the controllers look for it
        await self.client.ask("POST", "/api/v1/nodes", body)
        self._tasks.append(asyncio.create_task(self._beats()))
        if not self._has_gpus:
            self._tasks.append(asyncio.create_task(self._plug_in()))

    def die(self) -> None:
        """At once, and nobody is told."""
        for task in self._tasks:
            task.cancel()
        for pod in self._pods.values():
            pod.die()
        self._logs.close()

    def see(self, pod: Object) -> None:
        """A pod that is bound here, as it is now."""
        uid = pod["metadata"]["uid"]
        if uid in self._pods:
            self._pods[uid].update(pod)
        elif pod["status"].get("phase") not in ("Succeeded", "Failed"):
            self._pods[uid] = Pod(self, pod)
            if pod["metadata"].get("deletionTimestamp"):
                self._pods[uid].update(pod)

    def gone(self, uid: str) -> None:
        if uid in self._pods:
            self._pods[uid].removed()

    def uids(self) -> list[str]:
        return list(self._pods)

    def forget(self, pod: Pod) -> None:
        self._pods.pop(pod.uid, None)

    def gpus_held(self, besides: Pod) -> int:
        return sum(pod.gpus for pod in self._pods.values() if pod is not besides)

    def say(self, text: str) -> None:
        print(f"{stamp()} {self.name}: {text}", file=sys.stderr, flush=True)

    def _find(self, namespace: str, pod: str) -> Pod | None:
        for one in self._pods.values():
            if (one.namespace, one.name) == (namespace, pod):
                return one
        return None

    async def _plug_in(self) -> None:
        await asyncio.sleep(self.shape.gpus_after_s)
        self._has_gpus = True
        await self._say_status()

    async def _beats(self) -> None:
        beat = 0
        while True:
            await asyncio.sleep(BEAT_S)
            beat += 1
            try:
                await self._beat()
                if beat % _STATUS_EVERY == 0:
                    await self._say_status()
            except Refused as refused:
                if refused.code == 404:
                    return  # its Node is deleted: a kubelet does not register again either
                self.say(str(refused))

    async def _beat(self) -> None:
        renewed = now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": self.name, "leaseDurationSeconds": 10, "renewTime": renewed}
        try:
            await self.client.ask("PATCH", f"{_LEASES}/{self.name}", {"spec": spec}, MERGE)
        except Refused as refused:
            if refused.code != 404:
                raise
            await self.client.ask("POST", _LEASES, {"metadata": {"name": self.name}, "spec": spec})

    async def _say_status(self) -> None:
        path, body = f"/api/v1/nodes/{self.name}/status", {"status": self._status()}
        await self.client.ask("PATCH", path, body, STRATEGIC)

    def _status(self) -> dict[str, Any]:
        shape = self.shape
        much = {
            "cpu": str(shape.cpus),
            "memory": shape.memory,
            "pods": str(shape.pods),
            "ephemeral-storage": "100Gi",
        }
        if shape.gpus and self._has_gpus:
            much["nvidia.com/gpu"] = str(shape.gpus)
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "a fake node is ready",
            "lastHeartbeatTime": stamp(),
            "lastTransitionTime": self._born,
        }
        return {
            "capacity": much,
            "allocatable": much,
            "conditions": [ready],
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": self.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._logs.port}},
            "nodeInfo": {**dict.fromkeys(_INFO, "fake"), "kubeletVersion": "v1.20.2"},
        }
