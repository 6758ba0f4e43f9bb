"""Free GPUs of one type on nodes: what a job takes, and what it gives back."""

from collections.abc import Iterable, Mapping
from heapq import nsmallest
from itertools import chain
from operator import attrgetter

from boa.model.cluster import Allocation, JobId, NodeId
from boa.units import GpuName


class Pool:
    """Free GPUs of one type, by node and by how many are free on it."""

    def __init__(self, gpu: GpuName, gpus_per_node: int, nodes: Iterable[NodeId] = ()) -> None:
        self.gpu, self.per_node = gpu, gpus_per_node
        self.free: dict[NodeId, int] = dict.fromkeys(nodes, gpus_per_node)
        self._added = len(self.free)
        self._rank: dict[NodeId, int] = dict(zip(self.free, range(self._added), strict=True))
        """The order in which nodes were added: of equal ones the first is taken, whatever was taken
        and given back before. So placing job by job comes to the same as placing all anew."""
        self.gpus_free = gpus_per_node * self._added
        """Free GPUs on all nodes together."""
        self._with: list[dict[NodeId, None]] = [{} for _ in range(gpus_per_node)]
        self._with.append(dict.fromkeys(self.free))

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
            return self.take_emptiest(width) if spread else None
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
        left = _left(self.free, allocations.values())
        if left is not None:  # nearly always
            self.free, placed = left, dict(allocations)
        else:
            placed = {job: held for job, held in allocations.items() if self._pinned(held)}
        self._count()
        return placed

    def occupy(self, allocations: Iterable[Allocation]) -> None:
        """Hold what others have of these nodes, all of this type."""
        free = self.free
        for node, count in chain.from_iterable(map(_nodes, allocations)):
            if node in free:
                free[node] -= count
        if min(free.values(), default=0) < 0:
            raise AssertionError("others hold more GPUs of a node than it has")
        self._count()

    def _count(self) -> None:
        """Know again which nodes have how many GPUs free."""
        self._with = [{} for _ in self._with]
        for node, free in self.free.items():
            self._with[free][node] = None
        self.gpus_free = sum(self.free.values())

    def _pinned(self, allocation: Allocation) -> bool:
        """Hold these in `free` alone, if they fit."""
        free = self.free
        if any(free.get(node, -1) < count for node, count in allocation.nodes):
            return False
        for node, count in allocation.nodes:
            free[node] -= count
        return True

    def _gap_for(self, rest: int) -> NodeId | None:
        """The fullest node, already in use, that still has room."""
        for free in range(rest, self.per_node):
            if self._with[free]:
                return min(self._with[free], key=self._rank.__getitem__)
        return None

    def take_emptiest(self, width: int) -> Allocation | None:
        """GPUs from the nodes with most of them free, on however many."""
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

    def take_first(self, width: int) -> Allocation | None:
        """The first GPUs that are free, in the order of the nodes, on however many."""
        if self.gpus_free < width:
            return None
        chosen, left = [], width
        for node in sorted(self.free, key=self._rank.__getitem__):
            count = min(self.free[node], left)
            if count:
                chosen.append((node, count))
                left -= count
            if not left:
                break
        return self.hold(chosen)

    def _set(self, node: NodeId, free: int) -> None:
        if not 0 <= free <= self.per_node:
            raise AssertionError(f"node {node} would have {free} of {self.per_node} GPUs free")
        before = self.free[node]
        del self._with[before][node]
        self.gpus_free += free - before
        self.free[node] = free
        self._with[free][node] = None


def _left(
    free: Mapping[NodeId, int], allocations: Iterable[Allocation]
) -> dict[NodeId, int] | None:
    """GPUs that are still free once all of these are held; None if they do not fit together."""
    left = dict(free)
    try:
        for node, count in chain.from_iterable(map(_nodes, allocations)):
            left[node] -= count
    except KeyError:
        return None
    return left if min(left.values(), default=0) >= 0 else None


_nodes = attrgetter("nodes")
