"""Where jobs run on Kubernetes: what `boa.yaml` says of the cluster and of its nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boa.model.kubernetes_names import GPU
from boa.units import GpuName, Seconds

KUBERNETES_NODES = ("fixed", "karpenter", "autoscaler")
CAPACITIES = ("on-demand", "spot", "reserved")
"""Karpenter's words for how a machine is rented."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    """Karpenter's object that says what a machine boots, and where."""

    group: str = "karpenter.k8s.aws"
    kind: str = "EC2NodeClass"
    name: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class KarpenterMachine:
    """The machines that a GPU type means to Karpenter."""

    instance_types: tuple[str, ...] = ()
    """Any of them; all with the same GPUs."""
    capacity: str = "on-demand"
    requirements: tuple[Mapping[str, Any], ...] = ()
    """More of them, as a NodeClaim has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KarpenterSettings:
    node_class: NodeClass = field(default_factory=NodeClass)
    machines: Mapping[GpuName, KarpenterMachine] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of claims and their nodes, beside our own."""
    taints: tuple[Mapping[str, str], ...] = ()
    """Taints of the nodes; jobs tolerate them by the pod template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerSettings:
    priority_class: str = "boa-placeholder"
    image: str = "registry.k8s.io/pause:3.9"
    """Image of placeholders, which idles by itself."""
    evict_others: bool = False
    """Whether pods of others are evicted from a node that is given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSettings:
    """A cluster that is there already."""

    kubeconfig: str = ""
    """Empty: inside a cluster its own; else as kubectl finds it."""
    context: str = ""
    namespace: str = ""
    """Empty: the service's own inside a cluster; else the context's."""
    owner: str = "boa"
    """Value of the label that all objects of this service have."""
    nodes: str = "fixed"
    node_label: str = GPU
    """Label of nodes whose value is the GPU type's name."""
    image: str = ""
    """Image of jobs that name none."""
    pod_template: Mapping[str, Any] = field(default_factory=dict)
    """A Pod that every job's pods are merged into."""
    placed_s: Seconds = 300.0
    """Seconds that a run's pods may take to be all placed and begun, before it is given up."""
    ready_s: Seconds = 900.0
    """Seconds after which a node that is not ready is given back."""
    karpenter: KarpenterSettings = field(default_factory=KarpenterSettings)
    autoscaler: AutoscalerSettings = field(default_factory=AutoscalerSettings)
