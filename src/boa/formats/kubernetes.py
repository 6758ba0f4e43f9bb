"""Fields of `boa.yaml` for Kubernetes."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from boa.errors import FileError, InputError
from boa.formats.containers import as_given, either, list_of, mapping_of, object_of
from boa.formats.files import read_document
from boa.formats.parts import LINE, MAX_NAME, PATH
from boa.formats.shapes import (
    FLAG,
    Field,
    Schema,
    Shape,
    Wrong,
    choice,
    needed,
    number,
    or_empty,
    text,
)
from boa.model.kubernetes_settings import (
    CAPACITIES,
    KUBERNETES_NODES,
    AutoscalerSettings,
    KarpenterMachine,
    KarpenterSettings,
    KubernetesSettings,
    NodeClass,
)
from boa.model.workload import GpuType
from boa.units import DAY_S, GpuName

MAX_ENTRIES = 100
MAX_OWNER = 40
"""Characters: names of objects begin with it."""
LABEL_VALUE = r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
_DNS = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_KEY = rf"^({_DNS}(\.{_DNS})*/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_POD = {"apiVersion", "kind", "metadata", "spec"}
_OURS = {
    "nodeName": "nothing: a pod goes where it was planned",
    "restartPolicy": "nothing: a run that ended is started again by the service",
    "terminationGracePeriodSeconds": "nothing: the grace time is the job's, grace_s",
}
"""Fields of a pod's spec that no template may have, and what would be accepted."""


def _dns_label(most: int, empty: str = "") -> Shape[str]:
    return text(
        f"up to {most} small letters, digits and -, none of those at either end",
        pattern=rf"^{_DNS}$" + empty,
        most=most,
        words=f"up to {most} small letters, digits and `-`",
    )


def _name() -> Shape[str]:
    expected = "the name of a Kubernetes object: small letters, digits, - and ."
    return text(expected, pattern=rf"^{_DNS}(\.{_DNS})*$", most=253, words="name")


def _image(count: str = "+") -> Shape[str]:
    expected = "the name of an image, such as registry.example.com/train:3"
    pattern = rf"^[^\s]{count}$"
    return text(expected, pattern=pattern, most=1000, fits=str.isprintable, words="image")


def _is_plain(value: str) -> bool:
    return not value or value.isprintable()


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Wrong(value, "a mapping")
    return value


_LABEL_KEY = text(
    "a label's name, such as example.com/gpu",
    pattern=_KEY,
    most=MAX_NAME,
    words="a label's name",
)
_LABEL = text("a label's value", pattern=rf"{LABEL_VALUE}|^$", words="text")
_FREE: Schema = {"type": "object"}
_TEMPLATE: Shape[dict[str, Any]] = Shape(_mapping, _FREE, "a mapping such as `{spec: …}`")
_FILE = text("a file", pattern=PATH, words="path of a YAML file, relative to this one")
_REQUIREMENT = object_of(
    needed("key", _LABEL_KEY, "A label of the machine."),
    Field("operator", choice(OPERATORS), "How it is compared.", default="In"),
    Field("values", list_of(_LABEL, least=0, most=MAX_ENTRIES), "With what.", otherwise="nothing"),
    make=as_given,
)
_TAINT = object_of(
    needed("key", _LABEL_KEY, "Its name."),
    Field("value", _LABEL, "Its value.", otherwise="none"),
    Field("effect", choice(EFFECTS), "What it does to pods.", default="NoSchedule"),
    make=as_given,
)
_MACHINE = object_of(
    Field(
        "instance_types",
        list_of(LINE, most=MAX_ENTRIES, words="list of names"),
        "Any of them; all with the same GPUs.",
        otherwise="by `requirements` alone",
    ),
    Field(
        "capacity",
        choice(CAPACITIES),
        "How it is rented; `spot` may be taken away at short notice.",
        default=KarpenterMachine().capacity,
    ),
    Field(
        "requirements",
        list_of(
            _REQUIREMENT,
            most=MAX_ENTRIES,
            words="list of `{key, operator, values}`, as in a NodeClaim",
        ),
        "More that the machine has to be: its zone, say.",
        otherwise="none",
    ),
    make=KarpenterMachine,
)
_KARPENTER = object_of(
    Field(
        "node_class",
        object_of(
            Field("group", _name(), "Its API group.", default=NodeClass().group),
            Field("kind", LINE, "Its kind.", default=NodeClass().kind),
            Field("name", _name(), "Its name.", default=NodeClass().name),
            make=NodeClass,
        ),
        "What machines boot, and where: Karpenter's object for that.",
    ),
    Field(
        "machines",
        mapping_of(LINE, _MACHINE, called="GPU"),
        "What every one of the `gpu_types` is to Karpenter.",
        otherwise="needed with `nodes: karpenter`",
    ),
    Field(
        "labels",
        mapping_of(
            _LABEL_KEY,
            _LABEL,
            called="NAME",
            least=0,
            most=MAX_ENTRIES,
            words="mapping from names to text",
        ),
        "Of the claims and their nodes, beside our own.",
        otherwise="none",
    ),
    Field(
        "taints",
        list_of(_TAINT, most=MAX_ENTRIES, words="list of `{key, value, effect}`"),
        "Of the nodes; `pod_template` has to tolerate them.",
        otherwise="none",
    ),
    make=KarpenterSettings,
)
_AUTOSCALER = object_of(
    Field(
        "priority_class",
        _name(),
        "Of the placeholders: low, so that they make way. Made if it is not there.",
        default=AutoscalerSettings().priority_class,
    ),
    Field(
        "image",
        _image(),
        "Of the placeholders: one that idles by itself.",
        default=AutoscalerSettings().image,
    ),
    Field(
        "evict_others",
        FLAG,
        "Evict what else runs on a node that is given back, so that it can go.",
        default=False,
    ),
    make=AutoscalerSettings,
)
_DEFAULT = KubernetesSettings()
KUBERNETES = object_of(
    Field(
        "nodes",
        choice(KUBERNETES_NODES),
        "`fixed`: those that are there, by label. `karpenter`: a NodeClaim for each. `autoscaler`: "
        "a placeholder pod for each, which the cluster's autoscaler brings a node for.",
        default=_DEFAULT.nodes,
    ),
    Field(
        "kubeconfig",
        text("a file", pattern=r"^[^\x00]*$", words="path, relative to this file"),
        "How the cluster is reached.",
        otherwise="inside a cluster its own; else `$KUBECONFIG`, else `~/.kube/config`",
    ),
    Field(
        "context",
        text("a context's name", pattern="", most=MAX_NAME, fits=_is_plain, words="text"),
        "Which one of the file's.",
        otherwise="its current one",
    ),
    Field(
        "namespace",
        _dns_label(63, "|^$"),
        "Where pods, secrets and the lease are.",
        otherwise="the service's own inside a cluster; else the context's",
    ),
    Field(
        "owner",
        _dns_label(MAX_OWNER),
        "Label of all that is this service's. One service to an owner and namespace: a Lease of "
        "this name keeps a second one out.",
        default=_DEFAULT.owner,
    ),
    Field(
        "node_label",
        _LABEL_KEY,
        "Label of nodes whose value is the GPU type's name in `gpu_types`.",
        default=_DEFAULT.node_label,
    ),
    Field(
        "image",
        _image("*"),
        "Image of jobs that name none.",
        otherwise="the template's, else needed",
    ),
    Field(
        "pod_template",
        either({str: _FILE, dict: _TEMPLATE}),
        "A Pod that every job's pods are merged into: volumes, secrets, tolerations, resources.",
        otherwise="none",
        example={"spec": {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}},
    ),
    Field(
        "placed_s",
        number(above=0, most=DAY_S),
        "A run whose pods are not all placed after so long is given up.",
        default=_DEFAULT.placed_s,
    ),
    Field(
        "ready_s",
        number(above=0, most=DAY_S),
        "A node that is not ready after so long is given back.",
        default=_DEFAULT.ready_s,
    ),
    Field("karpenter", or_empty(_KARPENTER), "For `nodes: karpenter`."),
    Field("autoscaler", or_empty(_AUTOSCALER), "For `nodes: autoscaler`."),
    make=KubernetesSettings,
)


