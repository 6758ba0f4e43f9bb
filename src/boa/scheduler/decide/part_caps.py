"""Hard caps of those who share a budget: what their jobs may hold at any moment. Pure.

Running jobs have the fewest GPUs that they can run on before jobs that wait, and a higher priority
before a lower one; what a cap leaves after that widens the narrowest, up to what the policy wished
for them. So a newcomer of the same priority stops no running job. A policy cannot cross a cap:
placements that cost more are barred. No cap applies to background jobs: their GPUs are paid for.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple, TypeAlias

from boa.amounts import rate
from boa.model.cluster import Allocation, JobId, Share
from boa.model.events import Shortage
from boa.model.job import JobRecord
from boa.model.workload import GpuType
from boa.placement.shortage import ROUNDING
from boa.scheduler.decide.protection import rank
from boa.scheduler.money.grants import PartCap
from boa.units import GpuName, UsdPerHour

Caps: TypeAlias = tuple[PartCap, ...]
MOST_WIDTH = 1 << 30
"""GPUs that a cap pays for where they cost nothing."""
GpuTypes: TypeAlias = Mapping[GpuName, GpuType]


class Allowance(NamedTuple):
    """The most that a job may hold, and whose cap that is."""

    most: UsdPerHour
    """0: it waits."""
    least: UsdPerHour
    """It needs so much to run at all."""
    cap: PartCap

    def allows(self, gpu: GpuName, width: int, gpu_types: GpuTypes) -> bool:
        kind = gpu_types.get(gpu)
        return kind is None or kind.price * width <= self.most * (1 + ROUNDING)

    def width(self, gpu: GpuName, gpu_types: GpuTypes) -> int:
        """Return the most GPUs of a type that it pays for."""
        kind = gpu_types.get(gpu)
        if kind is None or kind.price <= 0:
            return MOST_WIDTH
        return math.floor(self.most / kind.price * (1 + ROUNDING))

    @property
    def words(self) -> str:
        """Alike as long as it is so, whatever others hold."""
        if self.cap.used_up:
            return self.cap.used_up
        less = "no more" if self.most else f"less than the {rate(self.least)} that it needs"
        return f"{self.cap.name}'s cap of {rate(self.cap.most)} leaves {less}"


@dataclass(slots=True)
class _Purses:
    """Dollars per hour that caps leave."""

    caps: Caps
    left: dict[str, UsdPerHour] = field(default_factory=dict)
    _of: dict[str, Caps] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.left = {cap.name: cap.most for cap in self.caps}

    def over(self, stream: str) -> Caps:
        found = self._of.get(stream)
        if found is None:
            found = tuple(cap for cap in self.caps if cap.is_over(stream))
            self._of[stream] = found
        return found

    def tightest(self, stream: str) -> PartCap:
        return min(self.over(stream), key=lambda cap: self.left[cap.name])

    def take(self, stream: str, rate: UsdPerHour) -> bool:
        """Whether there is so much."""
        caps = self.over(stream)
        if any(rate > self.left[cap.name] + ROUNDING * cap.most for cap in caps):
            return False
        for cap in caps:
            self.left[cap.name] -= rate
        return True


def allowances(
    caps: Caps,
    jobs: Sequence[JobRecord],
    wished: Mapping[JobId, Share],
    usable: Mapping[JobId, Sequence[GpuName]],
    gpu_types: GpuTypes,
    keeps: Collection[JobId] = (),
    humble: Collection[JobId] = (),
    stuck: Collection[JobId] = (),
    settling: Collection[JobId] = (),
) -> dict[JobId, Allowance]:
    """Return what jobs may hold that a cap is over: 0 for those that wait.

    `wished`: by the policy, as if there were no caps; `usable`: types that jobs can have; `keeps`:
    running jobs that may not be stopped, which come first, with all that they hold. Higher
    priorities come next, then jobs that run, then the others as they were submitted. `humble` ones
    take nothing from jobs of a lower priority: they have failed lately. `stuck` ones could not
    start now with any money, so that others have it first. `settling` ones were rescaled a short
    while ago: they keep what they hold rather than make way for jobs that wait.
    """
    purses = _Purses(caps)
    under = [job for job in jobs if purses.over(job.stream) and not job.background]
    turns = {
        job.id: (job.id not in keeps, job.id in stuck, *_turn(job, job.id in humble))
        for job in under
    }
    under.sort(key=lambda job: (*turns[job.id], job.submitted_at, job.serial))
    least = {job.id: _least(job, usable[job.id], gpu_types) for job in under}
    given: dict[JobId, UsdPerHour] = {}

    def seat(some: Iterable[JobRecord]) -> None:
        for job in some:
            wish, held = wished.get(job.id), job.allocation
            ways = [] if wish is None else [gpu_types[wish.gpu].price * job.spec.gpus.min]
            ways.append(least[job.id])
            if job.id in keeps and held is not None and held.gpu in gpu_types:
                ways = [gpu_types[held.gpu].price * held.width]
            fits = (rate for rate in ways if purses.take(job.stream, rate))
            given[job.id] = next(fits, 0.0)

    def hold(job: JobRecord) -> None:
        """Leave a job that has a seat all that it holds."""
        held, has = job.allocation, given[job.id]
        if has and held is not None and held.gpu in gpu_types:
            more = gpu_types[held.gpu].price * held.width - has
            if more > 0 and purses.take(job.stream, more):
                given[job.id] += more

    for _, turn in groupby([job for job in under if job.id in wished], lambda job: turns[job.id]):
        group = list(turn)
        seat(group)
        for job in group:
            if job.id in settling:
                hold(job)
    _widen([job for job in under if job.id not in keeps], wished, given, purses, gpu_types)
    seat(job for job in under if job.id not in wished)  # no other is the poorer for them
    return {
        job.id: Allowance(given[job.id], least[job.id], purses.tightest(job.stream))
        for job in under
    }


def _turn(job: JobRecord, humble: bool) -> tuple[object, ...]:
    level = min(rank(job), 0) if humble else rank(job)
    return (-level, job.run is None)


def _least(job: JobRecord, usable: Sequence[GpuName], gpu_types: GpuTypes) -> UsdPerHour:
    prices = (gpu_types[gpu].price for gpu in usable)
    return min(prices, default=math.inf) * job.spec.gpus.min


def _widen(
    jobs: Sequence[JobRecord],
    wished: Mapping[JobId, Share],
    given: dict[JobId, UsdPerHour],
    purses: _Purses,
    gpu_types: GpuTypes,
) -> None:
    """The narrowest first, by twice as many GPUs, up to what was wished."""
    growing = [job for job in jobs if given.get(job.id)]
    while growing:
        growing.sort(key=lambda job: (given[job.id], job.submitted_at, job.serial))
        job = growing[0]
        wish, had = wished[job.id], given[job.id]
        price = gpu_types[wish.gpu].price
        width = math.floor(had / price + ROUNDING)
        wider = min(max(2 * width, job.spec.gpus.min), wish.width)
        if wider <= width or not purses.take(job.stream, price * wider - had):
            growing.pop(0)
            continue
        given[job.id] = price * wider


def shortage_of(wish: Share, given: Allocation | None, allowance: Allowance) -> Shortage:
    """Why a job has less than was wished."""
    return Shortage(
        gpu_type=wish.gpu,
        width=wish.width,
        given=None if given is None else (given.gpu, given.width),
        why="part_cap",
        detail=allowance.words,
    )


def narrowed(
    job: JobRecord, wish: Share, usable: Sequence[GpuName], allowance: Allowance, types: GpuTypes
) -> Share | None:
    """The share that is nearest to what was wished for; None: the job waits."""
    if not allowance.most:
        return None
    if allowance.allows(wish.gpu, wish.width, types):
        return wish
    for gpu in (wish.gpu, *sorted(usable, key=lambda gpu: types[gpu].price)):
        width = allowance.width(gpu, types)
        if width >= job.spec.gpus.min:
            return replace(wish, gpu=gpu, width=min(width, wish.width, job.spec.gpus.max))
    return None


def kept_within(
    found: Mapping[JobId, Allocation], allowed: Mapping[JobId, Allowance], gpu_types: GpuTypes
) -> dict[JobId, Allocation]:
    """Without those that would hold more than they may: they wait, whoever has placed them."""
    return {
        job: given
        for job, given in found.items()
        if (most := allowed.get(job)) is None or most.allows(given.gpu, given.width, gpu_types)
    }


def barred(
    job: JobRecord, allowance: Allowance, gpu_types: GpuTypes
) -> frozenset[tuple[GpuName, int]]:
    """Types and widths that cost more than it may hold."""
    limits = job.spec.gpus
    return frozenset(
        (gpu, width)
        for gpu in limits.types or gpu_types
        if gpu in gpu_types
        for width in range(limits.min, limits.max + 1)
        if not allowance.allows(gpu, width, gpu_types)
    )


class Held:
    """Dollars per hour that jobs under caps hold, as runs begin: none begins that would cross
    one."""

    def __init__(
        self, caps: Caps, jobs: Iterable[JobRecord], prices: Mapping[int, UsdPerHour]
    ) -> None:
        self._purses, self._prices = _Purses(caps), prices
        for job in jobs:
            if job.run is not None and not job.background:
                for cap in self._purses.over(job.stream):
                    self._purses.left[cap.name] -= self._rate(job.run.slots)

    def starts(self, job: JobRecord, slots: Mapping[int, Sequence[int]]) -> bool:
        """Whether a run may begin; if so, it holds them from now on."""
        caps = self._purses.over(job.stream)
        return not caps or job.background or self._purses.take(job.stream, self._rate(slots))

    def _rate(self, slots: Mapping[int, Sequence[int]]) -> UsdPerHour:
        return sum(self._prices.get(node, 0.0) * len(on) for node, on in slots.items())
