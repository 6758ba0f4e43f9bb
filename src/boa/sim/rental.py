"""Nodes rented over time, and what they come to in GPU-seconds: the ledger says what counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from boa.model.cluster import Allocation, Node, NodeId
from boa.model.prices import NO_CHANGES, Changes, paid
from boa.model.workload import GpuType
from boa.scheduler.money.ledger import charged_gpu_seconds
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, Usd, UsdPerHour


@dataclass(frozen=True, slots=True)
class RentedNode:
    node: Node
    since: Seconds
    """When it was asked for, which is when charging begins."""
    ready: Seconds
    """When jobs can start on it."""


@dataclass(slots=True)
class Rental:
    """Which nodes are rented, and what those that are gone came to."""

    gpu_types: Mapping[GpuName, GpuType]
    provision_s: Seconds = 0.0
    reclaim_s: Seconds = 0.0
    nodes: dict[NodeId, RentedNode] = field(default_factory=dict)
    next_node: NodeId = 0
    gpu_seconds: dict[GpuName, float] = field(default_factory=dict)
    """Per type, of nodes that are gone: from request to release."""
    reclaiming_gpu_seconds: dict[GpuName, float] = field(default_factory=dict)
    """Per type, between release and the moment the cloud really has the node back."""
    booting_gpu_seconds: dict[GpuName, float] = field(default_factory=dict)
    """Per type, of nodes that are gone: from request until jobs could start, or release."""
    awaited_gpu_seconds: dict[GpuName, float] = field(default_factory=dict)
    """Per type, of those: held by jobs that waited for their nodes to boot."""
    usd: dict[str, Usd] = field(default_factory=dict)
    """Dollars for nodes that are gone, at the prices that held: `rented` from request to release,
    `booting` of it, and `reclaiming`."""
    used: set[NodeId] = field(default_factory=set)
    """Nodes that a job has run on: warm."""
    gpus: int = 0
    """Rented now."""
    spend: UsdPerHour = 0.0
    """Dollars per hour of what is rented now."""
    peak: UsdPerHour = 0.0
    """The most that was ever rented at a moment."""

    def rent(self, node: Node, now: Seconds, *, ready_at_once: bool = False) -> None:
        ready = now if ready_at_once else now + self.provision_s
        self.nodes[node.id] = RentedNode(node, now, ready)
        self.next_node = max(self.next_node, node.id + 1)
        self.gpus += node.gpus
        self.costs(self.spend + self.gpu_types[node.gpu].price * node.gpus)

    def costs(self, spend: UsdPerHour) -> None:
        """All that is rented comes to this from now on."""
        self.spend, self.peak = spend, max(spend, self.peak)

    def release(self, node: NodeId, now: Seconds) -> None:
        rented = self.nodes.pop(node)
        self.closed(rented.node, rented.since, now, now + self.reclaim_s, ready=rented.ready)
        self.used.discard(node)
        self.gpus -= rented.node.gpus
        self.costs(self.spend - self.gpu_types[rented.node.gpu].price * rented.node.gpus)

    def closed(
        self,
        node: Node,
        since: Seconds,
        released: Seconds | None,
        gone: Seconds,
        *,
        ready: Seconds | None,
        price: tuple[UsdPerHour, Changes] | None = None,
    ) -> None:
        """Count a node that is gone. `ready`: None if it never was; `price`: of it, with what that
        changed to; None: that of its type."""
        self._charge(node, since, released, gone, ready, price)
        used, reclaiming = charged_gpu_seconds(node.gpus, since, released, gone)
        booting = used if ready is None else min(max(ready - since, 0.0) * node.gpus, used)
        for sums, more in (
            (self.gpu_seconds, used),
            (self.reclaiming_gpu_seconds, reclaiming),
            (self.booting_gpu_seconds, booting),
        ):
            sums[node.gpu] = sums.get(node.gpu, 0.0) + more

    def _charge(
        self,
        node: Node,
        since: Seconds,
        released: Seconds | None,
        gone: Seconds,
        ready: Seconds | None,
        price: tuple[UsdPerHour, Changes] | None,
    ) -> None:
        first, changes = price or (self.gpu_types[node.gpu].price, NO_CHANGES)
        given_back = gone if released is None else min(max(released, since), gone)
        booted = given_back if ready is None else min(max(ready, since), given_back)
        spans = {
            "rented": (since, given_back),
            "reclaiming": (given_back, gone),
            "booting": (since, booted),
        }
        for part, (begin, end) in spans.items():
            more = node.gpus * paid(first, changes, begin, end) / SECONDS_PER_HOUR
            self.usd[part] = self.usd.get(part, 0.0) + more

    def await_boot(self, held: Allocation, now: Seconds, *, leave: bool = False) -> None:
        """A job takes GPUs of nodes that may still boot; or leaves them, before they are ready."""
        if self.provision_s > 0:
            left = ((self.nodes[node].ready - now) * count for node, count in held.nodes)
            seconds = sum(max(each, 0.0) for each in left)
            known = self.awaited_gpu_seconds.get(held.gpu, 0.0)
            self.awaited_gpu_seconds[held.gpu] = known + (-seconds if leave else seconds)

    def ready_at(self, nodes: Iterable[NodeId]) -> Seconds:
        return max(self.nodes[node].ready for node in nodes)

    def booting(self, now: Seconds) -> dict[NodeId, Seconds]:
        """Nodes that no job can start on yet, and in how many seconds one can."""
        return {id: r.ready - now for id, r in self.nodes.items() if r.ready > now}

    def all_nodes(self) -> tuple[Node, ...]:
        return tuple(self.nodes[node].node for node in sorted(self.nodes))


def price_of(gpu_seconds: Mapping[GpuName, float], gpu_types: Mapping[GpuName, GpuType]) -> Usd:
    """Dollars for GPU-seconds per type."""
    return sum(
        seconds / SECONDS_PER_HOUR * gpu_types[gpu].price for gpu, seconds in gpu_seconds.items()
    )
