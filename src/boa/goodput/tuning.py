"""Which batch size a job runs at: the best predicted goodput over a grid of sizes.

The grid is Pollux's: fifty total sizes in geometric steps between the least and the largest
allowed, each split over the GPUs and, where a GPU cannot hold its part, over accumulation passes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from boa.goodput.throughput import Throughput, accumulation_time, network_time, overlapped
from boa.model.speedup import Floats

GRID = 50
Gains: TypeAlias = Callable[[Floats], Floats]
"""Total batch sizes -> worth of an iteration, in iterations at B0; may add an axis in front."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Between which batch sizes a model may be trained on one GPU type."""

    base_batch: int
    max_batch: int
    min_local: int
    max_local: int
    split_alone: bool = True
    """One GPU takes more than B0 in several passes only: they tell the gradient's variance."""

    @property
    def max_gpus(self) -> int:
        """More GPUs than this have no samples to work on."""
        return max(self.max_batch // self.min_local, 1)


@dataclass(frozen=True, slots=True)
class Setting:
    """The batch size of a job: per GPU and pass, and passes per step."""

    local_batch: int
    passes: int
    """Accumulation passes before the step that synchronises."""

    def total(self, gpus: int) -> int:
        return gpus * self.local_batch * (self.passes + 1)


@dataclass(frozen=True, slots=True)
class Grid:
    """Candidate settings at widths 1..K: K × GRID."""

    local_batch: Floats
    passes: Floats
    total: Floats
    allowed: Floats
    """1 where a setting is within the limits, else 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Factors by which candidates take longer than by the model: widths × GRID."""

    step: Floats
    """Factors of the pass that ends in a synchronisation."""
    accumulation: Floats
    """Factors of the passes before it."""


@lru_cache(maxsize=512)
def grid(limits: Limits, max_gpus: int) -> Grid:
    width = np.arange(1, max_gpus + 1, dtype=float)[:, None]
    least = np.maximum(limits.base_batch, limits.min_local * width)
    most = np.maximum(float(limits.max_batch), least)
    total = least * (most / least) ** np.linspace(0.0, 1.0, GRID)
    per_gpu = total / width
    passes = np.ceil(per_gpu / limits.max_local - 1e-8) - 1
    if limits.split_alone:
        alone = (width == 1) & (per_gpu > limits.base_batch + 1e-8)
        passes = np.where(alone, np.maximum(passes, 1), passes)
    local = np.ceil(per_gpu / (passes + 1) - 1e-8)
    # Rounding up must not push the total over the largest allowed.
    local = np.minimum(local, np.floor(limits.max_batch / (width * (passes + 1))))
    allowed = (local >= limits.min_local) & (local <= limits.max_local)
    total = width * local * (passes + 1)
    return Grid(local, passes, total, allowed.astype(float))


def first_setting(limits: Limits, gpus: int, batch: int | None = None) -> Setting:
    """Before anything is known: B0, or the smallest local size on every GPU if that is more."""
    total = batch or max(limits.base_batch, limits.min_local * gpus)
    per_gpu = -(-total // gpus)
    passes = -(-per_gpu // limits.max_local) - 1
    if limits.split_alone and gpus == 1 and total > limits.base_batch:
        passes = max(passes, 1)
    local = -(-per_gpu // (passes + 1))
    most = limits.max_batch // (gpus * (passes + 1))
    return Setting(max(min(local, most), 1), passes)


def best_setting(
    model: Throughput, gains: Gains, limits: Limits, *, nodes: int, gpus: int
) -> Setting:
    """The setting of the best predicted goodput."""
    options = grid(limits, gpus)
    rates = _rates(model, gains, options, np.array([[float(gpus)]]), np.float64(nodes), gpus - 1)
    best = int(np.argmax(rates))
    return Setting(int(options.local_batch[gpus - 1, best]), int(options.passes[gpus - 1, best]))


def best_settings(
    model: Throughput,
    gains: Gains,
    limits: Limits,
    *,
    nodes: int,
    gpus: int,
    stretch: Stretch | None = None,
) -> list[Setting]:
    """The same for every epoch that `gains` tells of; `stretch` has one row, of these GPUs."""
    options = grid(limits, gpus)
    widths = np.array([[float(gpus)]])
    rates = _rates(model, gains, options, widths, np.float64(nodes), gpus - 1, stretch)
    local, passes = options.local_batch[gpus - 1], options.passes[gpus - 1]
    return [Setting(int(local[n]), int(passes[n])) for n in rates.argmax(axis=-1).reshape(-1)]


def rate_table(
    model: Throughput,
    gains: Gains,
    limits: Limits,
    max_gpus: int,
    stretches: tuple[Stretch, Stretch] | None = None,
) -> Floats:
    """Predicted goodput at widths 0..K on one node and across nodes: … × 2 × (K + 1).

    A single GPU is never across nodes: its rate there is the same. `stretches`: on one node, and
    across nodes.
    """
    options = grid(limits, max_gpus)
    widths = np.arange(1.0, max_gpus + 1)[:, None]
    rows = []
    for row, nodes in enumerate((1, 2)):
        stretch = None if stretches is None else stretches[row]
        rates = _rates(model, gains, options, widths, np.float64(nodes), slice(None), stretch)
        rows.append(rates.max(axis=-1))
    table = np.stack(rows, axis=-2)
    return np.concatenate([np.zeros((*table.shape[:-1], 1)), table], axis=-1)


def _rates(
    model: Throughput,
    gains: Gains,
    options: Grid,
    widths: Floats,
    nodes: np.float64,
    at: int | slice,
    stretch: Stretch | None = None,
) -> Floats:
    compute = accumulation_time(model, options.local_batch[at])
    network = network_time(model, nodes, widths)  # type: ignore[arg-type]
    step = overlapped(compute, network, model.gamma)
    if stretch is not None:
        step, compute = step * stretch.step, compute * stretch.accumulation
    seconds = options.passes[at] * compute + step
    return np.asarray(gains(options.total[at]) / seconds * options.allowed[at])


def gains_of(base_batch: int, grad_sqr: float, grad_var: float) -> Gains:
    """Worth of an iteration from one measurement of the gradient's statistics."""

    def gains(total: Floats) -> Floats:
        useful = grad_var * (base_batch / total) + grad_sqr
        known = useful > 0  # where both vanish, a larger batch counts for no more
        return np.where(known, (grad_var + grad_sqr) / np.where(known, useful, 1.0), 1.0)

    return gains
