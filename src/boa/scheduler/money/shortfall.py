"""Whether budget and cap are enough for the jobs that are there, and what happens if not. Pure."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from boa.model.job import JobRecord
from boa.model.workload import GpuType
from boa.scheduler.money.money_state import MoneyState
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.words import of_limits as words
from boa.units import GpuName, UsdPerHour

ROUNDING = 1e-6
"""By so much less than what is needed is still enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    needed: UsdPerHour | None
    """USD per hour, on the bill, of the cheapest plan that keeps up; None: there is no plan."""
    warnings: tuple[str, ...]
    """A sentence for everything that is too little."""


def shortfall(
    money: MoneyState,
    plan: PlanState | None,
    jobs: Collection[JobRecord],
    gpu_types: Mapping[GpuName, GpuType],
) -> Shortfall:
    """`jobs`: active ones; `gpu_types`: all that can be rented."""
    needed = None if plan is None else plan.cheapest * money.gain
    found, cap = [], money.max_spend
    if cap is not None:
        least = {job.id: least_spend(job, gpu_types) for job in jobs}
        known = {job: spend for job, spend in least.items() if spend < math.inf}
        too_large = {job: spend for job, spend in known.items() if spend > cap * (1 + ROUNDING)}
        if too_large:
            others = len(known) > len(too_large)
            found.append(words.too_large_for_cap(cap, too_large, others=others))
    if needed is None or not jobs:
        return Shortfall(needed=needed, warnings=tuple(found))
    if cap is not None and cap < needed * (1 - ROUNDING):
        found.append(words.cap_too_small(cap, needed))
    elif money.usual < needed * (1 - ROUNDING):
        found.append(words.budget_too_small(money, needed))
    return Shortfall(needed=needed, warnings=tuple(found))


def least_spend(job: JobRecord, gpu_types: Mapping[GpuName, GpuType]) -> UsdPerHour:
    """USD per hour of the cheapest nodes that have the fewest GPUs it can run on; infinite where
    no type of its own can be rented."""
    usable = (gpu_types[gpu] for gpu in job.spec.gpus.types or gpu_types if gpu in gpu_types)
    return min(
        (kind.node_price * math.ceil(job.spec.gpus.min / kind.gpus_per_node) for kind in usable),
        default=math.inf,
    )
