"""Pollux: every round, the placement of all jobs whose speedups have the best harmonic mean."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from boa.model.cluster import Allocation, ClusterView, Decision, JobId, JobView, Node, NodeId
from boa.model.speedup import Floats
from boa.policy.rivals.autoscale import normalised_speedup
from boa.policy.rivals.common import WIDEST, least_width, rescale_factor
from boa.policy.rivals.genetic import Counts, Search, evolve
from boa.solver.tables import Ints
from boa.units import GpuName, Seconds

KEPT_SMALL = {"neumf": 1}
"""Classes that the published runs keep on so many GPUs: they are over before they could grow."""


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Last round's search, to start the next from."""

    jobs: tuple[JobId, ...]
    nodes: tuple[NodeId, ...]
    states: Counts
    """population × jobs × nodes"""


@dataclass(frozen=True, slots=True)
class Pollux:
    """On a fixed cluster of one GPU type."""

    seed: int = 0
    name: str = "pollux"
    by_job: ClassVar[bool] = False

    def decide(self, view: ClusterView) -> Decision:
        round_ = Round.of(view, view.nodes[0].gpu if view.nodes else "")
        placed = round_.optimised(view.nodes, view.memory, self.seed)
        return Decision(placements=placed.placements, nodes=tuple(view.nodes), memory=placed.found)


@dataclass(frozen=True, slots=True, eq=False)
class Optimised:
    placements: dict[JobId, Allocation]
    found: Population | None
    speedups: float = 0.0
    """Sum of the jobs' speedups over a single GPU."""


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """Jobs of one round in the order of priority, and what of them is the same on any cluster."""

    now: Seconds
    jobs: Sequence[JobView]
    gpu: GpuName
    curves: Sequence[Floats]
    most: Ints
    least: Ints
    factors: Floats
    """Factors that a rescaling would multiply their speedups by."""

    @classmethod
    def of(cls, view: ClusterView, gpu: GpuName) -> "Round":
        jobs = sorted(view.jobs, key=lambda job: (job.service, job.arrival))
        curves = [curve_of(job, gpu) for job in jobs]
        most = [most_gpus(j, gpu, curve) for j, curve in zip(jobs, curves, strict=True)]
        least = [least_width(curve) for curve in curves]
        factors = [rescale_factor(view.now - j.arrival, j.rescalings, j.rescale_s) for j in jobs]
        return cls(
            view.now,
            jobs,
            gpu,
            curves,
            np.array(most, dtype=np.int64),
            np.array(least, dtype=np.int64),
            np.array(factors),
        )

    def optimised(self, nodes: Sequence[Node], last: Population | None, seed: int) -> Optimised:
        """The best placement of the jobs on these nodes."""
        if not self.jobs or not nodes:
            return Optimised({}, None)
        warm = _adapted(last, self.jobs, nodes)
        states = evolve(self.search(nodes), warm, seed=_seed(seed, self.now, len(nodes)))
        ids = tuple(job.id for job in self.jobs), tuple(node.id for node in nodes)
        placements = _placements(states[0], self.jobs, nodes, self.gpu)
        return Optimised(placements, Population(*ids, states), self._speedups(states[0]))

    def search(self, nodes: Sequence[Node]) -> Search:
        per_node = nodes[0].gpus
        fair = -(-sum(node.gpus for node in nodes) // len(self.jobs))
        rates = np.zeros((len(self.jobs), 2, WIDEST + 1))
        for row, curve in zip(rates, self.curves, strict=True):
            width = min(fair, curve.shape[1] - 1)
            share = float(curve[0 if width <= per_node else 1, width])
            row[:, : curve.shape[1]] = curve / share if share > 0 else curve
        at = {node.id: column for column, node in enumerate(nodes)}
        current = np.zeros((len(self.jobs), len(nodes)), dtype=np.int64)
        for n, job in enumerate(self.jobs):
            for node, count in job.allocation.nodes if job.allocation is not None else ():
                if node in at:
                    current[n, at[node]] = count
        return Search(
            rates=rates,
            current=current,
            rescale_factors=self.factors,
            max_gpus=self.most,
            min_gpus=self.least,
            capacity=np.array([node.gpus for node in nodes], dtype=np.int64),
        )

    def _speedups(self, state: Counts) -> float:
        """Σ s̃: how many times faster than on its base all jobs run together."""
        total = 0.0
        widths, spread = state.sum(axis=1).tolist(), np.count_nonzero(state, axis=1).tolist()
        for curve, base, k, n in zip(self.curves, self.least.tolist(), widths, spread, strict=True):
            if k:
                total += normalised_speedup(curve, k, across=n > 1, base=base)
        return total


def curve_of(job: JobView, gpu: GpuName) -> Floats:
    """Predicted rates; a job of which nothing is known is taken to scale perfectly."""
    known = job.prediction.rates(gpu, job.epoch)
    if known is not None:
        return known
    return np.tile(np.arange(WIDEST + 1.0), (2, 1))


def most_gpus(job: JobView, gpu: GpuName, curve: Floats) -> int:
    """A job may grow to twice what it has tried, and to no more than it can use."""
    most = min(KEPT_SMALL.get(job.job_class, WIDEST), int(curve.shape[1]) - 1)
    return min(max(2 * job.tried.get(gpu, 0), 1), most)


def _adapted(last: Population | None, jobs: Sequence[JobView], nodes: Sequence[Node]) -> Counts:
    """Last round's states with today's jobs and nodes; what is new has nothing yet."""
    if last is None:
        return np.zeros((0, len(jobs), len(nodes)), dtype=np.uint8)
    states = _picked(last.states, last.jobs, [job.id for job in jobs], axis=1)
    return _picked(states, last.nodes, [node.id for node in nodes], axis=2)


def _picked(
    states: Counts, names: Sequence[Hashable], wanted: Sequence[Hashable], axis: int
) -> Counts:
    """The slices of these names along an axis; of names that are new, slices of nothing."""
    if tuple(names) == tuple(wanted):
        return states
    at = {name: n for n, name in enumerate(names)}
    picked = states.take([at.get(name, 0) for name in wanted], axis=axis)
    new = [n for n, name in enumerate(wanted) if name not in at]
    picked[(slice(None),) * axis + (new,)] = 0
    return picked


def _placements(
    state: Counts, jobs: Sequence[JobView], nodes: Sequence[Node], gpu: GpuName
) -> dict[JobId, Allocation]:
    placed = {}
    for row, job in zip(state.tolist(), jobs, strict=True):
        held = sorted((nodes[n].id, int(count)) for n, count in enumerate(row) if count)
        if held:
            placed[job.id] = Allocation(gpu, tuple(held))
    return placed


def _seed(seed: int, now: Seconds, nodes: int) -> int:
    """Another draw every round, the same in every run."""
    return (seed * 1_000_003 + round(now) * 8_191 + nodes) & 0x7FFF_FFFF
