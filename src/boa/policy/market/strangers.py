"""Strangers: jobs that take no part in the market, and are seated before it.

Three kinds of jobs: those that no plan knows yet, or that none of the widths it weighs would suit;
those that keep exactly what they have (`JobView.pinned`); and those that failed lately, and start
on free GPUs only (`JobView.modest`).

A stranger keeps what it has, while its user allows it. One that may not, or that has waited long
enough (`JobView.least`), starts on the least that it can run on: on free GPUs, else on GPUs that
others are squeezed for, else on a node rented for it. A job loses its last GPUs only to a job of a
higher rank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boa.model.cluster import Allocation, ClusterView, JobId, JobView, Node, NodeId, NodeRoom, Share
from boa.placement.pool import Pool
from boa.policy.market.worth import Worth
from boa.units import GpuName


@dataclass(frozen=True, slots=True, kw_only=True)
class Seated:
    """Strangers with their GPUs, and what is left of the room."""

    placements: Mapping[JobId, Allocation]
    new: tuple[Node, ...] = ()
    """Nodes to be rented for them."""
    room: NodeRoom

    @property
    def nodes(self) -> frozenset[NodeId]:
        """Nodes that they are on."""
        return frozenset(node for given in self.placements.values() for node, _ in given.nodes)

    def on(self, nodes: Sequence[Node], gpu: GpuName) -> int:
        """GPUs of a type that they have on these nodes."""
        there = {node.id for node in nodes}
        held = (given for given in self.placements.values() if given.gpu == gpu)
        return sum(count for given in held for node, count in given.nodes if node in there)


def is_stranger(job: JobView, worths: Mapping[str, Worth]) -> bool:
    worth = worths.get(job.job_class)
    if worth is None or job.pinned or job.modest:
        return True
    limits = job.limits
    if limits is None:
        return False
    return not any(
        limits.allow(gpu, width) and (gpu, width) not in job.barred
        for gpu, width in worth.course.states
    )


def seat_strangers(view: ClusterView, strangers: Sequence[JobView]) -> Seated:
    """Deciding again on what comes out changes nothing."""
    if not strangers:
        return Seated(placements={}, room=view.room)
    ready = [node for node in view.nodes if node.id not in view.booting]
    mine = {job.id for job in strangers}
    held = {job.id: job.allocation for job in view.jobs if job.allocation is not None}
    placed: dict[JobId, Allocation] = {}
    for pinned in (True, False):
        stay = {j.id for j in strangers if j.pinned == pinned and (pinned or _may_stay(j))}
        for gpu, kind in view.gpu_types.items():
            nodes = (node.id for node in view.nodes if node.gpu == gpu)
            pool = Pool(gpu, kind.gpus_per_node, nodes)
            pool.pin({j: a for j, a in placed.items() if a.gpu == gpu})
            placed.update(pool.pin({j: a for j, a in held.items() if j in stay and a.gpu == gpu}))
    room, new = view.room, list[Node]()
    waiting = (job for job in strangers if job.id not in placed and not job.pinned)
    for job in sorted(waiting, key=_turn):
        share = job.least
        if share is None or share.gpu not in view.gpu_types:
            continue
        everyone = {j: a for j, a in held.items() if j not in mine} | placed
        squeezed = everyone if job.modest else _squeezed(view, mine, job.rank) | placed
        found = (
            _taken(view, ready, everyone, share)
            or _taken(view, [*view.nodes, *new], everyone, share)
            or _taken(view, ready, squeezed, share)
        )
        kind = view.gpu_types[share.gpu]
        count = -(-share.width // kind.gpus_per_node)
        if found is None and room.has(kind, count):
            first = view.next_node + len(new)
            rented = [Node(first + n, kind.name, kind.gpus_per_node) for n in range(count)]
            new, room = [*new, *rented], room.without(kind, count)
            found = _taken(view, rented, {}, share)
        found = found or _taken(view, view.nodes, squeezed, share)
        if found is not None:
            placed[job.id] = found
    return Seated(placements=placed, new=tuple(new), room=room)


def _turn(job: JobView) -> tuple[object, ...]:
    """Higher ranks first; of one rank those that have run before, then by arrival; retries last."""
    return (-job.rank, job.modest, not job.service, job.arrival)


def _squeezed(view: ClusterView, mine: set[JobId], rank: int) -> dict[JobId, Allocation]:
    """GPUs that a job of this rank must leave to those of the market: their least width, where
    their rank is not lower."""
    found: dict[JobId, Allocation] = {}
    for job in view.jobs:
        held = job.allocation
        if held is None or job.id in mine or job.rank < rank:
            continue
        least, nodes = 1 if job.limits is None else job.limits.min, list[tuple[NodeId, int]]()
        for node, count in held.nodes:
            kept = min(count, least)
            least -= kept
            nodes += [(node, kept)] if kept else []
        found[job.id] = Allocation(held.gpu, tuple(nodes))
    return found


def _may_stay(job: JobView) -> bool:
    """Whether its user allows what it has: that may have changed."""
    here, limits = job.allocation, job.limits
    return here is None or limits is None or limits.allow(here.gpu, here.width)


def _taken(
    view: ClusterView, nodes: Sequence[Node], held: Mapping[JobId, Allocation], share: Share
) -> Allocation | None:
    """GPUs on these nodes beside those that are held."""
    kind = view.gpu_types[share.gpu]
    pool = Pool(share.gpu, kind.gpus_per_node, (node.id for node in nodes if node.gpu == share.gpu))
    for given in held.values():
        for node, count in given.nodes if given.gpu == share.gpu else ():
            if pool.free.get(node, -1) >= count:
                pool.hold([(node, count)])
    return pool.take(share.width, spread=True)
