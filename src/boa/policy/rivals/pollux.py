"""Pollux: every round, the placement of all jobs whose speedups have the best harmonic mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from boa.model.cluster import Allocation, ClusterView, Decision, JobId, JobView, Node, NodeId
from boa.model.speedup import Floats
from boa.policy.rivals.autoscale import normalised_speedup
from boa.policy.rivals.common import WIDEST, least_width, rescale_factor
from boa.policy.rivals.genetic import Search, evolve
from boa.solver.tables import Ints
from boa.units import GpuName, Seconds

KEPT_SMALL = {"neumf": 1}
"""Classes that the published runs keep on so many GPUs: they are over before they could grow."""


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Last round's search, to start the next from."""

    jobs: tuple[JobId, ...]
    nodes: tuple[NodeId, ...]
    states: Ints
    """population × jobs × nodes"""


@dataclass(frozen=True, slots=True)
class Pollux:
    """On a fixed cluster of one GPU type."""

    seed: int = 0
    name: str = "pollux"
    by_job: ClassVar[bool] = False

    def decide(self, view: ClusterView) -> Decision:
        placed = optimise(view, view.nodes, view.memory, self.seed)
        return Decision(placements=placed.placements, nodes=tuple(view.nodes), memory=placed.found)


@dataclass(frozen=True, slots=True, eq=False)
class Optimised:
    placements: dict[JobId, Allocation]
    found: Population | None
    speedups: float = 0.0
    """Sum of the jobs' speedups over a single GPU."""


def optimise(
    view: ClusterView, nodes: Sequence[Node], last: Population | None, seed: int
) -> Optimised:
    """The best placement of the view's jobs on these nodes."""
    jobs = sorted(view.jobs, key=lambda job: (job.service, job.arrival))
    if not jobs or not nodes:
        return Optimised({}, None)
    gpu = nodes[0].gpu
    curves = [curve_of(job, gpu) for job in jobs]
    search = _search(view.now, jobs, curves, nodes)
    states = evolve(search, _adapted(last, jobs, nodes), seed=_seed(seed, view.now, len(nodes)))
    best = states[0]
    found = Population(tuple(j.id for j in jobs), tuple(n.id for n in nodes), states)
    return Optimised(_placements(best, jobs, nodes, gpu), found, _speedups(best, curves))


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


def _search(
    now: Seconds, jobs: Sequence[JobView], curves: Sequence[Floats], nodes: Sequence[Node]
) -> Search:
    per_node = nodes[0].gpus
    fair = -(-sum(node.gpus for node in nodes) // len(jobs))
    rates = np.zeros((len(jobs), 2, WIDEST + 1))
    most = np.ones(len(jobs), dtype=np.int64)
    for n, (job, curve) in enumerate(zip(jobs, curves, strict=True)):
        width = min(fair, curve.shape[1] - 1)
        share = float(curve[0 if width <= per_node else 1, width])
        rates[n, :, : curve.shape[1]] = curve / share if share > 0 else curve
        most[n] = most_gpus(job, nodes[0].gpu, curve)
    at = {node.id: column for column, node in enumerate(nodes)}
    current = np.zeros((len(jobs), len(nodes)), dtype=np.int64)
    for n, job in enumerate(jobs):
        for node, count in job.allocation.nodes if job.allocation is not None else ():
            if node in at:
                current[n, at[node]] = count
    return Search(
        rates=rates,
        current=current,
        rescale_factors=np.array(
            [rescale_factor(now - j.arrival, j.rescalings, j.rescale_s) for j in jobs]
        ),
        max_gpus=most,
        min_gpus=np.array([least_width(curve) for curve in curves], dtype=np.int64),
        capacity=np.array([node.gpus for node in nodes], dtype=np.int64),
    )


def _adapted(last: Population | None, jobs: Sequence[JobView], nodes: Sequence[Node]) -> Ints:
    """Last round's states with today's jobs and nodes; what is new has nothing yet."""
    if last is None:
        return np.zeros((0, len(jobs), len(nodes)), dtype=np.int64)
    states = np.zeros((len(last.states), len(jobs), len(nodes)), dtype=np.int64)
    row_of = {job: n for n, job in enumerate(last.jobs)}
    column_of = {node: n for n, node in enumerate(last.nodes)}
    rows = [(n, row_of[job.id]) for n, job in enumerate(jobs) if job.id in row_of]
    columns = [(n, column_of[node.id]) for n, node in enumerate(nodes) if node.id in column_of]
    if rows and columns:
        new_rows, old_rows = map(list, zip(*rows, strict=True))
        new_columns, old_columns = map(list, zip(*columns, strict=True))
        kept = last.states[:, old_rows][:, :, old_columns]
        states[np.ix_(range(len(states)), new_rows, new_columns)] = kept
    return states


def _placements(
    state: Ints, jobs: Sequence[JobView], nodes: Sequence[Node], gpu: GpuName
) -> dict[JobId, Allocation]:
    placed = {}
    for row, job in zip(state.tolist(), jobs, strict=True):
        held = sorted((nodes[n].id, int(count)) for n, count in enumerate(row) if count)
        if held:
            placed[job.id] = Allocation(gpu, tuple(held))
    return placed


def _speedups(state: Ints, curves: Sequence[Floats]) -> float:
    """Σ s̃: how many times faster than on its base all jobs run together."""
    total = 0.0
    for row, curve in zip(state, curves, strict=True):
        width = int(row.sum())
        if width:
            across = bool(np.count_nonzero(row) > 1)
            total += normalised_speedup(curve, width, across=across, base=least_width(curve))
    return total


def _seed(seed: int, now: Seconds, nodes: int) -> int:
    """Another draw every round, the same in every run."""
    return (seed * 1_000_003 + round(now) * 8_191 + nodes) & 0x7FFF_FFFF
