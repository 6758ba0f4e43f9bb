"""Karpenter's NodeClaims: one for each token, as they are asked for and read. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from boa.clouds.kubernetes.objects import NAMESPACE, TOKEN, KubeNode, token_of
from boa.clouds.kubernetes.watching import Sight
from boa.model.kubernetes_names import GPU, GPUS, OWNER
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.workload import GpuType
from boa.units import wall_time

GROUP = "karpenter.sh"
DRAINED_WITHIN = "10m0s"
"""How long somebody else's pod may keep a machine that was given back, and paid for."""


def claim(settings: KubernetesSettings, namespace: str, gpu: GpuType, token: str) -> dict[str, Any]:
    """A machine as Karpenter is asked for it. Its labels become the Node's."""
    karpenter = settings.karpenter
    machine = karpenter.machines[gpu.name]
    labels = {
        **karpenter.labels,
        OWNER: settings.owner,
        NAMESPACE: namespace,
        TOKEN: token,
        GPU: gpu.name,
        settings.node_label: gpu.name,
    }
    requirements = [_among("karpenter.sh/capacity-type", [machine.capacity])]
    if machine.instance_types:
        requirements.append(_among("node.kubernetes.io/instance-type", machine.instance_types))
    requirements += [
        {**more, "values": list(more["values"])} if "values" in more else dict(more)
        for more in machine.requirements
    ]
    node_class = karpenter.node_class
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": token,
            "labels": labels,
            "annotations": {"karpenter.sh/do-not-disrupt": "true"},
        },
        "spec": {
            "nodeClassRef": {
                "group": node_class.group,
                "kind": node_class.kind,
                "name": node_class.name,
            },
            "requirements": requirements,
            "resources": {"requests": {GPUS: str(gpu.gpus_per_node)}},
            "taints": [dict(taint) for taint in karpenter.taints],
            "expireAfter": "Never",
            "terminationGracePeriod": DRAINED_WITHIN,
        },
    }


def _among(key: str, values: Iterable[str]) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def sights(
    claims: Iterable[Mapping[str, Any]], nodes: Iterable[KubeNode], prefix: str
) -> list[Sight]:
    """Tokens of ours begin with `prefix`; what has another is listed under its own name behind it.

    A Node whose claim is gone is charged for still.
    """
    by_token = {node.labels[TOKEN]: node for node in nodes if TOKEN in node.labels}
    found = []
    for said in claims:
        node = by_token.pop(said["metadata"].get("labels", {}).get(TOKEN, ""), None)
        found.append(_sight(said, node, prefix))
    return found + [_without_claim(token, node, prefix) for token, node in by_token.items()]


def _without_claim(token: str, node: KubeNode, prefix: str) -> Sight:
    return Sight(
        token=token_of(token, token, prefix),
        gpu=node.labels.get(GPU, node.gpu),
        asked=node.created,
        since=node.created,
        node=node,
        deleting=True,
    )


def _sight(said: Mapping[str, Any], node: KubeNode | None, prefix: str) -> Sight:
    meta = said["metadata"]
    labels = meta.get("labels") or {}
    conditions = {one["type"]: one for one in said.get("status", {}).get("conditions") or ()}
    launched = conditions.get("Launched", {})
    created = wall_time(meta.get("creationTimestamp")) or 0.0
    since = None
    if launched.get("status") == "True" or node is not None:
        since = wall_time(launched.get("lastTransitionTime")) or created
    return Sight(
        token=token_of(labels.get(TOKEN, ""), meta["name"], prefix),
        gpu=labels.get(GPU, ""),
        asked=created,
        since=since,
        node=node,
        deleting="deletionTimestamp" in meta,
        failure=_words(launched) if launched.get("status") == "False" else "",
        status=_waits_for(conditions),
    )


def _waits_for(conditions: Mapping[str, Mapping[str, Any]]) -> str:
    for step in ("Launched", "Registered", "Initialized"):
        condition = conditions.get(step, {})
        if condition.get("status") != "True":
            return f"not {step}" + (f": {_words(condition)}" if condition else "")
    return ""


def _words(condition: Mapping[str, Any]) -> str:
    reason, message = condition.get("reason", ""), condition.get("message", "").strip()
    told = " ".join(message.split("\n")[:1])
    return (
        f"{told} ({reason})" if reason and told != reason else told or reason or "no reason given"
    )
