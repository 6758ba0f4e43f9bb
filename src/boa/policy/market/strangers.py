"""Strangers: jobs that no plan knows yet, or that none of the widths it weighs would suit.

Nothing is known of what they gain, so they take no part in the market. They keep what they have,
while their users allow it. One that may not, or that has waited long enough (`JobView.least`),
starts on the least that it can run on: on GPUs that are free, else on GPUs that others are squeezed
for, else on a node rented for it.
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
    if worth is None:
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
    stay = {job.id for job in strangers if _may_stay(job)}
    held = {job.id: job.allocation for job in view.jobs if job.allocation is not None}
    placed: dict[JobId, Allocation] = {}
    for gpu, kind in view.gpu_types.items():
        pool = Pool(gpu, kind.gpus_per_node, (node.id for node in view.nodes if node.gpu == gpu))
        placed.update(pool.pin({j: a for j, a in held.items() if j in stay and a.gpu == gpu}))
    room, new = view.room, list[Node]()
    for job in sorted((j for j in strangers if j.id not in placed), key=lambda j: j.arrival):
        share = job.least
        if share is None or share.gpu not in view.gpu_types:
            continue
        everyone = {j: a for j, a in held.items() if j not in mine} | placed
        found = (
            _taken(view, ready, everyone, share)
            or _taken(view, [*view.nodes, *new], everyone, share)
            or _taken(view, ready, placed, share)
        )
        kind = view.gpu_types[share.gpu]
        count = -(-share.width // kind.gpus_per_node)
        if found is None and room.has(kind, count):
            first = view.next_node + len(new)
            rented = [Node(first + n, kind.name, kind.gpus_per_node) for n in range(count)]
            new, room = [*new, *rented], room.without(kind, count)
            found = _taken(view, rented, {}, share)
        found = found or _taken(view, view.nodes, placed, share)
        if found is not None:
            placed[job.id] = found
    return Seated(placements=placed, new=tuple(new), room=room)


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
