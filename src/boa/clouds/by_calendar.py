"""Nodes of any cloud at the prices of a calendar: who pays by the hour of the day says so there."""

from collections.abc import Mapping, Sequence

from boa.clock import Clock
from boa.clouds.base import Cloud
from boa.model.cloud import CloudNode
from boa.model.prices import CONSTANT, PriceSchedule, changes_of, known_until
from boa.model.workload import GpuType
from boa.replacing import replace
from boa.units import GpuName


class PricedByCalendar:
    """A cloud whose nodes cost what the schedule says. One whose price the cloud itself names as it
    changes keeps that."""

    def __init__(self, cloud: Cloud, schedule: PriceSchedule, clock: Clock) -> None:
        self._cloud, self._schedule, self._clock = cloud, schedule, clock

    def offers(self) -> Mapping[GpuName, GpuType]:
        """Prices that the schedule goes out from."""
        return self._cloud.offers()

    def rent(self, token: str, gpu: GpuName) -> None:
        self._cloud.rent(token, gpu)

    def release(self, token: str) -> None:
        self._cloud.release(token)

    def nodes(self) -> Sequence[CloudNode]:
        if self._schedule is CONSTANT:
            return self._cloud.nodes()
        until = known_until(self._schedule, self._clock.now())
        return [self._priced(node, until) for node in self._cloud.nodes()]

    def _priced(self, node: CloudNode, until: float) -> CloudNode:
        if node.changes:
            return node
        schedule, begin = self._schedule, node.billed_from
        until = until if node.gone_at is None else node.gone_at
        return replace(
            node,
            price=schedule.price(node.gpu, node.price, begin),
            changes=changes_of(schedule, node.gpu, node.price, begin, until),
        )
