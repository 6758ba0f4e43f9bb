"""What to plan with, so that what is really spent averages to the budget. Pure.

A plan promises an average spend; what comes of it is more or less by some factor that nobody
knows: arrivals were misjudged, nodes are idle, nodes boot. Two things set that right, both over
the same horizon: the *gain*, spent ÷ planned as measured, which the next plan is divided by; and
the *credit*, dollars not yet spent of those that the budget has allowed, which are paid out over
the horizon. The derivation is in docs/concepts/money.md.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

BOUND = 2.0
"""Horizons of budget that can be saved up, or owed: beyond it, a dollar left over is forgone and
one overspent is forgiven. With the default horizon that is a week-end without jobs."""
PAYOUT = 1.0
"""Of the budget: what savings add to it at most, so that a dead week ends in no spree."""
GAIN = (1 / 3, 3.0)
"""What spent ÷ planned is believed to be at least and at most."""
NO_DEMAND = 0.25
"""Who spends less than this share of the plan has no jobs: that says nothing of the gain."""
EFFECTIVE = (0.25, 4.0)
"""Of the budget: what is planned with at least and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The controller's state: JSON by `as_document`."""

    budget: UsdPerHour
    since: Seconds
    """What averages are over: the first start, or the last change of the budget."""
    spent_before: Usd
    """The ledger's total then."""
    at: Seconds
    """Up to when the ledger was looked at …"""
    total: Usd
    """… and its total then."""
    credit: Usd = 0.0
    """Allowed and not spent, within bounds; negative: a debt."""
    spent: UsdPerHour
    """A moving average over the horizon, while there was demand …"""
    planned: UsdPerHour
    """… and of what the plans in force promised to spend at the same time."""

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Pace":
        return cls(**document)


def begun(budget: UsdPerHour, total: Usd, now: Seconds) -> Pace:
    """At the first start: plans are believed until they are seen to be off."""
    return Pace(
        budget=budget,
        since=now,
        spent_before=total,
        at=now,
        total=total,
        spent=budget,
        planned=budget,
    )


def with_budget(pace: Pace, budget: UsdPerHour, total: Usd, now: Seconds) -> Pace:
    """A new budget counts from now on; the gain belongs to the jobs, and stays."""
    return replace(
        begun(budget, total, now),
        spent=pace.spent / pace.planned * budget,
        planned=budget,
    )


def advanced(pace: Pace, total: Usd, planned: UsdPerHour, now: Seconds, horizon_h: float) -> Pace:
    """After a look at the ledger; `planned`: what the plan in force since the last look promises.

    Looks may come as often or as seldom as they like. A clock that was set back stands still.
    """
    hours = (now - pace.at) / SECONDS_PER_HOUR
    if hours <= 0:
        return pace
    rate = (total - pace.total) / hours
    credit = pace.credit + (pace.budget - rate) * hours
    horizon = pace.budget * horizon_h
    pace = replace(
        pace,
        at=now,
        total=total,
        credit=min(max(credit, -BOUND * horizon), BOUND * horizon),
    )
    if planned <= 0 or rate < NO_DEMAND * planned:
        return pace
    fresh = -math.expm1(-hours / horizon_h)
    return replace(
        pace,
        spent=pace.spent + fresh * (rate - pace.spent),
        planned=pace.planned + fresh * (planned - pace.planned),
    )


def gain(pace: Pace) -> float:
    """Dollars spent per dollar planned."""
    return min(max(pace.spent / pace.planned, GAIN[0]), GAIN[1])


def effective(pace: Pace, horizon_h: float) -> UsdPerHour:
    """The budget to plan with."""
    repaid = min(pace.credit / horizon_h, PAYOUT * pace.budget)
    wanted = (pace.budget + repaid) / gain(pace)
    return min(max(wanted, EFFECTIVE[0] * pace.budget), EFFECTIVE[1] * pace.budget)
