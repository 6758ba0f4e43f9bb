"""A double of the cluster autoscaler: pods that find no place get machines, idle ones go.

What is as with the real one: a pod is helped if it is Unschedulable and its priority is not below
the cutoff; a node is unneeded if less than half of its GPUs are asked for, and nothing on it
forbids to move it; after `idle_s` it is tainted, drained, switched off, and its Node deleted.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.affinity import anti_affine, fits_labels, gpus_wanted, tolerates
from kube.cluster import Cluster
from kube.doubles import GPU_LABEL, Double, Object, evict, pods_on
from kube.nodes import Shape

PRIORITY_CUTOFF = -10
TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


@dataclass(frozen=True, slots=True)
class Group:
    """A node group: its machines are all alike."""

    gpus: int
    max: int = 1000
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()


@dataclass(slots=True)
class _Machine:
    gpu: str
    joins_at: float
    is_on: bool = False
    idle_since: float | None = None
    is_going: bool = False


class Autoscaler(Double):
    """Of `groups` by the value of their nodes' label boa-constrictor.dev/gpu."""

    def __init__(
        self,
        cluster: Cluster,
        groups: Mapping[str, Group],
        boot_s: float = 0.0,
        idle_s: float = 1.0,
        **more: Any,
    ) -> None:
        self._groups, self._boot_s, self._idle_s = dict(groups), boot_s, idle_s
        self._more = more
        self._failing: set[str] = set()
        self._machines: dict[str, _Machine] = {}
        super().__init__(cluster)

    def fail(self, gpu: str) -> None:
        """The cloud has no more of these."""
        with self.lock:
            self._failing.add(gpu)

    def step(self) -> None:
        nodes = {one["metadata"]["name"]: one for one in self._list("/api/v1/nodes")}
        pods = self._list("/api/v1/pods")
        self._switch_on()
        awaited = self._scale_up(nodes, pods)
        for name, machine in list(self._machines.items()):
            if self.is_lost(name):
                self.switch_off(name)
                del self._machines[name]
            elif name in nodes:
                self._look_at(nodes[name], machine, pods_on(pods, name), name in awaited)

    def _switch_on(self) -> None:
        for name, machine in self._machines.items():
            if not machine.is_on and time.monotonic() >= machine.joins_at:
                group = self._groups[machine.gpu]
                shape = Shape(
                    name=name,
                    gpus=group.gpus,
                    labels={**group.labels, GPU_LABEL: machine.gpu},
                    taints=group.taints,
                    **self._more,
                )
                self.cluster.begin_node(shape)
                machine.is_on = True

    def _scale_up(self, nodes: Mapping[str, Any], pods: list[Any]) -> set[str]:
        """One machine for each pod that fits none that is there or on its way; those awaited."""
        awaited: set[str] = set()
        free = {
            name: self._groups[machine.gpu].gpus - _asked(pods_on(pods, name))
            for name, machine in self._machines.items()
            if not machine.is_going
            and not nodes.get(name, {"spec": {}})["spec"].get("unschedulable")
        }
        used = {name for name in free if pods_on(pods, name)}
        for pod in filter(_is_to_be_helped, pods):
            for name, left in free.items():
                gpu = self._machines[name].gpu
                alone = name not in used or not anti_affine(pod)
                if alone and self._fits(pod, gpu) and self._needs(pod, gpu) <= left:
                    free[name] -= self._needs(pod, gpu)
                    awaited.add(name)
                    used.add(name)
                    break
            else:
                self._launch_for(pod, free)
        return awaited

    def _launch_for(self, pod: Object, free: dict[str, int]) -> None:
        for gpu, group in self._groups.items():
            there = sum(one.gpu == gpu for one in self._machines.values())
            if gpu not in self._failing and there < group.max and self._fits(pod, gpu):
                name = self.cluster.new_name()
                self._machines[name] = _Machine(gpu, time.monotonic() + self._boot_s)
                self.born(name, gpu, group.gpus)
                free[name] = group.gpus - self._needs(pod, gpu)
                return

    def _fits(self, pod: Object, gpu: str) -> bool:
        group = self._groups[gpu]
        labels = {**group.labels, GPU_LABEL: gpu}
        fits = fits_labels(pod, labels) and tolerates(pod, group.taints)
        return fits and self._needs(pod, gpu) <= group.gpus

    def _needs(self, pod: Object, gpu: str) -> int:
        return self._groups[gpu].gpus if anti_affine(pod) else gpus_wanted(pod)

    def _look_at(self, node: Object, machine: _Machine, held: list[Any], is_awaited: bool) -> None:
        name, now = node["metadata"]["name"], time.monotonic()
        if machine.is_going:
            for pod in held:
                evict(self.cluster, pod)
            self.taint(node, TO_BE_DELETED, str(int(time.time())), "NoSchedule")
            if not held:
                self.switch_off(name)
                del self._machines[name]
        elif is_awaited or not self._is_unneeded(node, machine, held):
            machine.idle_since = None
            self.untaint(node, CANDIDATE)
        elif machine.idle_since is None:
            machine.idle_since = now
            self.taint(node, CANDIDATE, str(int(time.time())), "PreferNoSchedule")
        elif now - machine.idle_since >= self._idle_s:
            machine.is_going = True
            self.taint(node, TO_BE_DELETED, str(int(time.time())), "NoSchedule")

    def _is_unneeded(self, node: Object, machine: _Machine, held: list[Any]) -> bool:
        if node["metadata"].get("annotations", {}).get(DISABLED) == "true":
            return False
        counted = [pod for pod in held if pod["spec"].get("priority", 0) >= PRIORITY_CUTOFF]
        if 2 * _asked(counted) >= self._groups[machine.gpu].gpus > 0:
            return False
        # The real one asks too whether they would fit elsewhere.
        return all(pod["metadata"].get("annotations", {}).get(SAFE) == "true" for pod in counted)

    def _list(self, path: str) -> list[Any]:
        listed: list[Any] = self.cluster.api.get(path)["items"]
        return listed


def _asked(pods: list[Any]) -> int:
    return sum(gpus_wanted(pod) for pod in pods)


def _is_to_be_helped(pod: Object) -> bool:
    if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
        return False
    if pod["spec"].get("priority", 0) < PRIORITY_CUTOFF:
        return False
    return any(
        one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable"
        for one in pod["status"].get("conditions", [])
    )
