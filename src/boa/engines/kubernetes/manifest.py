"""Pods as they are sent to the cluster: ours, with the user's template merged in. Pure."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boa.engines.kubernetes import in_pod
from boa.engines.kubernetes.names import (
    CODE,
    FINALIZER,
    GO,
    LAUNCH,
    NODE,
    Part,
    labels,
    pod_name,
    value,
)
from boa.engines.kubernetes.template import CONTAINER, SHM, Template, read
from boa.errors import InputError
from boa.model.kubernetes_names import GPUS
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.runs import RunKey
from boa.units import Seconds

TOLERATED_S = 30
"""Seconds that a pod stays on a node that does not answer; the engine gives it up before that."""
SLACK_S = 3
"""Seconds beyond the grace, in which the supervisor kills what is left and says so."""
_BOTH = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPods:
    """All that pods of one run have in common."""

    key: RunKey
    owner: str
    image: str
    grace_s: Seconds
    about: Mapping[str, Any]
    """The run, for who finds it again."""
    gang: bool
    luggage: Sequence[str]
    """Names of its Secrets."""
    secrets: bool = False
    """Whether the job has some."""


def pod(run: RunPods, part: Part, number: int, template: Template) -> dict[str, Any]:
    """The run's `number`-th."""
    metadata = {
        "name": part.name,
        "labels": {**template.labels, **labels(run.owner, run.key), NODE: value(part.label)},
        "annotations": {**template.annotations, LAUNCH: json.dumps(run.about)},
        "finalizers": [FINALIZER],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "enableServiceLinks": False,
            **template.spec,
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": grace(run.grace_s, run.grace_s),
            "affinity": pinned(template.spec.get("affinity") or {}, part.node),
            "tolerations": [*template.spec.get("tolerations", ()), *_tolerations()],
            "volumes": [*template.spec.get("volumes", ()), *_volumes(run, number, template)],
            "containers": [_container(run, part, template), *template.others],
        },
    }


def example(settings: KubernetesSettings) -> dict[str, Any]:
    """A pod of no run, such as would be made: to be tried, and not kept."""
    key = RunKey("example", 1)
    name = pod_name(settings.owner, key, "0")
    part = Part(name=name, node="example", label="0", gpus=1, ranks=(0,))
    template = read(settings.pod_template)
    run = RunPods(
        key=key,
        owner=settings.owner,
        image=template.image or settings.image or "example",
        grace_s=30.0,
        about={},
        gang=False,
        luggage=[name],
    )
    return pod(run, part, 0, template)


def image_of(own: str, template: Template, settings: KubernetesSettings) -> str:
    """The job's own, or else the template's, or the settings'. Raises InputError."""
    image = own.removeprefix("docker://") or template.image or settings.image
    if not image:
        expected = "an image of the job's, or kubernetes.image for those that name none"
        raise InputError("image", "", expected, "the job names none")
    if image.startswith(("/", ".")) or image.endswith(".sif") or "://" in image:
        expected = "on Kubernetes, the name of an image in a registry"
        raise InputError("image", own, expected)
    return image


def grace(asked_s: Seconds, own_s: Seconds) -> int:
    """Whole seconds for the kubelet, of those that were asked for. `own_s`: the job's, after which
    its supervisor kills by itself, and can say so."""
    return max(math.ceil(asked_s), 1) + (SLACK_S if asked_s >= own_s else 0)


def pinned(affinity: Mapping[str, Any], node: str) -> dict[str, Any]:
    """To the node by its name, beside what else is asked. Not by `nodeName`: where something is
    still on the node, that would fail for good instead of waiting."""
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    of_node = dict(affinity.get("nodeAffinity") or {})
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = (of_node.get(required) or {}).get("nodeSelectorTerms") or [{}]
    of_node[required] = {
        "nodeSelectorTerms": [  # any of them is enough, so each has to have it
            {**term, "matchFields": [*term.get("matchFields", ()), here]} for term in terms
        ]
    }
    return {**affinity, "nodeAffinity": of_node}


def _tolerations() -> list[dict[str, Any]]:
    short = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED_S}
    gpus = {"key": GPUS, "operator": "Exists", "effect": "NoSchedule"}
    return [gpus, *({"key": key, **short} for key in sorted(_BOTH))]


def _container(run: RunPods, part: Part, template: Template) -> dict[str, Any]:
    given = template.container
    resources = dict(given.get("resources") or {})
    gpus = {GPUS: str(part.gpus)} if part.gpus else {}
    return {
        **given,
        "name": CONTAINER,
        "image": run.image,
        "command": ["python3", "-I", "-S", f"{in_pod.BASE}/launch/{CODE}"],
        "resources": {
            **resources,
            "limits": {**resources.get("limits", {}), **gpus},
            "requests": {**resources.get("requests", {}), **gpus},
        },
        "volumeMounts": [*given.get("volumeMounts", ()), *_mounts(run, template)],
        "terminationMessagePath": in_pod.MESSAGE,
        "terminationMessagePolicy": "File",
    }


def _mounts(run: RunPods, template: Template) -> list[dict[str, Any]]:
    base = in_pod.BASE
    return [
        {"name": "boa-launch", "mountPath": f"{base}/launch", "readOnly": True},
        {"name": "boa-run", "mountPath": f"{base}/run"},
        {"name": "boa-work", "mountPath": f"{base}/work"},
        *([_gate(base)] if run.gang else []),
        *([] if SHM in template.mounts() else [{"name": "boa-shm", "mountPath": SHM}]),
    ]


def _gate(base: str) -> dict[str, Any]:
    return {"name": "boa-gate", "mountPath": f"{base}/gate", "readOnly": True}


def _volumes(run: RunPods, number: int, template: Template) -> list[dict[str, Any]]:
    memory = {"medium": "Memory"}
    found: list[dict[str, Any]] = [
        {"name": "boa-launch", "projected": {"sources": list(_luggage(run, number))}},
        {"name": "boa-run", "emptyDir": memory},
        {"name": "boa-work", "emptyDir": {}},
    ]
    if run.gang:
        path = f"metadata.annotations['{GO}']"
        item = {"path": in_pod.GO, "fieldRef": {"fieldPath": path}}
        found.append({"name": "boa-gate", "downwardAPI": {"items": [item]}})
    if SHM not in template.mounts():
        found.append({"name": "boa-shm", "emptyDir": memory})
    return found


def _luggage(run: RunPods, number: int) -> Sequence[dict[str, Any]]:
    """See `luggage`: of the launches, each pod has its own."""
    items = [
        {"key": CODE, "path": CODE},
        {"key": in_pod.COMMON, "path": in_pod.COMMON},
        {"key": f"{in_pod.LAUNCH}{number}", "path": in_pod.LAUNCH},
    ]
    if run.secrets:
        items.append({"key": in_pod.SECRETS, "path": in_pod.SECRETS})
    first, *package = run.luggage
    return [
        {"secret": {"name": first, "items": items}},
        *({"secret": {"name": name}} for name in package),
    ]
