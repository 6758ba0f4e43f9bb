"""Accounts of a calendar's periods, so that each of them keeps its own average. Pure.

Spend follows a change of the budget with a lag: the first hours of a day pay for what the night has
begun. One credit for the whole week would even that out between periods and leave each of them off
by as much, week after week. So what is spent in a period counts against that period's budget, and
is made good when it comes again. What one of them owes beyond its bounds is everybody's: whichever
period holds pays for it, over the horizon, so that the whole is kept. What one of them leaves
beyond its bounds pays such debts, and is forgone else: it never raises another period's spend.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from boa.model.calendar import Calendar
from boa.scheduler.money.costs import month_of
from boa.scheduler.money.luck import LONGEST_H
from boa.scheduler.money.money_state import CalendarState, HoursOfWeek
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

WEEK_H = 168.0
"""A horizon of more has as much of every period as a week has."""
LEAST_PART = 1 / 6
"""Part of a horizon in which what a period has left is made good at the soonest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodAccounts:
    """By the name of a period; JSON by `as_document`."""

    left: Mapping[str, Usd] = field(default_factory=dict)
    """Dollars of its budget that were not billed while it held; negative: it owes."""
    common: Usd = 0.0
    """Dollars owed that are nobody's own any more: never more than zero."""
    spent: Mapping[str, Usd] = field(default_factory=dict)
    """Billed while it held, ever since the calendar is followed …"""
    hours: Mapping[str, float] = field(default_factory=dict)
    """… and for how long it held until now."""

    def as_document(self) -> dict[str, Any]:
        by_period = {"left": self.left, "spent": self.spent, "hours": self.hours}
        return {"common": self.common, **{name: dict(of) for name, of in by_period.items()}}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "PeriodAccounts":
        """Older ones may have money in common: it is forgone."""
        return cls(**{**document, "common": min(document["common"], 0.0)})

    def average(self, period: str) -> UsdPerHour | None:
        """USD per hour of a period, as spent; None: it never held."""
        hours = self.hours.get(period, 0.0)
        return self.spent.get(period, 0.0) / hours if hours else None


def looked(
    accounts: PeriodAccounts,
    calendar: Calendar,
    since: Seconds,
    now: Seconds,
    *,
    billed: Usd,
    horizon_h: float,
    bound: float,
) -> PeriodAccounts:
    """After a look at the ledger; `bound`: horizons whose money, of the hours that a period has in
    them, it saves up or owes at most. What was billed since the last look is spread evenly over
    it."""
    if now <= since:
        return accounts
    horizon_h = min(horizon_h, LONGEST_H)
    for begin, end, number in calendar.stretches(since, now):
        period, hours = calendar.periods[number], (end - begin) / SECONDS_PER_HOUR
        allowed = calendar.allowed(begin, end)
        lent = accounts.common * min(hours / horizon_h, 1.0)
        left = accounts.left.get(period.name, 0.0) + lent
        spent = billed * (end - begin) / (now - since)
        left += allowed - spent
        most = bound * horizon_h * _part(calendar, number, horizon_h) * period.budget
        kept = min(max(left, -most), most)
        of_all = bound * horizon_h * calendar.average
        common = accounts.common - lent + left - kept
        accounts = replace(
            accounts,
            left={**accounts.left, period.name: kept},
            common=min(max(common, -of_all), 0.0),
            spent=_more(accounts.spent, period.name, spent),
            hours=_more(accounts.hours, period.name, hours),
        )
    return accounts


def _more(sums: Mapping[str, float], name: str, more: float) -> dict[str, float]:
    return {**sums, name: sums.get(name, 0.0) + more}


def _part(calendar: Calendar, number: int, horizon_h: float) -> float:
    """A period's part of a horizon in which its turn comes: its share of the week, or one spell of
    it. A day that comes once a week has the whole of a day, not a seventh."""
    spell_h = calendar.spells[number] / SECONDS_PER_HOUR
    return max(calendar.share(number), min(spell_h / horizon_h, 1.0))


def left_at(accounts: PeriodAccounts, calendar: Calendar, moment: Seconds, horizon_h: float) -> Usd:
    """Dollars left over in the period that holds, as if it held all the time: the coming horizon
    has only so many of its hours to make them good in, the fewer the nearer its end is, if it does
    not come again soon. With them what everybody owes, spread over all hours."""
    number = calendar.at(moment)
    own = accounts.left.get(calendar.periods[number].name, 0.0)
    return own / _coming(calendar, number, moment, min(horizon_h, WEEK_H)) + accounts.common


def _coming(calendar: Calendar, number: int, moment: Seconds, horizon_h: float) -> float:
    """A period's part of the horizon that begins now: none of it is made good in less than the
    least, which jobs take to follow."""
    stretches = calendar.stretches(moment, moment + horizon_h * SECONDS_PER_HOUR)
    held = sum(end - begin for begin, end, period in stretches if period == number)
    return max(held / (horizon_h * SECONDS_PER_HOUR), LEAST_PART)


def state(accounts: PeriodAccounts, calendar: Calendar, now: Seconds) -> CalendarState:
    """The period that holds, and the next one."""
    change, ended = calendar.next_change(now), now >= calendar.ends
    goes_on = math.isfinite(change) and change < calendar.ends
    return CalendarState(
        period=None if ended else calendar.periods[calendar.at(now)].name,
        next_at=change if math.isfinite(change) else None,
        next_period=calendar.periods[calendar.at(change)].name if goes_on else None,
        next_budget=calendar.budget_at(change) if goes_on else 0.0,
        week=calendar.average,
        month_left=calendar.allowed(now, month_of(now)[1]),
        ends_at=calendar.until,
        time_zone=calendar.time_zone,
        averages={
            period.name: found
            for period in calendar.periods
            if (found := accounts.average(period.name)) is not None
        },
        hours=_hours(calendar),
    )


def _hours(calendar: Calendar) -> tuple[HoursOfWeek, ...]:
    return tuple(
        HoursOfWeek(
            period=calendar.periods[number].name,
            budget=calendar.periods[number].budget,
            begins=begin,
            ends=end,
        )
        for number, begin, end in calendar.spans
    )
