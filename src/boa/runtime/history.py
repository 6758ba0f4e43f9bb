"""The past, over time: averages of equal stretches from the ledger and from samples. Pure.

Everything in it lasts from one moment to another and counts so much all the while: a node its
price, a hold its GPUs, a sample what it says until the next one. `Stretches.mean` adds that up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boa.model.cluster import NodeId
from boa.model.held import Floats, Held
from boa.model.records import Hold, NodeRecord, Point
from boa.model.sampled import Sampled
from boa.scheduler.money.hold_columns import charged_spans, one_price_each
from boa.scheduler.money.ledger import charged_between, hold_cost
from boa.units import DAY_S, GpuName, Seconds, Usd, UsdPerHour

Known: TypeAlias = list[float | None]
"""One number for each stretch; None where nobody knows."""
BEFORE_S: Seconds = DAY_S
"""How long before a time a sample may lie that still says something of its beginning."""
LATE = 2.5
"""A sample holds for so many times the wait for the next one, should that not come."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """A time, cut into equal parts."""

    since: Seconds
    until: Seconds
    number: int

    @property
    def step_s(self) -> Seconds:
        return (self.until - self.since) / self.number

    @property
    def ends(self) -> Floats:
        return self.since + self.step_s * np.arange(1, self.number + 1, dtype=np.float64)

    def mean(self, begins: ArrayLike, ends: ArrayLike, weights: ArrayLike) -> Floats:
        """Average weight, over each stretch, of everything that was there then.

        Exactly zero where nothing was.
        """
        begin = self._position(begins)
        end = self._position(ends)
        there = begin < end
        begin, end = begin[there], end[there]
        weight = np.broadcast_to(np.asarray(weights, dtype=float), there.shape)[there]
        first = np.minimum(begin.astype(np.int64), self.number - 1)
        last = np.minimum(end.astype(np.int64), self.number - 1)
        # As if it had been there from its first stretch's beginning to its last one's end …
        whole = self._from_to(first, last, weight)
        # … less what it was not.
        missing = self._add(first, weight * (begin - first))
        missing += self._add(last, weight * (last + 1 - end))
        anything = self._from_to(first, last, np.ones(len(first))) > 0
        return np.where(anything, np.maximum(whole - missing, 0.0), 0.0)

    def _position(self, times: ArrayLike) -> Floats:
        found = (np.asarray(times, dtype=float) - self.since) / self.step_s
        clipped: Floats = np.clip(found, 0.0, self.number)
        return clipped

    def _add(self, where: NDArray[np.int64], amounts: Floats) -> Floats:
        return np.bincount(where, amounts, minlength=self.number).astype(np.float64)

    def _from_to(self, first: NDArray[np.int64], last: NDArray[np.int64], weight: Floats) -> Floats:
        begun = np.bincount(first, weight, minlength=self.number)
        ended = np.bincount(last + 1, weight, minlength=self.number + 1)[: self.number]
        total: Floats = np.cumsum(begun - ended)
        return total


# The ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Rented:
    """GPUs that were paid for, and how many of them jobs held."""

    spend: Floats
    """USD per hour."""
    average: Known
    """USD per hour from the beginning, or the first charge, until the end of each stretch."""
    rented: Mapping[GpuName, Floats]
    used: Mapping[GpuName, Floats]


def rented(stretches: Stretches, nodes: Sequence[NodeRecord], held: Held) -> Rented:
    """GPUs by type, and their price: that which held then."""
    charged = np.array([charged_between(n, stretches.since, stretches.until) for n in nodes])
    begin, end = charged.reshape(-1, 2).T
    gpus = np.array([node.gpus for node in nodes], dtype=float)
    types = np.array([node.gpu for node in nodes], dtype=object)
    real = np.flatnonzero(begin < end)
    whose, since, until, price = one_price_each(nodes, real, begin[real], end[real])
    spend = stretches.mean(since, until, gpus[real][whose] * price)
    known = sorted(set(types))
    return Rented(
        spend=spend,
        average=_average(stretches, spend, begin[begin < end]),
        rented={
            gpu: stretches.mean(begin[types == gpu], end[types == gpu], gpus[types == gpu])
            for gpu in known
        },
        used=_used(stretches, nodes, held, known, types),
    )


def _average(stretches: Stretches, spend: Floats, begins: Floats) -> Known:
    if not len(begins):
        return [None] * stretches.number
    spent = np.cumsum(spend) * stretches.step_s
    elapsed = stretches.ends - begins.min()
    return [s / e if e > 0 else None for s, e in zip(spent.tolist(), elapsed.tolist(), strict=True)]


def _used(
    stretches: Stretches,
    nodes: Sequence[NodeRecord],
    held: Held,
    known: Sequence[GpuName],
    types: NDArray[np.object_],
) -> dict[GpuName, Floats]:
    if not nodes:
        return {}
    place, begin, end = charged_spans(nodes, held, stretches.since, stretches.until)
    found = {}
    for gpu in known:
        here = (types == gpu)[place]
        found[gpu] = stretches.mean(begin[here], end[here], held.gpus[here])
    return found


# Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Samples, averaged over the stretches."""

    budget: Known
    wanted: Mapping[GpuName, Known]
    active: Known
    waiting: Known
    none: Known
    """GPUs wanted of a type that no sample names: none, where there are samples."""


