"""Rates of progress of a model at every width: the best over its batch sizes, by given step times.

A table is epochs × 2 × (K + 1): on one node and across nodes, at widths 0 … K; 0 where a width
cannot run in that arrangement. It is what `Prediction.rates` and `ClassProfile.rates` hold.
"""

import numpy as np

from boa.goodput.timing import Timing
from boa.goodput.tuning import Gains, Limits, grid
from boa.model.cluster import Shape
from boa.model.speedup import Floats
from boa.model.workload import DEFAULT_MAX_GPUS


def widest_measured(limits: Limits, measured_to: int) -> int:
    """The most GPUs that a model can use on a type, as far as that was measured."""
    return min(DEFAULT_MAX_GPUS, measured_to, limits.max_gpus)


def typical_shape(width: int, gpus_per_node: int, across: bool) -> Shape:
    """The placement that a width stands for: on the fewest nodes, or split over two."""
    if across and 1 < width <= gpus_per_node:
        return (width // 2, width - width // 2)
    whole, rest = divmod(width, gpus_per_node)
    return (gpus_per_node,) * whole + ((rest,) if rest else ())


def iteration_times(timing: Timing, limits: Limits, shape: Shape, widest: int) -> Floats:
    """Seconds of an iteration at every candidate batch size of a placement."""
    width = sum(shape)
    options = grid(limits, max(width, widest))
    locals_, passes = options.local_batch[width - 1], options.passes[width - 1]
    times = [timing.times(shape, int(max(b, limits.min_local))) for b in locals_]
    return np.array([s + a * p for (s, a), p in zip(times, passes, strict=True)])


def best_rates(
    timing: Timing, limits: Limits, gains: Gains, *, widest: int, gpus_per_node: int
) -> Floats:
    """The table of a model; `gains` gives the worth of iterations as epochs × batch sizes."""
    options = grid(limits, widest)
    worth = gains(options.total) * options.allowed
    table = np.zeros((len(worth), 2, widest + 1))
    for width in range(1, widest + 1):
        for row in (0, 1):
            if row == 0 and width > gpus_per_node:
                continue
            shape = typical_shape(width, gpus_per_node, across=row == 1)
            seconds = iteration_times(timing, limits, shape, widest)
            table[:, row, width] = (worth[:, width - 1] / seconds).max(axis=1)
    return table
