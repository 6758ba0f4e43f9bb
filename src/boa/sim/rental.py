"""Nodes rented over time, and what they come to in GPU-seconds: the ledger says what counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from boa.model.cluster import Node, NodeId
from boa.model.records import NodeRecord
from boa.model.workload import GpuType
from boa.scheduler.money.ledger import charged_gpu_seconds
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, Usd


@dataclass(slots=True)
class Rental:
    """Which nodes are rented, and what those that are gone came to."""

    gpu_types: Mapping[GpuName, GpuType]
    provision_s: Seconds = 0.0
    reclaim_s: Seconds = 0.0
    nodes: dict[NodeId, NodeRecord] = field(default_factory=dict)
    next_node: NodeId = 0
    gpu_seconds: dict[GpuName, float] = field(default_factory=dict)
    """Per type, of nodes that are gone: from request to release."""
    reclaiming_gpu_seconds: dict[GpuName, float] = field(default_factory=dict)
    """Per type, between release and the moment the cloud really has the node back."""
    used: set[NodeId] = field(default_factory=set)
    """Nodes that a job has run on: warm."""
    gpus: int = 0
    """Rented now."""

    def rent(self, node: Node, now: Seconds, *, ready_at_once: bool = False) -> None:
        self.nodes[node.id] = NodeRecord(
            id=node.id,
            token="",
            gpu=node.gpu,
            gpus=node.gpus,
            price=self.gpu_types[node.gpu].price,
            requested_at=now,
            billed_from=now,
            ready_at=now if ready_at_once else now + self.provision_s,
        )
        self.next_node = max(self.next_node, node.id + 1)
        self.gpus += node.gpus

    def release(self, node: NodeId, now: Seconds) -> None:
        rented = self.nodes.pop(node)
        self.closed(replace(rented, state="gone", released_at=now, gone_at=now + self.reclaim_s))
        self.used.discard(node)
        self.gpus -= rented.gpus

    def closed(self, node: NodeRecord) -> None:
        """Count a node that is gone."""
        totals = (self.gpu_seconds, self.reclaiming_gpu_seconds)
        for to, seconds in zip(totals, charged_gpu_seconds(node), strict=True):
            to[node.gpu] = to.get(node.gpu, 0.0) + seconds

    def ready_at(self, nodes: Iterable[NodeId]) -> Seconds:
        return max(self.nodes[node].ready_at or 0.0 for node in nodes)

    def all_nodes(self) -> tuple[Node, ...]:
        return tuple(self.nodes[node].node for node in sorted(self.nodes))


def price_of(gpu_seconds: Mapping[GpuName, float], gpu_types: Mapping[GpuName, GpuType]) -> Usd:
    """Dollars for GPU-seconds per type."""
    return sum(
        seconds / SECONDS_PER_HOUR * gpu_types[gpu].price for gpu, seconds in gpu_seconds.items()
    )
