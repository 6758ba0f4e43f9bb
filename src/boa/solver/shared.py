"""The exact plan for money that is shared: one multiplier for every budget that binds.

Budgets form a tree. Every part of it has a share by right and perhaps a ceiling, so what its
classes spend together lies between two bounds. Sums over a tree do not cross each other, and the
classes' frontiers are convex: so buying time where it is cheapest stays optimal, if it is done from
the leaves up. Each budget takes its classes' edges, and what its parts have to offer, by falling
slope. Up to its share they are bought in any case; beyond its ceiling they are not to be had; those
in between it offers to the budget above, which does the same.

From the top down every budget then has its multiplier: that of the one above, unless its own share
binds (then less: it is given more than its seconds are worth elsewhere) or its ceiling (then more).
With them the classes do not see each other, as in `lagrangian.py`, and the same duality proves the
plan: Σ min(w·time + μ_i·cost) − Σ (μ_n − μ_above)·(the bound of n that binds).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from boa.errors import BudgetTooSmall, InputError, no_less
from boa.model.budgets import Budget
from boa.solver.chain import TIE, Edge, Point, mixed
from boa.solver.lagrangian import ROUNDING, cheapest
from boa.solver.pricing import Pricing
from boa.units import PerHour, Seconds, UsdPerHour


@dataclass(frozen=True, slots=True)
class BudgetOutcome:
    """One budget of the tree under the plan."""

    name: str
    above: str | None
    per_hour: UsdPerHour
    max_per_hour: UsdPerHour | None
    spend: UsdPerHour
    wanted: UsdPerHour
    """Spend of its fastest plan: more would buy it nothing."""
    multiplier: float
    """Seconds of objective that its money is worth: what one more dollar per hour buys wherever it
    is bought."""
    least: UsdPerHour
    most: UsdPerHour
    """Between which its spend has to lie: its share, or what it wants of it, and its ceiling."""
    classes: tuple[int, ...]
    """All that it pays for, its parts' among them."""
    average_jct: Seconds | None
    """Mean over its jobs; None where none come."""
    alone_jct: Seconds | None = None
    """The same if it had its share and nobody else's; None: that cannot keep up."""

    @property
    def saved_by_one_more(self) -> float:
        """Seconds of objective that one more dollar per hour of its own saves: none, where it has
        all that it wants, whatever money is worth above it."""
        return self.multiplier if self.spend < self.wanted * (1 - ROUNDING) else 0.0


@dataclass(frozen=True, slots=True)
class SharedOptimum:
    points: tuple[Point, ...]
    objective: Seconds
    lower_bound: Seconds
    multipliers: tuple[float, ...]
    """By class: that of the budget that pays for it."""
    budgets: tuple[BudgetOutcome, ...]
    """From the top down."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of an edge, from one share of the class's jobs to another."""

    edge: Edge
    begin: float
    end: float
    spend: UsdPerHour

    def cut(self, spend: UsdPerHour) -> "tuple[_Piece, _Piece]":
        """The part that costs so much, and the rest."""
        at = self.begin + (self.end - self.begin) * (spend / self.spend)
        return (
            _Piece(self.edge, self.begin, at, spend),
            _Piece(self.edge, at, self.end, self.spend - spend),
        )


@dataclass(frozen=True, slots=True)
class _Level:
    """A budget of the tree, seen from the one above."""

    budget: Budget
    parts: "tuple[_Level, ...]"
    classes: tuple[int, ...]
    bought: tuple[_Piece, ...]
    """In any case, within it and its parts."""
    offered: tuple[_Piece, ...]
    """By falling slope."""
    spend: UsdPerHour
    """Spend of its classes, with what is bought in any case."""
    wanted: UsdPerHour
    held: UsdPerHour
    """Money that its parts do not lend, though they do not want it …"""
    kept: UsdPerHour
    """… and neither does it."""
    least: UsdPerHour
    most: UsdPerHour
    """Bounds on what its classes spend."""
    share_slope: float
    """Slope at its share: its multiplier is no higher."""
    ceiling_slope: float
    """Slope at its ceiling: its multiplier is no lower."""


