"""Pollux with autoscaling: the cluster whose efficiency is closest to a target."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from boa.model.cluster import ClusterView, Decision, Node
from boa.placement.packing import resized
from boa.policy.rivals.autoscale import (
    Ceiling,
    closest_size_monotone,
    efficiency,
    outside_band,
    ready_nodes,
)
from boa.policy.rivals.common import least_width
from boa.policy.rivals.pollux import Optimised, Population, curve_of, most_gpus, optimise
from boa.units import GpuName


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    population: Population | None
    target: float

    @property
    def report(self) -> dict[str, Any]:
        return {"target_efficiency": self.target}


@dataclass(frozen=True, slots=True)
class PolluxAutoscale:
    """Keeps the efficiency within the band around `target`; outside, searches for the size."""

    target: float
    seed: int = 0
    name: str = "pollux-autoscale"
    by_job: ClassVar[bool] = False

    def decide(self, view: ClusterView) -> Decision:
        last = view.memory.population if view.memory is not None else None
        nodes, found = tuple(view.nodes), Optimised({}, last)
        if not view.jobs:
            return Decision(nodes=(), memory=Remembered(None, self.target))
        if nodes:
            found = optimise(view, nodes, last, self.seed)
        if not nodes or outside_band(_efficiency(found, nodes), self.target):
            nodes, found = self._resized(view, nodes, last, found)
        placements, ready = found.placements, ready_nodes(view, nodes)
        if len(ready) < len(nodes):
            placements = optimise(view, ready, found.found, self.seed).placements
        return Decision(
            placements=placements,
            nodes=nodes,
            memory=Remembered(found.found, self.target),
        )

    def _resized(
        self,
        view: ClusterView,
        nodes: tuple[Node, ...],
        last: Population | None,
        here: Optimised,
    ) -> tuple[tuple[Node, ...], Optimised]:
        """The size closest to the target, by binary search: efficiency falls with size."""
        gpu, kind = next(iter(view.gpu_types.items()))
        held = {job.id: job.allocation for job in view.jobs if job.allocation is not None}
        tried = {len(nodes): (nodes, here)} if nodes else {}

        def at(size: int) -> tuple[tuple[Node, ...], Optimised]:
            if size not in tried:
                there = resized(view.nodes, {gpu: size}, view.gpu_types, held, view.next_node)
                tried[size] = (there, optimise(view, there, last, self.seed))
            return tried[size]

        most = [most_gpus(job, gpu, curve_of(job, gpu)) for job in view.jobs]
        ceiling = _ceiling(view, gpu, most)
        size = closest_size_monotone(
            1,
            max(-(-sum(most) // kind.gpus_per_node), 1),
            lambda n: _efficiency(at(n)[1], at(n)[0]),
            self.target,
            lambda n: ceiling.at(n * kind.gpus_per_node),
        )
        return at(size)


def _efficiency(found: Optimised, nodes: tuple[Node, ...]) -> float:
    return efficiency([found.speedups], sum(node.gpus for node in nodes))


def _ceiling(view: ClusterView, gpu: GpuName, most: Sequence[int]) -> Ceiling:
    """No placement has jobs contribute more than they do where every width is at its best."""
    contributions = np.zeros((len(most), max(most) + 1))
    for row, job, widest in zip(contributions, view.jobs, most, strict=True):
        curve = curve_of(job, gpu)
        best = curve.max(axis=0)
        row[: widest + 1] = best[: widest + 1] / (best[least_width(curve)] or 1.0)
    return Ceiling.of(contributions, np.arange(max(most) + 1))
