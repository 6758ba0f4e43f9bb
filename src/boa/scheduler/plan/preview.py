"""Plans for another budget, or for a wished JCT. Pure; changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from boa.errors import InputError, JctTooShort, no_less
from boa.model.job import JobRecord
from boa.model.plan import ClassPlan
from boa.model.speedup import Floats
from boa.model.workload import Workload
from boa.policy.boa import within_reach
from boa.solver.frontier import Frontier, FrontierPoint
from boa.solver.lagrangian import ROUNDING, cheapest, solve_jct
from boa.solver.objective import Rules
from boa.solver.pricing import Pricing
from boa.solver.solution import Solution
from boa.units import Seconds, UsdPerHour

Spread: TypeAlias = tuple[float, ...]
"""JCTs of a class's last jobs, each divided by their mean."""
ENOUGH = 20
"""Jobs of a class from which its spread is told."""
LAST = 200
"""Jobs that a spread is taken from."""
LEVEL = 0.95
SAME = 1e-6
"""Two plans that differ by no more than this are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Previewed:
    """A plan that is not in force."""

    budget: UsdPerHour
    """As asked for; for a wished JCT: the least that reaches it. On the bill."""
    planned_with: UsdPerHour
    """USD per hour that the plan is made with, so that the bill comes out at the budget."""
    solution: Solution
    too_small: UsdPerHour | None = None
    """Where that budget cannot keep up: the least that could. The plan is then the one for it."""

    @property
    def left_over(self) -> UsdPerHour:
        return 0.0 if self.too_small is not None else self.solution.left_over


def for_budget(
    workload: Workload, budget: UsdPerHour, planned_with: UsdPerHour | None = None
) -> Previewed:
    """As the service itself would plan."""
    planned_with = budget if planned_with is None else planned_with
    solution, too_small = within_reach(workload, planned_with)
    return Previewed(
        budget=budget, planned_with=planned_with, solution=solution, too_small=too_small
    )


def for_jct(workload: Workload, rules: Rules, jct: Seconds, gain: float = 1.0) -> Previewed:
    """For the least budget at which the service's plan takes `jct` on average; `gain`: dollars on
    the bill per dollar planned.

    The service minimises the weighted JCT, so this may be more than `boa budget` finds, whose
    plan knows no weights.
    """
    pricing = Pricing.of(workload, rules)
    slowest = cheapest(pricing).average_jct
    try:
        found = solve_jct(pricing, jct)
    except JctTooShort as problem:
        raise _out_of_reach(jct, problem.fastest, slowest) from None
    if jct > slowest * (1 + ROUNDING):
        raise _out_of_reach(jct, _fastest(pricing), slowest)
    return for_budget(workload, found.totals.spend * gain, found.totals.spend)


def _fastest(pricing: Pricing) -> Seconds:
    try:
        return solve_jct(pricing, 0.0).totals.average_jct
    except JctTooShort as problem:
        return problem.fastest


def _out_of_reach(jct: Seconds, fastest: Seconds, slowest: Seconds) -> InputError:
    expected = f"{no_less(fastest)} to {slowest:.6g} s, what the fastest and the cheapest plan take"
    return InputError("jct_s", jct, expected)


# How far the slowest jobs are from the mean


def spread_of(jobs: Sequence[JobRecord]) -> Spread:
    """The spread of a class's JCTs, newest first; jobs that did not succeed say nothing."""
    jcts = [
        job.ended_at - job.submitted_at
        for job in jobs
        if job.state == "succeeded" and job.ended_at is not None
    ][:LAST]
    mean = sum(jcts) / len(jcts) if jcts else 0.0
    return tuple(jct / mean for jct in jcts) if mean > 0 else ()


def arriving(workload: Workload) -> list[str]:
    """Classes that a mean over all jobs is made of."""
    return [c.name for c in workload.classes if c.arrivals_per_hour > 0]


def p95_jct(solution: Solution, spreads: Mapping[str, Spread]) -> Seconds | None:
    """The JCT that 19 of 20 jobs stay below: every class's mean, times the spread that its last
    jobs had around theirs. None where too few have ended to tell.

    Nobody knows which variant a job of the past had, so their differences are part of the spread,
    which is taken to stay as it is: each variant's own JCT would count them twice.
    """
    if any(len(spreads.get(name, ())) < ENOUGH for name in arriving(solution.workload)):
        return None
    jcts: list[Floats] = []
    weights: list[Floats] = []
    for job_class, outcome in zip(solution.workload.classes, solution.outcome.classes, strict=True):
        if job_class.arrivals_per_hour > 0:
            spread = np.array(spreads[job_class.name])
            jcts.append(outcome.jct * spread)
            each = job_class.arrivals_per_hour / len(spread)
            weights.append(np.full(len(spread), each))
    return _quantile(np.concatenate(jcts), np.concatenate(weights), LEVEL) if jcts else None


def _quantile(values: Floats, weights: Floats, level: float) -> float:
    """The least value that so much of the weight is not above."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    at = int(np.searchsorted(below, level * below[-1] * (1 - 1e-12)))
    return float(values[order[at]])


# How two plans, and the points of a frontier, compare


def differs(one: ClassPlan, other: ClassPlan) -> bool:
    """Whether any width, type or share does."""
    before, after = _shares(one), _shares(other)
    return any(
        abs(before.get(key, 0.0) - after.get(key, 0.0)) > SAME for key in before.keys() | after
    )


def _shares(plan: ClassPlan) -> dict[object, float]:
    found: dict[object, float] = {}
    for variant in plan.variants:
        key: object = (variant.gpu_types, tuple(round(width, 6) for width in variant.widths))
        found[key] = found.get(key, 0.0) + variant.share
    for epoch, routes in enumerate(plan.routes):
        for route in routes:
            key = (epoch, route.gpu_type, round(route.width, 6))
            found[key] = found.get(key, 0.0) + route.share
    return found


def thinned(frontier: Frontier, most: int) -> list[FrontierPoint]:
    """At most so many of its breakpoints, both ends among them: as even as can be along the
    curve as it is drawn, with both axes logarithmic."""
    points = frontier.breakpoints()
    if len(points) <= most:
        return points
    steps = np.diff(np.log([frontier.budgets, frontier.average_jcts]), axis=1)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*steps))])
    wanted = np.linspace(0.0, along[-1], most)
    at = np.unique(np.searchsorted(along, wanted * (1 - 1e-12)))
    return [points[0], *(points[k] for k in at.tolist() if 0 < k < len(points) - 1), points[-1]]
