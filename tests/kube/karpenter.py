"""A double of Karpenter: NodeClaims become machines of the test cluster, and end as they do.

What is as with Karpenter 1: the claim's finalizer; the conditions Launched, Registered and
Initialized; the claim's labels, annotations and taints on the Node; a claim that is deleted is
drained first (pods with karpenter.sh/do-not-disrupt are waited for), its machine switched off, its
Node deleted, and then it is gone. Not there: NodePools, consolidation, drift, instance types.
"""

import datetime
import time
from dataclasses import dataclass
from typing import Any

from kube.api import ApiTrouble
from kube.cluster import Cluster, gpus_of, usable
from kube.doubles import GPU_LABEL, Double, Object, evict, pods_on
from kube.nodes import GPU, Shape

GROUP = "karpenter.sh"
CLAIMS = f"/apis/{GROUP}/v1/nodeclaims"
FINALIZER = f"{GROUP}/termination"
DISRUPTED = f"{GROUP}/disrupted"
DO_NOT_DISRUPT = f"{GROUP}/do-not-disrupt"
_FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"nodeclaims.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"kind": "NodeClaim", "plural": "nodeclaims", "singular": "nodeclaim"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _FREE, "status": _FREE},
                    }
                },
            }
        ],
    },
}


@dataclass(slots=True)
class _Machine:
    """Of a claim, by the claim's uid."""

    node: str
    joins_at: float
    joins: bool
    is_on: bool = False
    off_at: float = float("inf")
    """When it is taken away, whoever is on it; a clock's time."""


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    message: str
    vanish: bool


