"""Node times: how long nodes of a GPU type take to get ready, and to be gone once given back.

Believed before any was seen, then a fading mean of those that were. What was learned is not
stored: after a restart it is learned again from the nodes of the last day.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from boa.model.cluster import NodeId
from boa.model.records import NodeRecord
from boa.scheduler.learn.fading_means import Mean
from boa.units import GpuName, Seconds


@dataclass(slots=True, kw_only=True)
class NodeTimes:
    boot_s: Seconds = 0.0
    """Seconds from the request to a node that is ready, before any was seen …"""
    reclaim_s: Seconds = 0.0
    """… and from giving a node back to its being gone."""
    _boots: dict[GpuName, Mean] = field(default_factory=dict)
    _reclaims: dict[GpuName, Mean] = field(default_factory=dict)
    _ready: set[NodeId] = field(default_factory=set)
    """Nodes there whose boot was counted."""

    def learn(self, nodes: Iterable[NodeRecord]) -> None:
        """Records as they change, each any number of times; one that is gone, once."""
        for node in nodes:
            if node.ready_at is not None and node.id not in self._ready:
                self._ready.add(node.id)
                _add(self._boots, node.gpu, node.ready_at - node.requested_at)
            if node.state == "gone":
                self._ready.discard(node.id)
                if node.released_at is not None and node.gone_at is not None:
                    _add(self._reclaims, node.gpu, node.gone_at - node.released_at)

    def boots(self, gpu_types: Iterable[GpuName]) -> Mapping[GpuName, Seconds]:
        """Seconds until a node of each type is ready."""
        return {gpu: self._boots.get(gpu, Mean()).after(self.boot_s) for gpu in gpu_types}

    def reclaims(self, gpu_types: Iterable[GpuName]) -> Mapping[GpuName, Seconds]:
        """Seconds until a node of each type that is given back is gone."""
        return {gpu: self._reclaims.get(gpu, Mean()).after(self.reclaim_s) for gpu in gpu_types}


def _add(means: dict[GpuName, Mean], gpu: GpuName, seconds: Seconds) -> None:
    means[gpu] = means.get(gpu, Mean()).add(max(seconds, 0.0))
