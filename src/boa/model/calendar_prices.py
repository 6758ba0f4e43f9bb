"""Prices by the hour of the week, as a calendar says them."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from boa.model.calendar import Calendar
from boa.model.prices import CONSTANT, PriceSchedule
from boa.units import GpuName, Seconds, UsdPerHour


@dataclass(frozen=True, slots=True)
class CalendarPrices:
    """The calendar's word on prices; its budgets do not count here, nor when they end."""

    calendar: Calendar
    own: frozenset[GpuName] = frozenset()
    """Types whose price the cloud names itself, as it changes."""

    def price(self, gpu: GpuName, usual: UsdPerHour, at: Seconds) -> UsdPerHour:
        if gpu in self.own:
            return usual
        return self.calendar.periods[self.calendar.at(at)].price(gpu, usual)

    def next_change(self, after: Seconds) -> Seconds:
        return self.calendar.next_change(after)


def prices_by(calendar: Calendar | None, own: Collection[GpuName] = ()) -> PriceSchedule:
    """Prices over time; without a calendar, or by one that says nothing of them, the usual ones."""
    if calendar is None or not any(p.prices or p.price_factor != 1 for p in calendar.periods):
        return CONSTANT
    return CalendarPrices(replace(calendar, until=None), frozenset(own))
