"""Trials: widths that nobody has run, tried by few jobs where what they may show is worth it.

A plan is made from what is expected; beside it stands what is hoped for (`Workload.hopes`). At the
plan's own price of money, a class's best way through training by its hopes is a *trial* if it would
be better than its plan by `WORTH`, and if what it may save to the jobs of a day, times the
`CHANCE` that it does, is more than what it is expected to cost the one that tries. Jobs that try
are dealt by their serial number: one in five of a class, of its first five the first.

What trials are expected to cost is taken out of the budget before the plan is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from boa.errors import BudgetTooSmall
from boa.model.plan import ClassPlan, Plan, Variant
from boa.model.workload import JobClass, Workload
from boa.solver.assemble import plan_of
from boa.solver.lagrangian import cheapest
from boa.solver.objective import ClassOutcome, Rules, evaluate
from boa.solver.planner import plan as solve
from boa.solver.pricing import Pricing
from boa.solver.solution import Solution
from boa.units import UsdPerHour

GOLDEN = 0.6180339887498949
TRIERS = 0.2
"""Share of a class's jobs that try what nobody has run."""
WORTH = 0.02
"""Part of what its jobs add to the objective that a class must hope to save."""
CHANCE = 0.1
"""How likely a hope is taken to come true."""
LEAST_PRICE = 1e-12
"""The price of money where a plan has more of it than it can use: just enough to break ties."""
HORIZON_H = 24.0
"""Hours of arrivals that will gain by what a trial shows: what is learned is of use for a day."""
MOST = 0.05
"""Part of the budget that all trials together may be expected to cost."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Trials of a plan, by class."""

    variants: Mapping[str, Variant] = field(default_factory=dict)
    spend: UsdPerHour = 0.0
    """Expected to be spent more (or less) than without them."""

    def variant(self, job_class: str, serial: int) -> Variant | None:
        """The trial of the job that so many of its class came before; None: it follows the plan."""
        found = self.variants.get(job_class)
        return found if found is not None and tries(serial) else None


def tries(serial: int) -> bool:
    """Whether the job that so many of its class came before is one of those that try."""
    return (serial * GOLDEN) % 1.0 < TRIERS


def hopeful(workload: Workload) -> Workload:
    """The workload as trials may find it."""
    classes = tuple(workload.hopes.get(c.name, c) for c in workload.classes)
    return replace(workload, classes=classes, hopes={})


def cheapest_hoped(workload: Workload) -> UsdPerHour:
    """The least spend that keeps up if all that is uncertain turns out well."""
    return cheapest(Pricing.of(hopeful(workload), Rules())).spend


def with_trials(solution: Solution) -> tuple[Solution, Trials]:
    """The plan with its trials, within its budget together."""
    found = trials_of(solution)
    if found.spend <= 0:
        return solution, found
    try:
        return solve(solution.workload, solution.budget - found.spend), found
    except BudgetTooSmall:
        return solution, Trials()  # nothing is left to try with


def trials_of(solution: Solution) -> Trials:
    """Trials that are worth it at the plan's price of money; if all together cost too much, the
    dearest are left out."""
    workload = solution.workload
    if not workload.hopes:
        return Trials()
    price = max(solution.shadow_price, LEAST_PRICE)
    pricing = Pricing.of(hopeful(workload), solution.rules)
    vertices = [pricing.best(n, price) for n in range(len(workload.classes))]
    ways = plan_of(pricing.tables, vertices).classes
    found = []
    for n, job_class in enumerate(workload.classes):
        trial, hope, planned = ways[n].variants[0], vertices[n], solution.outcome.classes[n]
        if job_class.name not in workload.hopes:
            continue
        expected = _alone(solution, job_class, trial)
        weight = job_class.weight / workload.weighted_arrivals_per_hour
        now = weight * planned.jct + price * planned.cost
        gain = now - (weight * hope.time + price * hope.cost)
        cost = weight * expected.jct + price * expected.cost - now
        day = job_class.arrivals_per_hour * HORIZON_H
        if gain > WORTH * now and CHANCE * gain * day > cost:
            extra = TRIERS * job_class.arrivals_per_hour * (expected.cost - planned.cost)
            found.append((extra, job_class.name, trial))
    found.sort(key=lambda one: one[:2])
    while found and sum(extra for extra, _, _ in found) > MOST * solution.budget:
        found.pop()
    spend = sum(extra for extra, _, _ in found)
    return Trials({name: trial for _, name, trial in found}, spend)


def _alone(solution: Solution, job_class: JobClass, variant: Variant) -> ClassOutcome:
    """Expected outcome of one class, all of its jobs on this variant."""
    alone = replace(solution.workload, classes=(job_class,), hopes={})
    plan = Plan((ClassPlan(name=job_class.name, variants=(replace(variant, share=1.0),)),))
    return evaluate(alone, plan, solution.rules).classes[0]
