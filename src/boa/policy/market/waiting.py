"""Whether newcomers are worth squeezing others for, or wait for a node that is on its way.

Who is squeezed pauses now and again when the node is ready, and so does who is squeezed in: where
rescaling takes long, all are better off if nobody moves until then. Both ways are followed to that
moment, and weighed by what the market makes of them from there.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from boa.model.cluster import Allocation, JobId, Node
from boa.model.speedup import Floats
from boa.policy.market.clearing import cleared, truly_gained
from boa.policy.market.prospects import NO_USE, Prospects
from boa.policy.market.scene import LOOK_S, Scene
from boa.policy.market.standings import Standings, later, moved, only
from boa.units import Seconds

Placements: TypeAlias = dict[JobId, Allocation]

SPAN_S: Seconds = 4 * LOOK_S
"""How far beyond that moment is looked: whoever widens then is to have something of it."""


def staying(market: Prospects) -> Prospects:
    """The market in which whoever holds GPUs keeps them, and the others share what is free."""
    rows = np.flatnonzero(market.held >= 0)
    columns, gains = market.held[rows], market.gains.copy()
    gains[rows] = NO_USE
    gains[rows, columns] = 2.0 * market.gains.max() * market.gpus[rows, columns]
    return replace(market, gains=gains)


def better(
    scene: Scene, ways: tuple[Placements, Placements], nodes: Sequence[Node], ready_in: Seconds
) -> Placements:
    """The way that comes to less until there are these nodes, in so many seconds, and on from
    there; of equal ones the first. Whoever has the same GPUs in both is left out, with them."""
    first, other = ways
    get = other.get
    same = {job: given for job, given in first.items() if get(job) is given}
    changed = [job not in same for job in scene.standings.jobs]
    jobs, room = only(scene.standings, np.array(changed, dtype=bool)), scene.room(nodes)
    for n, kind in enumerate(scene.kinds):
        room[n] -= sum([given.width for given in same.values() if given.gpu == kind.name])
    return min(ways, key=lambda way: seconds_to_go(scene, jobs, way, room, ready_in))


def seconds_to_go(
    scene: Scene, jobs: Standings, given: Placements, room: Floats, ready_in: Seconds
) -> float:
    """Seconds and dollars' worth of these jobs from now on: on what they are given until there is
    this room, and as the market would then have it."""
    there, then = moved(jobs, given), later(jobs, given, ready_in)
    ends = there.ends_in
    total = 0.0
    for worth, rows in there.by_class():
        total += worth.weight * float(np.minimum(ends[rows], ready_in).sum())
    for worth, rows in then.by_class():
        waits = worth.weight * SPAN_S + worth.starts(then.epochs[rows], then.left[rows])
        total += float(waits.sum())
    market = scene.gains(then, SPAN_S)
    return total - SPAN_S * truly_gained(market, cleared(market, room))