def solve_shared(pricing: Pricing, budget: Budget) -> SharedOptimum:
    """The shortest (weighted) average JCT within all budgets of the tree."""
    names = tuple(found.name for found in pricing.tables.workload.classes)
    tree = budget.paying_for(names)
    index = {name: i for i, name in enumerate(names)}
    cheapest(pricing)
    before: list[tuple[int, float]] = []
    while True:
        top = _level(pricing, tree, index)
        multipliers = _multipliers(top)
        mus = [multipliers[payer] for payer in map(tree.payers.__getitem__, names)]
        asked = [
            (i, question)
            for i, (chain, mu) in enumerate(zip(pricing.chains, mus, strict=True))
            for question in chain.questions(mu)
        ]
        if not asked or asked == before:  # what is left is below the precision of the numbers
            break
        before = asked
        pricing.ask([i for i, _ in asked], [mu for _, mu in asked])
    points = _points(pricing, (*top.bought, *top.offered), mus)
    arrivals = pricing.tables.arrivals.tolist()
    objective = sum(
        rate * chain.weight * point.time
        for rate, chain, point in zip(arrivals, pricing.chains, points, strict=True)
    )
    return SharedOptimum(
        points,
        objective,
        min(_bound(pricing, top, mus, multipliers), objective),
        tuple(mus),
        tuple(_outcomes(top, None, list(zip(arrivals, points, strict=True)), multipliers)),
    )


def _level(
    pricing: Pricing, budget: Budget, index: Mapping[str, int], *, top: bool = True
) -> _Level:
    parts = tuple(_level(pricing, part, index, top=False) for part in budget.parts)
    own = tuple(index[name] for name in budget.classes)
    arrivals = pricing.tables.arrivals.tolist()
    pieces = [
        _Piece(edge, 0.0, 1.0, arrivals[i] * (edge.faster.cost - edge.slower.cost))
        for i in own
        if arrivals[i]
        for edge in pricing.chains[i].edges()
    ]
    pieces += [piece for part in parts for piece in part.offered]
    pieces.sort(key=lambda piece: -piece.edge.slope)
    spend = sum(arrivals[i] * pricing.chains[i].points()[-1].cost for i in own)
    spend += sum(part.spend for part in parts)
    wanted = spend + sum(piece.spend for piece in pieces)
    held = sum(part.held + part.kept for part in parts)
    ceiling = budget.per_hour if top else budget.max_per_hour
    most = math.inf if ceiling is None else ceiling - held
    if spend > most + abs(most) * ROUNDING:
        raise _too_small(pricing, budget, index, spend + held, top=top)
    share = 0.0 if top else budget.per_hour - held
    least = min(share, wanted, most)
    bought, rest = _split(pieces, least - spend)
    offered, out_of_reach = _split(rest, most - max(spend, least))
    return _Level(
        budget=budget,
        parts=parts,
        classes=own,
        bought=(*(piece for part in parts for piece in part.bought), *bought),
        offered=tuple(offered),
        spend=max(spend, least),
        wanted=wanted,
        held=held,
        kept=0.0 if budget.lends or top else max(0.0, share - wanted),
        least=least,
        most=most,
        share_slope=bought[-1].edge.slope if bought else math.inf,
        ceiling_slope=out_of_reach[0].edge.slope if out_of_reach else 0.0,
    )


def _split(pieces: list[_Piece], money: UsdPerHour) -> tuple[list[_Piece], list[_Piece]]:
    """Pieces that so much money buys, and those that are left."""
    for n, piece in enumerate(pieces):
        if money <= piece.spend * TIE:
            return pieces[:n], pieces[n:]
        if money < piece.spend * (1 - TIE):
            bought, rest = piece.cut(money)
            return [*pieces[:n], bought], [rest, *pieces[n + 1 :]]
        money -= piece.spend
    return pieces, []


