"""Who gets less when not everything can be had. Pure, and counted in GPUs: nodes come later.

Jobs that run keep what they have. Jobs that do not are seated in order of arrival on the least
that they can run on: on the type that was planned, if need be by narrowing those that have most
there, else on the type of theirs that comes nearest in speed. What is left over then widens the
narrowest, and brings jobs back to the type they were planned for. A job has its planned width, a
power of two below it, or its minimum, so that it is not rescaled for every GPU that comes free.

Where this ends nobody can be widened, and whoever waits could not be seated even if all others
were as narrow as they can be: so deciding again changes nothing.
"""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from boa.model.cluster import Allocation, JobId, NodeId, Prediction, Share
from boa.model.workload import DEFAULT_MAX_GPUS, GpuType
from boa.units import GpuName, Seconds, UsdPerHour

ROUNDING = 1e-9
"""The share of a node's price that sums of prices may be off by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Room for more beyond the nodes that are there."""

    max_nodes: Mapping[GpuName, int] = field(default_factory=dict)
    """At most so many nodes of a type, all that are rented included; types left out: any number.
    After the cloud has said no: as many as are rented."""
    spend_left: UsdPerHour | None = None
    """USD per hour that the hard cap leaves beyond all that is rented; negative where the cap was
    lowered. None: there is no cap."""
    cap: str = ""
    """Words for the hard cap, with where it came from; empty: only that it is one."""
    dearer: Mapping[GpuName, UsdPerHour] = field(default_factory=dict)
    """Prices per GPU that types are held against the cap by: they will cost that much before jobs
    could have left their nodes. Types left out: what they cost."""
    why: Mapping[GpuName, str] = field(default_factory=dict)
    """The cloud's words on types that it had no more of."""
    releasing: Mapping[GpuName, int] = field(default_factory=dict)
    """Nodes that were given back and are still rented: of no use, but within both limits."""
    vacating: Mapping[NodeId, Seconds] = field(default_factory=dict)
    """Seconds that it costs jobs to leave a node, where some have to: those that cost least go."""

    def node_price(self, gpu: GpuType) -> UsdPerHour:
        """Price of a node, as it is held against the cap."""
        return self.dearer.get(gpu.name, gpu.price) * gpu.gpus_per_node


class Want(NamedTuple):
    """The policy's wish for a job, and everything that it could run on instead.

    A tuple because there is one of every job at every decision, and frozen dataclasses are slow.
    """

    share: Share
    min: int = 1
    max: int = DEFAULT_MAX_GPUS
    types: tuple[GpuName, ...] = ()
    """Empty: any."""
    arrival: Seconds = 0.0
    prediction: Prediction | None = None
    """Predicted speeds, to tell which other type comes nearest."""
    epoch: int = 0

    def speeds(self, gpu: GpuName) -> list[float] | None:
        """Predicted, by width, in units of its own; None: unknown."""
        rates = None if self.prediction is None else self.prediction.rates(gpu, self.epoch)
        return None if rates is None else rates.max(axis=0).tolist()

    def rungs(self, gpu: GpuName) -> tuple[int, ...]:
        """The widths it may have on a type, widest first; none if it cannot run there."""
        is_home = gpu == self.share.gpu
        if not is_home and self.types and gpu not in self.types:
            return ()
        speeds = self.speeds(gpu)
        planned = self.share.width if is_home else self._nearest(gpu, speeds)
        least = min(self.min, planned)
        narrower = [width for width in _powers(planned) if least <= width < planned]
        if least < planned and least not in narrower:
            narrower.append(least)
        # What was planned can run; of what was not, all but what is known not to.
        first = (planned,) if is_home or _can_run(speeds, planned) else ()
        return (*first, *(width for width in narrower if _can_run(speeds, width)))

    def _nearest(self, gpu: GpuName, speeds: list[float] | None) -> int:
        """The width on another type that is closest in speed to what was planned."""
        planned = self._planned_speed()
        if not speeds or not planned:
            return min(max(self.share.width, self.min), self.max)
        widths = {self.min, *(width for width in _powers(self.max) if width >= self.min)}
        return min(sorted(widths), key=lambda width: _distance(planned, _at(speeds, width)))

    def distance(self, gpu: GpuName, width: int) -> float:
        """How far from the planned speed, as a factor's logarithm; infinite where unknown."""
        speeds = self.speeds(gpu)
        return _distance(self._planned_speed(), 0.0 if speeds is None else _at(speeds, width))

    def _planned_speed(self) -> float:
        """0: unknown."""
        speeds = self.speeds(self.share.gpu)
        return 0.0 if speeds is None else _at(speeds, self.share.width)


