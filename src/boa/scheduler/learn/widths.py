"""Widths that a plan may give a class which no profile tells of, and widths that a trial may.

A width is *settled* once jobs have trained on it for ten rescalings. Plans use no wider one, so
nobody is moved to where nobody has been. The next ones, up to twice the widest that is settled, are
what a trial may try (`policy/trials.py`): there the class is expected to go on as it did, or as
classes usually do, whichever is slower, and hoped to do better by as much as that may be off.
Neither goes further than speedups do: the next GPU adds no more than those before it.

A wider width is of use only if every doubling makes jobs 5 % faster: money that is left over is no
reason to hold GPUs that do nothing.
"""

from collections.abc import Collection, Iterable, Mapping
from math import log2

import numpy as np

from boa.catalogue.estimate import Curves
from boa.goodput import belief
from boa.model.records import Cell
from boa.model.speedup import Floats
from boa.units import GpuName, Seconds

RESCALINGS = 10.0
"""Rescaling times that a width must have been trained on to be settled."""
LEAST_S: Seconds = 60.0
MOST_S: Seconds = 3600.0
"""It takes a minute at least, and an hour at most."""
DOUBLING = 1.05
"""Speedup that every doubling of the width must bring."""
SLOWER = 0.999
"""Speed of a width that is not to be chosen, against the one before it."""


def enough_s(rescale_s: Seconds) -> Seconds:
    """Seconds of training after which a width is settled."""
    return min(max(RESCALINGS * rescale_s, LEAST_S), MOST_S)


def settled_widths(cells: Iterable[Cell], rescale_s: Seconds) -> Mapping[GpuName, tuple[int, ...]]:
    """Widths that were measured for long enough, rising, by GPU type."""
    seconds: dict[tuple[GpuName, int], Seconds] = {}
    for cell in cells:
        if cell.units > 0:
            at = (cell.key.gpu, cell.key.width)
            seconds[at] = seconds.get(at, 0.0) + cell.seconds
    enough = enough_s(rescale_s)
    found: dict[GpuName, tuple[int, ...]] = {}
    for gpu, width in sorted(at for at, lasted in seconds.items() if lasted >= enough):
        found[gpu] = (*found.get(gpu, ()), width)
    return found


def of_use(widths: tuple[int, ...], times: Floats) -> int:
    """The widest at which every doubling since a narrower one has saved enough. Widths rise."""
    best = widths[0]
    pace = np.log2(widths) * log2(DOUBLING) + np.log2(times)  # must not rise on the way up
    least = pace[0]
    for width, here in zip(widths[1:], pace[1:], strict=True):
        if here <= least:
            best, least = width, here
    return best


def up_to(curve: Curves, most: int, work: Floats) -> Curves:
    """The part of a curve that is no wider than this, and of use; its narrowest width at least."""
    within = max(sum(width <= most for width in curve.widths), 1)
    times = work @ (1.0 / curve.rates[:, :within])
    useful = of_use(curve.widths[:within], times)
    end = curve.widths.index(useful) + 1
    return Curves(curve.widths[:end], curve.rates[:, :end])


def without(curve: Curves, free: Collection[int], first: int, last: int) -> Curves:
    """The part of a curve from one width to another, where only these are free.

    Curves are read as straight lines between their widths, so one that is not free stays in it,
    as dearer than the free one before it and no faster: nobody chooses it. Beyond the last free
    one all are left as they are.
    """
    kept = [n for n, width in enumerate(curve.widths) if first <= width <= last]
    if len(kept) == len(curve.widths) and len(free) == len(kept):
        return curve
    rates, widest = curve.rates[:, kept], max(free)
    widths = tuple(curve.widths[n] for n in kept)
    for n, width in enumerate(widths):
        if width < widest and width not in free:
            rates[:, n] = SLOWER * rates[:, n - 1]
    return Curves(widths, rates)


def ahead(curve: Curves, settled: tuple[int, ...], gpus_per_node: int) -> tuple[Curves, Curves]:
    """A curve as it is expected and as it may be hoped to be beyond the widest settled width."""
    last = settled[-1]
    beyond = np.array(curve.widths, dtype=float) > last
    if not beyond.any() or last not in curve.widths:
        return curve, curve
    widths = np.array(curve.widths, dtype=float)
    most = _no_more_than_before(curve, settled, widths)
    at = belief.places(widths, gpus_per_node)
    apart = np.maximum(at - at[curve.widths.index(last)], 0.0)
    sd = np.sqrt(belief.STEP**2 * apart + (belief.SLOPE * apart) ** 2)
    hoped = curve.rates * np.exp(belief.HOPE * sd)
    expected = np.where(beyond, np.minimum(curve.rates, most), curve.rates)
    return (
        Curves(curve.widths, expected),
        Curves(curve.widths, np.where(beyond, np.minimum(hoped, most), curve.rates)),
    )


def _no_more_than_before(curve: Curves, settled: tuple[int, ...], widths: Floats) -> Floats:
    """Rates if every further GPU adds as much as those did up to the widest settled width."""
    last, before = settled[-1], [width for width in settled[:-1] if width in curve.widths]
    at_last = curve.rates[:, [curve.widths.index(last)]]
    low, at_low = 0, np.zeros_like(at_last)
    if before:
        low, at_low = before[-1], curve.rates[:, [curve.widths.index(before[-1])]]
    each = np.maximum(at_last - at_low, 0.0) / (last - low)
    return np.asarray(at_last + each * (widths - last))
