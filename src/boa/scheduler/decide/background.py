"""Background jobs: they live on GPUs that are paid for and empty, and make room at once.

No policy sees them, so no node is rented or kept for them and nobody's GPUs are fewer for their
sake. What the others neither have, nor are on, nor are to have is shared out here: whoever is there
keeps what is left of its GPUs, in order of submission; whoever waits starts on the fewest that it
can run on; what is left then goes to whoever gets faster by it.

A GPU is taken once it has been empty for as long as the job takes to start: how long a gap will
still last is best guessed by how long it has. So no start costs more than what was lost by waiting.
Pure, but for when GPUs became empty.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from boa.model.cluster import Allocation, JobId, JobView, NodeId, Share
from boa.model.job import JobRecord
from boa.model.records import NodeRecord
from boa.scheduler.decide.decider import Decider, schedulable
from boa.scheduler.decide.reasons import Change, reason
from boa.scheduler.decide.views import job_views
from boa.scheduler.state import Draft
from boa.scheduler.words.of_keeping import waits_in_background
from boa.units import GpuName, Seconds

LEAST_EMPTY_S: Seconds = 10.0
"""So long a GPU is empty before it is taken, however quick a job starts."""
CALM = 10.0
"""Times its start that a job trains between two moves for more GPUs."""
WORTH_MOVING = 1.1
"""Times as fast that a job gets, at least, by a move for more GPUs."""


class _Gap(NamedTuple):
    """GPUs of one node that nobody who pays for them has."""

    gpu: GpuName
    gpus: int
    since: Sequence[Seconds]
    """When each became empty, the earliest first."""
    ends_at: Seconds
    """When the node is to be given back, as far as is known."""


@dataclass(slots=True)
class Background:
    """Shares out what is empty, and remembers since when it is."""

    decider: Decider
    wakes_at: Seconds = math.inf
    """When another GPU has been empty for long enough."""
    _since: dict[NodeId, list[Seconds]] = field(default_factory=dict)

    def decide(self, draft: Draft, keep_warm_s: Seconds) -> None:
        """Give every background job what it may have now; the policy has decided before."""
        self.wakes_at = math.inf
        jobs = [job for job in draft.jobs.values() if job.background]
        if not jobs:
            self._since.clear()
            return
        room = _Room(self._gaps(draft, keep_warm_s), draft.now)
        mine = [job for job in jobs if schedulable(job, draft.now)]
        given: dict[JobId, Allocation | None] = {
            job.id: room.keep(job, job.allocation) for job in mine if job.allocation
        }
        views = self._views(draft, mine, room)
        for job in mine:
            view = views.get(job.id)
            if given.get(job.id) is None and view is not None:
                given[job.id] = room.start(view, self.decider.usable(job))
        for job in mine:
            view, held = views.get(job.id), given.get(job.id)
            if view is not None and held is not None and _is_calm(job, view, held, draft.now):
                given[job.id] = room.widened(view, held)
        for job in mine:
            self._write(draft, job, given.get(job.id), room)
        waits = {_start_s(view) for view in views.values()}
        moments = [room.ripe_after(wait_s) for wait_s in waits]
        moments += [_calm_at(job, views[job.id]) for job in mine if job.id in views]
        self.wakes_at = min((at for at in moments if at > draft.now), default=math.inf)

    def _gaps(self, draft: Draft, keep_warm_s: Seconds) -> dict[NodeId, _Gap]:
        """Gaps of ready nodes that stay."""
        taken = _taken(draft)
        found: dict[NodeId, _Gap] = {}
        for node in draft.nodes.values():
            ends_at = _given_back_at(node, keep_warm_s)
            stays = node.state == "ready" and node.leaving_at is None and ends_at > draft.now
            free = max(node.gpus - taken[node.id], 0)
            if not stays or node.id in self.decider.unwanted or not free:
                continue
            since = self._since.get(node.id, [])[:free]
            since += [draft.now] * (free - len(since))
            found[node.id] = _Gap(node.gpu, free, since, ends_at)
        self._since = {node: list(gap.since) for node, gap in found.items()}
        return found

    def _views(self, draft: Draft, jobs: Sequence[JobRecord], room: "_Room") -> dict[str, JobView]:
        """Views of jobs that there may be GPUs for: none, where nothing is left."""
        if not room.anything:
            return {}
        decider = self.decider
        made = job_views(jobs, decider.beliefs, decider.gpu_types, draft.now)
        return {view.id: view for view in made}

    def _write(self, draft: Draft, job: JobRecord, given: Allocation | None, room: "_Room") -> None:
        if given is None:
            said = waits_in_background(room.empty, job.spec.gpus.min)
            if job.allocation is None and (job.run is not None or job.reason == said):
                return
            state = job.state if job.run is not None else "waiting"
            reason_now = said if job.run is None else job.reason
            draft.put_job(replace(job, allocation=None, share=None, state=state, reason=reason_now))
        elif given != job.allocation:
            state = job.state
            if job.run is None:
                state = "starting" if job.moved_at is None else "rescaling"
            share = Share(given.gpu, given.width)
            left = self.decider.beliefs.left(job)
            told = reason(job, given, "room", None, left, Change())
            draft.put_job(
                replace(job, allocation=given, share=share, state=state, why=told, reason="")
            )


def _taken(draft: Draft) -> Counter[NodeId]:
    """GPUs by node that paying jobs have or are to have, whichever is more."""
    taken: Counter[NodeId] = Counter()
    for job in draft.jobs.values():
        if job.background:
            continue
        given, run = job.allocation, job.run
        held: dict[NodeId, int] = {} if given is None else dict(given.nodes)
        if run is not None and run.allocation is not given:
            for node, count in run.allocation.nodes:
                held[node] = max(held.get(node, 0), count)
        for node, count in held.items():
            taken[node] += count
    return taken


def _given_back_at(node: NodeRecord, keep_warm_s: Seconds) -> Seconds:
    return math.inf if node.empty_since is None else node.empty_since + keep_warm_s


def _start_s(view: JobView) -> Seconds:
    """Seconds that a GPU is empty before this job starts on it."""
    return max(view.rescale_s, LEAST_EMPTY_S)


def _calm_at(job: JobRecord, view: JobView) -> Seconds:
    """When it may be moved for more GPUs."""
    return -math.inf if job.run is None else job.run.requested_at + CALM * _start_s(view)


def _is_calm(job: JobRecord, view: JobView, held: Allocation, now: Seconds) -> bool:
    """Whether it may be moved for more GPUs: it starts just now, or has trained for a while."""
    run = job.run
    if run is None:
        return job.allocation != held
    return held == run.allocation and now >= _calm_at(job, view)


class _Room:
    """GPUs that are left to share out."""

    def __init__(self, gaps: dict[NodeId, _Gap], now: Seconds) -> None:
        self._gaps, self._now = gaps, now
        self._left = {node: gap.gpus for node, gap in gaps.items()}

    @property
    def anything(self) -> bool:
        return any(self._left.values())

    @property
    def empty(self) -> int:
        """GPUs that are paid for and empty, and that nobody was given."""
        return sum(self._left.values())

    def ripe_after(self, wait_s: Seconds) -> Seconds:
        """When the next GPU has been empty for so long."""
        later = (at + wait_s for gap in self._gaps.values() for at in gap.since)
        return min((at for at in later if at > self._now), default=math.inf)

    def keep(self, job: JobRecord, held: Allocation | None) -> Allocation | None:
        """GPUs of a job's that are left to it, while it can run on them."""
        if held is None:
            return None
        kept = tuple(
            (node, min(count, self._left[node]))
            for node, count in held.nodes
            if self._left.get(node)
        )
        found = held if kept == held.nodes else Allocation(held.gpu, kept)
        if not kept or not job.spec.gpus.allow(held.gpu, found.width):
            return None
        self._take(kept)
        return found

    def start(self, view: JobView, types: Sequence[GpuName]) -> Allocation | None:
        """The fewest GPUs that it can run on, where it is the fastest."""
        wait_s = _start_s(view)
        best: tuple[float, Allocation] | None = None
        for gpu in types:
            ripe = self._ripe(gpu, wait_s)
            least = _least(view, gpu)
            if least is None or sum(ripe.values()) < least:
                continue
            found = _placed(gpu, least, ripe)
            rate = _rate(view, found)
            if rate and (best is None or rate > best[0]):
                best = rate, found
        if best is None:
            return None
        self._take(best[1].nodes)
        return best[1]

    def widened(self, view: JobView, held: Allocation) -> Allocation:
        """As many more GPUs as make it faster: by enough for a move, if it runs already."""
        ripe, had = self._ripe(held.gpu, _start_s(view)), _rate(view, held)
        most = view.limits.max if view.limits is not None else held.width
        best, best_rate = held, had * (WORTH_MOVING if view.allocation is not None else 1.0)
        if not had or math.isinf(had):  # nobody knows how fast it is: it stays narrow
            return held
        for width in range(held.width + 1, min(most, held.width + sum(ripe.values())) + 1):
            found = _placed(held.gpu, width, ripe, held)
            if (rate := _rate(view, found)) > best_rate:
                best, best_rate = found, rate
        if best is not held:
            before = dict(held.nodes)
            self._take((node, count - before.get(node, 0)) for node, count in best.nodes)
        return best

    def _take(self, nodes: Iterable[tuple[NodeId, int]]) -> None:
        for node, count in nodes:
            self._left[node] -= count

    def _ripe(self, gpu: GpuName, wait_s: Seconds) -> dict[NodeId, int]:
        """GPUs that have been empty for long enough, and will be for as long again."""
        found: dict[NodeId, int] = {}
        for node, gap in self._gaps.items():
            if gap.gpu == gpu and gap.ends_at - self._now >= 2 * wait_s:
                given = gap.gpus - self._left[node]
                ripe = bisect_right(gap.since, self._now - wait_s) - given
                if ripe > 0:
                    found[node] = ripe
        return found


