"""What the doubles of Karpenter and the cluster autoscaler share: a loop, and machines' lives."""

import contextlib
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import httpx

from kube.api import ApiTrouble
from kube.cluster import Cluster

GPU_LABEL = "boa-constrictor.dev/gpu"
_PACE_S = 0.15
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A machine's, in times of the wall: what a cloud would charge for."""

    node: str
    gpu: str
    gpus: int
    born: float
    gone: float | None = None


class Double(ABC):
    """Looks at the cluster again and again, in a thread of its own, until it is closed.

    Machines that are there in the end stay: they belong to the cluster.
    """

    collect_s = 5.0
    """After which a machine that is gone by itself is noticed; clouds take minutes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.lock = threading.RLock()
        self._lives: dict[str, Life] = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=type(self).__name__, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._ends.set()
        self._thread.join()

    def lives(self) -> list[Life]:
        """All machines that ever were, in the order of their births."""
        with self.lock:
            ended = self.cluster.ended
            return [replace(one, gone=ended.get(one.node)) for one in self._lives.values()]

    @abstractmethod
    def step(self) -> None:
        """One look, and what follows from it; what cannot be done now is done at the next."""

    def born(self, node: str, gpu: str, gpus: int) -> None:
        """A machine, whose life begins before it joins."""
        self._lives[node] = Life(node=node, gpu=gpu, gpus=gpus, born=time.time())

    def switch_off(self, node: str) -> None:
        """The machine, then its Node; repeating it is harmless."""
        self.cluster.kill_node(node)
        self.cluster.api.delete(f"/api/v1/nodes/{node}")

    def is_lost(self, node: str) -> bool:
        """Whether the machine went by itself, long enough ago for its cloud to have said so."""
        return time.time() - self.cluster.ended.get(node, float("inf")) > self.collect_s

    def taint(self, node: Object, key: str, value: str, effect: str) -> None:
        """Once, whatever other taints there are."""
        taints = node["spec"].get("taints", [])
        if all(one["key"] != key for one in taints):
            self._set_taints(node, [*taints, {"key": key, "value": value, "effect": effect}])

    def untaint(self, node: Object, key: str) -> None:
        taints = node["spec"].get("taints", [])
        if any(one["key"] == key for one in taints):
            self._set_taints(node, [one for one in taints if one["key"] != key])

    def _set_taints(self, node: Object, taints: list[Object]) -> None:
        metadata = node["metadata"]
        body = {
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "spec": {"taints": taints or None},
        }
        self.cluster.api.patch(f"/api/v1/nodes/{metadata['name']}", body)

    def _loop(self) -> None:
        while not self._ends.wait(_PACE_S):
            try:
                with self.lock:
                    self.step()
            except (ApiTrouble, httpx.TransportError):
                continue  # the API is away, or somebody was faster
            except Exception:
                traceback.print_exc(file=sys.stderr)


def pods_on(pods: list[Any], node: str) -> list[Any]:
    """Those that hold a node: neither ended nor a DaemonSet's."""
    return [
        pod
        for pod in pods
        if pod["spec"].get("nodeName") == node
        and pod["status"].get("phase") not in ("Succeeded", "Failed")
        and all(one["kind"] != "DaemonSet" for one in pod["metadata"].get("ownerReferences", []))
    ]


def evict(cluster: Cluster, pod: Object) -> None:
    """With its own grace; one that is going already is left alone."""
    metadata = pod["metadata"]
    if not metadata.get("deletionTimestamp"):
        with contextlib.suppress(ApiTrouble):
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            cluster.api.delete(path)
