"""Pacing: the budget to plan with, so that what is really spent averages to the budget. Pure.

A plan promises what jobs will hold; what comes of it is more or less by some factor, the *gain*,
which the next plan is divided by. It has two parts. The *overhead*, dollars charged per dollar
that jobs held, is plain to see in the ledger: nodes idle, nodes boot. It is learned within hours.
What jobs held of what was planned is not: arrivals are misjudged, or just happen to be many
today. That takes a horizon to tell. The rest is set right by the *credit*, dollars not yet spent
of those that the budget has allowed, which are paid out over the horizon. The derivation is in
docs/concepts/money.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from boa.scheduler.money.ledger import Bill
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

HORIZON_H = 24.0
"""The horizon where none is set."""
BOUND = 2.0
"""Horizons of budget that can be saved up, or owed: beyond it, a dollar left over is forgone and
one overspent is forgiven. With the default horizon that is a week-end without jobs."""
PAYOUT = 1.0
"""Share of the budget that savings add to it at most, so that a dead week ends in no spree."""
GAIN = (1 / 3, 3.0)
"""Bounds within which spent ÷ planned is believed to be; the upper one is the overhead's too."""
OVERHEAD_HORIZONS = 1 / 4
"""Horizons of budget, the newest dollars, by which the overhead is measured …"""
OVERHEAD_LEAST_H = 1.0
"""… and hours of budget that they are at least, or one boot would upset a short horizon."""
LESSON = 2.0
"""Most dollars an hour that teach, as a share of the budget. What winds down after the budget was
cut is not what is usual under the new one."""
BELIEVED = 1 / 12
"""Share of those dollars that is taken at first to have gone to jobs alone, so that the first nodes
to boot, which no job can hold yet, are not taken for what is usual."""
NO_DEMAND = 0.25
"""Where jobs hold less than this share of the plan there are none, which says nothing of the gain
if it lasts …"""
NIGHT_HORIZONS = 1 / 24
"""… longer than this. A lull between two jobs is part of what the plan promised."""
EFFECTIVE = (0.25, 4.0)
"""Least and most that is planned with, as shares of the budget."""


