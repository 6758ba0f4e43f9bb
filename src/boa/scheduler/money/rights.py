"""Rights: dollars that a budget, and those who share it, have for a calendar month. Pure."""

from typing import NamedTuple

from boa.model.budgets import Budget
from boa.model.terms import Terms
from boa.scheduler.money.money_state import MoneyState, StretchState
from boa.scheduler.money.months import Allowed
from boa.units import SECONDS_PER_HOUR, Seconds, Usd


class Month(NamedTuple):
    """A month, UTC, and what its budget was."""

    first: Seconds
    end: Seconds
    now: Seconds
    allowed: Allowed | None = None
    """USD that it has allowed so far; None: nobody has counted it."""

    @property
    def until(self) -> Seconds:
        return min(self.end, self.now)

    @property
    def begun(self) -> Seconds:
        """When the service was there in it for the first time."""
        return self.first if self.allowed is None else max(self.first, self.allowed.since)

    @property
    def over(self) -> bool:
        return self.now >= self.end

    @property
    def before_service(self) -> bool:
        """Nobody had anything to spend in it."""
        return self.over and self.allowed is None


def of_whole(money: MoneyState, month: Month) -> Usd:
    """As it was since the service began, and for what is to come as it is in force: by the
    calendar's hours, or what its terms give this month."""
    if month.before_service:
        return 0.0
    if money.stretch is not None:
        return _of_stretch(money.stretch, month)
    if month.allowed is not None:
        so_far = month.allowed.usd
    else:
        so_far = money.budget * (month.until - month.first) / SECONDS_PER_HOUR
    if month.over:
        return so_far
    rest = money.budget * (month.end - month.until) / SECONDS_PER_HOUR
    return so_far + (rest if money.calendar is None else money.calendar.month_left)


def of_part(part: Budget, money: MoneyState, month: Month, whole: Usd) -> Usd:
    """`whole`: dollars of the whole. By the hour a part has the same share of them as of an hour's;
    its money on terms, and all where the whole's is, is what it is."""
    if month.before_service:
        return 0.0
    stretch = next((one.stretch for one in money.parts if one.name == part.name), None)
    if stretch is not None:
        return _of_stretch(stretch, month)
    if money.stretch is not None:
        return part.per_hour * (month.end - month.begun) / SECONDS_PER_HOUR
    of_all = money.sharing.per_hour if money.sharing is not None else 0.0
    return part.per_hour / of_all * whole if of_all else 0.0


def _of_stretch(stretch: StretchState, month: Month) -> Usd:
    """Money of the present stretch as it is there, of another one as it is configured now; of one
    that is longer than the month, by its even pace. The month is UTC's, and the stretch that of the
    same name, whatever the clocks that it goes by: they are hours apart at most. Behind UTC the one
    before it still lasts in its first hours, and goes into it where money rolls over."""
    usd, begins, ends = stretch.allowed, stretch.since, stretch.ends
    if stretch.each != "once":
        terms = Terms(usd=stretch.usd, each=stretch.each)
        span = terms.span(month.first)
        if span.name != stretch.name:
            usd, begins = stretch.usd, span.begins
            if stretch.rolls_over and terms.span(stretch.ends).name == span.name:
                usd = max(usd + stretch.allowed - stretch.spent, 0.0)
        elif stretch.each == "month":
            return usd
        begins, ends = max(begins, span.begins), span.ends
    common = min(ends, month.end) - max(begins, month.begun)
    return usd * max(common, 0.0) / (ends - begins) if ends > begins else 0.0
