"""One width sequence per class: the best deterministic plan, proven where that can be done.

Let D be the bound that the multiplier μ proves. A plan that spends at most b has the objective
D + Σ (excess of each class's sequence over the class's optimum at μ) + μ (b − spend). So a plan
within Δ of the bound is made of sequences whose excess is at most Δ, and these can be listed.
Lists of two classes are merged like items of a multiple-choice knapsack: keep pairs whose excess
adds up to at most Δ and that no other pair equals or beats in both objective and spend. Δ starts
small and grows until a plan is found, which is then the optimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from boa.errors import NoPlanFound, NoSinglePlan, no_less
from boa.model.plan import Plan
from boa.solver.assemble import plan_of_states
from boa.solver.chain import TIE, Chain, Vertex
from boa.solver.labels import LabelSearch, TooManyLabels
from boa.solver.lagrangian import ROUNDING, Optimum
from boa.solver.merge import Choices, Selection, best_selection
from boa.solver.pricing import Pricing
from boa.units import UsdPerHour

_LABELS = 200_000
"""Labels of one row alive at once before a proof is given up."""
_EFFORT = 20_000_000
"""Cells (epochs × states) of all rows up to which sequences are listed at all."""
_DEEPENING = (1 / 16, 1.0)
_HOPELESS = 1e6
"""Times the bound: no plan is looked for beyond."""
_WIDENING = (1e-6, 1e-5, 1e-4, 1e-2, 1.0)
"""Without a plan to start from: the parts of that room that are searched, one after the other."""


@dataclass(frozen=True, slots=True)
class Integral:
    plan: Plan
    proven: bool


def solve_integral(pricing: Pricing, budget: UsdPerHour, bound: Optimum, gap: float) -> Integral:
    """The best plan with one sequence per class; a relative `gap` to the bound is good enough."""
    if all(len(point.mix) == 1 for point in bound.stop.points):
        return _integral(pricing, [p.mix[0][1] for p in bound.stop.points], True)
    rounded = _round_down(pricing, budget)
    listable = sum(row.times.size for row in pricing.tables.rows) <= _EFFORT
    if rounded is not None:
        best = _objective(pricing, rounded)
        optimal = best <= bound.lower_bound * (1 + TIE)
        if optimal or best <= bound.lower_bound * (1 + gap) or not listable:
            return _integral(pricing, rounded, optimal)
        room = best - bound.lower_bound
    else:
        room = bound.lower_bound * _HOPELESS
    complete = True
    try:
        for part in _DEEPENING if rounded is not None else _WIDENING:
            found = _search(pricing, budget, bound, room * part)
            if found is not None:
                return Integral(_plan_of_selection(pricing, found), True)
    except TooManyLabels:
        complete = False
    if rounded is not None:
        return _integral(pricing, rounded, complete)
    if complete:
        raise NoSinglePlan(budget, enough_for_one(pricing))
    raise NoPlanFound(
        "too many sequences to look through for one per class that keeps every max_jct_s within "
        f"the budget; {no_less(enough_for_one(pricing))} per hour is surely enough"
    )


def _round_down(pricing: Pricing, budget: UsdPerHour) -> list[Vertex] | None:
    """The walk of the exact solver, skipping every edge that cannot be paid in full."""
    arrivals = pricing.tables.arrivals.tolist()
    usable = [_usable(chain) for chain in pricing.chains]
    chosen = [vertices[-1] for vertices in usable]
    spend = sum(rate * v.cost for rate, v in zip(arrivals, chosen, strict=True))
    if spend > budget * (1 + ROUNDING):
        return None
    steps = [
        (chain.slope(faster, slower), i, faster)
        for i, (chain, vertices) in enumerate(zip(pricing.chains, usable, strict=True))
        for faster, slower in pairwise(vertices)
    ]
    for _, i, faster in sorted(steps, key=lambda step: -step[0]):
        extra = arrivals[i] * (faster.cost - chosen[i].cost)
        if spend + extra <= budget:
            chosen[i] = faster
            spend += extra
    return chosen


def enough_for_one(pricing: Pricing) -> UsdPerHour:
    """A spend at which every class can keep its cap with a single sequence."""
    arrivals = pricing.tables.arrivals.tolist()
    return float(
        sum(r * _usable(c)[-1].cost for r, c in zip(arrivals, pricing.chains, strict=True))
    )


def _usable(chain: Chain) -> list[Vertex]:
    """Vertices that keep the class's cap, fastest first."""
    edge = chain.crossing()
    return chain.vertices if edge is None else chain.vertices[: edge + 1]


def _objective(pricing: Pricing, chosen: Sequence[Vertex]) -> float:
    weights = (pricing.tables.arrivals * pricing.tables.time_weights).tolist()
    return float(sum(w * v.time for w, v in zip(weights, chosen, strict=True)))


def _search(pricing: Pricing, budget: UsdPerHour, bound: Optimum, room: float) -> Selection | None:
    """The best plan within `room` of the bound, if there is one."""
    rows: list[list[int]] = [[] for _ in pricing.chains]
    for n, row in enumerate(pricing.tables.rows):
        rows[row.class_index].append(n)
    choices = [_choices(pricing, i, rows[i], bound.multiplier, room) for i in range(len(rows))]
    return best_selection(choices, budget, bound.multiplier, room)


def _choices(pricing: Pricing, i: int, rows: list[int], mu: float, room: float) -> Choices:
    """All sequences of class i whose excess at μ is at most `room` of the whole objective."""
    tables, chain = pricing.tables, pricing.chains[i]
    arrivals = float(tables.arrivals[i])
    weight = _weight_with_cap(chain, mu)
    least = min(weight * v.time + mu * v.cost for v in chain.vertices)
    ceiling = least * (1 + 1e-12) + (room / arrivals if arrivals > 0 else 0.0)
    sources = [LabelSearch(n, tables.rows[n], weight, mu, ceiling, _LABELS).run() for n in rows]
    return Choices.of(sources, arrivals, chain.weight, weight, mu, least, chain.cap)


def _weight_with_cap(chain: Chain, mu: float) -> float:
    """The weight of time that makes the class keep its cap at μ by itself: w plus the multiplier
    of the cap, at which both sequences that the cap mixes are equally good."""
    edge = chain.crossing()
    if edge is None:
        return chain.weight
    at_cap = chain.slope(chain.vertices[edge], chain.vertices[edge + 1])
    return chain.weight * max(1.0, mu / at_cap)


def _integral(pricing: Pricing, chosen: Sequence[Vertex], proven: bool) -> Integral:
    parts = [[(1.0, v.row, v.states.tolist())] for v in chosen]
    return Integral(plan_of_states(pricing.tables, parts), proven)


def _plan_of_selection(pricing: Pricing, found: Selection) -> Plan:
    return plan_of_states(pricing.tables, [[(1.0, *part)] for part in found.sequences()])
