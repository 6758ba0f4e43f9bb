"""From measurements to curves: rates of progress at every width, of every epoch.

    rate(type, placement, width, epoch) = prior(type, placement, width, epoch)
                                          · correction(type, placement, width) · factor(epoch)

The correction is measured ÷ prior at the widths that were run, linear in log-width between them
(in its logarithm) and flat beyond. Without a profile the prior is Amdahl's law as other
classes follow it, so beyond what was run a class is believed to go on as classes usually do.

- Placements (on one node, across nodes) are told apart once both have been run; until then one
  stands for the other.
- A type that was never run is corrected like those that were, weighted by their seconds. With a
  profile that leaves it its own ratio to them; without one it is believed to be as fast as they.
- A profile of several epochs knows how they differ, and that is kept. Otherwise every epoch has a
  factor of its own: corrections and factors together are fitted to the cells by weighted least
  squares of logarithms (weights: seconds); an epoch's factor is held at 1 as by a minute's
  measurement, which also settles what cannot be told apart: a difference between epochs that were
  only ever run at different widths is put down to the widths.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from boa.model.profile import ClassProfile
from boa.model.records import Cell
from boa.model.speedup import Floats
from boa.units import GpuName, Seconds

HELD_S: Seconds = 60.0
"""How long an epoch must have been measured to count for half of its own factor."""

Tables: TypeAlias = Mapping[GpuName, Floats]
"""Rates by GPU type, each epochs × 2 × (K + 1), as `ClassProfile.rates`."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Rates as they are believed to be before any is measured."""

    tables: Tables
    shaped: bool
    """Whether it knows how the epochs differ."""
    reports: float = 0.0
    """How many reports it is worth at every width."""


@dataclass(frozen=True, slots=True)
class MeasuredWidth:
    """All that was measured on one type, placement and width, over the epochs."""

    gpu: GpuName
    across: bool
    width: int
    correction: float
    """Logarithm of measured ÷ prior."""
    seconds: Seconds
    reports: int


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Curves with what they were made from."""

    tables: Tables
    points: tuple[MeasuredWidth, ...]


def usual_scaling(
    gpus: Iterable[GpuName], unit: float, epochs: int, widest: int, serial: float
) -> Prior:
    """`unit` per second on one GPU of any type; Amdahl's law on more, with this serial share."""
    widths = np.arange(widest + 1.0)
    rates = unit * widths / (1.0 + serial * np.maximum(widths - 1.0, 0.0))
    table = np.broadcast_to(rates, (epochs, 2, widest + 1))
    return Prior(dict.fromkeys(gpus, table), shaped=False)


def of_profile(profile: ClassProfile, epochs: int, reports: float) -> Prior:
    """A profile, its epochs merged or divided into so many."""
    if epochs == len(profile.work):
        return Prior(profile.rates, epochs > 1, reports)
    work = _overlaps(len(profile.work), epochs) * np.array(profile.work)
    total = work.sum(axis=1)[:, None, None]
    tables = {}
    for gpu, rates in profile.rates.items():
        runs = rates > 0
        seconds = np.where(runs, 1.0, np.inf) / np.where(runs, rates, 1.0)
        with np.errstate(invalid="ignore"):  # no work of an epoch × for ever
            times = np.nansum(work[:, :, None, None] * seconds[None], axis=1)
        tables[gpu] = total / times
    return Prior(tables, len(profile.work) > 1, reports)


def merged_work(profile: ClassProfile, epochs: int) -> Floats:
    """A profile's work, its epochs merged or divided into so many."""
    return np.asarray(_overlaps(len(profile.work), epochs) @ np.array(profile.work))


def _overlaps(known: int, wanted: int) -> Floats:
    """Wanted × known: the part of each known epoch that falls into each wanted one."""
    edges = np.arange(wanted + 1) * known / wanted
    place = np.arange(known)
    low, high = edges[:-1, None], edges[1:, None]
    shared = np.minimum(high, place + 1) - np.maximum(low, place)
    return np.asarray(np.clip(shared, 0.0, 1.0))


def learned(prior: Prior, cells: Iterable[Cell]) -> Learned:
    """The curves after these measurements."""
    epochs = len(next(iter(prior.tables.values())))
    points, factors = _fitted(prior, _rows(prior, cells, epochs), epochs)
    corrections = _corrections(prior.tables, points)
    scale = np.exp(factors)[:, None, None]
    tables = {gpu: prior.tables[gpu] * np.exp(corrections[gpu]) * scale for gpu in prior.tables}
    return Learned(tables, points)


