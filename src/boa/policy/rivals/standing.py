"""A fixed cluster for a service: rented when there are jobs, given back when there are none."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from boa.model.cluster import ClusterView, Decision, Policy
from boa.placement.packing import resized
from boa.policy.rivals.autoscale import ready_nodes
from boa.units import GpuName


@dataclass(frozen=True, slots=True)
class Standing:
    """A policy that shares out the nodes there are, with so many nodes of every type."""

    policy: Policy
    counts: Mapping[GpuName, int]
    by_job: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.policy.name

    def decide(self, view: ClusterView) -> Decision:
        if not view.jobs:
            return Decision(nodes=())
        held = {job.id: job.allocation for job in view.jobs if job.allocation is not None}
        nodes = resized(view.nodes, self.counts, view.gpu_types, held, view.next_node)
        decision = self.policy.decide(replace(view, nodes=ready_nodes(view, nodes)))
        return replace(decision, nodes=nodes)
