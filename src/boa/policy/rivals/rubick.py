"""Rubick (MLSys'25) on a fixed cluster: GPUs go where another one speeds a job up the most.

Every job has a curve of best-plan throughput by width. Jobs are compared by its slope, relative to
their throughput at the base width. Each round starts from what the jobs hold:

1. Waiting jobs are admitted, guaranteed ones first, then by arrival. A job that finds no room takes
   it from running jobs at the lowest slope, as long as they lose less than it gains.
2. What is left goes to the highest slopes.

Widths are the steps of a ladder on which each divides the next (1, 2, 4, 8, then whole nodes), so
GPUs that are free in sum are free in one piece: a small job never has to leave its node, and
capacity is a single number.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import ClassVar

from boa.model.cluster import Allocation, ClusterView, Decision, JobId, JobView, Node
from boa.model.speedup import Floats
from boa.placement.pool import Pool
from boa.policy.rivals.autoscale import base_width
from boa.units import GpuName, Seconds

GAIN = 1.01
"""A width that gains less than 1 % over a smaller one is not worth having."""


@dataclass(frozen=True, slots=True)
class Step:
    """A move to another width and what it changes, per GPU."""

    to: int
    slope: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Widths worth having and the speed there, in GPUs at the base width's efficiency."""

    speeds: Mapping[int, float]
    """Speed by rising width."""
    base: int
    """The width that speeds are relative to."""
    entry: int
    """The base width or the first option above: what the job is admitted at if it can be."""
    downs: Mapping[int, Step]
    """The step to fewer GPUs that loses the least, from each width but the smallest."""

    @classmethod
    def of(cls, speeds: Mapping[int, float], base: int) -> "Curve":
        downs = {
            width: min(
                (
                    Step(to, (speed - slower) / (width - to))
                    for to, slower in speeds.items()
                    if to < width
                ),
                key=lambda step: step.slope,
            )
            for width, speed in speeds.items()
            if width > min(speeds)
        }
        return cls(speeds, base, next((k for k in speeds if k >= base), max(speeds)), downs)

    def up(self, width: int, most: int, least_speed: float = 0.0) -> Step | None:
        """The steepest step to at most so many GPUs that reaches at least this speed."""
        now, best = self.speeds[width], None
        for to, speed in self.speeds.items():
            if width < to <= most and speed > now and speed >= least_speed:
                slope = (speed - now) / (to - width)
                if best is None or slope > best.slope:
                    best = Step(to, slope)
        return best


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One job as the rule sees it."""

    id: JobId
    curve: Curve
    held: int
    """GPUs it has now; 0 if it waits."""
    guaranteed: bool
    worthwhile: float
    """By which factor a running job's speed must rise for a rescaling to pay."""


def ladder(gpus_per_node: int, max_gpus: int) -> tuple[int, ...]:
    """Widths by rising size, each dividing the next up to a node: 1, 2, 4, 8, 16, 24, …"""
    steps, width = [], gpus_per_node
    while width > 1:
        steps.append(width)
        width //= next(n for n in range(2, width + 1) if width % n == 0)
    whole = range(2 * gpus_per_node, max_gpus + 1, gpus_per_node)
    return (*(step for step in (1, *reversed(steps)) if step <= max_gpus), *whole)


def rescale_threshold(age: Seconds, rescalings: int, rescale_s: Seconds) -> float:
    """The gain that pays for a rescaling: all of them, this one too, within the job's age.

    How long a job will still run is not known; that it runs as long again as it has lived is the
    usual guess. So young jobs and those often rescaled are left alone.
    """
    lost = rescale_s * (1 + rescalings)
    return 1.0 + lost / age if age > 0 else float("inf") if lost > 0 else 1.0


def curve_of(rates: Floats, asked: int, guaranteed: bool, held: int, per_node: int) -> Curve | None:
    """The widths a job may have; None if it cannot run.

    A job whose base, or whose user's request, is wider than a node may span whole nodes. A
    guaranteed job gets no less than was asked for. What it holds stays an option, however flat.
    """
    base = base_width(rates)
    if base is None:
        return None
    spans = base > per_node or asked > per_node
    steps = ladder(per_node, rates.shape[1] - 1 if spans else min(per_node, rates.shape[1] - 1))
    unit = base / float(rates[:, base].max())
    speeds = {k: float(rates[int(k > per_node), k]) * unit for k in steps}
    possible = {k: speed for k, speed in speeds.items() if speed > 0}
    if guaranteed and possible:
        least = next((k for k in possible if k >= asked), max(possible))
        possible = {k: speed for k, speed in possible.items() if k >= least}
    worth: dict[int, float] = {}
    best = 0.0
    for k, speed in possible.items():
        if speed >= GAIN * best or k == held:
            worth[k] = speed
            best = max(best, speed)
    return Curve.of(worth, base) if worth else None


