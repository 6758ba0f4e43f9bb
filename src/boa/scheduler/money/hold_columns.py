"""The ledger's holds by column, where there are too many to look at one by one. Pure."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boa.model.cluster import NodeId
from boa.model.held import Floats, Held, HeldOnNodes
from boa.model.records import NodeRecord
from boa.scheduler.money.ledger import usable_between
from boa.units import Seconds

Ids: TypeAlias = NDArray[np.int64]
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


def charged_sums(
    nodes: Sequence[NodeRecord],
    held: HeldOnNodes,
    apart: Callable[[Sequence[NodeId]], Held],
    since: Seconds,
    until: Seconds,
) -> Floats:
    """GPU-seconds of each node that jobs are charged for, as in `charged_spans`.

    `apart`: all holds of some nodes. It is asked where one began before its node was usable or
    lasted longer, which is seldom: there a sum does not tell how much of it to charge.
    """
    place, known = _places(nodes, held.node)
    begin, end = np.array([usable_between(node, since, until) for node in nodes])[place].T
    within = (np.maximum(held.since, since) >= begin) & (np.minimum(held.until, until) <= end)
    sums = np.zeros(len(nodes))
    sums[place[known & within]] = held.gpu_seconds[known & within]
    others: list[NodeId] = held.node[known & ~within].tolist()
    if others:
        one_by_one = apart(others)
        place, begin, end = charged_spans(nodes, one_by_one, since, until)
        np.add.at(sums, place, np.maximum(end - begin, 0.0) * one_by_one.gpus)
    return sums


def _places(nodes: Sequence[NodeRecord], wanted: Ids) -> tuple[Ids, NDArray[np.bool_]]:
    """Where each of the wanted is among the nodes, and whether it is there at all."""
    ids = np.array([node.id for node in nodes], dtype=np.int64)
    order = np.argsort(ids)
    place = order[np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)]
    return place, ids[place] == wanted
