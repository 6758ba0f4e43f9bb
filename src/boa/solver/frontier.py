"""The whole trade-off between budget and JCT, from one sweep over the breakpoints of μ."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from boa.errors import BudgetTooSmall
from boa.model.speedup import Floats
from boa.model.workload import Workload
from boa.solver.lagrangian import ROUNDING, cheapest, known_walk
from boa.solver.objective import Rules
from boa.solver.pricing import Pricing
from boa.units import Seconds, UsdPerHour

Progress = Callable[[int, int], None]
"""Called with the number of edges proven so far and the number known."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    budget: UsdPerHour
    average_jct: Seconds
    objective: Seconds
    lower_bound: Seconds

    @property
    def gap(self) -> float:
        return self.objective / self.lower_bound - 1.0


@dataclass(frozen=True, slots=True)
class Frontier:
    """Every breakpoint, from the cheapest budget to the one where more money buys nothing."""

    budgets: Floats
    objectives: Floats
    average_jcts: Floats

    @property
    def cheapest(self) -> UsdPerHour:
        return float(self.budgets[0])

    @property
    def fastest_budget(self) -> UsdPerHour:
        """The spend of the fastest plan; a larger budget leaves money over."""
        return float(self.budgets[-1])

    @property
    def fastest_jct(self) -> Seconds:
        return float(self.average_jcts[-1])

    def at(self, budget: UsdPerHour) -> FrontierPoint:
        """The optimum at any budget: on the line between two breakpoints, by mixing them."""
        if budget < self.cheapest * (1 - ROUNDING):
            raise BudgetTooSmall(budget, self.cheapest)
        objective = float(np.interp(budget, self.budgets, self.objectives))
        jct = float(np.interp(budget, self.budgets, self.average_jcts))
        return FrontierPoint(budget, jct, objective, objective)

    def sample(
        self, count: int, least: UsdPerHour | None = None, most: UsdPerHour | None = None
    ) -> list[FrontierPoint]:
        """Points at evenly growing budgets, both ends included."""
        low = self.cheapest if least is None else least
        high = max(self.fastest_budget, low) if most is None else most
        budgets = np.geomspace(low, high, count)
        budgets[0], budgets[-1] = low, high
        return [self.at(float(b)) for b in budgets]

    def breakpoints(self) -> list[FrontierPoint]:
        return [
            FrontierPoint(b, t, o, o)
            for b, t, o in zip(
                self.budgets.tolist(),
                self.average_jcts.tolist(),
                self.objectives.tolist(),
                strict=True,
            )
        ]


def sweep(
    workload: Workload, rules: Rules | None = None, progress: Progress | None = None
) -> Frontier:
    """Ask every class at the slope of every edge not yet proven, until none is left."""
    pricing = Pricing.of(workload, rules or Rules())
    cheapest(pricing)
    before: list[tuple[int, float]] = []
    while True:
        asked = [
            (i, chain.slope(chain.vertices[k], chain.vertices[k + 1]))
            for i, chain in enumerate(pricing.chains)
            for k in range(len(chain.vertices) - 1)
            if not chain.proven(k)
        ]
        if progress is not None:
            known = sum(len(chain.vertices) - 1 for chain in pricing.chains)
            progress(known - len(asked), known)
        if not asked or asked == before:  # what is left is below the precision of the numbers
            return _summed(pricing)
        before = asked
        pricing.ask([i for i, _ in asked], [mu for _, mu in asked])


def _summed(pricing: Pricing) -> Frontier:
    walk = known_walk(pricing)
    start = walk.totals(walk.start)
    steps = np.array([walk.step(edge) for edge in walk.edges]).reshape(-1, 3)
    steps = steps[steps[:, 0] > 0.0]  # a class that never arrives adds nothing
    first = [start.spend, start.objective, start.average_jct]
    spend, objective, jct = np.cumsum(np.vstack([first, steps]), axis=0).T
    return Frontier(spend, objective, jct)
