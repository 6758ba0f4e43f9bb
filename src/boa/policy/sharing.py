"""Plans for a budget that teams share, as policies follow them: at one price of money.

Every budget of the tree has a price of its own, and policies know one. A class whose dollars count
twice as much as others' decides as one whose seconds count half: so its weight is divided by how
dear its payer's money is against the others', and one price does for all.
"""

import math
from dataclasses import replace

from boa.errors import BudgetTooSmall, InputError
from boa.model.budgets import Budget
from boa.model.workload import JobClass, Workload
from boa.policy.boa import within_reach
from boa.policy.trials import Trials, trials_of
from boa.solver.planner import plan_shared
from boa.solver.solution import Solution
from boa.units import UsdPerHour

DEAREST = 20.0
"""Times that a team's money counts more, or less, than the others' at most: beyond that it is as
good as gone, or of no use."""
HALVINGS = 6
"""Times that shares are halved, if they cannot all be had, before they are given up."""


def within_shares(workload: Workload, tree: Budget) -> tuple[Solution, UsdPerHour | None]:
    """While jobs run, shares and ceilings that cannot all be kept are loosened, and a budget that
    is too small buys the cheapest plan. With it comes what that plan needs, if it is."""
    for attempt in range(HALVINGS + len(tuple(tree.every))):
        try:
            return at_one_price(plan_shared(workload, tree)), None
        except BudgetTooSmall as problem:
            if not problem.whose:
                break
            tree = _with_ceiling(tree, problem.whose, problem.needed * (1 + 1e-9))
        except InputError:
            tree = _with_shares(tree, 0.5 if attempt < HALVINGS else 0.0)
    return within_reach(workload, tree.per_hour)


def with_shared_trials(
    solution: Solution, workload: Workload, tree: Budget
) -> tuple[Solution, Trials]:
    """The plan with its trials, within its budget together."""
    found = trials_of(solution)
    if found.spend <= 0:
        return solution, found
    left = 1.0 - found.spend / tree.per_hour
    planned, needed = within_shares(workload, tree.scaled(left))
    return (planned, found) if needed is None else (solution, Trials())


def at_one_price(solution: Solution) -> Solution:
    """The same plan, its classes weighted so that one price of money tells all of them what to do:
    the mean of their own, by what they spend."""
    workload = solution.workload
    spends = [found.spend for found in solution.outcome.classes]
    priced = [(mu, spend) for mu, spend in zip(solution.multipliers, spends, strict=True) if mu]
    total = sum(spend for _, spend in priced)
    if not total:
        return solution
    common = math.exp(sum(spend * math.log(mu) for mu, spend in priced) / total)
    dear = {
        found.name: _dearness(mu, common)
        for found, mu in zip(workload.classes, solution.multipliers, strict=True)
    }

    def weighed(found: JobClass) -> JobClass:
        return replace(found, weight=found.weight / dear[found.name])

    weighted = replace(
        workload,
        classes=tuple(weighed(found) for found in workload.classes),
        hopes={name: weighed(found) for name, found in workload.hopes.items()},
    )
    scale = workload.weighted_arrivals_per_hour / weighted.weighted_arrivals_per_hour
    return replace(solution, workload=weighted, shadow_price=common * scale)


def _dearness(multiplier: float, common: float) -> float:
    return min(max(multiplier / common, 1.0 / DEAREST), DEAREST)


def _with_ceiling(tree: Budget, name: str, most: UsdPerHour) -> Budget:
    parts = tuple(_with_ceiling(part, name, most) for part in tree.parts)
    return replace(tree, parts=parts, max_per_hour=most if tree.name == name else tree.max_per_hour)


def _with_shares(tree: Budget, factor: float) -> Budget:
    """Rights of parts, so many times."""
    parts = tuple(
        replace(_with_shares(part, factor), per_hour=part.per_hour * factor) for part in tree.parts
    )
    return replace(tree, parts=parts)
