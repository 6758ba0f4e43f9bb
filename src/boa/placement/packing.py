"""Widths → GPUs on nodes.

Jobs that already hold what they are to have keep their GPUs; the others go onto as few nodes as
can be, into the fullest gaps that fit. The simulator and the live scheduler both place by these.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from boa.model.cluster import Allocation, Decision, JobId, Node, NodeId, Share
from boa.model.workload import GpuType
from boa.units import GpuName


class Pool:
    """Free GPUs of one type, by node and by how many are free on it."""

    def __init__(self, gpu: GpuName, gpus_per_node: int, nodes: Iterable[NodeId] = ()) -> None:
        self.gpu, self.per_node = gpu, gpus_per_node
        self.free: dict[NodeId, int] = {}
        self._rank: dict[NodeId, int] = {}
        """The order in which nodes were added: of equal ones the first is taken, whatever was taken
        and given back before. So placing job by job comes to the same as placing all anew."""
        self.gpus_free = 0
        """Free GPUs on all nodes together."""
        self._added = 0
        self._with: list[dict[NodeId, None]] = [{} for _ in range(gpus_per_node + 1)]
        for node in nodes:
            self.add(node)

    def add(self, node: NodeId) -> None:
        self.free[node] = self.per_node
        self._rank[node] = self._added
        self._added += 1
        self.gpus_free += self.per_node
        self._with[self.per_node][node] = None

    def drop(self, node: NodeId) -> None:
        """Forget an empty node."""
        free = self.free.pop(node)
        del self._rank[node]
        self.gpus_free -= free
        del self._with[free][node]

    def empty(self) -> list[NodeId]:
        return list(self._with[self.per_node])

    def is_empty(self, node: NodeId) -> bool:
        return self.free[node] == self.per_node

    def nodes_missing(self, width: int) -> int:
        """How many more empty nodes a job of this width needs to sit on the fewest nodes."""
        whole, rest = divmod(width, self.per_node)
        gap = rest == 0 or self._gap_for(rest) is not None
        return max(0, whole + (not gap) - len(self._with[self.per_node]))

    def take(self, width: int, spread: bool = False) -> Allocation | None:
        """GPUs on the fewest nodes; None if there is no such room.

        With `spread`, whatever GPUs are free where there is not: on as few nodes as possible.
        """
        whole, rest = divmod(width, self.per_node)
        empty = self._with[self.per_node]
        gap = self._gap_for(rest) if rest else None
        needed = whole + (rest > 0 and gap is None)
        if len(empty) < needed:
            return self._take_anywhere(width) if spread else None
        fresh = nsmallest(needed, empty, self._rank.__getitem__)
        if rest:
            last = (fresh[whole] if gap is None else gap, rest)
            if not whole:  # most jobs: a part of one node
                self._set(last[0], self.free[last[0]] - rest)
                return Allocation(self.gpu, (last,))
            return self.hold([*((node, self.per_node) for node in fresh[:whole]), last])
        return self.hold((node, self.per_node) for node in fresh)

    def hold(self, chosen: Iterable[tuple[NodeId, int]]) -> Allocation:
        nodes = tuple(sorted(chosen))
        for node, count in nodes:
            self._set(node, self.free[node] - count)
        return Allocation(self.gpu, nodes)

    def give(self, allocation: Allocation) -> None:
        for node, count in allocation.nodes:
            self._set(node, self.free[node] + count)

    def fits(self, allocation: Allocation) -> bool:
        return allocation.gpu == self.gpu and all(
            self.free.get(node, -1) >= count for node, count in allocation.nodes
        )

    def pin(self, allocations: Mapping[JobId, Allocation]) -> dict[JobId, Allocation]:
        """Hold these as far as they fit; all of this type. As `fits` and `hold`, job by job, but
        faster: every job goes through here at every decision."""
        placed = {}
        free, before = self.free, dict(self.free)
        for job, allocation in allocations.items():
            for node, count in allocation.nodes:
                if free.get(node, -1) < count:
                    break
            else:
                placed[job] = allocation
                for node, count in allocation.nodes:
                    free[node] -= count
                    self.gpus_free -= count
        for node, was in before.items():
            if free[node] != was:
                del self._with[was][node]
                self._with[free[node]][node] = None
        return placed

    def _gap_for(self, rest: int) -> NodeId | None:
        """The fullest node, already in use, that still has room."""
        for free in range(rest, self.per_node):
            if self._with[free]:
                return min(self._with[free], key=self._rank.__getitem__)
        return None

    def _take_anywhere(self, width: int) -> Allocation | None:
        if self.gpus_free < width:
            return None
        chosen, left = [], width
        for free in range(self.per_node, 0, -1):
            for node in sorted(self._with[free], key=self._rank.__getitem__):
                count = min(free, left)
                chosen.append((node, count))
                left -= count
                if not left:
                    return self.hold(chosen)
        return None

    def _set(self, node: NodeId, free: int) -> None:
        if not 0 <= free <= self.per_node:
            raise AssertionError(f"node {node} would have {free} of {self.per_node} GPUs free")
        before = self.free[node]
        del self._with[before][node]
        self.gpus_free += free - before
        self.free[node] = free
        self._with[free][node] = None


@dataclass(frozen=True, slots=True)
class Placed:
    """Where every job goes, and the nodes that this takes."""

    allocations: Mapping[JobId, Allocation]
    nodes: tuple[Node, ...]


def place(
    shares: Mapping[JobId, Share],
    current: Mapping[JobId, Allocation],
    nodes: Sequence[Node],
    gpu_types: Mapping[GpuName, GpuType],
    *,
    next_node: NodeId,
    elastic: bool,
) -> Placed:
    """GPUs for every share. `elastic`: rent and release nodes as needed; else these and no more.

    On a fixed cluster a job that finds no room for its width waits: it is left out.
    """
    placed: dict[JobId, Allocation] = {}
    kept: list[Node] = []
    wanted: dict[GpuName, dict[JobId, Share]] = {gpu: {} for gpu in gpu_types}
    for job, share in shares.items():
        if share.gpu in wanted:
            wanted[share.gpu][job] = share
    for gpu, kind in gpu_types.items():
        here = [node for node in nodes if node.gpu == gpu]
        found, fresh = _place_type(kind, wanted[gpu], current, here, next_node, elastic)
        new = [Node(next_node + n, gpu, kind.gpus_per_node) for n in range(fresh)]
        next_node += fresh
        placed.update(found)
        if elastic:
            used = {node for allocation in found.values() for node, _ in allocation.nodes}
            here = [node for node in (*here, *new) if node.id in used]
        kept += here
    return Placed(placed, tuple(sorted(kept, key=lambda node: node.id)))


def _place_type(
    kind: GpuType,
    wanted: Mapping[JobId, Share],
    current: Mapping[JobId, Allocation],
    nodes: Sequence[Node],
    next_node: NodeId,
    elastic: bool,
) -> tuple[dict[JobId, Allocation], int]:
    """Allocations on one GPU type, and how many nodes were added."""
    unmoved = {
        job: held
        for job, share in wanted.items()
        if (held := current.get(job)) and held.gpu == share.gpu and held.width == share.width
    }
    pool = Pool(kind.name, kind.gpus_per_node, (node.id for node in nodes))
    placed = pool.pin(unmoved)
    moving = sorted((job for job in wanted if job not in placed), key=lambda j: -wanted[j].width)
    if elastic:
        return placed, _grow(pool, placed, moving, wanted, next_node)
    if not _fill(pool, placed, moving, wanted):
        pool, placed = _repacked(kind, nodes, wanted, current)
    return placed, 0


def _grow(
    pool: Pool,
    placed: dict[JobId, Allocation],
    moving: Sequence[JobId],
    wanted: Mapping[JobId, Share],
    next_node: NodeId,
) -> int:
    """Place every job, on new nodes where there is no room; how many were added."""
    fresh = 0
    for job in moving:
        width = wanted[job].width
        for _ in range(pool.nodes_missing(width)):
            pool.add(next_node + fresh)
            fresh += 1
        found = pool.take(width)
        assert found is not None
        placed[job] = found
    return fresh


def _fill(
    pool: Pool,
    placed: dict[JobId, Allocation],
    moving: Sequence[JobId],
    wanted: Mapping[JobId, Share],
) -> bool:
    """Place the widest first; whether every job found room on the fewest nodes."""
    for job in moving:
        found = pool.take(wanted[job].width)
        if found is None:
            return False
        placed[job] = found
    return True


def _repacked(
    kind: GpuType,
    nodes: Sequence[Node],
    wanted: Mapping[JobId, Share],
    current: Mapping[JobId, Allocation],
) -> tuple[Pool, dict[JobId, Allocation]]:
    """Make room by moving jobs too: the widest first, each where it was if that is still free."""
    pool = Pool(kind.name, kind.gpus_per_node, (node.id for node in nodes))
    placed: dict[JobId, Allocation] = {}
    for job in sorted(wanted, key=lambda j: -wanted[j].width):
        before = current.get(job)
        stays = before is not None and before.width == wanted[job].width and pool.fits(before)
        compact = before is not None and len(before.nodes) == -(-before.width // kind.gpus_per_node)
        if before is not None and stays and compact:
            placed[job] = pool.hold(before.nodes)
            continue
        found = pool.take(wanted[job].width, spread=True)
        if found is not None:
            placed[job] = found
    return pool, placed


def allocate(
    decision: Decision,
    current: Mapping[JobId, Allocation],
    nodes: Sequence[Node],
    gpu_types: Mapping[GpuName, GpuType],
    next_node: NodeId,
) -> tuple[Mapping[JobId, Allocation], tuple[Node, ...]]:
    """Allocations that any policy's decision comes to, and all the nodes to have."""
    if decision.placements:
        return decision.placements, tuple(nodes) if decision.nodes is None else decision.nodes
    placed = place(
        decision.shares,
        current,
        nodes if decision.nodes is None else decision.nodes,
        gpu_types,
        next_node=next_node,
        elastic=decision.nodes is None,
    )
    return placed.allocations, placed.nodes


