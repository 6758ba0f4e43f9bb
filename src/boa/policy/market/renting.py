"""Nodes to rent and to give back, by what they are worth to the jobs that are there.

A node is worth what all jobs together gain more per second with it than without; it costs its
price, in seconds per second. Both are looked at over the same minute, so that what is rented is
not given back when it is ready.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from boa.model.cluster import Node, NodeId
from boa.model.speedup import Floats
from boa.policy.market.clearing import cleared, gained, truly_gained
from boa.policy.market.prospects import Prospects
from boa.policy.market.scene import LOOK_S, Scene
from boa.policy.market.standings import Standings
from boa.units import GpuName, Seconds

TOGETHER = (1, 2, 3, 4, 6, 8)
"""Nodes that are weighed together: jobs may gain by several what they do not by one, since two
nodes can be slower than one."""
SPANS: tuple[Seconds, ...] = (LOOK_S, 4 * LOOK_S, 16 * LOOK_S)
"""Seconds over one of which a node must earn its boot, its reclaiming and its price."""
RENT = 1.3
"""Worth of a node that is rented, for what it gains now: jobs will come that need no boot then."""
RELEASE = 0.7
"""Part of its price below which a node is given back, since it may have to be rented again."""
MOST = 1000
"""Nodes that are rented at a time."""
FINE_JOBS, FINE_NODES, COARSEST = 512, 128, 64
"""Up to so many jobs, and nodes that are to be rented already, groups are as above. From there on
they grow with both: nodes for thousands of jobs that come at one moment are rented by the dozen,
and only the last of them one by one."""


class Weighed(NamedTuple):
    """Nodes of a type with what jobs gain per second by each of them, over so many seconds; as it
    is told, without what is counted for jobs that are to run at last."""

    nodes: Sequence[Node]
    gain: float
    over_s: Seconds


class _Offer(NamedTuple):
    """So many nodes of a type, and by how much they are worth more than they cost."""

    net: float
    kind: int
    nodes: int
    over_s: Seconds


def to_rent(scene: Scene, then: Standings, nodes: Sequence[Node]) -> list[Weighed]:
    """Nodes to be rented; `then`: where jobs stand when they will be ready."""
    first = scene.gains(then, SPANS[0])
    further = cache(lambda: [scene.gains(then, span) for span in SPANS[1:]])
    room, left = scene.room(nodes), scene.strangers.room
    first_id = scene.view.next_node + len(scene.strangers.new)
    found, count, finer = list[Weighed](), 0, 1
    while count < MOST:
        unit = max(coarse(len(first.jobs), count) // finer, 1)
        asked = [
            (n, unit * together)
            for n, kind in enumerate(scene.kinds)
            for together in TOGETHER
            if left.has(kind, unit * together) and (unit == 1 or unit * together <= MOST - count)
        ]
        offers = sorted(_offers(scene, first, further, room, asked), reverse=True)
        best = next((offer for offer in offers if _stays(scene, first, room, offer)), None)
        if best is None and unit == 1:
            break
        if best is None:
            finer *= 4
            continue
        kind = scene.kinds[best.kind]
        jobs, before = [first, *further()][SPANS.index(best.over_s)], room
        room = _more(scene, room, best.kind, best.nodes)
        with_it, without = (truly_gained(jobs, cleared(jobs, at)) for at in (room, before))
        left = left.without(kind, best.nodes)
        ids = range(first_id + count, first_id + count + best.nodes)
        new = [Node(node, kind.name, kind.gpus_per_node) for node in ids]
        found.append(Weighed(new, (with_it - without) / best.nodes, best.over_s))
        count += best.nodes
    return found


def coarse(jobs: int, nodes: int) -> int:
    """The smallest group that is weighed for so many jobs, when so many nodes are to be rented
    already: a power of two, 1 as long as both are few."""
    by_jobs = (jobs // FINE_JOBS).bit_length()
    by_jobs += jobs >= 4 * FINE_JOBS  # a market takes longer than in proportion to its jobs
    return int(min(2 ** max(by_jobs, (nodes // FINE_NODES).bit_length()), COARSEST))


def _offers(
    scene: Scene,
    first: Prospects,
    further: Callable[[], Sequence[Prospects]],
    room: Floats,
    asked: Sequence[tuple[int, int]],
) -> Iterator[_Offer]:
    """Numbers of nodes that would pay: over a minute for themselves, over one of the spans for
    their boot and reclaiming too. `further`: over the other spans, which are seldom asked for."""
    if not asked:
        return
    kinds, counts = np.array(asked).T
    rooms = np.repeat(room[None, :], len(asked) + 1, axis=0)
    rooms[np.arange(1, len(rooms)), kinds] += counts * scene.sizes[kinds]
    firsts = gained(first, rooms)
    pays = (firsts[1:] - firsts[0] >= RELEASE * scene.costs[kinds] * counts).nonzero()[0] + 1
    if not len(pays):
        return
    some = [0, *pays.tolist()]
    gains = [firsts[some], *(gained(jobs, rooms[some]) for jobs in further())]
    for i, (n, count) in enumerate((asked[i - 1] for i in some[1:]), start=1):
        for span, gain in zip(SPANS, gains, strict=True):
            more = float(gain[i] - gain[0])
            net = RENT * more - scene.costs[n] * (1.0 + scene.waits[n] / span) * count
            if net > 0:
                yield _Offer(net, n, count, span)


def _more(scene: Scene, room: Floats, n: int, count: int) -> Floats:
    more = room.copy()
    more[n] += count * scene.sizes[n]
    return more


def _stays(scene: Scene, jobs: Prospects, room: Floats, offer: _Offer) -> bool:
    """Whether the last of several nodes would not be given back at once."""
    if offer.nodes == 1:
        return True
    counts = (offer.nodes, offer.nodes - 1)
    rooms = np.array([_more(scene, room, offer.kind, count) for count in counts])
    whole, less = gained(jobs, rooms)
    return bool(whole - less >= RELEASE * scene.costs[offer.kind])


def to_keep(scene: Scene, ready: Sequence[Node]) -> tuple[list[Weighed], list[Weighed]]:
    """Nodes to be kept, and nodes to be given back; one after the other, the least worth first.

    Only the emptiest two of a type are weighed: they speak for all of it.
    """
    over_s, jobs, room = scene.ahead_s, scene.ahead, scene.room(ready)
    kept, gone = list(ready), list[Weighed]()
    order = _emptiest(scene, kept)
    while kept:
        now = cleared(jobs, room)
        losses: dict[NodeId, float] = {}
        best: tuple[float, Weighed, Prospects, Floats] | None = None
        for n, kind in enumerate(scene.kinds):
            for node in islice((node for node in order if node.gpu == kind.name), 2):
                without = _vacated(scene, jobs, node.id)
                less = _more(scene, room, n, -1)
                then = cleared(without, less)
                loss = truly_gained(jobs, now) - truly_gained(without, then)
                losses[node.id] = loss
                net = RELEASE * scene.costs[n] - (now.gain - then.gain)
                if net > 0 and (best is None or net > best[0]):
                    best = (net, Weighed([node], loss, over_s), without, less)
        if best is None:
            return list(_told(kept, losses, over_s)), gone
        _, leaving, jobs, room = best
        gone.append(leaving)
        kept = [node for node in kept if node is not leaving.nodes[0]]
        order = [node for node in order if node is not leaving.nodes[0]]
    return [], gone


def _told(kept: Sequence[Node], losses: dict[NodeId, float], over_s: Seconds) -> Iterator[Weighed]:
    """Nodes that were weighed; the others of their types are worth as much as the least of them."""
    least: dict[GpuName, float] = {}
    for node in [node for node in kept if node.id in losses]:
        loss = losses[node.id]
        yield Weighed([node], loss, over_s)
        least[node.gpu] = min(loss, least.get(node.gpu, math.inf))
    for gpu, loss in least.items():
        others = [node for node in kept if node.gpu == gpu and node.id not in losses]
        yield Weighed(others, loss, over_s)


def _emptiest(scene: Scene, nodes: Sequence[Node]) -> list[Node]:
    """Nodes that may go, the least used first, of these the newest; not those with strangers."""
    by_id = {node.id: node for node in nodes}
    used = dict.fromkeys(by_id, 0)
    for node_id, count in chain.from_iterable(held.nodes for held in scene.current.values()):
        if node_id in used:
            used[node_id] += count
    busy = scene.strangers.nodes
    found = sorted([node_id for node_id in used if node_id not in busy], reverse=True)
    found.sort(key=used.__getitem__)
    return [by_id[node_id] for node_id in found]


def _vacated(scene: Scene, jobs: Prospects, node: NodeId) -> Prospects:
    """The market when all jobs on a node have to leave it; `jobs`: as they stand now."""
    rows = scene.rows_on(node)
    if not rows:
        return jobs
    gains, held = jobs.gains.copy(), jobs.held.copy()
    gains[rows], held[rows] = jobs.elsewhere[rows], -1
    return replace(jobs, gains=gains, held=held)
