"""USD per GPU and hour of nodes: the user's word, else AWS's spot prices, else the catalogue."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TypeAlias

from boa.catalogue import cloud_offers
from boa.catalogue.cloud_offers import CloudOffer
from boa.clouds.aws.calls import Api, AwsFailed
from boa.clouds.aws.listing import Instance
from boa.errors import InputError
from boa.model.provider_settings import AwsSettings
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds, UsdPerHour

REFRESH_S: Seconds = 300.0
"""How old spot prices may be."""
PRODUCT = "Linux/UNIX"
Points: TypeAlias = Sequence[tuple[Seconds, UsdPerHour]]
"""Prices and the moments from which they hold, oldest first."""


def between(points: Points, since: Seconds, until: Seconds) -> list[tuple[Seconds, UsdPerHour]]:
    """The price at the beginning of that time, and those it changed to before the end; before the
    first point it was what it was then."""
    first = max(bisect_right(points, since, key=lambda point: point[0]) - 1, 0)
    found = [(since, points[first][1])]
    for at, price in points[first + 1 :]:
        if since < at < until and price != found[-1][1]:
            found.append((at, price))
    return found


class SpotPrices:
    """By instance type and zone, for whole instances."""

    def __init__(self, api: Api, kinds: Collection[str], zones: Collection[str]) -> None:
        self._api, self._kinds, self._zones = api, sorted(kinds), frozenset(zones)
        self._points: dict[tuple[str, str], dict[Seconds, UsdPerHour]] = {}
        self._from = self._until = float("inf")

    def refresh(self, since: Seconds, now: Seconds) -> None:
        """All prices from then on. Raises AwsFailed, and is due again only later all the same."""
        if not self._kinds or (now - self._until < REFRESH_S and since >= self._from):
            return
        begin = min(since, self._until) if since >= self._from else since
        self._from, self._until = min(self._from, since), now
        pages = self._api.pages(
            "describe_spot_price_history",
            InstanceTypes=self._kinds,
            ProductDescriptions=[PRODUCT],
            StartTime=datetime.fromtimestamp(begin, UTC),
            EndTime=datetime.fromtimestamp(now, UTC),
        )
        for page in pages:
            for said in page["SpotPriceHistory"]:
                market = said["InstanceType"], said["AvailabilityZone"]
                points = self._points.setdefault(market, {})
                points[said["Timestamp"].timestamp()] = float(said["SpotPrice"])

    def of(self, kind: str, zone: str, since: Seconds, until: Seconds) -> Points:
        """Prices in that time, the first from its beginning on; none where AWS lists none."""
        points = self._points.get((kind, zone))
        return between(sorted(points.items()), since, until) if points else ()

    def now(self, kinds: Collection[str]) -> list[UsdPerHour]:
        """Newest spot prices of these instance types in our zones, USD per hour."""
        return [
            points[max(points)]
            for (kind, zone), points in self._points.items()
            if kind in kinds and zone in self._zones
        ]


class Prices:
    def __init__(
        self,
        api: Api,
        settings: AwsSettings,
        gpu_types: Mapping[GpuName, GpuType],
        unpriced: Collection[GpuName],
        *,
        zones: Collection[str],
        wall: Callable[[], Seconds],
    ) -> None:
        self._settings, self._gpu_types, self._wall = settings, gpu_types, wall
        self._unpriced = frozenset(unpriced)
        machines = settings.machines
        spot = {name for name in gpu_types if name in self._unpriced and machines[name].spot}
        kinds = {kind for name in spot for kind in machines[name].instance_types}
        self._spot = SpotPrices(api, kinds, zones)
        self._spot.refresh(wall(), wall())
        self.sources: dict[GpuName, str] = {}
        """Where each price is from, in words."""
        self.offers = {name: self._offer(kind) for name, kind in gpu_types.items()}

    def refresh(self, listed: Sequence[Instance]) -> None:
        """Spot prices since the first of these began, where they are not known yet."""
        now = self._wall()
        began = [one.launched for one in listed if one.spot and not one.is_gone]
        try:
            self._spot.refresh(min([now, *began]), now)
        except AwsFailed:
            return  # a list of nodes is worth more than the newest price
        for name, offer in self.offers.items():
            if spot := self._spot_now(name):
                self.offers[name] = replace(offer, price=min(spot) / offer.gpus_per_node)

    def gpus(self, instance: Instance) -> int:
        """GPUs of an instance; of a type that is no longer configured, as many as the catalogue
        knows."""
        kind = self._gpu_types.get(instance.gpu)
        if kind is not None:
            return kind.gpus_per_node
        known = find(instance.kind, self._settings.region)
        return 1 if known is None else known.gpus

    def of(self, instance: Instance) -> Points:
        """Per GPU and hour, since it was launched; spot instances have every price since then."""
        offer, launched = self.offers.get(instance.gpu), instance.launched
        if offer is not None and instance.gpu not in self._unpriced:
            return [(launched, offer.price)]
        gpus = self.gpus(instance)
        if instance.spot:
            until = self._wall() if instance.ended is None else instance.ended
            paid = self._spot.of(instance.kind, instance.zone, launched, until)
            if paid:
                return [(at, price / gpus) for at, price in paid]
        known = None if instance.spot else _on_demand(instance.kind, self._settings.region)
        if known is not None:
            return [(launched, known / gpus)]
        return [(launched, 0.0 if offer is None else offer.price)]

    def now(self, instance: Instance) -> UsdPerHour:
        """USD per hour that all of an instance costs now."""
        return self.of(instance)[-1][1] * self.gpus(instance)

    def dearest(self, name: GpuName) -> UsdPerHour:
        """USD per hour that a node may cost at most: AWS chooses among the types and zones."""
        offer, machine = self.offers[name], self._settings.machines[name]
        listed = offer.price * offer.gpus_per_node
        if name not in self._unpriced:
            return listed
        if machine.spot:
            return max([listed, *self._spot.now(machine.instance_types)])
        region = self._settings.region
        known = (_on_demand(kind, region) for kind in machine.instance_types)
        return max([listed, *(price for price in known if price is not None)])

    def _spot_now(self, name: GpuName) -> list[UsdPerHour]:
        """Newest spot prices of a type's machines; none where it is not planned by them."""
        machine = self._settings.machines[name]
        by_spot = machine.spot and name in self._unpriced
        return self._spot.now(machine.instance_types) if by_spot else []

    def _offer(self, gpu: GpuType) -> GpuType:
        if gpu.name not in self._unpriced:
            self.sources[gpu.name] = "the config file"
            return gpu
        machine = self._settings.machines[gpu.name]
        if spot := self._spot_now(gpu.name):
            self.sources[gpu.name] = "spot, the lowest of the zones now"
            return replace(gpu, price=min(spot) / gpu.gpus_per_node)
        for kind in () if machine.spot else machine.instance_types:
            known = _on_demand(kind, self._settings.region)
            if known is not None:
                self.sources[gpu.name] = f"the catalogue, for {kind}"
                return replace(gpu, price=known / gpu.gpus_per_node)
        names, region = ", ".join(machine.instance_types), self._settings.region
        where = "AWS lists no spot price" if machine.spot else "the catalogue has none"
        problem = f"{where} for {names} in {region}"
        expected = "a price in dollars per GPU and hour"
        raise InputError(f"gpu_types.{gpu.name}.price", None, expected, problem)


@cache
def find(kind: str, region: str) -> CloudOffer | None:
    """The catalogue's offer of an instance type; None where it has none."""
    return cloud_offers.find("aws", kind, region)


def _on_demand(kind: str, region: str) -> UsdPerHour | None:
    known = find(kind, region)
    return None if known is None else known.price_per_hour
