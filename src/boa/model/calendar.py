"""A week of money: periods in which the budget, or what GPUs cost, is different.

Moments are Unix seconds. A week is one of local time: where clocks change, a period begins when
they show its hour, and one of that night is an hour longer or shorter.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from itertools import groupby
from typing import TypeAlias
from zoneinfo import ZoneInfo

from boa.model.workload import Workload
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, Usd, UsdPerHour

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTES_PER_DAY = 1440
MINUTES_PER_WEEK = 7 * MINUTES_PER_DAY
_DAY_S = 86_400
_WEEK_S = 7 * _DAY_S
_MONDAY_S = 3 * _DAY_S
"""Unix time began on a Thursday."""
MOST_AHEAD_S: Seconds = 16 * _DAY_S
"""Two weeks and the changes of clocks in them: what has not changed by then never does."""
_Day: TypeAlias = tuple[list[int], list[tuple[int, int]]]
"""Seconds of Unix time, and from each of them on: the period, and until when it lasts."""


def zone_of(name: str) -> tzinfo:
    """UTC is known even where no time zones are installed."""
    return UTC if name == "UTC" else ZoneInfo(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Hours of the week in which money is alike."""

    name: str
    budget: UsdPerHour
    """Average spend per hour, while it lasts."""
    days: tuple[str, ...] = DAYS
    """Days on which it begins."""
    begins: int = 0
    ends: int = MINUTES_PER_DAY
    """Minutes of the day; an end before the beginning is on the next day."""
    price_factor: float = 1.0
    """Prices then, over those of the workload …"""
    prices: Mapping[GpuName, UsdPerHour] = field(default_factory=dict)
    """… and those that are given: per GPU and hour."""

    def minutes(self) -> set[int]:
        """Minutes of the week, from Monday on."""
        length = (self.ends - self.begins) % MINUTES_PER_DAY or MINUTES_PER_DAY
        return {
            (DAYS.index(day) * MINUTES_PER_DAY + self.begins + minute) % MINUTES_PER_WEEK
            for day in self.days
            for minute in range(length)
        }

    def price(self, gpu: GpuName, usual: UsdPerHour) -> UsdPerHour:
        return self.prices.get(gpu, usual * self.price_factor)


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """The first period that names a minute has it; the last has all that are left."""

    periods: tuple[Period, ...]
    time_zone: str = "UTC"
    until: Seconds | None = None
    """When the budget ends: there is none after that. None: never."""
    origin: Seconds = 0.0
    """Unix time of moment 0: clocks of simulations begin there."""
    may_wait: Seconds = field(default=0.0, repr=False)
    """The most that jobs which say nothing of it wait for hours in which money buys more. It is no
    part of what is compared with what was stored: the same budgets go on whatever it is."""

    @cached_property
    def week(self) -> tuple[int, ...]:
        """Number of the period of every minute."""
        found = [len(self.periods) - 1] * MINUTES_PER_WEEK
        for number in range(len(self.periods) - 2, -1, -1):
            for minute in self.periods[number].minutes():
                found[minute] = number
        return tuple(found)

    def share(self, period: int) -> float:
        """Part of the week that it lasts."""
        return self.shares[period]

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """Part of the week that every period lasts."""
        return tuple(self.week.count(n) / MINUTES_PER_WEEK for n in range(len(self.periods)))

    @cached_property
    def spells(self) -> tuple[Seconds, ...]:
        """How long every period lasts at a stretch, on average."""
        week = self.week
        begun = [
            here for before, here in zip((week[-1], *week), week, strict=False) if before != here
        ]
        return tuple(
            60.0 * week.count(n) / max(begun.count(n), 1) for n in range(len(self.periods))
        )

    @property
    def average(self) -> UsdPerHour:
        """The budget over a week."""
        return sum(p.budget * self.share(n) for n, p in enumerate(self.periods))

    def wait(self, here: int, there: int) -> Seconds:
        """Mean time until the other period begins, for jobs that come in this one at any time."""
        if here == there:
            return 0.0
        total, minutes, until = 0.0, 0, self._to_next(there)
        for minute, period in enumerate(self.week):
            if period == here:
                total += until[minute] - 0.5  # in the middle of its minute
                minutes += 1
        return 60.0 * total / minutes if minutes else 0.0

    def _to_next(self, period: int) -> list[int]:
        """By minute of the week: minutes until it begins; 0 while it lasts."""
        found, away = [0] * MINUTES_PER_WEEK, 0
        for minute in range(2 * MINUTES_PER_WEEK - 1, -1, -1):
            at = minute % MINUTES_PER_WEEK
            away = 0 if self.week[at] == period else away + 1
            found[at] = away
        return found

    @cached_property
    def spans(self) -> list[tuple[int, int, int]]:
        """(period, first minute, one past the last), through the week."""
        found, begin = [], 0
        for period, run in groupby(self.week):
            end = begin + sum(1 for _ in run)
            found.append((period, begin, end))
            begin = end
        return found

    def workload(self, usual: Workload, period: int) -> Workload:
        """The workload at the prices of a period."""
        of = self.periods[period]
        types = {
            name: replace(kind, price=of.price(name, kind.price))
            for name, kind in usual.gpu_types.items()
        }
        return replace(usual, gpu_types=types)

    # Moments

    def at(self, moment: Seconds) -> int:
        """Number of the period that holds then."""
        return self._held(math.floor(moment + self.origin))[0]

    def next_change(self, moment: Seconds) -> Seconds:
        """When another period begins, or the budget ends; infinity: never again."""
        end = self.ends
        if moment >= end:
            return math.inf
        here, last = self.at(moment), moment + MOST_AHEAD_S
        for begin, _, period in self.stretches(moment, min(last, end)):
            if period != here:
                return begin
        return end if end <= last else math.inf

    def stretches(self, since: Seconds, until: Seconds) -> Iterator[tuple[Seconds, Seconds, int]]:
        """(from, to, period) of the time between, in order; some follow others of the same period.
        Also of time after the end of the budget, in which no period has any."""
        begin = since
        while begin < until:
            period, past = self._held(math.floor(begin + self.origin))
            end = min(past - self.origin, until)
            yield begin, end, period
            begin = end

    def budget_at(self, moment: Seconds) -> UsdPerHour:
        return self.periods[self.at(moment)].budget if moment < self.ends else 0.0

    def allowed(self, since: Seconds, until: Seconds) -> Usd:
        """Dollars that the budgets come to in the time between: their exact integral."""
        dollars = (
            self.periods[period].budget * (end - begin)
            for begin, end, period in self.stretches(since, min(until, self.ends))
        )
        return math.fsum(dollars) / SECONDS_PER_HOUR

    def mean(self, since: Seconds, until: Seconds) -> UsdPerHour:
        """The budget on average of the time between; at one moment that of then."""
        if until <= since:
            return self.budget_at(since)
        return self.allowed(since, until) * SECONDS_PER_HOUR / (until - since)

    @property
    def ends(self) -> Seconds:
        """When the budget ends, as a moment."""
        return math.inf if self.until is None else self.until - self.origin

    def scaled(self, factor: float) -> "Calendar":
        """All budgets so many times what they are."""
        periods = (replace(period, budget=factor * period.budget) for period in self.periods)
        return replace(self, periods=tuple(periods))

    def begun_on_a_monday(self) -> "Calendar":
        """For a clock that begins at 0: that is the beginning of a week in the calendar's zone."""
        first = datetime(2026, 1, 5, tzinfo=self.zone)
        return self.begun_at(first.timestamp())

    def begun_at(self, moment: Seconds) -> "Calendar":
        """For a clock that begins at 0: that is this moment of Unix time."""
        return replace(self, origin=moment)

    @cached_property
    def zone(self) -> tzinfo:
        """Where clocks show its hours."""
        return zone_of(self.time_zone)

    @cached_property
    def _edges(self) -> tuple[list[int], list[int]]:
        """Seconds of the week at which a period begins, and which."""
        spans = self.spans
        return [60 * begin for _, begin, _ in spans], [period for period, _, _ in spans]

    def _held(self, second: int) -> tuple[int, int]:
        """The period at a second of Unix time, and until which it surely lasts."""
        begins, found = self._days.get(second // _DAY_S) or self._day(second // _DAY_S)
        period, past = found[bisect_right(begins, second) - 1]
        return period, min(past, second + _DAY_S)

    @cached_property
    def _days(self) -> dict[int, _Day]:
        """By number of the day in UTC, of those that were asked about: what clocks show at a moment
        takes longer to say than all the rest."""
        return {}

    def _day(self, number: int) -> _Day:
        """Periods of a day, worked out for good."""
        begins, found, at = list[int](), list[tuple[int, int]](), number * _DAY_S
        while at < (number + 1) * _DAY_S:
            period, past = self._spell(at)
            begins.append(at)
            found.append((period, past))
            at = past
        self._days[number] = begins, found
        return begins, found

    def _spell(self, second: int) -> tuple[int, int]:
        """The period at a second, and when another may begin; later than in two days does not
        matter."""
        offset = self._offset(second)
        begins, periods = self._edges
        into = (second + offset + _MONDAY_S) % _WEEK_S
        place = bisect_right(begins, into) - 1
        end = begins[place + 1] if place + 1 < len(begins) else _WEEK_S
        past = min(second + end - into, second + 2 * _DAY_S)
        if self._offset(past) != offset:
            past = self._clocks_change(second, past)
        return periods[place], past

    def _offset(self, second: int) -> int:
        """Seconds that local time is ahead of UTC."""
        if self.zone is UTC:
            return 0
        ahead = datetime.fromtimestamp(second, self.zone).utcoffset()
        return 0 if ahead is None else round(ahead.total_seconds())

    def _clocks_change(self, before: int, after: int) -> int:
        """The first second in between at which clocks are not as before."""
        was = self._offset(before)
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if self._offset(middle) == was else (before, middle)
        return after
