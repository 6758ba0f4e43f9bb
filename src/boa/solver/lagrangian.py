"""The exact solver: one multiplier on the budget, one shortest path per class.

The budget alone couples the classes. A *walk* over what is known of the classes' frontiers gives
the best plan made of known sequences, and the multiplier μ at which it stops; asking every class
for its optimum at μ either proves the plan (nothing new) or adds a sequence (column generation).
The last edge is taken in part: a share of one class's jobs runs its faster sequence, the others
the slower one, and the budget is met exactly with zero gap.
"""

from collections.abc import Callable
from dataclasses import dataclass

from boa.errors import BudgetTooSmall, JctTooShort
from boa.solver.pricing import Pricing
from boa.solver.walk import Stop, Totals, Walk, walk_of
from boa.units import Seconds, UsdPerHour

ROUNDING = 1e-9
"""Relative slack that arithmetic may need: a budget this close under the cheapest is feasible."""
_SAFE = 1e-12
"""How far short of a limit to stop, so that rounding never carries a plan over it."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best mixed plan, and the multiplier that proves it."""

    stop: Stop
    totals: Totals
    lower_bound: Seconds
    multiplier: float
    rounds: int


def solve_budget(pricing: Pricing, budget: UsdPerHour) -> Optimum:
    """The shortest (weighted) average JCT at a spend of at most the budget."""

    def affordable(before: Totals, after: Totals) -> float:
        if after.spend <= budget:
            return 1.0
        left, price = budget * (1 - _SAFE) - before.spend, after.spend - before.spend
        return left / price if 0.0 < left < price else 0.0

    _refuse_below_cheapest(pricing, budget)
    return _solve(pricing, affordable, budget)


def solve_jct(pricing: Pricing, jct: Seconds) -> Optimum:
    """The least spend at which the optimal plan's average JCT is at most `jct`."""

    def needed(before: Totals, after: Totals) -> float:
        if before.average_jct <= jct:
            return 0.0
        missing, gain = (
            before.average_jct - jct * (1 - _SAFE),
            before.average_jct - after.average_jct,
        )
        return missing / gain if missing < gain else 1.0

    found = _solve(pricing, needed, None)
    if found.totals.average_jct > jct * (1 + ROUNDING):
        raise JctTooShort(jct, found.totals.average_jct)
    return found


def known_walk(pricing: Pricing) -> Walk:
    return walk_of(pricing.chains, pricing.tables.arrivals.tolist())


def cheapest(pricing: Pricing) -> Totals:
    """The least spend that keeps up with the workload (caps on JCT included)."""
    while asked := [
        (i, q) for i, c in enumerate(pricing.chains) for q in c.questions(float("inf"))
    ]:
        pricing.ask([i for i, _ in asked], [q for _, q in asked])
    walk = known_walk(pricing)
    return walk.totals(walk.start)


def _refuse_below_cheapest(pricing: Pricing, budget: UsdPerHour) -> None:
    needed = cheapest(pricing).spend
    if budget < needed * (1 - ROUNDING):
        raise BudgetTooSmall(budget, needed)


def _solve(
    pricing: Pricing, share: Callable[[Totals, Totals], float], budget: UsdPerHour | None
) -> Optimum:
    rounds = 0
    while True:
        rounds += 1
        walk = known_walk(pricing)
        stop = walk.until(share)
        mu = stop.multiplier
        asked = [(i, q) for i, chain in enumerate(pricing.chains) for q in chain.questions(mu)]
        if not asked:
            break
        pricing.ask([i for i, _ in asked], [q for _, q in asked])
    totals = walk.totals(stop.points)
    spent = totals.spend if budget is None else budget
    bound = totals.objective + mu * (totals.spend - spent)
    return Optimum(stop, totals, min(bound, totals.objective), mu, rounds)
