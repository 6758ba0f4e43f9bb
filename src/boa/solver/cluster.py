"""How large the cluster will be, if jobs arrive as a Poisson process.

Nobody queues, so the jobs in each stretch of training are an M/G/∞ system: their number is
Poisson with mean λ · share · time, independent of all others. The GPUs in use are the sum of
width × Poisson over all stretches, whose distribution is exact through its generating function.
Real arrivals are burstier than Poisson, and then the spread is larger than shown.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from boa.model.plan import Plan
from boa.model.workload import Workload
from boa.solver.objective import Rules, billed_gpus, holdings
from boa.units import SECONDS_PER_HOUR, GpuName

_EXACT = 1 << 21
"""GPUs up to which the distribution is computed; beyond, it is as good as normal."""


@dataclass(frozen=True, slots=True)
class ClusterSize:
    """GPUs of one type that are paid for at a random moment."""

    mean: float
    std: float
    p95: int


def cluster_sizes(workload: Workload, plan: Plan, rules: Rules) -> dict[GpuName, ClusterSize]:
    """Mean, spread and 95th percentile of the GPUs in use, per GPU type."""
    jobs: dict[GpuName, dict[int, float]] = {
        name: defaultdict(float) for name in workload.gpu_types
    }
    plans = plan.by_class()
    for job_class in workload.classes:
        per_second = job_class.arrivals_per_hour / SECONDS_PER_HOUR
        for held in holdings(workload, job_class, plans[job_class.name], rules):
            billed = billed_gpus(np.array([held.width]), held.gpu, rules.billing)
            gpus = int(np.ceil(billed[0]))
            jobs[held.gpu.name][gpus] += per_second * held.share * held.time
    return {name: _size(means) for name, means in jobs.items()}


def _size(jobs: dict[int, float]) -> ClusterSize:
    """The law of Σ k · Poisson(jobs[k])."""
    mean = sum(k * m for k, m in jobs.items())
    std = float(np.sqrt(sum(k * k * m for k, m in jobs.items())))
    return ClusterSize(mean, std, _percentile(jobs, mean, std, 0.95))


def _percentile(jobs: dict[int, float], mean: float, std: float, level: float) -> int:
    if mean == 0.0:
        return 0
    unit = math.gcd(*jobs)  # whole nodes, say
    # Beyond twelve deviations and a few of the widest jobs nothing is left to wrap around.
    reach = (mean + 12 * std + 4 * max(jobs)) / unit
    if reach > _EXACT:
        from statistics import NormalDist  # which takes longer to load than most plans to find

        return math.ceil(NormalDist(mean, std).inv_cdf(level))
    points = 1 << math.ceil(math.log2(reach + 1))
    turn = -2j * np.pi * np.arange(points // 2 + 1) / points
    terms = (m * (np.exp(turn * (k // unit)) - 1.0) for k, m in jobs.items())
    density = np.fft.irfft(np.exp(sum(terms, np.zeros(len(turn)))), points)
    return unit * int(np.searchsorted(np.cumsum(density), level))