def noted(stretches: Stretches, samples: Sampled) -> Noted:
    """`samples`: by time, some from before the beginning. A budget stays in force until another
    one is noted down; of the rest nothing is known while nobody took samples."""
    at = samples.at
    following = np.append(at[1:], np.inf)[: len(at)]
    until = np.minimum(following, at + LATE * samples.every_s)

    def known(values: ArrayLike, ends: Floats = until) -> Known:
        covered = stretches.mean(at, ends, 1.0)
        total = stretches.mean(at, ends, values)
        return [
            t / c if c > 0 else None for t, c in zip(total.tolist(), covered.tolist(), strict=True)
        ]

    return Noted(
        budget=known(samples.budget, following),
        wanted={gpu: known(values) for gpu, values in samples.wanted.items()},
        active=known(samples.active),
        waiting=known(samples.waiting),
        none=known(0.0),
    )


# A job


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRun:
    """GPUs that a job held from one start to its stop."""

    since: Seconds
    until: Seconds | None
    gpu: GpuName
    width: int
    nodes: Sequence[NodeId]
    cost: Usd


def runs(holds: Sequence[Hold], types: Mapping[NodeId, GpuName], now: Seconds) -> list[HeldRun]:
    """By time. Holds of one start have one beginning; a run lasts as long as the last of them."""
    begun: dict[Seconds, list[Hold]] = {}
    for hold in holds:
        begun.setdefault(hold.since, []).append(hold)
    return [_run(since, begun[since], types, now) for since in sorted(begun)]


def _run(
    since: Seconds, holds: Sequence[Hold], types: Mapping[NodeId, GpuName], now: Seconds
) -> HeldRun:
    ends = [hold.until for hold in holds if hold.until is not None]
    return HeldRun(
        since=since,
        until=max(ends) if len(ends) == len(holds) else None,
        gpu=types.get(holds[0].node, ""),
        width=sum(hold.gpus for hold in holds),
        nodes=sorted(hold.node for hold in holds),
        cost=sum(hold_cost(hold, now) for hold in holds),
    )


def rates(points: Sequence[Point]) -> list[float | None]:
    """Units per second since the point before, if that is of the same attempt."""
    found: list[float | None] = []
    before: Point | None = None
    for point in points:
        same = before is not None and before.attempt == point.attempt
        seconds = point.uptime_s - before.uptime_s if before is not None and same else 0.0
        units = point.units - before.units if before is not None else 0.0
        found.append(units / seconds if seconds > 0 else None)
        before = point
    return found


def average_budget(samples: Sampled, since: Seconds, until: Seconds) -> UsdPerHour | None:
    """Average budget in between, as noted down; each holds until the next. None: there was none."""
    ends = np.append(samples.at[1:], until)[: len(samples.at)]
    seconds = np.maximum(np.minimum(ends, until) - np.maximum(samples.at, since), 0.0)
    whole = float(seconds.sum())
    return float(seconds @ samples.budget) / whole if whole > 0 else None
