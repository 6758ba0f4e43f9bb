"""JCT and spend of a plan: the one copy of the paper's formulas.

A job of class i that runs epoch j on k GPUs of type h holds them for

    E[X_ij] / s_ij^(h)(k)  +  r_i · 1[width or type changed, or j is the first epoch]

seconds. Its JCT is the sum of these times; it pays the price of what it holds for as long as it
holds it. Averages over jobs weight the classes by λ_i. (Theorems on homogeneous and heterogeneous
clusters with `rescaling=False`; "JCT and budget under rescaling" and the definition of
heterogeneous BOA with `rescaling=True`.)
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from boa.model.plan import ClassPlan, Plan
from boa.model.speedup import Floats, stacked_rates
from boa.model.workload import Billing, Epoch, GpuType, JobClass, Workload
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, Usd, UsdPerHour

Routing: TypeAlias = Literal["class", "epoch", "migrate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules of a plan: the moves that a job may make, and the GPUs that it is charged for."""

    rescaling: bool = True
    routing: Routing = "class"
    billing: Billing = "gpu"

    @property
    def one_type_per_job(self) -> bool:
        return self.routing == "class"


def run_times(epochs: Iterable[Epoch], gpu: GpuName, widths: Floats) -> Floats:
    """E[X_ij] / s_ij(k): one row per epoch, one column per width."""
    epochs = list(epochs)
    rates = stacked_rates([epoch.speedups[gpu] for epoch in epochs], widths)
    return np.asarray(np.array([[epoch.work] for epoch in epochs]) / rates)


def billed_gpus(widths: Floats, gpu: GpuType, billing: Billing) -> Floats:
    """The GPUs that are paid for: those used, or all of the nodes they lie on."""
    if billing == "gpu":
        return widths
    return np.asarray(np.ceil(widths / gpu.gpus_per_node) * gpu.gpus_per_node)


def cost_rates(widths: Floats, gpu: GpuType, billing: Billing) -> Floats:
    """Dollars per second of holding each width."""
    return billed_gpus(widths, gpu, billing) * (gpu.price / SECONDS_PER_HOUR)


def rescale_time(job_class: JobClass, rules: Rules) -> Seconds:
    """r_i, or 0 where rescaling takes no time."""
    return job_class.rescale_s if rules.rescaling else 0.0


@dataclass(frozen=True, slots=True)
class Holding:
    """GPUs that a share of a class's jobs holds for a while."""

    share: float
    gpu: GpuType
    width: float
    time: Seconds
    starts: float
    """Starts on these GPUs, the first or a rescaling: 1, or how likely one is."""

    def cost(self, billing: Billing) -> Usd:
        return self.time * float(cost_rates(np.float64(self.width), self.gpu, billing))  # type: ignore[arg-type]


def holdings(
    workload: Workload, job_class: JobClass, plan: ClassPlan, rules: Rules
) -> Iterator[Holding]:
    """Everything a job of the class holds under the plan, in any of its variants or routes."""
    rescale_s = rescale_time(job_class, rules)
    for variant in plan.variants:
        for first, end, name, width in variant.stretches():
            times = run_times(job_class.epochs[first:end], name, np.array([float(width)]))
            held = float(times.sum()) + rescale_s
            yield Holding(variant.share, workload.gpu_types[name], width, held, 1)
    before: dict[tuple[GpuName, float], float] = defaultdict(float)
    for epoch, routes in zip(job_class.epochs, plan.routes, strict=False):
        for route in routes:
            times = run_times([epoch], route.gpu_type, np.array([float(route.width)]))
            # Routes are drawn anew in every epoch: a job may happen to stay where it is.
            starts = 1.0 - before[route.gpu_type, route.width]
            held = float(times[0, 0]) + rescale_s * starts
            yield Holding(
                route.share, workload.gpu_types[route.gpu_type], route.width, held, starts
            )
        before = defaultdict(float)
        for route in routes:
            before[route.gpu_type, route.width] += route.share


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassOutcome:
    """Means over the jobs of one class, and what the class spends per hour."""

    name: str
    jct: Seconds
    cost: Usd
    spend: UsdPerHour
    rescalings: float
    """Per job, the first start included: r is paid for it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Effect of a plan on a workload."""

    average_jct: Seconds
    """E[T] = Σ λ_i E[T_i] / Σ λ_i."""
    objective: Seconds
    """Objective, which is minimised: Σ w_i λ_i E[T_i] / Σ w_i λ_i."""
    spend: UsdPerHour
    """The operating budget Σ λ_i E[cost_i]."""
    classes: tuple[ClassOutcome, ...]


def evaluate(workload: Workload, plan: Plan, rules: Rules | None = None) -> Outcome:
    """JCT and spend of any plan, by the formulas of the theorems."""
    rules = rules or Rules()
    plans = plan.by_class()
    classes = tuple(
        _class_outcome(workload, job_class, plans[job_class.name], rules)
        for job_class in workload.classes
    )
    jobs = list(zip(workload.classes, classes, strict=True))
    return Outcome(
        average_jct=sum(c.arrivals_per_hour * o.jct for c, o in jobs) / workload.arrivals_per_hour,
        objective=sum(c.weight * c.arrivals_per_hour * o.jct for c, o in jobs)
        / workload.weighted_arrivals_per_hour,
        spend=sum(o.spend for o in classes),
        classes=classes,
    )


def _class_outcome(
    workload: Workload, job_class: JobClass, plan: ClassPlan, rules: Rules
) -> ClassOutcome:
    held = list(holdings(workload, job_class, plan, rules))
    cost = sum(h.share * h.cost(rules.billing) for h in held)
    return ClassOutcome(
        name=job_class.name,
        jct=sum(h.share * h.time for h in held),
        cost=cost,
        spend=job_class.arrivals_per_hour * cost,
        rescalings=sum(h.share * h.starts for h in held),
    )
