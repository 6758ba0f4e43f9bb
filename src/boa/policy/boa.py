"""BOA: fixed widths by class and epoch from a plan; nobody queues.

A job picks its variant when it arrives and keeps it: the plan may change while it runs, but a
change would cost it a rescaling, and plans are flat near their optimum. Variants are dealt out
along the golden ratio, so that after any number of jobs each share is met to within a few jobs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boa.errors import BudgetTooSmall
from boa.model.cluster import ClusterView, Decision, Forecast, JobView, Share
from boa.model.plan import Plan, Variant
from boa.model.workload import Workload
from boa.solver.planner import plan as solve
from boa.solver.solution import Solution
from boa.units import Seconds, UsdPerHour

GOLDEN = 0.6180339887498949
REPLAN_S: Seconds = 900.0
"""How often the widths are computed anew, if predictions have changed (the paper: 15 minutes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What BOA remembers: its plan, and of which forecast and when it was made."""

    solution: Solution
    version: int
    at: Seconds
    plans: int = 1
    by_class: Mapping[str, tuple[Variant, ...]] = field(default_factory=dict)

    @property
    def report(self) -> dict[str, Any]:
        return {
            "planned_jct_s": self.solution.average_jct,
            "planned_spend_per_hour": self.solution.spend,
            "plans": self.plans,
        }


@dataclass(frozen=True, slots=True)
class Boa:
    budget: UsdPerHour
    replan_s: Seconds = REPLAN_S
    name: str = "boa"
    by_job: bool = True
    """Decides job by job, so it may be asked at events."""

    def decide(self, view: ClusterView) -> Decision:
        planned = self._planned(view)
        return Decision(shares={job.id: _share(planned, job) for job in view.jobs}, memory=planned)

    def _planned(self, view: ClusterView) -> Planned:
        known: Planned | None = view.memory
        assert view.forecast is not None, "BOA plans from a forecast"
        if known is None:
            return _first(view.forecast, self.budget, view.now)
        if view.now < known.at + self.replan_s or view.forecast.version == known.version:
            return known
        return _again(known, view.forecast, self.budget, view.now)


def _first(forecast: Forecast, budget: UsdPerHour, now: Seconds) -> Planned:
    solution = solve(forecast.workload(), budget)
    return Planned(
        solution=solution, version=forecast.version, at=now, by_class=_variants(solution.plan)
    )


def _again(known: Planned, forecast: Forecast, budget: UsdPerHour, now: Seconds) -> Planned:
    solution = _within_reach(forecast.workload(), budget)
    return Planned(
        solution=solution,
        version=forecast.version,
        at=now,
        plans=known.plans + 1,
        by_class=_variants(solution.plan),
    )


def _within_reach(workload: Workload, budget: UsdPerHour) -> Solution:
    """While jobs run, a budget that turns out too small buys the cheapest plan."""
    try:
        return solve(workload, budget)
    except BudgetTooSmall as problem:
        return solve(workload, problem.needed * (1 + 1e-9))


def _variants(plan: Plan) -> dict[str, tuple[Variant, ...]]:
    return {planned.name: planned.variants for planned in plan.classes}


def _share(planned: Planned, job: JobView) -> Share:
    variant = job.note if job.note is not None else _dealt(planned.by_class[job.job_class], job)
    gpu, width = variant.gpu_types[job.epoch], int(variant.widths[job.epoch])
    return Share(gpu, width, _next_change(variant, job.epoch), variant)


def _dealt(variants: tuple[Variant, ...], job: JobView) -> Variant:
    """The variant whose stretch of [0, 1) this job falls on."""
    at = ((job.serial + 1) * GOLDEN) % 1.0
    for variant in variants:
        at -= variant.share
        if at < 0:
            return variant
    return variants[-1]


def _next_change(variant: Variant, epoch: int) -> int | None:
    here = (variant.gpu_types[epoch], variant.widths[epoch])
    for later in range(epoch + 1, len(variant.widths)):
        if (variant.gpu_types[later], variant.widths[later]) != here:
            return later
    return None