def settled(
    settings: KubernetesSettings, home: Path, types: Mapping[GpuName, GpuType]
) -> KubernetesSettings:
    """With files read and paths that no longer depend on where they were said; held against the
    GPU types."""
    for name in types:
        if not re.fullmatch(LABEL_VALUE, name):
            expected = "with engine kubernetes: what can be a label's value"
            raise InputError(f"gpu_types.{name}", name, expected)
    if settings.nodes == "karpenter":
        _check_machines(settings.karpenter.machines, types)
    kubeconfig = settings.kubeconfig
    if kubeconfig:
        kubeconfig = os.path.abspath(home / os.path.expanduser(kubeconfig))
    template = _template(settings.pod_template, home)
    return replace(settings, kubeconfig=kubeconfig, pod_template=template)


def _check_machines(
    machines: Mapping[GpuName, KarpenterMachine], types: Mapping[GpuName, GpuType]
) -> None:
    field = "kubernetes.karpenter.machines"
    for name, machine in machines.items():
        if name not in types:
            raise InputError(f"{field}.{name}", name, f"one of the gpu_types: {', '.join(types)}")
        if not machine.instance_types and not machine.requirements:
            expected = "instance_types, or requirements that say which machines it means"
            raise InputError(f"{field}.{name}", {}, expected)
    missing = [name for name in types if name not in machines]
    if missing:
        expected = f"machines for every one of the gpu_types ({missing[0]} has none)"
        raise InputError(field, ", ".join(machines) or None, expected)


def _template(given: Any, home: Path) -> dict[str, Any]:
    """A Pod, from a file or as it stands, without what is ours to say."""
    if not isinstance(given, str):
        return _checked(given, "kubernetes.pod_template")
    path = home / os.path.expanduser(given)
    document = read_document(path)
    try:
        return _checked({} if document is None else document, "")
    except InputError as wrong:
        problem = f"{wrong.field}: {wrong.problem}" if wrong.field else wrong.problem
        raise FileError(str(path), problem, wrong.expected) from None


def _checked(template: Any, at: str) -> dict[str, Any]:
    def wrong(where: str, value: Any, expected: str) -> InputError:
        return InputError(".".join(filter(None, (at, where))), value, expected)

    if not isinstance(template, dict):
        raise wrong("", template, "a Pod: a mapping with metadata and spec")
    for key in template:
        if key not in _POD:
            raise wrong(str(key), template[key], "one of apiVersion, kind, metadata, spec")
    if template.get("kind", "Pod") != "Pod":
        raise wrong("kind", template["kind"], "Pod")
    for part in ("metadata", "spec"):
        if not isinstance(template.get(part), dict | None):
            raise wrong(part, template[part], "a mapping")
    spec = template.get("spec") or {}
    for key, expected in _OURS.items():
        if spec.get(key) is not None:
            raise wrong(f"spec.{key}", spec[key], expected)
    containers = spec.get("containers")
    if containers is None:
        return template
    if not isinstance(containers, list) or not all(isinstance(one, dict) for one in containers):
        raise wrong("spec.containers", containers, "a list of containers")
    return template
