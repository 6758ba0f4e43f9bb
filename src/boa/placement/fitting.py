"""The policy's wishes → nodes to rent, and GPUs on them, as far as they can be had. Pure.

Where everything can be had, it is had, by the same placement as in the simulator. Where the cloud
has no more nodes or the hard cap on the spend leaves no room, `shortage` says who gets less.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from boa.model.cluster import Allocation, JobId, Node, NodeId
from boa.model.events import Shortage, ShortageCode
from boa.model.workload import GpuType
from boa.placement.packing import place
from boa.placement.pool import Pool
from boa.placement.shortage import ROUNDING, Room, Seats, Stock, Want
from boa.units import GpuName, Seconds, UsdPerHour

__all__ = ["Fitted", "Room", "Want", "can_rent", "fit", "within_limits"]

Types = Mapping[GpuName, GpuType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    allocations: Mapping[JobId, Allocation]
    """A job left out waits."""
    new_nodes: tuple[Node, ...] = ()
    """Nodes to be rented. Nodes that no job is on are left as they are."""
    short: Mapping[JobId, Shortage] = field(default_factory=dict)
    """Jobs that have less than was wanted, and why."""
    give_back: tuple[NodeId, ...] = ()
    """Nodes to release as soon as no run is on them, warm or not: those beyond the limits, and
    idle ones while a job is short because of what they cost."""


def fit(
    wants: Mapping[JobId, Want],
    current: Mapping[JobId, Allocation],
    nodes: Sequence[Node],
    gpu_types: Types,
    next_node: NodeId,
    room: Room,
) -> Fitted:
    """GPUs for every want, within the room; fitting again what came out changes nothing.

    `nodes`: rented and not given back, ready ones first. What is rented never costs more than the
    room allows at any moment: money of nodes to be given back counts once they are gone.
    """
    kept, surplus = within_limits(wants, current, nodes, gpu_types, room)
    if room.spend_left is not None:
        room = replace(room, spend_left=max(room.spend_left, 0.0))
    stock = Stock(Counter(node.gpu for node in kept), gpu_types, room)
    if _enough(wants, stock):
        shares = {job: want.share for job, want in wants.items()}
        placed = place(shares, current, kept, gpu_types, next_node=next_node, elastic=True)
        new = tuple(node for node in placed.nodes if node.id >= next_node)
        if can_rent(new, kept, gpu_types, room):
            return Fitted(allocations=placed.allocations, new_nodes=new, give_back=surplus)
    fitted = _fit_short(wants, current, kept, gpu_types, next_node, room)
    return replace(fitted, give_back=tuple(sorted((*fitted.give_back, *surplus))))


def _enough(wants: Mapping[JobId, Want], stock: Stock) -> bool:
    """Whether there are GPUs enough, however they lie; asked first because it is cheap."""
    widths: dict[GpuName, int] = {}
    for want in wants.values():
        share = want.share
        widths[share.gpu] = widths.get(share.gpu, 0) + share.width
    if not all(stock.has(gpu) for gpu in widths):
        return False
    for gpu, width in widths.items():
        stock.take(gpu, width)
    return not stock.overdrawn()


def can_rent(new: Sequence[Node], nodes: Sequence[Node], gpu_types: Types, room: Room) -> bool:
    """Whether there is room for these beside those that are there."""
    if not new:
        return True
    more = Counter(node.gpu for node in new)
    there = Counter(map(_gpu, nodes)) + Counter(room.releasing)
    limited = more.keys() & room.max_nodes.keys()
    if any(there[gpu] + more[gpu] > room.max_nodes[gpu] for gpu in limited):
        return False
    cost = sum(_price(node, gpu_types, room) for node in new)
    return room.spend_left is None or cost <= room.spend_left + ROUNDING * cost


_gpu, _kind = attrgetter("gpu"), attrgetter("gpu", "gpus")


def _price(node: Node, gpu_types: Types, room: Room) -> UsdPerHour:
    if node.gpu not in gpu_types:
        return 0.0
    return room.dearer.get(node.gpu, gpu_types[node.gpu].price) * node.gpus


# Nodes that have to go


def within_limits(
    wants: Collection[JobId],
    current: Mapping[JobId, Allocation],
    nodes: Sequence[Node],
    gpu_types: Types,
    room: Room,
) -> tuple[Sequence[Node], tuple[NodeId, ...]]:
    """Nodes to go on with, and those that are too many: those that jobs lose least by leaving, and
    of equal ones the least used."""
    sizes = {gpu: kind.gpus_per_node for gpu, kind in gpu_types.items()}
    there = Counter(map(_gpu, nodes))
    left = Counter({gpu: most - there[gpu] for gpu, most in room.max_nodes.items()})
    going = sum(
        room.node_price(kind) * room.releasing.get(gpu, 0) for gpu, kind in gpu_types.items()
    )
    over = 0.0 if room.spend_left is None else -room.spend_left - going
    known = set(map(_kind, nodes)) <= sizes.items()
    if known and over <= 0 and min(left.values(), default=0) >= 0:
        return nodes, ()
    used = _gpus_used(wants, current)
    odd = {node.id for node in nodes if sizes.get(node.gpu) != node.gpus}
    surplus = set()
    loss = room.vacating

    def first(node: Node) -> tuple[bool, Seconds, int, NodeId]:
        return (node.id not in odd, loss.get(node.id, 0.0), used[node.id], -node.id)

    for node in sorted(nodes, key=first):
        price = _price(node, gpu_types, room)
        too_many = left[node.gpu] < 0
        if node.id in odd or too_many or over > ROUNDING * price:
            surplus.add(node.id)
            left[node.gpu] += 1
            over -= price
    return [node for node in nodes if node.id not in surplus], tuple(sorted(surplus))


def _gpus_used(jobs: Iterable[JobId], held: Mapping[JobId, Allocation]) -> Counter[NodeId]:
    used: Counter[NodeId] = Counter()
    for job in jobs:
        if job in held:
            used.update(dict(held[job].nodes))
    return used


# When not everything can be had


def _fit_short(
    wants: Mapping[JobId, Want],
    current: Mapping[JobId, Allocation],
    nodes: Sequence[Node],
    gpu_types: Types,
    next_node: NodeId,
    room: Room,
) -> Fitted:
    stock = Stock(Counter(node.gpu for node in nodes), gpu_types, room)
    seats = Seats(wants, stock, tuple(gpu_types))
    held = _still_there(wants, current, nodes, gpu_types)
    seats.keep(held)
    seats.settle()
    allocations: dict[JobId, Allocation] = {}
    new: list[Node] = []
    for gpu, kind in gpu_types.items():
        widths = {job: width for job, (on, width) in seats.taken.items() if on == gpu}
        pool = Pool(gpu, kind.gpus_per_node, (node.id for node in nodes if node.gpu == gpu))
        first = next_node + len(new)
        allocations.update(_placed(widths, held, pool, first, stock.most_new(gpu)))
        fresh = [node for node in pool.free if node >= first]
        stock.rented(gpu, len(fresh))
        new += [Node(node, gpu, kind.gpus_per_node) for node in fresh]
    short = _shortages(wants, seats.taken, stock, room)
    costly = any(stock.spend_binds(gpu) for gpu in {wants[job].share.gpu for job in short})
    used = {node for allocation in allocations.values() for node, _ in allocation.nodes}
    idle = [node.id for node in nodes if node.id not in used] if costly else []
    return Fitted(allocations=allocations, new_nodes=tuple(new), short=short, give_back=tuple(idle))


def _still_there(
    wants: Mapping[JobId, Want],
    current: Mapping[JobId, Allocation],
    nodes: Sequence[Node],
    gpu_types: Types,
) -> dict[JobId, Allocation]:
    """Allocations of jobs on nodes that they can go on using."""
    by_type: dict[GpuName, dict[JobId, Allocation]] = {gpu: {} for gpu in gpu_types}
    for job in wants:
        if job in current and current[job].gpu in by_type:
            by_type[current[job].gpu][job] = current[job]
    found = {}
    for gpu, held in by_type.items():
        per_node = gpu_types[gpu].gpus_per_node
        pool = Pool(gpu, per_node, (node.id for node in nodes if node.gpu == gpu))
        found.update(pool.pin(held))
    return found


def _placed(
    widths: Mapping[JobId, int],
    held: Mapping[JobId, Allocation],
    pool: Pool,
    next_node: NodeId,
    most_new: float,
) -> dict[JobId, Allocation]:
    """Whoever has its width stays; the others on the fewest nodes, or wherever GPUs are free.

    Nodes are added to the pool as they are needed, but no more than `most_new`.
    """
    same = {
        job: before
        for job, width in widths.items()
        if (before := held.get(job)) and (before.gpu, before.width) == (pool.gpu, width)
    }
    if len(same) == len(widths):
        return same
    placed = pool.pin(same)
    last = next_node + most_new
    moving = [job for job in widths if job not in placed]
    for job in sorted(moving, key=lambda job: -widths[job]):
        missing = pool.nodes_missing(widths[job])
        if next_node + missing > last:
            short = widths[job] - pool.gpus_free
            missing = max(-(-short // pool.per_node), 0)
        for _ in range(missing):
            pool.add(next_node)
            next_node += 1
        found = pool.take(widths[job], spread=True)
        assert found is not None, "seats were counted"
        placed[job] = found
    return placed


# Who has less than was wanted


def _shortages(
    wants: Mapping[JobId, Want],
    seats: Mapping[JobId, tuple[GpuName, int]],
    stock: Stock,
    room: Room,
) -> dict[JobId, Shortage]:
    """Who has less than was wanted, and why."""
    limits = {gpu: _limit(gpu, stock, room) for gpu in {w.share.gpu for w in wants.values()}}
    found = {}
    for job, want in wants.items():
        share, seat = want.share, seats.get(job)
        if seat != (share.gpu, share.width):
            why = limits[share.gpu]
            counts = why in ("max_nodes", "no_capacity")
            found[job] = Shortage(
                gpu_type=share.gpu,
                width=share.width,
                given=seat,
                why=why,
                most_nodes=room.max_nodes[share.gpu] if counts else None,
                detail=_detail(why, share.gpu, room),
            )
    return found


def _detail(why: ShortageCode, gpu: GpuName, room: Room) -> str:
    if why == "spend_cap":
        return room.cap
    return room.why[gpu] if why == "no_capacity" else ""


def _limit(gpu: GpuName, stock: Stock, room: Room) -> ShortageCode:
    if not stock.has(gpu):
        return "no_such_type"
    if gpu in room.max_nodes and not stock.spend_binds(gpu):
        return "no_capacity" if room.why.get(gpu) else "max_nodes"
    return "spend_cap"