def _powers(most: int) -> list[int]:
    """Powers of two, the largest first."""
    return [1 << n for n in range(most.bit_length() - 1, -1, -1)]


def _at(speeds: list[float], width: int) -> float:
    return speeds[min(width, len(speeds) - 1)]


def _can_run(speeds: list[float] | None, width: int) -> bool:
    return speeds is None or _at(speeds, width) > 0


def _distance(planned: float, there: float) -> float:
    return abs(math.log(there / planned)) if planned > 0 and there > 0 else math.inf


class Stock:
    """GPUs of every type, taken and to be had, under limits on nodes and on spend."""

    def __init__(
        self, nodes: Mapping[GpuName, int], gpu_types: Mapping[GpuName, GpuType], room: Room
    ) -> None:
        self._types, self._room = gpu_types, room
        self._nodes = {gpu: nodes.get(gpu, 0) for gpu in gpu_types}
        self._taken = dict.fromkeys(gpu_types, 0)
        self._allowed = {gpu: self._most_allowed(gpu) for gpu in gpu_types}
        """New nodes that the limits on nodes leave."""

    def take(self, gpu: GpuName, gpus: int) -> None:
        """A negative number gives back."""
        self._taken[gpu] += gpus

    def free(self, gpu: GpuName) -> float:
        """GPUs that can still be taken, on nodes that are there or could be."""
        nodes = self._nodes[gpu] + self.most_new(gpu)
        return nodes * self._types[gpu].gpus_per_node - self._taken[gpu]

    def most_new(self, gpu: GpuName) -> float:
        """Nodes that can be rented, beside those that the other types need."""
        allowed = self._allowed[gpu]
        return allowed if self._room.spend_left is None else min(allowed, self._affordable(gpu))

    def rented(self, gpu: GpuName, nodes: int) -> None:
        """So many, which may be more than needed."""
        self._taken[gpu] += (nodes - self._new(gpu)) * self._types[gpu].gpus_per_node

    def has(self, gpu: GpuName) -> bool:
        return gpu in self._types

    def overdrawn(self) -> bool:
        """Whether more was taken than can be had."""
        return any(self._new(gpu) > self.most_new(gpu) for gpu in self._types)

    def spend_binds(self, gpu: GpuName) -> bool:
        """Whether it is the spend, and not the number of nodes, that keeps more from being had."""
        return self.has(gpu) and self._affordable(gpu) < self._allowed[gpu]

    def _new(self, gpu: GpuName) -> int:
        """How many have to be rented for what is taken."""
        needed = -(-self._taken[gpu] // self._types[gpu].gpus_per_node)
        return max(needed - self._nodes[gpu], 0)

    def _most_allowed(self, gpu: GpuName) -> float:
        most = self._room.max_nodes.get(gpu)
        rented = self._nodes[gpu] + self._room.releasing.get(gpu, 0)
        return math.inf if most is None else max(most - rented, 0)

    def _affordable(self, gpu: GpuName) -> float:
        """New nodes of a type, if the other types keep theirs."""
        if self._room.spend_left is None:
            return math.inf
        left = self._room.spend_left
        for other in self._types:
            if other != gpu:
                left -= self._new(other) * self._node_price(other)
        price = self._node_price(gpu)
        return math.inf if price <= 0 else max(math.floor(left / price + ROUNDING), 0)

    def _node_price(self, gpu: GpuName) -> UsdPerHour:
        return self._room.node_price(self._types[gpu])


class Seats:
    """Which type and width every job has."""

    def __init__(
        self, wants: Mapping[JobId, Want], stock: Stock, types: tuple[GpuName, ...]
    ) -> None:
        self._stock, self._types = stock, types
        by_arrival = sorted(wants, key=lambda job: wants[job].arrival)
        self._wants = {job: wants[job] for job in by_arrival}
        self._order = {job: n for n, job in enumerate(by_arrival)}
        kinds: dict[tuple[object, ...], int] = {}
        self._kinds = {j: kinds.setdefault(_kind(w), len(kinds)) for j, w in wants.items()}
        """Jobs that want the same and can run on the same are of one kind."""
        self._rungs: dict[tuple[int, GpuName], tuple[int, ...]] = {}
        self.taken: dict[JobId, tuple[GpuName, int]] = {}
        self._spare = dict.fromkeys(types, 0)
        """GPUs that would come free if everyone were as narrow as can be."""
        self._widest: dict[GpuName, list[tuple[int, int, JobId]]] = {}
        """Heaps, made when first needed; entries that no longer hold are skipped."""

    def keep(self, current: Mapping[JobId, Allocation]) -> None:
        """Take what jobs have, but no more than is wanted for them. Before anything else is
        done."""
        for job, want in self._wants.items():
            held = current.get(job)
            rungs = self.rungs(job, held.gpu) if held is not None else ()
            if held is not None and rungs:
                gpu, width = held.gpu, held.width
                if gpu == want.share.gpu:
                    width = min(width, want.share.width)
                self.taken[job] = (gpu, width)
                self._stock.take(gpu, width)
                self._spare[gpu] += max(width - rungs[-1], 0)

    def settle(self) -> None:
        """Until nobody else can be seated or widened, or go back to the planned type."""
        while True:
            while self._seat_waiting():
                pass  # who was narrowed for it may have left money for another type
            self._widen_narrowest()
            if not self._bring_home():
                return

    def _seat_waiting(self) -> bool:
        """Whether anybody was."""
        before = len(self.taken)
        for job in self._wants:
            if job not in self.taken:
                self._seat_anywhere(job)
        return len(self.taken) > before

    def _seat_anywhere(self, job: JobId) -> None:
        home = self._wants[job].share.gpu
        if not self._seat(job, home):
            others = [gpu for gpu in self._types if gpu != home and self.rungs(job, gpu)]
            if not self._seat_nearest(job, others):
                any(self._seat(job, gpu) for gpu in others)

    def rungs(self, job: JobId, gpu: GpuName) -> tuple[int, ...]:
        key = (self._kinds[job], gpu)
        if key not in self._rungs:
            self._rungs[key] = self._wants[job].rungs(gpu) if self._stock.has(gpu) else ()
        return self._rungs[key]

    def _seat(self, job: JobId, gpu: GpuName) -> bool:
        """On the least it can run on, by narrowing others if that makes enough room."""
        rungs = self.rungs(job, gpu)
        if not rungs or self._stock.free(gpu) + self._spare[gpu] < rungs[-1]:
            return False
        while self._stock.free(gpu) < rungs[-1]:
            self._narrow_widest(gpu)
        self._put(job, gpu, rungs[-1])
        return True

    def _seat_nearest(self, job: JobId, types: list[GpuName]) -> bool:
        """On the type with free GPUs whose speed is nearest to what was planned."""
        found = []
        for n, gpu in enumerate(types):
            fitting = [w for w in self.rungs(job, gpu) if w <= self._stock.free(gpu)]
            if fitting:
                found.append((self._wants[job].distance(gpu, fitting[0]), n, gpu))
        return bool(found) and self._seat(job, min(found)[2])

    def _narrow_widest(self, gpu: GpuName) -> None:
        """One rung down; of equals the one that came last."""
        if gpu not in self._widest:
            here = ((job, width) for job, (on, width) in self.taken.items() if on == gpu)
            self._widest[gpu] = [(-width, -self._order[job], job) for job, width in here]
            heapq.heapify(self._widest[gpu])
        while True:
            width, _, job = heapq.heappop(self._widest[gpu])
            if self.taken.get(job) == (gpu, -width):
                narrower = [rung for rung in self.rungs(job, gpu) if rung < -width]
                if narrower:
                    self._put(job, gpu, narrower[0])
                    return

    def _widen_narrowest(self) -> None:
        """One rung at a time; of equals the one that came first."""
        heap = [
            (width, self._order[job], job)
            for job, (gpu, width) in self.taken.items()
            if width < self.rungs(job, gpu)[0]
        ]
        heapq.heapify(heap)
        while heap:
            width, order, job = heapq.heappop(heap)
            gpu = self.taken[job][0]
            wider = [rung for rung in self.rungs(job, gpu) if rung > width]
            if wider and self._stock.free(gpu) >= wider[-1] - width:
                self._put(job, gpu, wider[-1])
                heapq.heappush(heap, (wider[-1], order, job))

    def _bring_home(self) -> bool:
        moved = False
        for job, want in self._wants.items():
            home, width = want.share.gpu, want.share.width
            away = job in self.taken and self.taken[job][0] != home
            if away and self.rungs(job, home) and self._stock.free(home) >= width:
                self._put(job, home, width)
                moved = True
        return moved

    def _put(self, job: JobId, gpu: GpuName, width: int) -> None:
        if job in self.taken:
            before, was = self.taken[job]
            self._stock.take(before, -was)
            self._spare[before] -= max(was - self.rungs(job, before)[-1], 0)
        self.taken[job] = (gpu, width)
        self._stock.take(gpu, width)
        self._spare[gpu] += max(width - self.rungs(job, gpu)[-1], 0)
        if gpu in self._widest:
            heapq.heappush(self._widest[gpu], (-width, -self._order[job], job))


def _kind(want: Want) -> tuple[object, ...]:
    limits = (want.min, want.max, want.types)
    return (id(want.prediction), want.epoch, want.share.gpu, want.share.width, *limits)
