"""Pollux with autoscaling: the cluster whose efficiency is closest to a target."""

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
from boa.policy.rivals.pollux import Optimised, Population, Round


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
        round_ = Round.of(view, next(iter(view.gpu_types)))
        if nodes:
            found = round_.optimised(nodes, last, self.seed)
        if not nodes or outside_band(_efficiency(found, nodes), self.target):
            nodes, found = self._resized(view, round_, last, found)
        placements, ready = found.placements, ready_nodes(view, nodes)
        if len(ready) < len(nodes):
            placements = round_.optimised(ready, found.found, self.seed).placements
        return Decision(
            placements=placements,
            nodes=nodes,
            memory=Remembered(found.found, self.target),
        )

    def _resized(
        self,
        view: ClusterView,
        round_: Round,
        last: Population | None,
        here: Optimised,
    ) -> tuple[tuple[Node, ...], Optimised]:
        """The size closest to the target, by binary search: efficiency falls with size."""
        per_node = view.gpu_types[round_.gpu].gpus_per_node
        nodes = tuple(view.nodes)
        held = {job.id: job.allocation for job in view.jobs if job.allocation is not None}
        tried = {len(nodes): (nodes, here)} if nodes else {}

        def at(size: int) -> tuple[tuple[Node, ...], Optimised]:
            if size not in tried:
                sizes = {round_.gpu: size}
                there = resized(view.nodes, sizes, view.gpu_types, held, view.next_node)
                tried[size] = (there, round_.optimised(there, last, self.seed))
            return tried[size]

        ceiling = _ceiling(round_)
        size = closest_size_monotone(
            1,
            max(-(-int(round_.most.sum()) // per_node), 1),
            lambda n: _efficiency(at(n)[1], at(n)[0]),
            self.target,
            lambda n: ceiling.at(n * per_node),
        )
        return at(size)


def _efficiency(found: Optimised, nodes: tuple[Node, ...]) -> float:
    return efficiency([found.speedups], sum(node.gpus for node in nodes))


def _ceiling(round_: Round) -> Ceiling:
    """No placement has jobs contribute more than they do where every width is at its best."""
    widths = np.arange(round_.most.max() + 1)
    contributions = np.zeros((len(round_.jobs), len(widths)))
    for n, (curve, most) in enumerate(zip(round_.curves, round_.most.tolist(), strict=True)):
        best = curve.max(axis=0)
        contributions[n, : most + 1] = best[: most + 1] / (best[round_.least[n]] or 1.0)
    return Ceiling.of(contributions, widths)
