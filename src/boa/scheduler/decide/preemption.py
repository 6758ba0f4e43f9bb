"""Preemption: which running jobs give up GPUs for jobs of a higher priority. Pure.

`make_room` answers that before a policy is asked, and for estimates. `upheld` holds the policy's
decision to it: a job that cannot checkpoint keeps exactly its GPUs, a running job keeps the fewest
that it can run on unless it is a victim, and a job of a higher priority gets what was freed for it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from boa.model.cluster import Allocation, JobId, Node, NodeId
from boa.units import GpuName, Seconds


class Holder(NamedTuple):
    """A job as preemption looks at it: what it holds, and what may be taken from it."""

    id: JobId
    rank: int
    held: Allocation | None
    """GPUs of its run, or those booked for it."""
    least: int
    """Fewest GPUs that it can run on."""
    types: tuple[GpuName, ...]
    """GPU types that it may have."""
    keeps_work: bool = False
    """Its run may not be stopped: that would lose its work."""
    settling: bool = False
    """It was rescaled so lately that only a job of a higher rank may change its GPUs."""
    runs: bool = False
    waits: bool = False
    """It has no GPUs, and may take those of jobs of a lower rank."""
    first: bool = False
    """It has waited for long, and is next in line (`reservation.py`)."""
    modest: bool = False
    """It takes free GPUs only."""
    started: bool = False
    """It has run before: it goes before newcomers."""
    arrival: Seconds = 0.0

    def is_fixed(self, preemption: "Preemption") -> bool:
        """Return whether it keeps exactly its GPUs."""
        return self.keeps_work or (self.settling and not preemption.yields(self.id))

    @property
    def order(self) -> tuple[object, ...]:
        """Highest rank first, then jobs that run, the next in line, those that have run, the rest
        by arrival."""
        new = not self.started
        return (-self.rank, not self.runs, not self.first, new, self.arrival, self.id)


@dataclass(frozen=True, slots=True)
class Preemption:
    """Running jobs that give up GPUs, and the jobs of a higher rank that get them."""

    seats: Mapping[JobId, Allocation] = field(default_factory=dict)
    """Jobs of a higher rank that wait, and GPUs that are free for them once others give way."""
    victims: Mapping[JobId, JobId] = field(default_factory=dict)
    """Jobs that lose all their GPUs, and the job that these go to."""
    narrowed: Mapping[JobId, JobId] = field(default_factory=dict)
    """Jobs that give up some of their GPUs, and the job that these go to."""

    def yields(self, job: JobId) -> bool:
        return job in self.victims or job in self.narrowed


NONE = Preemption()


class _Offer(NamedTuple):
    """GPUs that a job can give up."""

    preempted: bool
    """All of them."""
    cost: Seconds
    """Per GPU."""
    gpus: int
    job: Holder


def make_room(
    jobs: Sequence[Holder], nodes: Iterable[Node], cost_of: Callable[[JobId], Seconds]
) -> Preemption:
    """Return the running jobs that give way to jobs of a higher rank which wait.

    Free GPUs are used first; then jobs are narrowed; then the jobs whose stops cost least are
    preempted. A job for which that does not free enough makes no other give way. The next in line
    gets free GPUs, and those that jobs of its own rank can spare. `nodes`: those that are ready.
    `cost_of`: seconds that stopping a job costs.
    """
    lowest = min((job.rank for job in jobs if job.held is not None or job.first), default=0)
    seeking = [job for job in jobs if job.waits and (job.first or job.rank > lowest)]
    if not seeking:
        return NONE
    plan = _Plan(jobs, nodes, cost_of)
    for job in sorted(seeking, key=lambda job: job.order):
        plan.seat(job)
    return Preemption(plan.seats, plan.victims, plan.narrowed)


class _Plan:
    """Shares of the cluster that jobs keep, while those of a higher rank are seated in turn."""

    def __init__(
        self, jobs: Sequence[Holder], nodes: Iterable[Node], cost_of: Callable[[JobId], Seconds]
    ) -> None:
        self._jobs, self._cost_of = jobs, cost_of
        self._nodes = {node.id: node.gpu for node in nodes}
        self._free = Counter({node.id: node.gpus for node in nodes})
        self._kept = {job.id: job.held for job in jobs if job.held is not None}
        for held in self._kept.values():
            self._free.subtract({n: count for n, count in held.nodes if n in self._nodes})
        self.seats: dict[JobId, Allocation] = {}
        self.victims: dict[JobId, JobId] = {}
        self.narrowed: dict[JobId, JobId] = {}

    def seat(self, job: Holder) -> None:
        ways = [
            (sum(offer.preempted for offer in way), sum(offer.cost for offer in way), way, gpu)
            for gpu in job.types
            if (way := self._way(job, gpu)) is not None
        ]
        if not ways:
            return
        *_, way, gpu = min(ways, key=lambda found: found[:2])
        for offer in way:
            self._take(offer, job)
        here = (node for node, kind in self._nodes.items() if kind == gpu)
        chosen = _most_free(self._free, here, job.least)
        self.seats[job.id] = Allocation(gpu, chosen)
        self._free.subtract(dict(chosen))

    def _way(self, job: Holder, gpu: GpuName) -> list[_Offer] | None:
        """Return the offers that free enough GPUs of a type; None: there are too few."""
        missing = job.least - sum(
            max(self._free[node], 0) for node, kind in self._nodes.items() if kind == gpu
        )
        if missing <= 0 or job.modest:
            return [] if missing <= 0 else None
        found, left = list[_Offer](), missing
        for offer in sorted(self._offers(job, gpu), key=lambda offer: offer[:2]):
            if left <= 0:
                break
            found.append(offer)
            left -= offer.gpus
        if left > 0:
            return None
        for offer in sorted(found, key=lambda offer: offer[:2], reverse=True):
            if left + offer.gpus <= 0:  # the others free enough
                found.remove(offer)
                left += offer.gpus
        return found

    def _offers(self, taker: Holder, gpu: GpuName) -> Iterable[_Offer]:
        for job in self._jobs:
            held = self._kept.get(job.id)
            if held is None or held.gpu != gpu or job.keeps_work or job.rank > taker.rank:
                continue
            if job.settling and job.rank == taker.rank:
                continue
            if any(node not in self._nodes for node, _ in held.nodes):
                continue
            cost, spare = self._cost_of(job.id), held.width - job.least
            if spare > 0:
                yield _Offer(False, cost / spare, spare, job)
            if job.rank < taker.rank and (least := held.width - max(spare, 0)):
                yield _Offer(True, cost / least, least, job)

    def _take(self, offer: _Offer, taker: Holder) -> None:
        job = offer.job
        held = self._kept.pop(job.id)
        self._free.update(dict(held.nodes))
        if offer.preempted:
            self.narrowed.pop(job.id, None)
            self.victims[job.id] = taker.id
            return
        self._kept[job.id] = kept = part_of(held, job.least)
        self._free.subtract(dict(kept.nodes))
        self.narrowed[job.id] = taker.id


def upheld(
    after: Mapping[JobId, Allocation],
    jobs: Sequence[Holder],
    nodes: Iterable[Node],
    preemption: Preemption = NONE,
    *,
    last_gpus: bool = True,
) -> Mapping[JobId, Allocation]:
    """Return the decision `after` in which every job keeps what is its own.

    Jobs that cannot checkpoint, or that settle, keep exactly their GPUs. With `last_gpus` all other
    running jobs but victims keep the fewest that they can run on, and seats go to the jobs that
    they were freed for. Other jobs wait if they do not fit. A decision that respects all this is
    returned as it is. `nodes`: all that jobs may be on.
    """
    sizes = {node.id: node.gpus for node in nodes}
    fixed, parts = dict[JobId, Allocation](), dict[JobId, tuple[Allocation, int]]()
    for job in jobs:
        held = job.held
        if held is None or any(node not in sizes for node, _ in held.nodes):
            if last_gpus and job.id in preemption.seats:
                seat = preemption.seats[job.id]
                parts[job.id] = seat, seat.width
        elif job.is_fixed(preemption):
            fixed[job.id] = held
        elif last_gpus and job.runs and job.id not in preemption.victims:
            parts[job.id] = held, job.least
    if all(after.get(job) == held for job, held in fixed.items()) and parts.keys() <= after.keys():
        return after  # nearly always
    floors = {job: part_of(held, width) for job, (held, width) in parts.items()}
    free = Counter(sizes)
    given = {**floors, **fixed}
    for kept in given.values():
        free.subtract(dict(kept.nodes))
    for job in sorted(jobs, key=lambda job: job.order):
        if job.id in fixed:
            continue
        floor = given.get(job.id)
        if floor is not None:
            free.update(dict(floor.nodes))
        wishes = [after.get(job.id), None if floor is None else job.held, floor]
        for wish in wishes:
            if wish is not None and all(free[node] >= count for node, count in wish.nodes):
                given[job.id] = wish
                free.subtract(dict(wish.nodes))
                break
    return given


def part_of(held: Allocation, width: int) -> Allocation:
    """Return the most compact part of an allocation that has the given number of GPUs."""
    if held.width <= width:
        return held
    return Allocation(held.gpu, _most_free(dict(held.nodes), dict(held.nodes), width))


def _most_free(
    free: Mapping[NodeId, int], nodes: Iterable[NodeId], width: int
) -> tuple[tuple[NodeId, int], ...]:
    """Return GPUs on as few nodes as possible: on the fullest one where all of them fit, else on
    those with most free."""
    there = [node for node in nodes if free[node] > 0]
    fitting = [node for node in there if free[node] >= width]
    if fitting:
        return ((min(fitting, key=lambda node: (free[node], node)), width),)
    found, left = list[tuple[NodeId, int]](), width
    for node in sorted(there, key=lambda node: (-free[node], node)):
        count = min(free[node], left)
        found.append((node, count))
        left -= count
        if not left:
            break
    return tuple(sorted(found))