def requests_of(view: ClusterView, gpu: GpuName) -> list[Request]:
    """All jobs that can run on this type: guaranteed first, then by arrival."""
    per_node = view.gpu_types[gpu].gpus_per_node
    # Keyed by identity while the arrays are held here: jobs of a class often share one.
    known: dict[tuple[int, int, bool, int], tuple[Floats, Curve | None]] = {}
    found = []
    for job in sorted(view.jobs, key=lambda job: (not job.asked.guaranteed, job.arrival)):
        rates = job.prediction.rates(gpu, job.epoch)
        if rates is None:
            continue
        held = job.allocation.width if job.allocation and job.allocation.gpu == gpu else 0
        key = (id(rates), job.asked.gpus or 1, job.asked.guaranteed, held)
        if key not in known:
            known[key] = (rates, curve_of(rates, *key[1:], per_node))
        curve = known[key][1]
        if curve is not None:
            found.append(
                Request(
                    id=job.id,
                    curve=curve,
                    held=held if held in curve.speeds else 0,
                    guaranteed=job.asked.guaranteed,
                    worthwhile=rescale_threshold(
                        view.now - job.arrival, job.rescalings, job.rescale_s
                    ),
                )
            )
    return found


def allot(requests: Sequence[Request], capacity: int) -> dict[JobId, int]:
    """Rubick's rule: a width for every job that runs, never more than the capacity in all."""
    book = _Book(requests, capacity)
    book.reclaim(0, float("inf"), evict=True)
    for request in requests:
        if request.id not in book.widths and book.admit(request):
            book.failed.clear()
    for request in requests:  # a job that could not be helped may fit into what others set free
        if request.id not in book.widths:
            book.fit(request)
    book.grow()
    return book.widths


class _Book:
    """Widths as they are being worked out."""

    def __init__(self, requests: Sequence[Request], capacity: int) -> None:
        self.requests = requests
        self.widths = {request.id: request.held for request in requests if request.held}
        self.free = capacity - sum(self.widths.values())
        self.failed: list[tuple[int, float, bool]] = []
        """Reclaims that failed (GPUs, slope, eviction) since a job was last admitted."""

    def set(self, job: JobId, width: int) -> None:
        self.free += self.widths.pop(job, 0) - width
        if width:
            self.widths[job] = width

    def admit(self, request: Request) -> bool:
        """At its entry width by taking from others if need be; else on what happens to be free."""
        curve = request.curve
        if self.reclaim(curve.entry, curve.speeds[curve.entry] / curve.entry):
            self.set(request.id, curve.entry)
            return True
        if request.guaranteed:
            self.reclaim(min(curve.speeds), float("inf"), evict=True)
        return self.fit(request)

    def fit(self, request: Request) -> bool:
        """On the widest option up to its entry that is free."""
        curve = request.curve
        room = max((k for k in curve.speeds if k <= min(curve.entry, self.free)), default=0)
        self.set(request.id, room)
        return room > 0

    def reclaim(self, need: int, below: float, *, evict: bool = False) -> bool:
        """Free so many GPUs from jobs that lose less than `below` per GPU; or change nothing.

        With `evict`, best-effort jobs then lose all they have, the latest first; and where the
        cluster itself has become too small (nothing is needed), guaranteed ones after them.
        """
        if self.free >= need:
            return True
        if any(need >= n and below <= b and evict <= e for n, b, e in self.failed):
            return False
        before = dict(self.widths), self.free
        heap: list[tuple[float, int, int]] = []
        for n in range(len(self.requests)):
            self._offer_less(heap, n, below)
        while self.free < need:
            if heap:
                _, n, to = heappop(heap)
                self.set(self.requests[-n].id, to)
                self._offer_less(heap, -n, below)
            elif not (evict and self._evict_last(guaranteed_too=need == 0)):
                self.widths, self.free = before
                self.failed.append((need, below, evict))
                return False
        return True

    def _offer_less(self, heap: list[tuple[float, int, int]], n: int, below: float) -> None:
        width = self.widths.get(self.requests[n].id)
        step = None if width is None else self.requests[n].curve.downs.get(width)
        if step is not None and step.slope < below:
            heappush(heap, (step.slope, -n, step.to))

    def _evict_last(self, *, guaranteed_too: bool) -> bool:
        for request in reversed(self.requests):
            if request.id in self.widths and (guaranteed_too or not request.guaranteed):
                self.set(request.id, 0)
                return True
        return False

    def grow(self) -> None:
        """Free GPUs to the highest slope, until no job has a use for them."""
        heap: list[tuple[float, int, int, int]] = []
        for n in range(len(self.requests)):
            self._offer(heap, n)
        while heap:
            _, n, width, to = heappop(heap)
            job = self.requests[n].id
            if self.widths[job] == width and to - width <= self.free:
                self.set(job, to)
            self._offer(heap, n)

    def _offer(self, heap: list[tuple[float, int, int, int]], n: int) -> None:
        request = self.requests[n]
        width = self.widths.get(request.id)
        if width is None:
            return
        # A job that starts or changes anyway grows for free.
        settled = width == request.held
        least = request.curve.speeds[width] * request.worthwhile if settled else 0.0
        step = request.curve.up(width, width + self.free, least)
        if step is not None:
            heappush(heap, (-step.slope, n, width, step.to))


