"""Terms of a budget: money for a month, a quarter, or for a project until a date."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Literal, NamedTuple, TypeAlias

from boa.units import Seconds, Usd, UsdPerHour

Each: TypeAlias = Literal["month", "quarter", "once"]
"""Stretch of time that the money is for: every calendar month or quarter, or one until a date."""
MONTHS: dict[Each, int] = {"month": 1, "quarter": 3}
HOURS_PER_MONTH = 365.25 * 24.0 / 12.0
"""Hours of a mean month: money of months and of quarters is compared by it."""


class Span(NamedTuple):
    """A stretch of time that money is for."""

    name: str
    """Such as 2026-11, 2026-Q4, or until 2027-03-31."""
    begins: Seconds
    """Minus infinity: whenever its money was first there."""
    ends: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """An amount, and what it is for."""

    usd: Usd
    each: Each
    until: date | None = None
    """The last day of `once`."""
    rolls_over: bool = False
    """Whether what a month or a quarter leaves goes into the next; else nobody has it."""

    @property
    def per_hour(self) -> UsdPerHour:
        """On average, over months of different length; 0 of a project, which ends."""
        months = MONTHS.get(self.each)
        return self.usd / (months * HOURS_PER_MONTH) if months else 0.0

    @property
    def words(self) -> str:
        """Such as $500 a month."""
        if self.until is not None:
            return f"${self.usd:,g} in total until {self.until.isoformat()}"
        return f"${self.usd:,g} a {self.each}"

    def span(self, now: Seconds, zone: tzinfo = UTC) -> Span:
        """The stretch that a moment is in, by the clocks of a time zone."""
        if self.until is not None:
            name = f"until {self.until.isoformat()}"
            return Span(name, float("-inf"), _midnight(self.until + timedelta(days=1), zone))
        day, months = datetime.fromtimestamp(now, zone).date(), MONTHS[self.each]
        month = (day.month - 1) // months * months + 1
        first = day.replace(month=month, day=1)
        last = first.replace(month=month + months - 1)
        last = last.replace(day=monthrange(last.year, last.month)[1])
        named = f"{first:%Y-%m}" if months == 1 else f"{first.year}-Q{month // 3 + 1}"
        return Span(named, _midnight(first, zone), _midnight(last + timedelta(days=1), zone))


def _midnight(day: date, zone: tzinfo) -> Seconds:
    """The first moment of a day."""
    return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()
