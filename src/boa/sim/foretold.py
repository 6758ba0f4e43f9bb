"""The bill and the JCT that BOA will reach where nodes are billed, foretold by simulation.

No formula knows how jobs share nodes that boot; the service's own scheduler does. A workload's
classes are drawn as Poisson arrivals and simulated with their own curves. What is carried over from
there is how far the JCT was above its bound, and the bill above its budget: these are much the same
in every draw, while the JCT itself hangs on how many long jobs happened to come. A draw that came
out heavier than the workload is given more money by as much as its cheapest plan takes more.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boa.catalogue.arrivals import spec_of_mix, synthetic_trace
from boa.errors import BudgetTooSmall
from boa.model.profile import ClassProfile
from boa.model.speedup import Floats
from boa.model.trace import Trace
from boa.model.workload import JobClass, Workload
from boa.policy.registry import Knobs, choose
from boa.sim.bound import bound_jct
from boa.sim.physics import TableTruth
from boa.sim.run import World, simulate
from boa.sim.settings import Settings
from boa.solver.planner import plan
from boa.units import GpuName, Seconds, UsdPerHour

JOBS = 240
"""Jobs of a draw."""
DRAWS = 3
STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}
"""Two-sided 95 % for so many draws; more are taken for five."""
ANY: UsdPerHour = 1e12
"""More than any plan spends."""
TIED = 1e-9
"""Part of a budget within which it is the cheapest."""
WIDEST = 128
"""Widths beyond are left out: no market of a few hundred jobs gives that many to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A mean over draws, and how far it may be off: half the 95 % interval."""

    mean: float
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    bill: Figure
    """USD per hour."""
    jct: Figure
    """Seconds."""
    over_bound: Figure
    """JCT over that of the exact plan by the GPU, without boots, for the same bill."""
    draws: int
    jobs: int
    """Jobs of a draw."""

    def document(self) -> dict[str, Any]:
        """JSON: means over draws, each with half its 95 % interval."""
        return {
            "by": "simulation",
            "bill_per_hour": self.bill.mean,
            "bill_error_per_hour": self.bill.error,
            "average_jct_s": self.jct.mean,
            "jct_error_s": self.jct.error,
            "jct_over_bound": self.over_bound.mean,
            "draws": self.draws,
            "jobs": self.jobs,
        }


def foretold(
    workload: Workload,
    budget: UsdPerHour,
    *,
    boot_s: Seconds,
    reclaim_s: Seconds = 0.0,
    draws: int = DRAWS,
    jobs: int = JOBS,
    progress: Callable[[int], None] = lambda done: None,
) -> Foretold:
    """`progress` is told how many draws are done."""
    settings = Settings(
        interval_s=60.0,
        provision_s=boot_s,
        reclaim_s=reclaim_s,
        learning="perfect",
        billing="node",
    )
    cheapest = plan(workload, ANY).cheapest
    if budget < cheapest * (1 - TIED):
        raise BudgetTooSmall(budget, cheapest)
    bills, ratios = [], []
    for seed in range(draws):
        world = _world(workload, jobs, seed)
        heavier = plan(world.workload, ANY).cheapest / cheapest
        choice = choose("boa", Knobs(budget=budget * heavier * (1 + TIED)), "node")
        found = simulate(world, choice, settings)
        bound = bound_jct(world, found.bill_per_hour)
        if bound is not None:
            bills.append(found.bill_per_hour / heavier)
            ratios.append(found.average_jct / bound)
        progress(seed + 1)
    if not bills:
        raise BudgetTooSmall(budget, cheapest)
    bill, ratio = _figure(bills), _figure(ratios)
    least = plan(workload, max(bill.mean, cheapest * (1 + TIED))).average_jct
    jct = Figure(mean=ratio.mean * least, error=ratio.error * least)
    return Foretold(bill=bill, jct=jct, over_bound=ratio, draws=len(bills), jobs=jobs)


def _figure(found: Sequence[float]) -> Figure:
    """Mean and error; of one draw alone nothing is known of the error."""
    count = len(found)
    spread = float(np.std(found, ddof=1)) if count > 1 else math.inf
    error = STUDENT.get(count, STUDENT[5]) * spread / math.sqrt(count)
    return Figure(mean=float(np.mean(found)), error=error)


def _world(workload: Workload, jobs: int, seed: int) -> World:
    trace = _trace(workload, jobs, seed)
    names: dict[str, dict[str, float]] = {c.name: {} for c in workload.classes}
    for job in trace.jobs:
        names[job.application][job.name] = 1.0
    truths = {
        c.name: TableTruth(profile=_profile(c, workload), scales=names[c.name] or {"": 1.0})
        for c in workload.classes
    }
    return World(trace=trace, truths=truths, gpu_types=workload.gpu_types, slowdown="none")


def _trace(workload: Workload, jobs: int, seed: int) -> Trace:
    mix = {c.name: c.arrivals_per_hour for c in workload.classes}
    rate = workload.arrivals_per_hour
    return synthetic_trace(spec_of_mix(mix, jobs=jobs, arrivals_per_hour=rate), seed)


def _profile(job_class: JobClass, workload: Workload) -> ClassProfile:
    return ClassProfile(
        name=job_class.name,
        work=tuple(epoch.work for epoch in job_class.epochs),
        rates={
            gpu: _rates(job_class, gpu)
            for gpu in workload.gpu_types
            if any(gpu in epoch.speedups for epoch in job_class.epochs)
        },
        rescale_s=job_class.rescale_s,
    )


def _rates(job_class: JobClass, gpu: GpuName) -> Floats:
    """Epochs × 2 × (K + 1): a workload's curves do not tell one node from several."""
    widths = np.arange(1.0, min(job_class.max_on(gpu), WIDEST) + 1)
    found = np.zeros((len(job_class.epochs), 2, len(widths) + 1))
    for n, epoch in enumerate(job_class.epochs):
        base = job_class.base_on(gpu, epoch)
        if base is not None:
            found[n, :, base:] = epoch.speedups[gpu].rates(widths[base - 1 :])
    return found
