"""Who has lent how much to whom, among those who share a budget. Pure.

A team that does not spend its share lends it, and one that spends more borrows. Nobody is stopped
for that: what was lent is added to what its owner has by right over the next hours, and what was
borrowed is taken from it; so the plan's prices pay it back. A ceiling is kept the same way: what
was spent beyond it lowers it.

A team's spend is what its jobs hold and, by the same parts, what nobody holds: idle nodes and those
that boot or go.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from boa.model.budgets import Budget
from boa.scheduler.money.money_state import PartState
from boa.units import Usd, UsdPerHour

HORIZON_H = 24.0
"""Hours over which what was lent or borrowed is paid back, at most."""
MOST_HORIZONS = 2.0
"""Horizons of its money that are lent or borrowed at most: what is older is forgiven. Half of one
is what a team that works by day lends every night."""
MOST_RIGHT = 2.0
"""Times its share that a team has by right at most, while a loan is paid back to it."""
LEAST_CEILING = 0.25
"""Part of its ceiling that a team may spend at least, whatever it has spent before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loans:
    """By the name of a budget; JSON by `as_document`."""

    lent: Mapping[str, Usd] = field(default_factory=dict)
    """Dollars of its share; negative: borrowed."""
    under: Mapping[str, Usd] = field(default_factory=dict)
    """Dollars below its ceiling; negative: above."""

    def as_document(self) -> dict[str, Any]:
        return {"lent": dict(self.lent), "under": dict(self.under)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Loans":
        return cls(lent=document["lent"], under=document["under"])


def shares_of(
    tree: Budget, held: Mapping[str, float], rented: float | None = None, hours: float = 1.0
) -> dict[str, float]:
    """By budget: its part of what jobs held, those of its parts with it; none if nobody held
    anything. What nobody held is shared out by the same parts, but up to hard caps only: beyond
    them it is the budget's above. `held`: dollars by stream; `rented`: what all nodes cost in the
    same time, which was so many hours. None: no cap is looked at."""
    pays, paid, total = tree.who_pays(), dict[str, float](), sum(held.values())
    if not total:
        return {}
    for stream, usd in held.items():
        payer = pays(stream)
        paid[payer] = paid.get(payer, 0.0) + usd
    found = dict[str, float]()

    def share(budget: Budget, whole: float) -> None:
        """`whole`: dollars of which what it held is its part."""
        own = sum(paid.get(inner.name, 0.0) for inner in budget.every)
        found[budget.name] = own / whole
        if rented and rented > 0 and budget.max_spend is not None and own:
            found[budget.name] = min(own / whole, max(budget.max_spend * hours, own) / rented)
            whole = own / found[budget.name]  # its parts have no more of it than it has itself
        for part in budget.parts:
            share(part, whole)

    share(tree, total)
    return found


def looked(
    loans: Loans,
    tree: Budget,
    *,
    hours: float,
    billed: Usd,
    shares: Mapping[str, float],
    horizon_h: float,
    usual: UsdPerHour | None = None,
) -> Loans:
    """After so many hours in which so much was billed, to each by its part. `usual`: the whole
    budget on average, where it changes by the hour: what is lent is bounded by that."""
    lent, under = dict[str, Usd](), dict[str, Usd]()
    horizon_h *= 1.0 if usual is None else usual / tree.per_hour
    for budget in tree.every:
        spent = billed * shares.get(budget.name, 0.0)
        if budget is not tree and budget.per_hour and budget.terms is None:
            most = MOST_HORIZONS * horizon_h * budget.per_hour
            now = loans.lent.get(budget.name, 0.0) + budget.per_hour * hours - spent
            lent[budget.name] = min(max(now, -most), most)
        if budget.max_per_hour is not None and (budget.borrows or budget.terms is None):
            most = MOST_HORIZONS * horizon_h * budget.max_per_hour
            now = loans.under.get(budget.name, 0.0) + budget.max_per_hour * hours - spent
            under[budget.name] = min(max(now, -most), most)
    return Loans(lent=lent, under=under)


def states(
    loans: Loans,
    tree: Budget,
    planned: Budget,
    shares: Mapping[str, float],
    now_per_hour: UsdPerHour,
) -> tuple[PartState, ...]:
    """Everybody who shares the budget at a moment; `planned`: the tree that is planned with."""
    rights = {part.name: part.per_hour for part in planned.every}

    def within(budget: Budget, above: str | None) -> Iterator[PartState]:
        for part in budget.parts:
            yield PartState(
                budget=part,
                above=above,
                per_hour=part.per_hour,
                right_now=rights[part.name],
                lent=loans.lent.get(part.name, 0.0),
                now_per_hour=shares.get(part.name, 0.0) * now_per_hour,
            )
            yield from within(part, part.name)

    return tuple(within(tree, None))


def effective(loans: Loans, tree: Budget, horizon_h: float) -> Budget:
    """The tree to plan with, so that shares and ceilings come out right on average."""
    parts = _fitting(_steered(loans, tree.parts, horizon_h), tree.per_hour)
    return tree.having(tree.per_hour, tree.max_per_hour, parts)


def _steered(loans: Loans, parts: tuple[Budget, ...], horizon_h: float) -> tuple[Budget, ...]:
    found = []
    for part in parts:
        lent, under = loans.lent.get(part.name, 0.0), loans.under.get(part.name, 0.0)
        right = min(max(part.per_hour + lent / horizon_h, 0.0), MOST_RIGHT * part.per_hour)
        most = part.max_per_hour
        if most is not None:
            most = max(most + under / horizon_h, LEAST_CEILING * most)
            right = min(right, most)
        if part.max_spend is not None:
            most = min(part.max_spend, math.inf if most is None else most)
            right = min(right, most)
        inner = _fitting(_steered(loans, part.parts, horizon_h), most if most else right)
        found.append(part.having(right, most, inner))
    return tuple(found)


def _fitting(parts: tuple[Budget, ...], most: UsdPerHour) -> tuple[Budget, ...]:
    """Nobody has by right what is not there: where loans come to more, all of them wait alike."""
    rights = sum(part.per_hour for part in parts)
    if rights <= most:
        return parts
    return tuple(
        part.having(part.per_hour * most / rights, part.max_per_hour, part.parts) for part in parts
    )
