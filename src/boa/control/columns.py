"""The ledger's holds by column, where there are too many to look at one by one. Pure."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boa.control.ledger import usable_between
from boa.model.live import NodeRecord
from boa.store.base import Floats, Held
from boa.units import Seconds

Spans: TypeAlias = tuple[NDArray[np.int64], Floats, Floats]


def charged_spans(nodes: Sequence[NodeRecord], held: Held, since: Seconds, until: Seconds) -> Spans:
    """Of each hold: the place of its node, and from when until when it is charged.

    That is while its node was usable, as in `ledger.bill`; it ends when it begins, or before, where
    it is not charged at all. There is at least one node.
    """
    ids = np.array([node.id for node in nodes], dtype=np.int64)
    order = np.argsort(ids)
    place = order[np.minimum(np.searchsorted(ids[order], held.node), len(ids) - 1)]
    usable = np.array([usable_between(node, since, until) for node in nodes])
    begin = np.clip(held.since, usable[place, 0], until)  # some nodes never were usable
    end = np.minimum(held.until, usable[place, 1])
    return place, begin, np.where(ids[place] == held.node, end, begin)
