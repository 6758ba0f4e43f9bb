"""Rate of progress at every width: the best batch size for each, on the least nodes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boa.goodput.efficiency import Convergence
from boa.goodput.throughput import Throughput, iteration_time
from boa.model.speedup import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProfile:
    """One model on one GPU type: how fast, and within which limits that was measured."""

    throughput: Throughput
    min_local_batch: int
    max_local_batch: int
    max_gpus: int
    """The widest placement measured."""


def progress_rates(
    convergence: Convergence, device: DeviceProfile, *, gpus_per_node: int, max_gpus: int
) -> Floats:
    """Progress per second, epochs × widths 1..max_gpus: gain / T_iter at the best batch size.

    The search is exact: every whole local size and number of passes within the limits is
    considered. A width that no batch size fits has rate 0.
    """
    largest = convergence.max_batch
    many = _fewest_passes(device, largest)
    alone = _fewest_passes(device, largest, alone_from=convergence.base_batch + 1)
    epochs = len(convergence.progress)
    rates = np.zeros((epochs, max_gpus))
    for width in range(1, max_gpus + 1):
        nodes = -(-width // gpus_per_node)
        local_sizes = alone if width == 1 else many
        rates[:, width - 1] = _best_rate(convergence, device, nodes, width, local_sizes)
    return rates


def _best_rate(
    convergence: Convergence,
    device: DeviceProfile,
    nodes: int,
    width: int,
    local_sizes: NDArray[np.int64],
) -> Floats:
    """The best rate in every epoch with exactly `width` GPUs."""
    first = -(-convergence.base_batch // width)
    per_gpu = np.arange(first, convergence.max_batch // width + 1)
    local = local_sizes[per_gpu]
    gains = convergence.gains[:, first * width - convergence.base_batch :: width]
    feasible = local > 0
    if not feasible.any():
        return np.zeros(len(convergence.progress))
    per_gpu, local = per_gpu[feasible], local[feasible]
    seconds = iteration_time(
        device.throughput,
        np.asarray(nodes),
        np.asarray(width),
        local.astype(float),
        per_gpu / local - 1.0,
    )
    return np.asarray((gains[:, feasible] / seconds).max(axis=1))


def _fewest_passes(
    device: DeviceProfile, largest: int, alone_from: int | None = None
) -> NDArray[np.int64]:
    """For every number of samples per GPU and iteration, the best local size; 0 where none fits.

    The samples split evenly into passes. With α_c >= 0 and γ >= 1 fewer passes are never slower:
    each costs α_c, and a longer last pass hides more of the network. So the best local size is
    the largest divisor within the limits. From `alone_from` on (a single GPU above B0) one
    accumulation pass is the least: without it the gradient's variance cannot be measured.
    """
    best = np.zeros(largest + 1, dtype=np.int64)
    for passes in range(largest // device.min_local_batch, 0, -1):
        top = min(device.max_local_batch, largest // passes)
        local = np.arange(device.min_local_batch, top + 1)
        if alone_from is not None and passes == 1:
            local = local[local < alone_from]
        best[local * passes] = local
    return best
