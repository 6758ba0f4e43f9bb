"""The ledger's holds by column, where there are too many to look at one by one. Pure."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boa.model.held import Floats, Held, Ids
from boa.model.records import NodeRecord
from boa.scheduler.money.ledger import usable_between
from boa.units import Seconds

MOST_NUMBERS = 10_000_000
"""Node numbers below this are looked up in a list of them all: a tenth of the time."""
Spans: TypeAlias = tuple[Ids, Floats, Floats]


def charged_spans(nodes: Sequence[NodeRecord], held: Held, since: Seconds, until: Seconds) -> Spans:
    """Charged time of each hold: the place of its node, from when, until when.

    That is while its node was usable, as in `ledger.bill`; it ends when it begins, or before, where
    it is not charged at all. There is at least one node.
    """
    place, known = _places(nodes, held.node)
    usable = np.array([usable_between(node, since, until) for node in nodes])
    begin = np.clip(held.since, usable[place, 0], until)  # some nodes never were usable
    end = np.minimum(held.until, usable[place, 1])
    return place, begin, np.where(known, end, begin)


def one_price_each(
    nodes: Sequence[NodeRecord], place: Ids, begin: Floats, end: Floats
) -> tuple[Ids, Floats, Floats, Floats]:
    """Spans on nodes, cut where their prices change: whose each piece is, from when, until when,
    and its price per GPU and hour. Spans of nodes whose price never changed come as they are."""
    price = np.array([node.price for node in nodes])[place]
    whose = np.arange(len(place))
    changing = [number for number, node in enumerate(nodes) if node.changes]
    if not changing:
        return whose, begin, end, price
    cut = np.isin(place, changing)
    found = [(whose[~cut], begin[~cut], end[~cut], price[~cut])]
    order = np.argsort(place, kind="stable")
    first = np.searchsorted(place[order], changing, side="left")
    last = np.searchsorted(place[order], changing, side="right")
    for number, low, high in zip(changing, first.tolist(), last.tolist(), strict=True):
        if low < high:
            found.append(_cut(nodes[number], order[low:high], begin, end))
    whose, begin, end, price = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return whose, begin, end, price


def _cut(
    node: NodeRecord, whose: Ids, begin: Floats, end: Floats
) -> tuple[Ids, Floats, Floats, Floats]:
    """Spans of one node, by its prices: every span with every stretch that it overlaps."""
    moments = np.array([at for at, _ in node.changes])
    prices = np.array([node.price, *(price for _, price in node.changes)])
    begin, end = begin[whose], end[whose]
    low = np.searchsorted(moments, begin, side="right")
    high = np.maximum(np.searchsorted(moments, end, side="left"), low)
    number = high - low + 1
    one = np.repeat(np.arange(len(whose)), number)
    stretch = low[one] + np.arange(len(one)) - np.repeat(np.cumsum(number) - number, number)
    since = np.concatenate([[-np.inf], moments])[stretch]
    until = np.concatenate([moments, [np.inf]])[stretch]
    return whose[one], np.maximum(begin[one], since), np.minimum(end[one], until), prices[stretch]


def _places(nodes: Sequence[NodeRecord], wanted: Ids) -> tuple[Ids, NDArray[np.bool_]]:
    """Where each of the wanted is among the nodes, and whether it is there at all."""
    ids = np.array([node.id for node in nodes], dtype=np.int64)
    if ids.min() >= 0 and ids.max() < MOST_NUMBERS:  # as numbers are given out
        places = np.zeros(int(ids.max()) + 1, dtype=np.int64)
        places[ids] = np.arange(len(ids))
        place = places[np.minimum(wanted, len(places) - 1)]
        return place, ids[place] == wanted
    order = np.argsort(ids)
    place = order[np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)]
    return place, ids[place] == wanted