class Schedule(NamedTuple):
    """A budget that changes by the hour, since the last look."""

    allowed: Usd
    """Dollars that it came to."""
    budget: UsdPerHour
    """The one in force now …"""
    usual: UsdPerHour
    """… and that of a week on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The controller's state: JSON by `as_document`."""

    budget: UsdPerHour
    since: Seconds
    """Beginning of averages: the first start, or the last change of the budget."""
    spent_before: Usd
    """The ledger's total then."""
    at: Seconds
    """Up to when the ledger was looked at …"""
    total: Usd
    """… and its total then, …"""
    jobs: Usd
    """… of which jobs held so much."""
    credit: Usd = 0.0
    """Allowed and not spent, within bounds; negative: a debt."""
    held: UsdPerHour
    """USD per hour that jobs held: a moving average over the horizon, while there was demand …"""
    planned: UsdPerHour
    """… and of what the plans in force promised at the same time."""
    lull_h: float = 0.0
    """Hours without demand until now, of which nobody knows yet whether they are a night …"""
    lull_held: Usd = 0.0
    """… and what jobs held in them."""
    charged: float = BELIEVED
    """The newest dollars, each forgotten as others follow, in parts of those that count …"""
    used: float = BELIEVED
    """… and of these, those that jobs held."""

    def as_document(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_document(cls, document: Mapping[str, Any], bill: Bill) -> "Pace":
        """In older documents the parts of the gain are not told apart: they are learned anew, from
        `bill` on, which is what was charged until now; what came since their last look is taken to
        have gone to jobs."""
        learned = {name: value for name, value in document.items() if name != "spent"}
        since_then = bill.total - document["total"]
        return cls(**{"jobs": bill.jobs - since_then, "held": document["planned"], **learned})


def begun(budget: UsdPerHour, bill: Bill, now: Seconds) -> Pace:
    """At the first start: plans are believed until they are seen to be off."""
    return Pace(
        budget=budget,
        since=now,
        spent_before=bill.total,
        at=now,
        total=bill.total,
        jobs=bill.jobs,
        held=budget,
        planned=budget,
    )


def with_budget(pace: Pace, budget: UsdPerHour, bill: Bill, now: Seconds) -> Pace:
    """A new budget counts from now on; the gain belongs to the jobs, and stays."""
    return replace(
        begun(budget, bill, now),
        held=_of_plan(pace) * budget,
        charged=pace.charged,
        used=pace.used,
    )


def advanced(
    pace: Pace,
    bill: Bill,
    planned: UsdPerHour,
    now: Seconds,
    horizon_h: float,
    schedule: Schedule | None = None,
) -> Pace:
    """After a look at the ledger; `planned`: what the plan in force since the last look promises.
    `schedule`: what the budget came to since then, where it changes by the hour.

    Looks may come as often or as seldom as they like. A clock that was set back stands still.
    """
    hours = (now - pace.at) / SECONDS_PER_HOUR
    if hours <= 0:
        return pace
    if schedule is None:
        schedule = Schedule(pace.budget * hours, pace.budget, pace.budget)
    spent, held = bill.total - pace.total, bill.jobs - pace.jobs
    most = BOUND * schedule.usual * horizon_h
    pace = replace(
        _overhead_learned(pace, spent, held, hours, horizon_h),
        budget=schedule.budget,
        at=now,
        total=bill.total,
        jobs=bill.jobs,
        credit=min(max(pace.credit + schedule.allowed - spent, -most), most),
    )
    return pace if planned <= 0 else _demand_learned(pace, held, planned, hours, horizon_h)


def _overhead_learned(pace: Pace, spent: Usd, held: Usd, hours: float, horizon_h: float) -> Pace:
    """Dollars are forgotten by the dollar, not by the hour: where nothing is spent, nothing is
    learned and nothing unlearned."""
    if spent <= 0 or not pace.budget:
        return pace
    counted = pace.budget * max(OVERHEAD_HORIZONS * horizon_h, OVERHEAD_LEAST_H)
    fresh = -math.expm1(-min(spent, LESSON * pace.budget * hours) / counted)
    charged = pace.charged + fresh * (1.0 - pace.charged)
    used = pace.used + fresh * (held / spent - pace.used)
    return replace(pace, charged=charged, used=max(used, charged / GAIN[1]))


def _demand_learned(
    pace: Pace, held: Usd, planned: UsdPerHour, hours: float, horizon_h: float
) -> Pace:
    """A lull counts once jobs are back; a night, which is a longer one, never does."""
    if held < NO_DEMAND * planned * hours:
        return replace(pace, lull_h=pace.lull_h + hours, lull_held=pace.lull_held + held)
    if pace.lull_h <= NIGHT_HORIZONS * horizon_h:
        hours, held = hours + pace.lull_h, held + pace.lull_held
    fresh = -math.expm1(-hours / horizon_h)
    return replace(
        pace,
        held=pace.held + fresh * (held / hours - pace.held),
        planned=pace.planned + fresh * (planned - pace.planned),
        lull_h=0.0,
        lull_held=0.0,
    )


def overhead(pace: Pace) -> float:
    """Dollars charged per dollar that jobs held."""
    return max(pace.charged / pace.used, 1.0)


def gain(pace: Pace) -> float:
    """Dollars spent per dollar planned."""
    return min(max(overhead(pace) * _of_plan(pace), GAIN[0]), GAIN[1])


def _of_plan(pace: Pace) -> float:
    """Dollars that jobs held per dollar planned; plans are believed where there was none, as after
    the end of a budget."""
    return pace.held / pace.planned if pace.planned else 1.0


def effective(pace: Pace, horizon_h: float, credit: Usd | None = None) -> UsdPerHour:
    """The budget to plan with; `credit`: what counts as such now, if not all of it does."""
    repaid = min((pace.credit if credit is None else credit) / horizon_h, PAYOUT * pace.budget)
    wanted = (pace.budget + repaid) / gain(pace)
    return min(max(wanted, EFFECTIVE[0] * pace.budget), EFFECTIVE[1] * pace.budget)
