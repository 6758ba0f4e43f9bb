"""Prices in force: of GPU types now, and as far as they are known ahead. Pure but for what clouds
have said."""

from collections.abc import Mapping
from dataclasses import replace

from boa.model.prices import (
    CONSTANT,
    Changes,
    PriceSchedule,
    at_prices_of,
    changes_of,
    dearest,
    known_until,
    types_at,
)
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds, UsdPerHour

MOVED = 0.01
"""Part of a price by which it has to move, at a cloud whose prices nobody knows ahead, before
anything is planned anew."""
LEAVE_S: Seconds = 900.0
"""Seconds that jobs are taken to need to leave a node, beside their grace time: so long before
prices rise the cap is held against the new ones."""


class PricesInForce:
    def __init__(
        self, usual: Mapping[GpuName, GpuType], schedule: PriceSchedule = CONSTANT
    ) -> None:
        """`usual`: prices that the schedule goes out from."""
        self.schedule, self._usual = schedule, dict(usual)
        self._types: Mapping[GpuName, GpuType] = self._usual
        self._coming: dict[GpuName, Changes] = {}
        self._good_until: Seconds = -float("inf")

    def offered(self, offers: Mapping[GpuName, GpuType]) -> None:
        """The cloud has said what it asks for now."""
        for name, kind in self._usual.items():
            price = offers[name].price if name in offers else kind.price
            if abs(price - kind.price) > MOVED * kind.price:
                self._usual[name] = replace(kind, price=price)
                self._good_until = -float("inf")

    def types(self, now: Seconds) -> Mapping[GpuName, GpuType]:
        """The same object again while no price has changed."""
        self._look(now)
        return self._types

    @property
    def usual(self) -> Mapping[GpuName, GpuType]:
        """GPU types at the prices that the schedule goes out from."""
        return self._usual

    def then(self, types: Mapping[GpuName, GpuType], at: Seconds) -> dict[GpuName, GpuType]:
        """These types at the prices of a moment to come, as far as they are known ahead."""
        return at_prices_of(types, types_at(self.schedule, self._usual, at))

    def coming(self, now: Seconds) -> Mapping[GpuName, Changes]:
        """Changes that are known ahead, of types that have any."""
        self._look(now)
        return self._coming

    def dearer(self, now: Seconds, ahead_s: Seconds) -> dict[GpuName, UsdPerHour]:
        """The highest prices of types that will cost more within the seconds ahead."""
        types = self.types(now)
        return {
            gpu: most
            for gpu, changes in self._coming.items()
            if (most := dearest(types[gpu].price, changes, now, now + ahead_s)) > types[gpu].price
        }

    def wakes_at(self, now: Seconds, ahead_s: Seconds) -> Seconds:
        """When types, or those that will be dearer, are next to be looked at again."""
        return min(
            self.schedule.next_change(now), self.schedule.next_change(now + ahead_s) - ahead_s
        )

    def _look(self, now: Seconds) -> None:
        if now < self._good_until:
            return
        schedule, until = self.schedule, known_until(self.schedule, now)
        found = types_at(schedule, self._usual, now)
        if found != self._types:
            self._types = found
        changes = {
            name: changes_of(schedule, name, kind.price, now, until)
            for name, kind in self._usual.items()
        }
        self._coming = {name: known for name, known in changes.items() if known}
        self._good_until = schedule.next_change(now)
