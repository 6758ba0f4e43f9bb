"""Nodes as the API server shows them, and the names by which things are ours. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from boa.model.kubernetes_names import DOMAIN, GPUS
from boa.units import GpuName, Seconds, wall_time

NAMESPACE, TOKEN = f"{DOMAIN}/namespace", f"{DOMAIN}/token"
STRAY = "of-"
"""Begins, behind the service's prefix, tokens of what another service of this owner has left."""
NOTICES: Mapping[str, Seconds] = {
    "karpenter.sh/disrupted": 0.0,
    "karpenter.sh/disruption": 0.0,
    "ToBeDeletedByClusterAutoscaler": 0.0,
    "aws-node-termination-handler/spot-itn": 120.0,
    "cloud.google.com/impending-node-termination": 15.0,
    "node.cloudprovider.kubernetes.io/shutdown": 0.0,
    "node.kubernetes.io/out-of-service": 0.0,
}
"""Taints by which others say that they take a node away, and how many seconds that leaves. Being a
candidate of the autoscaler's is none: it is a thought that passes."""
NOTICE_PREFIX = "aws-node-termination-handler/"
AZURE = "VMEventScheduled"
"""A condition of nodes on Azure; its reason tells what is to come."""
AZURE_ENDS = ("Preempt", "Terminate", "Redeploy")
AZURE_S: Seconds = 30.0
EARLY = ("karpenter.sh/unregistered", "node.cloudprovider.kubernetes.io/uninitialized")
"""Taints of a node that is not all there yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeNode:
    name: str
    gpu: GpuName = ""
    """Value of the label that says the type."""
    gpus: int = 0
    """Allocatable ones: none before the device plugin has come up."""
    ready: bool = True
    """Whether its kubelet says so."""
    why: str = ""
    """The kubelet's word for why not, or the API server's."""
    cordoned: bool = False
    deleting: bool = False
    notice_s: Seconds | None = None
    """Somebody takes it away in so many seconds."""
    early: bool = False
    created: Seconds = 0.0
    """By the wall."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def lacks(self, gpus: int) -> str:
        """Why no job can start there yet; empty if one can."""
        if not self.ready:
            return f"{self.name} is not Ready ({self.why or 'no reason given'})"
        if self.early:
            return f"{self.name} is not initialized"
        if self.gpus < gpus:
            return f"{self.name} has {self.gpus} allocatable {GPUS}, of {gpus}"
        return ""

    @property
    def going_in(self) -> Seconds | None:
        """Seconds until it is taken away, or can no longer be used: 0 if nobody says."""
        if self.deleting or self.cordoned:
            return 0.0
        return self.notice_s


def node_of(said: Mapping[str, Any], label: str) -> KubeNode:
    """`label`: whose value is the GPU type."""
    meta, spec, status = said["metadata"], said.get("spec", {}), said.get("status", {})
    labels, taints = meta.get("labels") or {}, spec.get("taints") or ()
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    ready = conditions.get("Ready", {})
    return KubeNode(
        name=meta["name"],
        gpu=labels.get(label, ""),
        gpus=whole((status.get("allocatable") or {}).get(GPUS, "0")),
        ready=ready.get("status") == "True",
        why=ready.get("reason", "") or ready.get("message", ""),
        cordoned=bool(spec.get("unschedulable")),
        deleting="deletionTimestamp" in meta,
        notice_s=_notice(taints, conditions.get(AZURE, {})),
        early=any(taint["key"] in EARLY for taint in taints),
        created=wall_time(meta.get("creationTimestamp")) or 0.0,
        labels=labels,
        annotations=meta.get("annotations") or {},
    )


def _notice(taints: Iterable[Mapping[str, Any]], azure: Mapping[str, Any]) -> Seconds | None:
    found = [
        NOTICES.get(taint["key"], 0.0)
        for taint in taints
        if taint["key"] in NOTICES or taint["key"].startswith(NOTICE_PREFIX)
    ]
    said = f"{azure.get('reason', '')} {azure.get('message', '')}"
    if azure.get("status") == "True" and any(word in said for word in AZURE_ENDS):
        found.append(AZURE_S)
    return min(found, default=None)


def whole(quantity: Any) -> int:
    """A count as the API writes it; nonsense is none."""
    try:
        return int(quantity)
    except (TypeError, ValueError):
        return 0


def token_of(token: str, name: str, prefix: str) -> str:
    """The token of an object, or its name where the token is not one that this service gave."""
    return token if token.startswith(prefix) else f"{prefix}{STRAY}{name}"


def name_of(token: str, prefix: str) -> str:
    """The name of the object that is listed under a token."""
    return token.removeprefix(f"{prefix}{STRAY}")


def selector(**labels: str) -> str:
    """For a list of what is ours: `selector(owner="boa", namespace="lab")`."""
    return ",".join(f"{DOMAIN}/{name}={value}" for name, value in labels.items())
