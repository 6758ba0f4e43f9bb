"""Bars: placements that jobs are kept off, since runs failed there and went well elsewhere.

Failures at a width are failures of what was decided, and monotone as a rule: who runs out of memory
on two GPUs, or cannot make processes talk to each other, does so on four; who needs four for lack
of memory does not fit on two. So a failure at w bars, of the same GPU type,

- w and wider, where something narrower went well;
- w and narrower, where something wider did;
- w alone, where both did: no such rule explains it;
- all of the type, where nothing ever did.

One on a single node counts for several nodes too, not the other way round. Placements at which
progress was made are never barred. On a type with a failure nobody but those who try things
(`policy/trials.py`) goes where nobody has been.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boa.model.placements import FailedPlacement, Placement
from boa.units import GpuName, Seconds

Mask: TypeAlias = NDArray[np.bool_]
"""2 × (K + 1): on one node and across nodes, by width."""
MOST_GPUS = 1024
"""The widest that is looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """Bars of a class."""

    all: Mapping[GpuName, Mask] = field(default_factory=dict)
    """For everybody; types without are left out …"""
    most: Mapping[GpuName, Mask] = field(default_factory=dict)
    """… and for all but those who try things."""
    worked: frozenset[Placement] = frozenset()
    """Placements at which progress was made."""
    kept: dict[object, object] = field(default_factory=dict, repr=False)
    """Whatever follows, for who asks again."""

    def __bool__(self) -> bool:
        return bool(self.all or self.most)

    def of(self, trier: bool) -> Mapping[GpuName, Mask]:
        return self.all if trier else self.most


NO_BARS = Bars()


def bars_of(
    failures: Collection[FailedPlacement],
    worked: Collection[Placement],
    widest: int,
    now: Seconds,
) -> Bars:
    """Bars that follow from failures, up to this width."""
    for_all: dict[GpuName, Mask] = {}
    for_most: dict[GpuName, Mask] = {}
    for gpu in {failed.place.gpu for failed in failures}:
        here = [failed for failed in failures if failed.place.gpu == gpu]
        well = [place for place in worked if place.gpu == gpu]
        mask = barred(here, well, widest, now)
        if mask.any():
            for_all[gpu] = mask
        rest = ~_proven(well, widest) | mask if well else mask
        if rest.any():
            for_most[gpu] = rest
    return Bars(for_all, for_most, frozenset(worked))


def barred(
    failures: Iterable[FailedPlacement],
    worked: Collection[Placement],
    widest: int,
    now: Seconds,
) -> Mask:
    """Placements that failures on one type bar for everybody. `worked`: on the same type."""
    widths = np.arange(widest + 1)
    found = np.zeros((2, widest + 1), dtype=bool)
    for failed in failures:
        if failed.stands(now):
            rows = slice(int(failed.place.across), 2)
            found[rows] |= _reach(failed.place, worked, widths)
    found &= ~_proven(worked, widest)
    return found


def _reach(failed: Placement, worked: Collection[Placement], widths: NDArray[np.intp]) -> Mask:
    """Widths that a failure speaks of."""
    narrower = any(
        place.width < failed.width
        or (place.width == failed.width and failed.across and not place.across)
        for place in worked
    )
    wider = any(place.width > failed.width for place in worked)
    if narrower and wider:
        return np.asarray(widths == failed.width)
    if narrower:
        return np.asarray(widths >= failed.width)
    return np.asarray(widths <= failed.width) if wider else np.ones_like(widths, dtype=bool)


def _proven(worked: Iterable[Placement], widest: int) -> Mask:
    found = np.zeros((2, widest + 1), dtype=bool)
    for place in worked:
        if place.width <= widest:
            found[int(place.across), place.width] = True
    return found