def _too_small(
    pricing: Pricing, budget: Budget, index: Mapping[str, int], needed: UsdPerHour, *, top: bool
) -> BudgetTooSmall | InputError:
    """Either its jobs need more, or those of some need what others have by right."""
    arrivals = pricing.tables.arrivals.tolist()
    paid = [index[name] for name in budget.every_class]
    least = sum(arrivals[i] * pricing.chains[i].points()[-1].cost for i in paid)
    ceiling = budget.per_hour if top else budget.max_per_hour or 0.0
    field = "budget_per_hour" if top else budget.ceiling_field
    if least > ceiling * (1 + ROUNDING):
        return BudgetTooSmall(ceiling, least, *(() if top else (budget.name, field)))
    needs = "what its parts have by right, and its other jobs need"
    expected = f"at least {no_less(needed)} USD per hour: {needs}"
    return InputError(f"{budget.name}: {field}", f"{ceiling:.6g} USD per hour", expected)


def _multipliers(top: _Level) -> dict[str, float]:
    found = {top.budget.name: top.ceiling_slope}

    def descend(level: _Level) -> None:
        for part in level.parts:
            above = found[level.budget.name]
            found[part.budget.name] = min(max(above, part.ceiling_slope), part.share_slope)
            descend(part)

    descend(top)
    return found


def _points(pricing: Pricing, bought: Iterable[_Piece], mus: Sequence[float]) -> tuple[Point, ...]:
    """Every class's point: the last edge that it has bought of, as far as it has."""
    points: list[Point] = []
    arrivals = pricing.tables.arrivals.tolist()
    for rate, chain, mu in zip(arrivals, pricing.chains, mus, strict=True):
        if rate:
            points.append(chain.points()[-1])
        else:  # nobody pays for jobs that do not come; if one does, it is to be worth its money
            points.append(min(chain.points(), key=lambda p: chain.weight * p.time + mu * p.cost))
    for piece in sorted(bought, key=lambda piece: (-piece.edge.slope, piece.end)):
        edge, whole = piece.edge, piece.end >= 1.0 - TIE
        points[edge.class_index] = (
            edge.faster if whole else mixed(edge.slower, edge.faster, piece.end)
        )
    return tuple(points)


def _bound(
    pricing: Pricing, top: _Level, mus: list[float], multipliers: Mapping[str, float]
) -> Seconds:
    """Dual value of the multipliers: no plan within the budgets has a smaller objective."""
    arrivals = pricing.tables.arrivals.tolist()
    value = sum(
        rate * min(chain.weight * point.time + mu * point.cost for point in chain.points())
        for rate, chain, mu in zip(arrivals, pricing.chains, mus, strict=True)
    )

    def paid(level: _Level, above: float) -> float:
        mu = multipliers[level.budget.name]
        extra = mu - above
        limit = level.most if extra > 0 else level.least
        own = extra * limit if extra else 0.0
        return own + sum(paid(part, mu) for part in level.parts)

    return float(value - paid(top, 0.0))


def _outcomes(
    level: _Level,
    above: str | None,
    jobs: Sequence[tuple[PerHour, Point]],
    multipliers: Mapping[str, float],
) -> Iterator[BudgetOutcome]:
    budget = level.budget
    within = [list(_outcomes(part, budget.name, jobs, multipliers)) for part in level.parts]
    paid = level.classes + tuple(i for part in within for i in part[0].classes)
    mine = [jobs[i] for i in paid]
    arrivals = sum(rate for rate, _ in mine)
    yield BudgetOutcome(
        name=budget.name,
        above=above,
        per_hour=budget.per_hour,
        max_per_hour=budget.max_per_hour,
        spend=sum(rate * point.cost for rate, point in mine),
        wanted=level.wanted,
        multiplier=multipliers[budget.name],
        least=level.least,
        most=level.most,
        classes=paid,
        average_jct=sum(r * point.time for r, point in mine) / arrivals if arrivals else None,
    )
    for part in within:
        yield from part
