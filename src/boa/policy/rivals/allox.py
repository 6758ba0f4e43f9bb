"""AlloX (EuroSys'20): jobs matched to GPU types and places in line, for the least average JCT.

A job that is i-th from the end of a line delays i jobs, itself among them, by its own time. The
cheapest matching of jobs to lines and places is the schedule of least total JCT; whoever is first
in a line starts, and runs to its end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from boa.model.cluster import ClusterView, Decision, JobId, JobView
from boa.model.speedup import Floats
from boa.one_thread import for_one_thread
from boa.placement.pool import Pool
from boa.policy.rivals.outlook import Outlooks
from boa.policy.rivals.reservation import asked_width, pools_of
from boa.units import GpuName

NEVER = 1e15
"""Seconds of a job where it cannot run."""
DEEPEST = 4
"""Times as long as on average that a line may become, and places more: a bound on the work."""


@dataclass(frozen=True, slots=True)
class AlloX:
    """On the nodes there are; a line is as many GPUs of a type as jobs ask for on average."""

    name: str = "allox"
    by_job: ClassVar[bool] = False

    def decide(self, view: ClusterView) -> Decision:
        pools = pools_of(view)
        placed = {
            job.id: pools[job.allocation.gpu].hold(job.allocation.nodes)
            for job in view.jobs
            if job.allocation is not None and pools[job.allocation.gpu].fits(job.allocation)
        }
        waiting = [job for job in view.jobs if job.id not in placed]
        if waiting:
            mean = float(np.mean([asked_width(job) for job in view.jobs]))
            lines = {gpu: _lines(pool, mean) for gpu, pool in pools.items()}
            seconds = self._seconds(view, waiting, pools)
            full: set[GpuName] = set()
            for job, gpu in matched(waiting, seconds, lines):
                if gpu in full:
                    continue
                found = pools[gpu].take(asked_width(job), spread=True)
                if found is None:  # others would keep it from ever starting
                    full.add(gpu)
                else:
                    placed[job.id] = found
        return Decision(placements=placed, nodes=tuple(view.nodes))

    def _seconds(
        self, view: ClusterView, jobs: Sequence[JobView], pools: Mapping[GpuName, Pool]
    ) -> Floats:
        """Seconds that every job has yet to run on every type, at the width asked for."""
        outlooks, found = Outlooks(view.gpu_types), np.full((len(jobs), len(pools)), NEVER)
        for row, job in enumerate(jobs):
            seen, width = outlooks.of(job), asked_width(job)
            for column, (gpu, pool) in enumerate(pools.items()):
                at = None if seen is None else seen.column_of(gpu, width)
                if seen is not None and at is not None and width <= len(pool.free) * pool.per_node:
                    found[row, column] = min(seen.rest(job.epoch, job.left)[at], NEVER)
        return found


def _lines(pool: Pool, mean_width: float) -> int:
    return max(round(len(pool.free) * pool.per_node / mean_width), 1) if pool.free else 0


def matched(
    jobs: Sequence[JobView], seconds: Floats, lines: Mapping[GpuName, int]
) -> list[tuple[JobView, GpuName]]:
    """Jobs and their types, first in line first: those last from the end start now."""
    with for_one_thread():  # half a second that few need
        from scipy.optimize import linear_sum_assignment

    types, even = list(lines), -(-len(jobs) // max(sum(lines.values()), 1))
    deep = min(len(jobs), DEEPEST * even + DEEPEST)
    places = [
        (column, place)
        for column, gpu in enumerate(types)
        for _ in range(lines[gpu])
        for place in range(1, deep + 1)
    ]
    columns, depth = np.array(places).T
    rows, chosen = linear_sum_assignment(seconds[:, columns] * depth)
    order: list[tuple[int, float, JobId, JobView, GpuName]] = []
    for row, at in zip(rows.tolist(), chosen.tolist(), strict=True):
        took = float(seconds[row, columns[at]])
        if took < NEVER:
            job = jobs[row]
            order.append((-int(depth[at]), took, job.id, job, types[columns[at]]))
    return [(job, gpu) for *_, job, gpu in sorted(order, key=lambda one: one[:3])]
