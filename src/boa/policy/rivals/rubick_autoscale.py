"""Rubick-with-Autoscaling (the paper's appendix): Rubick on a cluster held near an efficiency."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from boa.model.cluster import ClusterView, Decision, JobId
from boa.placement.packing import resized
from boa.policy.rivals.autoscale import (
    closest_size,
    contribution,
    efficiency,
    outside_band,
    ready_nodes,
)
from boa.policy.rivals.rubick import Request, allot, cluster_type, held_by, requests_of, seat

MOST_NODES = 64
"""No cluster is tried beyond this, however many jobs there are."""


@dataclass(frozen=True, slots=True)
class RubickAutoscale:
    """Rubick's own rule at the cluster size whose efficiency is closest to the target.

    A job of a large base raises the efficiency when the cluster becomes large enough for it, so
    efficiency does not fall with size and every size has to be tried.
    """

    target: float
    """c, between 0 and 1."""
    by_base: bool = False
    """Count a job's base GPUs as fully used; see `autoscale.contribution`."""
    queueing: bool = False
    """Also choose sizes at which jobs have to wait for others, as the paper's variant does.

    It then leaves jobs of a large base waiting for as long as the efficiency is good without them,
    which makes it a weaker rival at any cost that the default can reach; below, it is the only way.
    By default a size must put every job on its base width.
    """
    most_nodes: int = MOST_NODES
    by_job: ClassVar[bool] = False

    @property
    def name(self) -> str:
        reading = "-by-base" if self.by_base else "-queueing" if self.queueing else ""
        return f"rubick-autoscale{reading}"

    def decide(self, view: ClusterView) -> Decision:
        gpu, per_node = cluster_type(view)
        requests = requests_of(view, gpu)
        current = held_by(view.jobs)
        here = sum(node.gpu == gpu for node in view.nodes)
        booting = len(ready_nodes(view, view.nodes)) < len(view.nodes)
        count = self.size(requests, here, per_node, booting=booting)
        nodes = resized(view.nodes, {gpu: count}, view.gpu_types, current, view.next_node)
        ready = ready_nodes(view, nodes)
        widths = allot(requests, len(ready) * per_node)
        return Decision(placements=seat(widths, current, ready, gpu, per_node), nodes=nodes)

    def size(
        self, requests: Sequence[Request], here: int, per_node: int, *, booting: bool = False
    ) -> int:
        """How many nodes to have: as many as there are while their efficiency is in the band.

        While some of them boot, what counts is what jobs will have once all are ready.
        """
        if not requests:
            return 0
        held = {request.id: request.held for request in requests if request.held}
        if booting:
            held = allot(requests, here * per_node)
        now = self.efficiency(requests, held, here * per_node)
        settled = bool(held) and (self.queueing or len(held) == len(requests))
        if settled and not outside_band(now, self.target):
            return here
        tried = {
            nodes: allot(requests, nodes * per_node)
            for nodes in range(1, self._enough(requests, per_node) + 1)
        }
        return closest_size(
            self._feasible(requests, tried) or [here],
            lambda nodes: self.efficiency(requests, tried[nodes], nodes * per_node),
            self.target,
        )

    def _feasible(
        self, requests: Sequence[Request], tried: Mapping[int, Mapping[JobId, int]]
    ) -> list[int]:
        """Sizes at which every job runs at its base width; else those at which anybody runs."""
        if not self.queueing:
            entries = [(request.id, request.curve.entry) for request in requests]
            roomy = [
                nodes
                for nodes, widths in tried.items()
                if all(widths.get(job, 0) >= entry for job, entry in entries)
            ]
            if roomy:
                return roomy
        return [nodes for nodes, widths in tried.items() if widths]

    def efficiency(
        self, requests: Sequence[Request], widths: Mapping[JobId, int], gpus: int
    ) -> float:
        """Efficiency of a cluster of so many GPUs on which jobs run at these widths."""
        return efficiency(
            (
                contribution(
                    request.curve.speeds[widths[request.id]] / request.curve.base,
                    request.curve.base,
                    by_base=self.by_base,
                )
                for request in requests
                if request.id in widths
            ),
            gpus,
        )

    def _enough(self, requests: Sequence[Request], per_node: int) -> int:
        """Nodes on which every job has the widest width worth having."""
        gpus = sum(max(request.curve.speeds) for request in requests)
        return min(-(-gpus // per_node), self.most_nodes)