def seat(
    widths: Mapping[JobId, int],
    current: Mapping[JobId, Allocation],
    nodes: Sequence[Node],
    gpu: GpuName,
    per_node: int,
) -> dict[JobId, Allocation]:
    """GPUs on nodes: a job that keeps its width keeps its GPUs, unless it is in the way.

    Widest first, every free gap is a multiple of what is still to come, so all find room on the
    fewest nodes. Jobs that need whole nodes take those on which the fewest GPUs would have to move.
    """
    ids = [node.id for node in nodes if node.gpu == gpu]
    stays = {
        job: held
        for job, width in widths.items()
        if (held := current.get(job)) is not None
        and (held.gpu, held.width, len(held.nodes)) == (gpu, width, -(-width // per_node))
    }
    busy = dict.fromkeys(ids, 0)
    for allocation in stays.values():
        for node, count in allocation.nodes:
            busy[node] = busy.get(node, 0) + count
    ids.sort(key=lambda node: busy[node])
    ranks = {job: (job not in stays, -width) for job, width in widths.items()}
    orders: tuple[Callable[[JobId], tuple[object, ...]], ...] = (
        lambda job: ranks[job],  # nobody moves
        lambda job: (widths[job] < per_node, ranks[job]),  # whole nodes are cleared
        lambda job: (-min(widths[job], per_node), ranks[job]),  # anybody may move
    )
    for order in orders:
        seated = _seated(Pool(gpu, per_node, ids), sorted(widths, key=order), widths, stays)
        if seated is not None:
            return seated
    raise AssertionError(f"{sum(widths.values())} GPUs do not fit on {len(ids)} nodes")


def _seated(
    pool: Pool,
    order: Iterable[JobId],
    widths: Mapping[JobId, int],
    stays: Mapping[JobId, Allocation],
) -> dict[JobId, Allocation] | None:
    seated = {}
    for job in order:
        if job in stays and pool.fits(stays[job]):
            seated[job] = pool.hold(stays[job].nodes)
        elif (found := pool.take(widths[job])) is not None:
            seated[job] = found
        else:
            return None
    return seated


@dataclass(frozen=True, slots=True)
class Rubick:
    """The nodes there are, all of one GPU type (the first, should there be more)."""

    by_job: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "rubick"

    def decide(self, view: ClusterView) -> Decision:
        gpu, per_node = cluster_type(view)
        capacity = per_node * sum(node.gpu == gpu for node in view.nodes)
        widths = allot(requests_of(view, gpu), capacity)
        placements = seat(widths, held_by(view.jobs), view.nodes, gpu, per_node)
        return Decision(placements=placements, nodes=tuple(view.nodes))


def cluster_type(view: ClusterView) -> tuple[GpuName, int]:
    """The GPU type that is used, and its GPUs per node."""
    kind = next(iter(view.gpu_types.values()))
    return kind.name, kind.gpus_per_node


def held_by(jobs: Iterable[JobView]) -> dict[JobId, Allocation]:
    return {job.id: job.allocation for job in jobs if job.allocation is not None}
