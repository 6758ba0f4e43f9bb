"""Whether newcomers are worth squeezing others for, or wait for a node that is on its way.

Who is squeezed pauses now and again when the node is ready, and so does who is squeezed in: where
rescaling takes long, all are better off if nobody moves until then. Both ways are followed to that
moment, and weighed by what the market makes of them from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from boa.model.cluster import Allocation, JobId, Node
from boa.policy.market.clearing import cleared, truly_gained
from boa.policy.market.prospects import NO_USE, Prospects
from boa.policy.market.scene import LOOK_S, Scene
from boa.policy.market.standings import later, moved
from boa.units import Seconds

SPAN_S: Seconds = 4 * LOOK_S
"""How far beyond that moment is looked: whoever widens then is to have something of it."""


def staying(market: Prospects) -> Prospects:
    """The market in which whoever holds GPUs keeps them, and the others share what is free."""
    rows = np.flatnonzero(market.held >= 0)
    columns, gains = market.held[rows], market.gains.copy()
    gains[rows] = NO_USE
    gains[rows, columns] = 2.0 * market.gains.max() * market.gpus[rows, columns]
    return replace(market, gains=gains)


def seconds_to_go(
    scene: Scene, given: Mapping[JobId, Allocation], nodes: Sequence[Node], ready_in: Seconds
) -> float:
    """Seconds and dollars' worth of all jobs from now on: on what they are given until these nodes
    are ready, and as the market would then have it."""
    there, then = moved(scene.standings, given), later(scene.standings, given, ready_in)
    ends = there.ends_in
    total = 0.0
    for worth, rows in there.by_class():
        total += worth.weight * float(np.minimum(ends[rows], ready_in).sum())
    for worth, rows in then.by_class():
        waits = worth.weight * SPAN_S + worth.starts(then.epochs[rows], then.left[rows])
        total += float(waits.sum())
    market = scene.gains(then, SPAN_S)
    return total - SPAN_S * truly_gained(market, cleared(market, scene.room(nodes)))
