"""A schedule of prices for tests, and dollars by brute force."""

from collections.abc import Iterable
from dataclasses import dataclass

from boa.model.prices import Changes, PriceSchedule
from boa.model.records import NodeRecord
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, Usd, UsdPerHour


@dataclass(frozen=True, slots=True)
class Factors:
    """All prices times what stands here, from when it does; times 1 before."""

    steps: Changes

    def price(self, gpu: GpuName, usual: UsdPerHour, at: Seconds) -> UsdPerHour:
        return usual * next((then for moment, then in reversed(self.steps) if moment <= at), 1.0)

    def next_change(self, after: Seconds) -> Seconds:
        return next((moment for moment, _ in self.steps if moment > after), float("inf"))


def rate(
    nodes: Iterable[NodeRecord], usual: UsdPerHour, schedule: PriceSchedule, at: Seconds
) -> UsdPerHour:
    """USD per hour that the cloud really charges at a moment, whatever records say of prices."""
    return sum(
        schedule.price(node.gpu, usual, at) * node.gpus
        for node in nodes
        if node.billed_from is not None
        and node.billed_from <= at
        and (node.gone_at is None or at < node.gone_at)
    )


def charged(
    nodes: Iterable[NodeRecord], usual: UsdPerHour, schedule: PriceSchedule, until: Seconds
) -> Usd:
    """The same over time, in stretches of at most ten seconds that no change falls into."""
    total = 0.0
    for node in nodes:
        if node.billed_from is None:
            continue
        at, end = node.billed_from, until if node.gone_at is None else min(node.gone_at, until)
        while at < end:
            to = min(at + 10.0, schedule.next_change(at), end)
            total += node.gpus * schedule.price(node.gpu, usual, at) * (to - at)
            at = to
    return total / SECONDS_PER_HOUR