def _least(view: JobView, gpu: GpuName) -> int | None:
    """The fewest GPUs of a type that a job can run on."""
    limits = view.limits
    least, most = (1, 1) if limits is None else (limits.min, limits.max)
    rates = view.prediction.rates(gpu, view.epoch)
    for width in range(least, most + 1):
        if (gpu, width) not in view.barred and (rates is None or _at(rates[:, width : width + 1])):
            return width
    return None


def _at(rates: object) -> bool:
    return bool(getattr(rates, "size", 0) and rates.max() > 0)  # type: ignore[attr-defined]


def _rate(view: JobView, given: Allocation) -> float:
    """Progress per second there: infinite where nobody knows, zero where it is not to be."""
    if (given.gpu, given.width) in view.barred:
        return 0.0
    rates = view.prediction.rates(given.gpu, view.epoch)
    if rates is None:
        return math.inf
    across = min(len(given.nodes) - 1, 1)
    return float(rates[across][given.width]) if given.width < rates.shape[1] else 0.0


def _placed(
    gpu: GpuName, width: int, ripe: dict[NodeId, int], held: Allocation | None = None
) -> Allocation:
    """On the nodes that it is on, then on the one whose gap fits closest, else on the emptiest."""
    nodes = {} if held is None else dict(held.nodes)
    missing = width - sum(nodes.values())
    by_size = sorted(ripe, key=lambda node: (ripe[node], node))
    fits = [node for node in by_size if ripe[node] >= missing]
    first = [node for node in by_size if node in nodes]
    for node in (*first, *fits[:1], *reversed(by_size)):
        more = min(missing, ripe[node] - nodes.get(node, 0) + _had(held, node))
        if more > 0:
            nodes[node] = nodes.get(node, 0) + more
            missing -= more
    return Allocation(gpu, tuple(sorted(nodes.items())))


def _had(held: Allocation | None, node: NodeId) -> int:
    return 0 if held is None else dict(held.nodes).get(node, 0)
