"""Steering: the price of money at which the *bill* averages to the budget. Pure.

What counts against the budget is what was billed and what jobs already there will still cost, so
a burst is answered when it comes and not when it has been paid for. From the hours of budget that
this leaves over, x, follows how much dearer than planned money is taken to be: exp(-(k·x + c·x³)).
A plan's own errors (arrivals misjudged, nodes that boot or idle) are learned as a *gain*, dollars
committed per dollar promised, by which the budget that plans are made with is divided. See
docs/concepts/bill.md.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

PER_ARRIVAL = 0.05
"""k, for every job that arrives in an hour: one job more or less must not move the price far …"""
STEEPEST = 2.5
"""… nor many jobs at once, by the hour of budget."""
CUBIC = 0.3
"""c: hours of budget are worth more the further one is off."""
DEAREST = 14.0
CHEAPEST = -3.0
"""Logarithms between which the factor on the price stays."""
MOST_H = 6.0
"""Hours of budget that count, saved up or owed: beyond, the factor is at its end anyway."""
GAIN = (0.2, 5.0)
OVERHEAD = 1.1
"""Dollars billed per dollar that jobs hold, before anything was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """The controller's state: JSON by `as_document`."""

    at: Seconds
    """Up to when it has looked."""
    billed: Usd
    """The ledger's total then …"""
    to_go: Usd = 0.0
    """… and what jobs were to cost from there on."""
    left: Usd = 0.0
    """Allowed, not billed, and not committed; negative: a debt."""
    committed: Usd = 0.0
    """Newest dollars, each forgotten as hours pass …"""
    promised: Usd = 0.0
    """… and what was promised for those hours."""
    arrivals: float = 1.0
    """Jobs per hour that are expected."""

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Steered":
        return cls(**document)


def looked(
    steered: Steered,
    budget: UsdPerHour,
    now: Seconds,
    *,
    billed: Usd,
    to_go: Usd,
    promised: UsdPerHour,
    arrivals: float,
    horizon_h: float,
    ends_at: Seconds = math.inf,
) -> Steered:
    """After a look at the ledger and at the jobs that are there. `ends_at`: there is no budget
    after that, only what is left of it."""
    hours = (now - steered.at) / SECONDS_PER_HOUR
    if hours <= 0:
        return steered
    to_go *= overhead(steered)
    flow = billed - steered.billed + to_go - steered.to_go
    kept = math.exp(-hours / horizon_h) if math.isfinite(horizon_h) else 1.0
    allowed = budget * max(min(now, ends_at) - steered.at, 0.0) / SECONDS_PER_HOUR
    most = MOST_H * budget
    return replace(
        steered,
        at=now,
        billed=billed,
        to_go=to_go,
        left=min(max(steered.left + allowed - flow, -most), most),
        committed=kept * steered.committed + flow,
        promised=kept * steered.promised + promised * hours,
        arrivals=arrivals,
    )


def overhead(steered: Steered) -> float:
    return OVERHEAD


def gain(steered: Steered, budget: UsdPerHour, horizon_h: float) -> float:
    """Dollars committed per dollar promised; what was believed counts for half a horizon."""
    believed = budget * min(horizon_h, 24.0) / 2
    found = (steered.committed + OVERHEAD * believed) / (steered.promised + believed)
    return min(max(found, GAIN[0]), GAIN[1])


def urgency(steered: Steered, budget: UsdPerHour) -> float:
    """The factor on the plan's price of money."""
    x = steered.left / budget
    steep = min(PER_ARRIVAL * steered.arrivals, STEEPEST)
    return math.exp(min(max(-(steep * x + CUBIC * x**3), CHEAPEST), DEAREST))