def choose_slots(
    allocation: Allocation, taken: Mapping[NodeId, Collection[int]], gpus: Mapping[NodeId, int]
) -> dict[NodeId, tuple[int, ...]] | None:
    """Which GPUs of each node, by index, the lowest first; None while too few are free."""
    chosen = {}
    for node, count in allocation.nodes:
        busy = taken.get(node, ())
        free = (
            [slot for slot in range(gpus[node]) if slot not in busy] if busy else range(gpus[node])
        )
        if len(free) < count:
            return None
        chosen[node] = tuple(free[:count])
    return chosen


def resized(
    nodes: Sequence[Node],
    wanted: Mapping[GpuName, int],
    gpu_types: Mapping[GpuName, GpuType],
    current: Mapping[JobId, Allocation],
    next_node: NodeId,
) -> tuple[Node, ...]:
    """The cluster with so many nodes of each type: the busiest stay, new ones are added."""
    busy: dict[NodeId, int] = {}
    for allocation in current.values():
        for node, count in allocation.nodes:
            busy[node] = busy.get(node, 0) + count
    kept: list[Node] = []
    for gpu, kind in gpu_types.items():
        here = sorted((n for n in nodes if n.gpu == gpu), key=lambda n: (-busy.get(n.id, 0), n.id))
        count = wanted.get(gpu, 0)
        kept += here[:count]
        for _ in range(count - len(here)):
            kept.append(Node(next_node, gpu, kind.gpus_per_node))
            next_node += 1
    return tuple(sorted(kept, key=lambda node: node.id))
