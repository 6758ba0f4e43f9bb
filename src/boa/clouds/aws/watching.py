"""From what AWS lists at one moment, and what was seen before, what becomes of each node. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from boa.clouds.aws.bootstrap import JOIN_S
from boa.clouds.aws.listing import ALIVE, NOTICE_S, Instance
from boa.model.cloud import CloudNode
from boa.units import Seconds, UsdPerHour

LEFT_S: Seconds = 120.0
"""How long a node may be missing from the Ray cluster before it counts as leaving."""


@dataclass(slots=True)
class _Memory:
    """Moments that AWS does not tell: when things happened, in the service's time."""

    first_seen: Seconds
    joined_at: Seconds | None = None
    last_joined: Seconds | None = None
    address: str = ""
    leaving_at: Seconds | None = None
    priced: dict[Seconds, Seconds] = field(default_factory=dict)
    """Moments of its prices: those that AWS names, and in the service's time as first seen; the two
    clocks do not keep to each other by the microsecond, and a price has not changed for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When AWS was asked, by both clocks, and what else was known then."""

    now: Seconds
    wall: Seconds
    joined: Mapping[str, str]
    """Token -> the node's id in the Ray cluster."""
    marked: Mapping[str, Seconds]
    """Spot instances that are taken away -> when, by the wall."""

    def at(self, wall: Seconds) -> Seconds:
        """A moment that AWS names, in the service's time; never in the future."""
        return min(self.now - (self.wall - wall), self.now)


class Watch:
    def __init__(self) -> None:
        self._known: dict[str, _Memory] = {}

    def seen(
        self,
        instance: Instance,
        moment: Moment,
        *,
        gpus: int,
        prices: Sequence[tuple[Seconds, UsdPerHour]],
    ) -> CloudNode:
        """`prices`: per GPU and hour, and from when; the first since it was launched."""
        known = self._known.setdefault(instance.id, _Memory(moment.now))
        joined = moment.joined.get(instance.token)
        if joined is not None and instance.state in ALIVE:
            if known.joined_at is None:
                known.joined_at = moment.now
            known.last_joined, known.address = moment.now, joined
        if known.leaving_at is None:
            known.leaving_at = _leaving(instance, known, moment)
        return CloudNode(
            token=instance.token,
            gpu=instance.gpu,
            gpus=gpus,
            price=prices[0][1],
            changes=tuple(
                (known.priced.setdefault(at, moment.at(at)), price) for at, price in prices[1:]
            ),
            billed_from=moment.at(instance.launched),
            ready_at=known.joined_at,
            gone_at=_gone(instance, known, moment),
            leaving_at=known.leaving_at,
            address=known.address,
        )

    def forget(self, listed: Iterable[Instance]) -> None:
        """All but these."""
        ids = {instance.id for instance in listed}
        self._known = {id: known for id, known in self._known.items() if id in ids}


def _leaving(instance: Instance, known: _Memory, moment: Moment) -> Seconds | None:
    """It is being taken down or soon will be, or it has dropped out of the Ray cluster."""
    if instance.state not in ALIVE:
        return moment.now
    if instance.id in moment.marked:
        left = moment.marked[instance.id] - moment.wall
        return moment.now + min(max(left, 0.0), NOTICE_S)
    if known.last_joined is None:
        late = moment.now - known.first_seen >= JOIN_S
    else:
        late = moment.now - known.last_joined >= LEFT_S
    return moment.now if late else None


def _gone(instance: Instance, known: _Memory, moment: Moment) -> Seconds | None:
    """AWS charges until it begins to take an instance down; that is known for sure at its end."""
    if not instance.is_gone:
        return None
    if instance.ended is not None:
        return moment.at(instance.ended)
    return min(moment.now if known.leaving_at is None else known.leaving_at, moment.now)
