"""Placeholder pods, by which a cluster's autoscaler is asked for nodes: shapes, and what is to be
done next. Pure.

A token's first pod, the wish, asks for all GPUs of a node, so that the autoscaler brings one. When
it is bound, the Node is marked as the token's, and a second pod, the hold, is put on it: that asks
for nothing and keeps node and other wishes where they are. Then the wish goes, and its GPUs are
the jobs'.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from boa.clouds.kubernetes.objects import NAMESPACE, TOKEN, KubeNode, token_of
from boa.clouds.kubernetes.watching import Sight
from boa.model.kubernetes_names import DOMAIN, GPU, GPUS, OWNER
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds, wall_time

PLACEHOLDER = f"{DOMAIN}/placeholder"
WISH, HOLD = "wish", "hold"
ASKED, RELEASED = f"{DOMAIN}/asked-at", f"{DOMAIN}/released-at"
"""Annotations of nodes: by the wall, in seconds."""
KEPT = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
STAYS = "cluster-autoscaler.kubernetes.io/safe-to-evict"
PRIORITY = -10
"""The lowest at which the cluster autoscaler still counts a pod."""
GRACE_S = 1
"""Seconds that a placeholder has to end: forced, its GPUs would be given to others before they are
free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    name: str
    token: str
    gpu: GpuName
    role: str
    created: Seconds
    node: str = ""
    """The Node that it is bound to."""
    over: bool = False
    """It has failed or ended, and holds nothing any more."""
    deleting: bool = False
    status: str = ""
    """Why it is not bound yet."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Say on the Node whose it is, and that the autoscaler is to leave it there."""

    node: str
    token: str
    gpu: GpuName
    asked: Seconds


@dataclass(frozen=True, slots=True)
class Hold:
    """Put a hold on the Node."""

    node: str
    token: str
    gpu: GpuName


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a pod."""

    pod: str


Step = Mark | Hold | Remove


@dataclass(frozen=True, slots=True)
class Scene:
    """Pods and nodes of ours, as they were seen."""

    pods: Sequence[Placeholder] = ()
    nodes: Mapping[str, KubeNode] = field(default_factory=dict)


def hold_name(token: str) -> str:
    return f"{token}-{HOLD}"


def wish(settings: KubernetesSettings, namespace: str, gpu: GpuType, token: str) -> dict[str, Any]:
    """A pod that needs a whole node, and none with a placeholder of another token."""
    pod = _pod(settings, namespace, gpu.name, token, WISH)
    template = settings.pod_template.get("spec") or {}
    others = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {
            "matchExpressions": [
                {"key": PLACEHOLDER, "operator": "Exists"},
                {"key": TOKEN, "operator": "NotIn", "values": [token]},
            ]
        },
    }
    pod["spec"] |= {
        "nodeSelector": {**(template.get("nodeSelector") or {}), settings.node_label: gpu.name},
        "tolerations": [
            *(template.get("tolerations") or ()),
            {"key": GPUS, "operator": "Exists"},
        ],
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [others]}
        },
    }
    wanted = {GPUS: str(gpu.gpus_per_node)}
    pod["spec"]["containers"][0]["resources"] = {"requests": wanted, "limits": wanted}
    return pod


def hold(
    settings: KubernetesSettings, namespace: str, gpu: GpuName, token: str, node: str
) -> dict[str, Any]:
    """A pod that asks for nothing, on this Node whatever its taints."""
    pod = _pod(settings, namespace, gpu, token, HOLD)
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    chosen = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
    pod["spec"] |= {
        "affinity": {"nodeAffinity": chosen},
        "tolerations": [{"operator": "Exists"}],
    }
    return pod


def _pod(
    settings: KubernetesSettings, namespace: str, gpu: GpuName, token: str, role: str
) -> dict[str, Any]:
    template = settings.pod_template.get("spec") or {}
    pulled = {
        key: template[key] for key in ("imagePullSecrets", "securityContext") if template.get(key)
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": token if role == WISH else hold_name(token),
            "namespace": namespace,
            "labels": {OWNER: settings.owner, TOKEN: token, GPU: gpu, PLACEHOLDER: role},
            "annotations": {STAYS: "false"},
        },
        "spec": {
            **pulled,
            "priorityClassName": settings.autoscaler.priority_class,
            "terminationGracePeriodSeconds": GRACE_S,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "containers": [
                {
                    "name": "placeholder",
                    "image": settings.autoscaler.image,
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }


def priority_class(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": PRIORITY,
        "preemptionPolicy": "Never",
        "description": "Placeholders of boa-constrictor, which make way for anything else.",
    }


def marks(settings: KubernetesSettings, namespace: str, mark: Mark) -> dict[str, Any]:
    """Patch of a Node that is taken: for this token, open to pods, and not to be scaled down."""
    ours = {
        OWNER: settings.owner,
        NAMESPACE: namespace,
        TOKEN: mark.token,
        GPU: mark.gpu,
        ASKED: f"{mark.asked:.3f}",
        RELEASED: None,
        KEPT: "true",
    }
    return {"metadata": {"annotations": ours}, "spec": {"unschedulable": None}}


def cordon(wall: Seconds) -> dict[str, Any]:
    """Patch of a Node that is given back: nothing new comes, and the autoscaler may take it."""
    ours = {RELEASED: f"{wall:.3f}", KEPT: None}
    return {"metadata": {"annotations": ours}, "spec": {"unschedulable": True}}


# Reading


def placeholder_of(said: Mapping[str, Any]) -> Placeholder:
    meta, spec, status = said["metadata"], said.get("spec", {}), said.get("status", {})
    labels = meta.get("labels") or {}
    waits = [one for one in status.get("conditions") or () if one["type"] == "PodScheduled"]
    return Placeholder(
        name=meta["name"],
        token=labels.get(TOKEN, meta["name"]),
        gpu=labels.get(GPU, ""),
        role=labels.get(PLACEHOLDER, WISH),
        created=wall_time(meta.get("creationTimestamp")) or 0.0,
        node=spec.get("nodeName", ""),
        over=status.get("phase") in ("Failed", "Succeeded"),
        deleting="deletionTimestamp" in meta,
        status=waits[0].get("message", "") if waits and not spec.get("nodeName") else "",
    )


def is_evictable(pod: Mapping[str, Any]) -> bool:
    """Somebody else's, and such that it would keep the autoscaler from taking its node."""
    meta = pod["metadata"]
    return not (
        OWNER in (meta.get("labels") or {})
        or "kubernetes.io/config.mirror" in (meta.get("annotations") or {})
        or any(owner.get("kind") == "DaemonSet" for owner in meta.get("ownerReferences") or ())
        or pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    )