class Karpenter(Double):
    """Made with its CRD; `boot_s` passes between a machine's birth and its Node."""

    def __init__(self, cluster: Cluster, boot_s: float = 0.0, **more: Any) -> None:
        self._boot_s, self._more = boot_s, more
        self._failing: dict[str, _Failure] = {}
        self._silent: set[str] = set()
        self._machines: dict[str, _Machine] = {}
        define(cluster)
        super().__init__(cluster)

    def fail(
        self,
        gpu: str,
        reason: str = "InsufficientCapacity",
        message: str = "no instance type met all requirements",
        vanish: bool = False,
    ) -> None:
        """Claims of that type get no machine, from now on; they may be deleted for it."""
        with self.lock:
            self._failing[gpu] = _Failure(reason, message, vanish)

    def never_register(self, gpu: str) -> None:
        """Machines of that type are charged for, and never join."""
        with self.lock:
            self._silent.add(gpu)

    def interrupt(self, node: str, after_s: float = 120.0) -> None:
        """As a spot market does: a warning, then the machine is gone, drained or not."""
        claim = next(one for one in self._claims() if one.get("status", {}).get("nodeName") == node)
        with self.lock:
            self._machines[claim["metadata"]["uid"]].off_at = time.monotonic() + after_s
        self.taint(self.cluster.api.get(f"/api/v1/nodes/{node}"), DISRUPTED, "", "NoSchedule")
        self.cluster.api.delete(f"{CLAIMS}/{claim['metadata']['name']}")

    def step(self) -> None:
        claims = self._claims()
        nodes = {one["metadata"]["name"]: one for one in self._list("/api/v1/nodes")}
        for claim in claims:
            try:
                self._look_at(claim, nodes)
            except ApiTrouble as trouble:
                if trouble.code not in (404, 409):  # else somebody was faster
                    raise

    def _look_at(self, claim: Object, nodes: dict[str, Any]) -> None:
        metadata = claim["metadata"]
        machine = self._machines.get(metadata["uid"])
        if metadata.get("deletionTimestamp"):
            self._end(claim, machine, nodes)
        elif FINALIZER not in metadata.get("finalizers", []):
            body = {"metadata": {"finalizers": [*metadata.get("finalizers", []), FINALIZER]}}
            self.cluster.api.patch(_path(claim), body)
        elif machine is None:
            self._launch(claim)
        else:
            self._go_on(claim, machine, nodes)

    def _launch(self, claim: Object) -> None:
        gpu = _gpu(claim)
        if failure := self._failing.get(gpu):
            if failure.vanish:
                self.cluster.api.delete(_path(claim))
            else:
                self._say(claim, "Launched", "False", failure.reason, failure.message)
            return
        node = self.cluster.new_name()
        now = time.monotonic()
        self._machines[claim["metadata"]["uid"]] = _Machine(
            node, joins_at=now + self._boot_s, joins=gpu not in self._silent
        )
        self.born(node, gpu, _gpus(claim))

    def _go_on(self, claim: Object, machine: _Machine, nodes: dict[str, Any]) -> None:
        status = claim.get("status", {})
        if not _is(claim, "Launched"):
            life = next(one for one in self.lives() if one.node == machine.node)
            self._say(claim, "Launched", "True", "Launched", "", at=life.born, node=machine.node)
        elif not machine.is_on:
            if machine.joins and time.monotonic() >= machine.joins_at:
                self.cluster.begin_node(self._shape(claim, machine))
                machine.is_on = True
        elif self.is_lost(machine.node):
            self.cluster.api.delete(_path(claim))
        elif (node := nodes.get(machine.node)) is None:
            if status.get("nodeName"):  # somebody has deleted it: so goes the claim
                self.cluster.api.delete(_path(claim))
        elif not _is(claim, "Registered"):
            self._annotate(claim, node)
            self._say(claim, "Registered", "True", "Registered", "", node=machine.node)
        elif not _is(claim, "Initialized") and usable(node) and gpus_of(node) >= _gpus(claim):
            self._say(claim, "Initialized", "True", "Initialized", "")

    def _end(self, claim: Object, machine: _Machine | None, nodes: dict[str, Any]) -> None:
        """Drained, switched off, its Node deleted, and gone: in this order."""
        if machine is not None:
            node = nodes.get(machine.node)
            is_there = node is not None and not self.is_lost(machine.node)
            if node is not None and is_there and time.monotonic() < machine.off_at:
                self.taint(node, DISRUPTED, "", "NoSchedule")
                if self._is_held(machine.node):
                    return
            self.switch_off(machine.node)
        left = [one for one in claim["metadata"].get("finalizers", []) if one != FINALIZER]
        self.cluster.api.patch(_path(claim), {"metadata": {"finalizers": left or None}})
        self._machines.pop(claim["metadata"]["uid"], None)

    def _is_held(self, node: str) -> bool:
        held = pods_on(self._list("/api/v1/pods"), node)
        for pod in held:
            if pod["metadata"].get("annotations", {}).get(DO_NOT_DISRUPT) != "true":
                evict(self.cluster, pod)
        return bool(held)

    def _shape(self, claim: Object, machine: _Machine) -> Shape:
        return Shape(
            name=machine.node,
            gpus=_gpus(claim),
            labels=claim["metadata"].get("labels", {}),
            taints=claim["spec"].get("taints", []),
            provider_id=_provider_id(machine.node),
            **self._more,
        )

    def _annotate(self, claim: Object, node: Object) -> None:
        said = claim["metadata"].get("annotations", {})
        own = {key: text for key, text in said.items() if "kubectl" not in key}
        if own:
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            self.cluster.api.patch(path, {"metadata": {"annotations": own}})

    def _say(
        self,
        claim: Object,
        kind: str,
        holds: str,
        reason: str,
        message: str,
        at: float | None = None,
        node: str = "",
    ) -> None:
        """A condition, unless it is as said."""
        old = [one for one in claim.get("status", {}).get("conditions", []) if one["type"] != kind]
        condition = {
            "type": kind,
            "status": holds,
            "reason": reason,
            "message": message,
            "lastTransitionTime": _stamp(time.time() if at is None else at),
        }
        if _said(claim, kind) == (holds, reason, message):
            return
        status: dict[str, Any] = {"conditions": [*old, condition]}
        if kind == "Launched" and node:
            status["providerID"] = _provider_id(node)
        if kind == "Registered":
            status["nodeName"] = node
        self.cluster.api.patch(f"{_path(claim)}/status", {"status": status})

    def _claims(self) -> list[Any]:
        return self._list(CLAIMS)

    def _list(self, path: str) -> list[Any]:
        listed: list[Any] = self.cluster.api.get(path)["items"]
        return listed


def define(cluster: Cluster) -> None:
    """NodeClaims, for who is to ask for some."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    name = DEFINITION["metadata"]["name"]  # type: ignore[index]
    if cluster.api.found(f"{path}/{name}") is None:
        cluster.api.create(path, DEFINITION)
    cluster.api.until("NodeClaims are served", CLAIMS, lambda listed: listed is not None)


def _path(claim: Object) -> str:
    return f"{CLAIMS}/{claim['metadata']['name']}"


def _gpu(claim: Object) -> str:
    return str(claim["metadata"].get("labels", {}).get(GPU_LABEL, ""))


def _gpus(claim: Object) -> int:
    return int(claim["spec"].get("resources", {}).get("requests", {}).get(GPU, 0))


def _provider_id(node: str) -> str:
    return f"boa:///zone/{node}"


def _said(claim: Object, kind: str) -> tuple[str, str, str] | None:
    for one in claim.get("status", {}).get("conditions", []):
        if one["type"] == kind:
            return one["status"], one["reason"], one["message"]
    return None


def _is(claim: Object, kind: str) -> bool:
    said = _said(claim, kind)
    return said is not None and said[0] == "True"


def _stamp(at: float) -> str:
    then = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
