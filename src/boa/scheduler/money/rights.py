"""Rights: dollars that a budget, and those who share it, have for a calendar month. Pure."""

from typing import NamedTuple

from boa.model.budgets import Budget
from boa.scheduler.money.money_state import MoneyState, StretchState
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour


class Month(NamedTuple):
    """A month, UTC, and what was noted down of its budget."""

    first: Seconds
    end: Seconds
    now: Seconds
    noted: UsdPerHour | None = None
    """The budget on average, since `noted_from`; None: nobody noted it down."""
    noted_from: Seconds = 0.0

    @property
    def until(self) -> Seconds:
        return min(self.end, self.now)

    @property
    def over(self) -> bool:
        return self.now >= self.end


def of_whole(money: MoneyState, month: Month) -> Usd:
    """As it was noted down since the service began, and for what is to come as it is in force: by
    the calendar's hours, or what there is for this month. Of a longer stretch it is its even
    pace."""
    if money.stretch is not None and not month.over:
        return _of_stretch(money.stretch, month)
    noted, begun = month.noted, max(month.first, month.noted_from)
    if noted is None:  # of a month that is over: there was no service
        noted, begun = (0.0 if month.over else money.budget), month.first
    so_far = noted * (month.until - begun) / SECONDS_PER_HOUR
    if month.over:
        return so_far
    rest = money.budget * (month.end - month.until) / SECONDS_PER_HOUR
    return so_far + (rest if money.calendar is None else money.calendar.month_left)


def of_part(part: Budget, money: MoneyState, month: Month, whole: Usd) -> Usd:
    """`whole`: dollars of the whole. By the hour a part has the same share of them as of an hour's;
    its money on terms, and all where the whole's is, is what it is."""
    stretch = next((one.stretch for one in money.parts if one.name == part.name), None)
    if stretch is not None:
        return _of_stretch(stretch, month)
    if money.stretch is not None:
        return part.per_hour * (month.end - month.first) / SECONDS_PER_HOUR
    of_all = money.sharing.per_hour if money.sharing is not None else 0.0
    return part.per_hour / of_all * whole if of_all else 0.0


def _of_stretch(stretch: StretchState, month: Month) -> Usd:
    """A month that is over had what is configured now."""
    if stretch.each == "month":
        return stretch.usd if month.over else stretch.allowed
    length = stretch.ends - stretch.since
    common = min(stretch.ends, month.end) - max(stretch.since, month.first)
    return stretch.allowed * max(common, 0.0) / length if length > 0 else 0.0
