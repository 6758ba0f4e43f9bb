"""Prices that change with time: what holds at a moment, and what a stretch of time comes to.

A price is that of the beginning and its `Changes`: at each of these moments it becomes another one.
Law: `paid` is additive over time, and of a price that never changes it is price times time.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol, TypeAlias

from boa.units import GpuName, Seconds, UsdPerHour

if TYPE_CHECKING:  # which loads NumPy, and records of nodes need none
    from boa.model.workload import GpuType

Changes: TypeAlias = tuple[tuple[Seconds, UsdPerHour], ...]
"""Moments, rising, and the price per GPU and hour from each of them on."""
NO_CHANGES: Changes = ()
AHEAD_S: Seconds = 86_400.0
_moment = itemgetter(0)


def price_at(price: UsdPerHour, changes: Changes, at: Seconds) -> UsdPerHour:
    """That which holds then; `price`: before the first change."""
    number = bisect_right(changes, at, key=_moment) if changes else 0
    return changes[number - 1][1] if number else price


def pieces(
    price: UsdPerHour, changes: Changes, begin: Seconds, end: Seconds
) -> Iterator[tuple[Seconds, Seconds, UsdPerHour]]:
    """Stretches of one price each, which make up that time; none if it is empty."""
    while begin < end:
        number = bisect_right(changes, begin, key=_moment)
        now = changes[number - 1][1] if number else price
        until = min(changes[number][0], end) if number < len(changes) else end
        yield begin, until, now
        begin = until


def paid(price: UsdPerHour, changes: Changes, begin: Seconds, end: Seconds) -> float:
    """Integral of the price over the seconds of that time: hours of it, times 3,600."""
    if not changes:
        return price * max(end - begin, 0.0)
    return sum(now * (until - since) for since, until, now in pieces(price, changes, begin, end))


def average(price: UsdPerHour, changes: Changes, begin: Seconds, end: Seconds) -> UsdPerHour:
    """Over that time; of none at all, what held then."""
    if not changes:
        return price
    whole = paid(price, changes, begin, end)
    return whole / (end - begin) if end > begin else price_at(price, changes, begin)


def dearest(price: UsdPerHour, changes: Changes, since: Seconds, until: Seconds) -> UsdPerHour:
    """The highest price that holds at any moment from then until then, both included."""
    now = price_at(price, changes, since)
    return max((then for at, then in changes if since < at <= until and then > now), default=now)


def until(changes: Changes, end: Seconds) -> Changes:
    """Those before the end."""
    return changes[: bisect_right(changes, end, key=_moment)] if changes else changes


class PriceSchedule(Protocol):
    """Prices as they are known ahead."""

    def price(self, gpu: GpuName, usual: UsdPerHour, at: Seconds) -> UsdPerHour: ...

    def next_change(self, after: Seconds) -> Seconds:
        """The first moment after that at which any price may be another; infinite: none."""
        ...


def changes_of(
    schedule: PriceSchedule, gpu: GpuName, usual: UsdPerHour, since: Seconds, until: Seconds
) -> Changes:
    """Changes of a type's price after `since`, up to `until`."""
    found: list[tuple[Seconds, UsdPerHour]] = []
    now, at = schedule.price(gpu, usual, since), since
    while (at := schedule.next_change(at)) <= until:
        then = schedule.price(gpu, usual, at)
        if then != now:
            found.append((at, then))
            now = then
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Constant:
    """Prices that do not change."""

    def price(self, gpu: GpuName, usual: UsdPerHour, at: Seconds) -> UsdPerHour:
        return usual

    def next_change(self, after: Seconds) -> Seconds:
        return float("inf")


CONSTANT = Constant()


def known_until(schedule: PriceSchedule, now: Seconds) -> Seconds:
    """Up to when changes are written down ahead: a day, and the next change in any case."""
    soon = schedule.next_change(now)
    return max(soon, now + AHEAD_S) if soon < float("inf") else now


def types_at(
    schedule: PriceSchedule, usual: "Mapping[GpuName, GpuType]", at: Seconds
) -> "dict[GpuName, GpuType]":
    """GPU types at the prices of a moment."""
    return {
        name: replace(kind, price=schedule.price(name, kind.price, at))
        for name, kind in usual.items()
    }


def at_prices_of(
    types: "Mapping[GpuName, GpuType]", known: "Mapping[GpuName, GpuType]"
) -> "dict[GpuName, GpuType]":
    """GPU types at the prices of those that are known; the others at their own."""
    return {
        name: replace(kind, price=known[name].price) if name in known else kind
        for name, kind in types.items()
    }
