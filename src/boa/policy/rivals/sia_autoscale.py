"""Sia with autoscaling: every GPU type's cluster keeps the same efficiency, on its own."""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from boa.model.cluster import ClusterView, Decision, JobId, Share
from boa.model.speedup import Floats
from boa.placement.packing import place, resized
from boa.policy.rivals.autoscale import (
    Ceiling,
    closest_size_monotone,
    efficiency,
    outside_band,
    ready_nodes,
)
from boa.policy.rivals.sia import Round
from boa.units import GpuName


@dataclass(frozen=True, slots=True)
class Target:
    efficiency: float

    @property
    def report(self) -> dict[str, Any]:
        return {"target_efficiency": self.efficiency}


@dataclass(frozen=True, slots=True)
class SiaAutoscale:
    target: float
    name: str = "sia-autoscale"
    by_job: ClassVar[bool] = False

    def decide(self, view: ClusterView) -> Decision:
        memory = Target(self.target)
        if not view.jobs:
            return Decision(nodes=(), memory=memory)
        round_ = Round.of(view)
        speedups = _normalised(round_)
        sizes = dict.fromkeys(view.gpu_types, 0)
        for node in view.nodes:
            sizes[node.gpu] += 1
        for gpu in view.gpu_types:
            sizes[gpu] = self._size(view, round_, speedups, sizes, gpu)
        held = {job.id: job.allocation for job in view.jobs if job.allocation is not None}
        nodes = resized(view.nodes, sizes, view.gpu_types, held, view.next_node)
        ready = ready_nodes(view, nodes)
        if len(ready) == len(nodes):
            return Decision(shares=_shares(view, round_, sizes), nodes=nodes, memory=memory)
        sizes = {gpu: sum(node.gpu == gpu for node in ready) for gpu in view.gpu_types}
        placed = place(
            _shares(view, round_, sizes),
            held,
            ready,
            view.gpu_types,
            next_node=view.next_node,
            elastic=False,
        )
        return Decision(placements=placed.allocations, nodes=nodes, memory=memory)

    def _size(
        self,
        view: ClusterView,
        round_: Round,
        speedups: Floats,
        sizes: dict[GpuName, int],
        gpu: GpuName,
    ) -> int:
        """Nodes of one type; the other types stay as they are."""
        per_node = view.gpu_types[gpu].gpus_per_node
        kind = list(view.gpu_types).index(gpu)
        mine = round_.configurations.kinds == kind

        @cache
        def at(nodes: int) -> float:
            chosen = round_.chosen(_capacity(view, {**sizes, gpu: nodes}))
            jobs = np.flatnonzero(chosen >= 0)
            jobs = jobs[mine[chosen[jobs]]]
            return efficiency(speedups[jobs, chosen[jobs]].tolist(), nodes * per_node)

        here = sizes[gpu]
        if here and not outside_band(at(here), self.target):
            return here
        widest = np.where((round_.goodputs > 0) & mine, round_.configurations.gpus, 0)
        high = -(-int(widest.max(axis=1).sum()) // per_node)
        if high == 0:
            return 0
        if at(1) == 0 and (round_.chosen(_capacity(view, {**sizes, gpu: 0})) >= 0).all():
            return 0  # all can do without, and one node is too small for anybody
        if at(high) == 0:  # no job wants this type
            return 0
        # What is too small for anybody has no efficiency: only from there on does it fall.
        low = next(size for size in range(1, high + 1) if at(size) > 0)
        ceiling = Ceiling.of(speedups[:, mine], round_.configurations.gpus[mine])
        return closest_size_monotone(
            low, high, at, self.target, lambda nodes: ceiling.at(nodes * per_node)
        )


def _capacity(view: ClusterView, sizes: dict[GpuName, int]) -> dict[GpuName, int]:
    return {gpu: n * view.gpu_types[gpu].gpus_per_node for gpu, n in sizes.items()}


def _shares(view: ClusterView, round_: Round, sizes: dict[GpuName, int]) -> dict[JobId, Share]:
    return round_.shares(_capacity(view, sizes))


def _normalised(round_: Round) -> Floats:
    """s̃ of every configuration: its goodput over that of the job's least on the same type."""
    speedups = np.zeros_like(round_.goodputs)
    kinds = round_.configurations.kinds
    for kind in np.unique(kinds):
        mine = np.flatnonzero(kinds == kind)
        allowed = np.where(round_.goodputs[:, mine] > 0, round_.goodputs[:, mine], np.inf)
        first = np.argmax(np.isfinite(allowed), axis=1)
        base = allowed[np.arange(len(allowed)), first]
        speedups[:, mine] = round_.goodputs[:, mine] / base[:, None]
    return speedups
