"""Widths → GPUs on nodes.

Jobs that already hold what they are to have keep their GPUs; the others go onto as few nodes as
can be, into the fullest gaps that fit. The simulator and the live scheduler both place by these.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from boa.model.cluster import Allocation, Decision, JobId, Node, NodeId, Share
from boa.model.workload import GpuType
from boa.placement.pool import Pool
from boa.units import GpuName


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
