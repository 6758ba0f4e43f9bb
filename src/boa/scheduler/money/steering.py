"""Steering: the budget to plan with, so that the *bill* averages to the budget. Pure.

What counts against the budget is what was billed and a part of what jobs already there will still
cost, so a burst is answered when it comes and not when it has been paid for. Little that is left
over, or owed, moves the budget little; much moves it fast. A plan's own errors (arrivals misjudged,
nodes that boot or idle) are learned as a *gain*, dollars committed per dollar promised, which the
next plan is divided by. The multiplier of that plan is the price of money that nodes are rented
by: see docs/concepts/bill.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from boa.scheduler.money.luck import LONGEST_H, Luck, watched
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

COUNTED = 0.33
"""Part of what jobs will still cost that counts already: with all of it a morning's burst, paid for
over the day, would be taken for a day's. Towards the end of a budget all of it counts."""
AHEAD = 0.05
"""Horizons of budget that it counts for at most: jobs of days are paid for over days."""
REPAID = 2.0
"""Horizons over which little that is left over or owed is made good: prices that follow every
burst cost more than they save …"""
MUCH = 0.06
"""… and the part of a horizon's budget from which on it is made good the faster the more it is."""
LUCK = 0.8
"""The same of few nodes, times the root of the node-hours that a horizon's budget pays for: that
far they come and go by chance."""
PAYOUT = (0.25, 2.0)
"""Least and most that is spent meanwhile, as shares of the budget."""
MOST_HORIZONS = 0.5
"""Horizons of budget that count, saved up or owed: a dead week ends in no spree."""
BELIEVED = 1.0
"""Horizons of budget that what was believed counts for against what was measured."""
ENDING_H = 24.0
"""The last hours of a budget, in which what jobs will still cost counts ever more."""
LONGEST_WAIT_S: Seconds = 1800.0
"""The longest that anybody waits for money, however much is owed …"""
DEEP = 0.5
"""… and the part of the most that is ever owed from which on anybody waits at all."""
GAIN = (0.2, 5.0)
"""Least and most that the gain is believed to be."""
OVERHEAD = 1.1
"""Dollars billed per dollar that jobs hold, before anything was measured, in a cluster of ten
nodes or fewer …"""
TEN_NODES = 10.0
LEAST_OVERHEAD = 1.04
"""… and in a very large one: what is empty grows as the root of what is there …"""
LIFE_S: Seconds = 3600.0
"""… and the life of a node, of which boots and reclamations above two minutes are lost as well."""
LOST_S: Seconds = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """The controller's state: JSON by `as_document`."""

    at: Seconds
    """Up to when it has looked."""
    billed: Usd
    """The ledger's total then …"""
    to_go: Usd = 0.0
    """… and what counted of the dollars that jobs were to cost from there on."""
    left: Usd = 0.0
    """Allowed, not billed, and not committed; negative: a debt."""
    committed: Usd = 0.0
    """Newest dollars, each forgotten as hours pass …"""
    promised: Usd = 0.0
    """… and what was promised for those hours."""
    luck: Luck = field(default_factory=Luck)
    """Surprises of jobs that happen to come, by which a horizon is chosen."""

    def as_document(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {**plain, "luck": self.luck.as_document()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Steered":
        """Older ones have nothing of luck: what is believed counts until it was seen."""
        luck = Luck.from_document(document.get("luck", {}))
        return cls(**{**document, "luck": luck})


class Commitments(NamedTuple):
    """Dollars that jobs take, as far as it is known."""

    to_go: Usd
    """That jobs which are there will still cost."""
    promised: UsdPerHour
    """Those promised to the next ones …"""
    variance: float = 0.0
    """… and the variance of that in an hour, USD², if they come one by one."""
    came: Usd = 0.0
    """Those of jobs that came since the last look."""


def forgiven(steered: Steered) -> Steered:
    """From now on, by another budget: nothing is left over or owed."""
    return replace(steered, left=0.0, committed=0.0, promised=0.0)


def looked(
    steered: Steered,
    budget: UsdPerHour,
    now: Seconds,
    *,
    billed: Usd,
    found: Commitments,
    horizon_h: float,
    ends_at: Seconds = math.inf,
    allowed: Usd | None = None,
) -> Steered:
    """After a look at the ledger and at the jobs that are there. `ends_at`: there is no budget
    after that, only what is left of it. `allowed`: dollars that it came to since the last look, if
    they are others; `budget` is then that of a week on average."""
    hours = (now - steered.at) / SECONDS_PER_HOUR
    if hours <= 0:
        return steered
    # Both by the budget of now: one that was set since must not look like money earned or spent.
    counted = _counted(found.to_go, budget, horizon_h, ends_at - now)
    before = _counted(steered.to_go, budget, horizon_h, ends_at - steered.at)
    flow = billed - steered.billed + counted - before
    kept = math.exp(-hours / horizon_h) if math.isfinite(horizon_h) else 1.0
    if allowed is None:
        allowed = budget * max(min(now, ends_at) - steered.at, 0.0) / SECONDS_PER_HOUR
    most = _most(budget, horizon_h)
    return replace(
        steered,
        at=now,
        billed=billed,
        to_go=found.to_go,
        left=min(max(steered.left + allowed - flow, -most), most),
        committed=kept * steered.committed + flow,
        promised=kept * steered.promised + found.promised * hours,
        luck=watched(
            steered.luck,
            hours,
            came=found.came,
            promised=found.promised,
            expected=found.variance,
        ),
    )


def counted_now(
    steered: Steered, budget: UsdPerHour, horizon_h: float, ends_at: Seconds = math.inf
) -> Usd:
    """Dollars of what jobs will still cost that count already."""
    return _counted(steered.to_go, budget, horizon_h, ends_at - steered.at)


def _counted(to_go: Usd, budget: UsdPerHour, horizon_h: float, left_s: Seconds) -> Usd:
    """Dollars of what jobs will still cost that count so long before the budget ends."""
    ending_h, horizon_h = min(horizon_h, ENDING_H), min(horizon_h, LONGEST_H)
    ahead = min(max(left_s / (SECONDS_PER_HOUR * ending_h), 0.0), 1.0)
    part = COUNTED * ahead + (1.0 - ahead)
    return part * to_go if ahead == 0.0 else min(part * to_go, AHEAD * horizon_h * budget / ahead)


def overhead(nodes: float, lost_s: Seconds) -> float:
    """Dollars billed per dollar that jobs hold, before anything was measured; `nodes`: that the
    budget pays for; `lost_s`: seconds that a node takes to boot and to be reclaimed."""
    empty = (OVERHEAD - LEAST_OVERHEAD) * math.sqrt(TEN_NODES / max(nodes, TEN_NODES))
    return LEAST_OVERHEAD + empty + max(lost_s - LOST_S, 0.0) / LIFE_S


def gain(
    steered: Steered, budget: UsdPerHour, horizon_h: float, expected: float = OVERHEAD
) -> float:
    """Dollars committed per dollar promised; `expected`: before anything was measured."""
    believed = budget * BELIEVED * min(horizon_h, LONGEST_H)
    found = (steered.committed + expected * believed) / (steered.promised + believed)
    return min(max(found, GAIN[0]), GAIN[1])


def effective(
    steered: Steered,
    budget: UsdPerHour,
    horizon_h: float,
    node: UsdPerHour = 0.0,
    expected: float = OVERHEAD,
) -> UsdPerHour:
    """The budget to plan with; `node`: what the cheapest costs; `expected`: as for the gain."""
    whole = budget * min(horizon_h, LONGEST_H)
    left, much = steered.left / whole, max(MUCH, LUCK * math.sqrt(node / whole))
    repaid = 1.0 + left / REPAID * (1.0 + (left / much) ** 2)
    share = min(max(repaid, PAYOUT[0]), PAYOUT[1])
    return share * budget / gain(steered, budget, horizon_h, expected)


def patience_s(steered: Steered, budget: UsdPerHour, horizon_h: float) -> Seconds:
    """Seconds that a job may wait for GPUs that it is not worth. Nobody waits before a quarter of
    a horizon's budget is owed: waiting saves little and costs much."""
    most = _most(budget, horizon_h)
    deep = max(-steered.left / most - DEEP, 0.0) / (1.0 - DEEP)
    return LONGEST_WAIT_S * min(deep, 1.0)


def _most(budget: UsdPerHour, horizon_h: float) -> Usd:
    """Dollars that are saved up or owed at most."""
    return MOST_HORIZONS * min(horizon_h, LONGEST_H) * budget
