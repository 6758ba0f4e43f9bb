"""The cloud of a Kubernetes cluster, in the mode that is configured."""

from collections.abc import Mapping
from pathlib import Path

from boa.clock import Clock
from boa.clouds.base import Cloud
from boa.clouds.kubernetes.fixed import FixedNodes
from boa.clouds.kubernetes.renting import RentedNodes
from boa.clouds.kubernetes.sources import AutoscalerNodes, KarpenterNodes, Source
from boa.clouds.kubernetes.watching import LOST_S, Watch
from boa.kubelink import Kube
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds, UsdPerHour


def kubernetes_cloud(
    kube: Kube,
    settings: KubernetesSettings,
    path: Path,
    *,
    service: str,
    gpu_types: Mapping[GpuName, GpuType],
    max_nodes: Mapping[GpuName, int],
    max_spend: UsdPerHour | None,
    clock: Clock,
    speed: float = 1.0,
    lost_s: Seconds = LOST_S,
) -> Cloud:
    """`path`: where fixed nodes are written down; `service`: begins every token, with a dash."""
    if settings.nodes == "fixed":
        return FixedNodes(
            path,
            kube,
            label=settings.node_label,
            gpu_types=gpu_types,
            max_nodes=max_nodes,
            max_spend=max_spend,
            clock=clock,
            lost_s=lost_s,
        )
    prefix = f"{service}-"
    source: Source
    if settings.nodes == "karpenter":
        source = KarpenterNodes(kube, settings, prefix)
    else:
        source = AutoscalerNodes(kube, settings, prefix, gpu_types)
    return RentedNodes(
        source,
        Watch(gpu_types, ready_s=settings.ready_s, lost_s=lost_s),
        gpu_types=gpu_types,
        max_nodes=max_nodes,
        max_spend=max_spend,
        clock=clock,
        speed=speed,
    )
