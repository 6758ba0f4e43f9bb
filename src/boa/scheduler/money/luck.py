"""Luck: how far the dollars of jobs that happen to come stray from those that were promised. Pure.

Over H hours their variance grows as H, so that as a share of H hours' budget luck falls with the
root of H. Steering must not answer it, and a horizon that is long enough does not: prices that
follow bursts are high while jobs are there and low when nobody is. What single jobs cost is the
plan's to say (Poisson arrivals have a variance of Σ λ c² per hour); that they come in bursts, which
is more, is learned from those that have come. See docs/concepts/bill.md.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from boa.units import Usd, UsdPerHour

SMALL = 0.15
"""Luck in a horizon, as a share of its budget: a horizon is so long that there is no more …"""
SHORTEST_H = 24.0
"""… but a day at least, for days and nights, …"""
LONGEST_H = 720.0
"""… and a month at most, or errors that are no luck would never be made good."""
LATELY_H = 3.0
"""Hours over which arrivals are taken together: a burst lasts longer than a look at it."""
REMEMBERED_H = 168.0
"""Hours over which what was seen is forgotten."""
BELIEVED_H = 24.0
"""Hours that what was believed counts for against what was seen."""
BURSTS = 2.0
"""Variance of arrivals before any were seen, times that of Poisson's: few streams have less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Luck:
    """Surprises seen so far: JSON by `as_document`."""

    expected: float = 0.0
    """USD² per hour if jobs came one by one, as the plan in force has it."""
    surprise: Usd = 0.0
    """Dollars of jobs that came lately, less those promised …"""
    hours: float = 0.0
    """… in so many hours, the past fading, …"""
    total: float = 0.0
    """… summed over them …"""
    squares: float = 0.0
    """… and its squares."""

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Luck":
        return cls(**document)


def watched(luck: Luck, hours: float, *, came: Usd, promised: UsdPerHour, expected: float) -> Luck:
    """After so many hours in which jobs of `came` dollars came."""
    lately = math.exp(-hours / LATELY_H)
    steady = LATELY_H * (came / hours - promised)
    surprise = steady + lately * (luck.surprise - steady)
    kept = math.exp(-hours / REMEMBERED_H)
    return Luck(
        expected=expected,
        surprise=surprise,
        hours=kept * luck.hours + hours,
        total=kept * luck.total + hours * surprise,
        squares=kept * luck.squares + hours * surprise**2,
    )


def variance(luck: Luck) -> float:
    """USD² per hour of the dollars of jobs that come. What is systematic is no luck; but that takes
    a while to tell, for a burst that has just begun looks the same."""
    strayed = luck.squares - luck.total**2 / (LATELY_H + luck.hours)
    # A sum that fades over LATELY_H hours varies as half of so many hours do.
    seen = 2.0 / LATELY_H * strayed
    return (BURSTS * luck.expected * BELIEVED_H + seen) / (BELIEVED_H + luck.hours)


def horizon_h(luck: Luck, budget: UsdPerHour) -> float:
    """The least hours in whose budget luck is small."""
    return min(max(variance(luck) / (SMALL * budget) ** 2, SHORTEST_H), LONGEST_H)
