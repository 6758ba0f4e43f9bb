"""The exact solver: one multiplier on the budget, one shortest path per class.

The budget alone couples the classes. A *walk* over what is known of the classes' frontiers gives
the best plan made of known sequences, and the multiplier μ at which it stops; asking every class
for its optimum at μ either proves the plan (nothing new) or adds a sequence (column generation).
The last edge is taken in part: a share of one class's jobs runs its faster sequence, the others
the slower one, and the budget is met exactly with zero gap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from boa.errors import BudgetTooSmall, JctTooShort
from boa.solver.pricing import Pricing
from boa.solver.walk import Stop, Totals, Walk, walk_of
from boa.units import Seconds, UsdPerHour

ROUNDING = 1e-9
"""Relative slack that arithmetic may need: a budget this close under the cheapest is feasible."""
_SAFE = 1e-15
"""The part of a step that is left out, so that rounding does not carry a plan over its limit."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best mixed plan, and the multiplier that proves it."""

    stop: Stop
    totals: Totals
    lower_bound: Seconds
    multiplier: float


def solve_budget(pricing: Pricing, budget: UsdPerHour) -> Optimum:
    """The shortest (weighted) average JCT at a spend of at most the budget."""

    def affordable(before: Totals, after: Totals) -> float:
        if after.spend <= budget:
            return 1.0
        left, price = budget - before.spend, after.spend - before.spend
        return left / price * (1 - _SAFE) if 0.0 < left < price else 0.0

    _refuse_below_cheapest(pricing, budget)
    return _solve(pricing, affordable, budget)


def solve_jct(pricing: Pricing, jct: Seconds) -> Optimum:
    """The least spend at which the optimal plan's average JCT is at most `jct`.

    Where all weights are 1 that is the least spend at which any plan's is.
    """

    def needed(before: Totals, after: Totals) -> float:
        if before.average_jct <= jct:
            return 0.0
        missing, gain = before.average_jct - jct, before.average_jct - after.average_jct
        return min(1.0, missing / gain * (1 + _SAFE)) if missing < gain else 1.0

    found = _solve(pricing, needed, None)
    if found.totals.average_jct > jct * (1 + ROUNDING):
        raise JctTooShort(jct, found.totals.average_jct)
    return found


def known_walk(pricing: Pricing) -> Walk:
    return walk_of(pricing.chains, pricing.tables.arrivals.tolist())


def cheapest(pricing: Pricing) -> Totals:
    """The least spend that keeps up with the workload (caps on JCT included)."""
    before: list[tuple[int, float]] = []
    while asked := [(i, q) for i, c in enumerate(pricing.chains) for q in c.questions(math.inf)]:
        if asked == before:
            break
        before = asked
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
    before: list[tuple[int, float]] = []
    while True:
        walk = known_walk(pricing)
        stop = walk.until(share)
        mu = stop.multiplier
        asked = [(i, q) for i, chain in enumerate(pricing.chains) for q in chain.questions(mu)]
        if not asked or asked == before:  # what is left is below the precision of the numbers
            break
        before = asked
        pricing.ask([i for i, _ in asked], [q for _, q in asked])
    totals = walk.totals(stop.points)
    bound = _dual_value(pricing, mu) - mu * (totals.spend if budget is None else budget)
    return Optimum(stop, totals, min(bound, totals.objective), mu)


def _dual_value(pricing: Pricing, mu: float) -> float:
    """Σ λ_i · min (w_i · time + μ · cost) over what is known of each class's frontier."""
    least = [min(c.weight * p.time + mu * p.cost for p in c.points()) for c in pricing.chains]
    return float(sum(r * v for r, v in zip(pricing.tables.arrivals.tolist(), least, strict=True)))