def is_ours(node: KubeNode, owner: str, namespace: str) -> bool:
    said = node.annotations
    return said.get(OWNER) == owner and said.get(NAMESPACE) == namespace and TOKEN in said


def token_on(node: KubeNode) -> str:
    return node.annotations[TOKEN]


def is_released(node: KubeNode) -> bool:
    return RELEASED in node.annotations


def scene(
    pods: Iterable[Mapping[str, Any]], nodes: Iterable[KubeNode], owner: str, namespace: str
) -> tuple[Scene, dict[str, KubeNode]]:
    """Ours, and all nodes by name."""
    every = {node.name: node for node in nodes}
    ours = {name: node for name, node in every.items() if is_ours(node, owner, namespace)}
    return Scene([placeholder_of(pod) for pod in pods], ours), every


def steps(scene: Scene, every: Mapping[str, KubeNode]) -> list[Step]:
    """Steps that bring every token on; done twice, nothing more happens."""
    todo: list[Step] = []
    holds = {pod.token: pod for pod in scene.pods if pod.role == HOLD}
    kept = {token_on(n): n for n in scene.nodes.values() if not is_released(n)}
    for pod in scene.pods:
        if pod.deleting:
            continue
        if pod.over:
            todo.append(Remove(pod.name))
        elif pod.role == HOLD:
            if pod.token not in kept:
                todo.append(Remove(pod.name))
        elif pod.token in kept:
            guard = holds.get(pod.token)
            if guard is not None and guard.node and not guard.over:
                todo.append(Remove(pod.name))
        elif pod.node and pod.node in every and pod.node not in scene.nodes:
            todo.append(Mark(pod.node, pod.token, pod.gpu, pod.created))
            todo.append(Hold(pod.node, pod.token, pod.gpu))
        elif pod.node in scene.nodes:  # it slipped onto a node that is another token's
            todo.append(Remove(pod.name))
    for token, node in kept.items():
        if token not in holds:
            todo.append(Hold(node.name, token, node.annotations.get(GPU, node.gpu)))
    return todo


def sights(scene: Scene, prefix: str) -> list[Sight]:
    """Tokens with a node are charged from the wish; those without are not there yet."""
    wishes = {pod.token: pod for pod in scene.pods if pod.role == WISH}
    holds = {pod.token: pod for pod in scene.pods if pod.role == HOLD and not pod.over}
    found = [_on_node(node, wishes, holds, prefix) for node in scene.nodes.values()]
    tokens = {token_on(node) for node in scene.nodes.values()}
    found += [
        _on_its_way(pod, prefix)
        for pod in wishes.values()
        if pod.token not in tokens and not pod.over
    ]
    return found


def _on_its_way(pod: Placeholder, prefix: str) -> Sight:
    return Sight(
        token=token_of(pod.token, pod.token, prefix),
        gpu=pod.gpu,
        asked=pod.created,
        deleting=pod.deleting,
        status=pod.status,
    )


def _on_node(
    node: KubeNode,
    wishes: Mapping[str, Placeholder],
    holds: Mapping[str, Placeholder],
    prefix: str,
) -> Sight:
    token, released = token_on(node), is_released(node)
    asked = _seconds(node.annotations.get(ASKED, "")) or node.created
    held = holds.get(token)
    # Cordoned by us it is given back, and leaves; a record of it is not told so twice.
    seen = replace(node, cordoned=node.cordoned and not released)
    return Sight(
        token=token_of(token, token, prefix),
        gpu=node.annotations.get(GPU, node.gpu),
        asked=asked,
        since=asked,
        node=seen,
        free=token not in wishes and held is not None and bool(held.node),
        deleting=released,
    )


def _seconds(text: str) -> Seconds | None:
    try:
        return float(text)
    except ValueError:
        return None


def to_take_over(scene: Scene, gpu: GpuType) -> KubeNode | None:
    """A node that was given back and is still there, open to whoever asks: the one given back last,
    which the autoscaler will not be about to take."""
    idle = [
        node
        for node in scene.nodes.values()
        if is_released(node)
        and node.gpu == gpu.name
        and not node.lacks(gpu.gpus_per_node)
        and not node.deleting
        and node.notice_s is None
    ]
    return max(idle, key=lambda node: (node.annotations[RELEASED], node.name), default=None)