_RowKey: TypeAlias = tuple[GpuName, bool, int]


class _Row:
    """The measurements of a point, epoch by epoch."""

    __slots__ = ("expected", "reports", "seconds", "units")

    def __init__(self, epochs: int) -> None:
        self.seconds, self.units = [0.0] * epochs, [0.0] * epochs
        self.expected = [0.0] * epochs  # units that the prior would have made in the same time
        self.reports = 0


def _rows(prior: Prior, cells: Iterable[Cell], epochs: int) -> dict[_RowKey, _Row]:
    rows: dict[_RowKey, _Row] = {}
    for cell in cells:
        key = cell.key
        table = prior.tables.get(key.gpu)
        if table is None or not 0 < key.width < table.shape[-1]:
            continue
        epoch, at = min(key.epoch, epochs - 1), (key.gpu, key.across, key.width)
        rate = float(table[epoch, int(key.across), key.width])
        if rate <= 0 or cell.units <= 0 or cell.seconds <= 0:
            continue
        row = rows.get(at)
        if row is None:
            row = rows[at] = _Row(epochs)
        row.seconds[epoch] += cell.seconds
        row.units[epoch] += cell.units
        row.expected[epoch] += rate * cell.seconds
        row.reports += cell.reports
    return dict(sorted(rows.items()))  # so that sums do not depend on the order of cells


def _fitted(
    prior: Prior, rows: Mapping[_RowKey, _Row], epochs: int
) -> tuple[tuple[MeasuredWidth, ...], Floats]:
    """Corrections of the points and factors of the epochs, both as logarithms."""
    if not rows:
        return (), np.zeros(epochs)
    found = list(rows.values())
    seconds, units, expected = (
        np.array([getattr(row, name) for row in found]) for name in ("seconds", "units", "expected")
    )
    if prior.shaped or epochs == 1:
        offs, factors = np.log(units.sum(axis=1) / expected.sum(axis=1)), np.zeros(epochs)
    else:
        ran = units > 0
        logs = np.log(np.where(ran, units, 1.0) / np.where(ran, expected, 1.0))
        offs, factors = _two_way(seconds, logs)
    trust = [row.reports / (row.reports + prior.reports) for row in found]
    lasted = seconds.sum(axis=1)
    points = tuple(
        MeasuredWidth(*key, float(offs[n] * trust[n]), float(lasted[n]), rows[key].reports)
        for n, key in enumerate(rows)
    )
    return points, factors


def _two_way(weights: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """α_p + β_j closest to the logarithms (points × epochs), with β_j held at 0 a little."""
    weighted, held = weights * logs, weights.sum(axis=0) + HELD_S
    # The epochs' equations are solved by hand; what is left is one per point.
    matrix = np.diag(weights.sum(axis=1)) - (weights / held) @ weights.T
    alphas = np.linalg.solve(matrix, weighted.sum(axis=1) - weights @ (weighted.sum(axis=0) / held))
    return np.asarray(alphas), (weighted.sum(axis=0) - alphas @ weights) / held


def _corrections(tables: Tables, points: Sequence[MeasuredWidth]) -> dict[GpuName, Floats]:
    """At every width, 2 × (K + 1), for every type."""
    ran = {gpu: [p for p in points if p.gpu == gpu] for gpu in {p.gpu for p in points}}
    total = sum(p.seconds for p in points)
    widest = max(table.shape[-1] for table in tables.values())
    known = {gpu: _interpolated(mine, widest) for gpu, mine in ran.items()}
    common = np.zeros((2, widest))
    for gpu, mine in ran.items():
        common += known[gpu] * (sum(p.seconds for p in mine) / total)
    return {gpu: known.get(gpu, common)[:, : t.shape[-1]] for gpu, t in tables.items()}


def _interpolated(points: Sequence[MeasuredWidth], size: int) -> Floats:
    widths = np.log(np.maximum(np.arange(size), 1))
    rows = []
    for across in (False, True):
        mine = [p for p in points if p.across == across] or points
        mine = sorted(mine, key=lambda p: p.width)
        rows.append(
            np.interp(widths, [np.log(p.width) for p in mine], [p.correction for p in mine])
        )
    return np.stack(rows)
