"""The idea behind the paper's autoscaling variants: hold the cluster's efficiency near a target c.

The cluster is left alone while its efficiency lies within a band around c. Outside of it, the size
whose efficiency is closest to c is taken: by binary search where efficiency falls with size, by
trying every size where it need not (Rubick).

The size is chosen as if every node of it were ready. Where nodes take time to boot, jobs are placed
on those that are ready, or are within half a round: they go on there while the others boot,
instead of waiting for them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from boa.model.cluster import ClusterView, Node
from boa.model.policies import ROUND_S
from boa.model.speedup import Floats
from boa.solver.tables import Ints
from boa.units import Seconds

BAND = 0.3
"""Half the band's width, as a share of c or 1 − c, whichever is less (the paper's appendix)."""
SOON_S: Seconds = ROUND_S / 2
"""A node that is ready within half a round is worth waiting for: the next round comes later."""
CEILING_PRICES = 33
"""Prices that a ceiling is the lowest over: more make it lower, by less and less."""
ROUNDING_UP = 1.0 + 1e-9
"""On top of a ceiling, which is a sum of the same figures in another order."""
USEFUL = 0.5
"""A width is no base if its GPUs do less than this share of what they could at a better one."""


def band(c: float) -> float:
    """Δ: how far the efficiency may stray from c before the cluster is resized."""
    return BAND * min(1.0 - c, c)


def outside_band(efficiency: float, c: float) -> bool:
    return abs(efficiency - c) > band(c)


def ready_nodes(view: ClusterView, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Nodes that jobs are placed on now, of those to have: ready, or about to be."""
    there = {node.id: view.booting.get(node.id, 0.0) for node in view.nodes}
    due = {node.id: there.get(node.id, view.boot_s.get(node.gpu, 0.0)) for node in nodes}
    return tuple(node for node in nodes if due[node.id] <= SOON_S)


def base_width(rates: Floats) -> int | None:
    """𝒦: the smallest width on which a job can sensibly run; None if it cannot run at all.

    A model that fits into memory only by offloading to the host does run, dozens of times slower.
    The paper takes it not to fit; all that a curve shows of it is that every GPU does far less
    there than at a larger width. `rates` is what `Prediction.rates` gives.
    """
    best = rates.max(axis=0)
    per_gpu = best[1:] / np.arange(1, len(best))
    if not per_gpu.any():
        return None
    return int(np.argmax(per_gpu >= USEFUL * per_gpu.max())) + 1


def normalised_speedup(
    rates: Floats, width: int, *, across: bool = False, base: int | None = None
) -> float:
    """How much faster than at its base width a job runs: 1 there, 0 if it cannot run."""
    base = base_width(rates) if base is None else base
    if base is None or width >= rates.shape[1]:
        return 0.0
    return float(rates[int(across), width] / rates[:, base].max())


def contribution(speedup: float, base: int, *, by_base: bool = False) -> float:
    """A job's share in the cluster's efficiency: its normalised speedup, by the paper's formula.

    By that formula a job on its base of 8 GPUs puts one of them to use, and the appendix's example
    (such a job raises the efficiency when a cluster grows from 4 GPUs to 12) does not come out;
    only beyond, where the cluster would be idle without it. It does `by_base`, which counts GPUs
    at the base width as fully used. For a base of 1 the two are the same.
    """
    return speedup * base if by_base else speedup


def efficiency(contributions: Iterable[float], gpus: int) -> float:
    """Efficiency of a cluster: the sum over running jobs ÷ its GPUs. An empty cluster has none."""
    return sum(contributions) / gpus if gpus > 0 else 0.0


def closest_size(sizes: Iterable[int], efficiency_at: Callable[[int], float], c: float) -> int:
    """The size whose efficiency is closest to c, by trying all; of equals the largest."""
    return min(sizes, key=lambda size: (abs(efficiency_at(size) - c), -size))


@dataclass(frozen=True, slots=True, eq=False)
class Ceiling:
    """An efficiency that no cluster of so many GPUs gets beyond, however they are shared.

    By duality: at any price of a GPU, jobs' contributions come to no more than what all GPUs cost
    and what every job, choosing alone, gains beyond that. The lowest over a few prices is told.
    """

    prices: Floats
    gains: Floats
    """Sum over jobs, for every price."""

    @classmethod
    def of(cls, contributions: Floats, gpus: Ints) -> "Ceiling":
        """`contributions`: jobs × options, `gpus`: options; a job may also go without."""
        prices = np.linspace(0.0, 1.0, CEILING_PRICES)
        alone = (contributions - price * gpus for price in prices)
        return cls(prices, np.array([one.max(axis=1, initial=0.0).sum() for one in alone]))

    def at(self, gpus: int) -> float:
        most = float((self.prices * gpus + self.gains).min())
        return most * ROUNDING_UP / gpus


def closest_size_monotone(
    low: int,
    high: int,
    efficiency_at: Callable[[int], float],
    c: float,
    ceiling_at: Callable[[int], float] = lambda size: math.inf,
) -> int:
    """The same over low..high in a logarithmic number of trials, where efficiency never rises.

    A size whose ceiling says enough is not tried: the answer is the same, and large clusters take
    the longest to try.
    """
    below = _first(low, high, lambda size: ceiling_at(size) <= c or efficiency_at(size) <= c)
    if below is None:
        return high
    reached = efficiency_at(below)
    if below > low and efficiency_at(below - 1) - c < c - reached:
        return below - 1
    worse = _first(
        below, high, lambda size: ceiling_at(size) < reached or efficiency_at(size) < reached
    )
    return high if worse is None else worse - 1


def _first(low: int, high: int, true_from: Callable[[int], bool]) -> int | None:
    """The first number in low..high from which on something is true; None if it never is."""
    end = high + 1
    while low < end:
        middle = (low + end) // 2
        if true_from(middle):
            end = middle
        else:
            low = middle + 1
    return low if low <= high else None
