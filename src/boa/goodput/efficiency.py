"""How much an iteration is worth: gain and statistical efficiency per epoch and batch size."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from boa.model.speedup import Floats


@dataclass(frozen=True)
class Convergence:
    """Validation runs of one model, one row per statistical epoch.

    Progress counts useful iterations at the smallest batch size B0: one iteration at B0 is worth
    one, an iteration at B is worth its gain.
    """

    batch_sizes: tuple[int, ...]
    """Validated total batch sizes, rising. The first is B0, the last the largest allowed."""
    progress: Floats
    """Cumulative progress at the end of every epoch: the least over all validated sizes."""
    grad_sqr: Floats
    """Squared norm of the gradient, epochs × batch sizes."""
    grad_var: Floats
    """Variance of the gradient, epochs × batch sizes."""
    run_iterations: Floats | None = None
    """Cumulative iterations that the runs took, epochs × batch sizes; None: nobody counted."""

    @property
    def base_batch(self) -> int:
        return self.batch_sizes[0]

    @property
    def max_batch(self) -> int:
        return self.batch_sizes[-1]

    @cached_property
    def epoch_progress(self) -> Floats:
        """Progress that each epoch takes."""
        return np.diff(self.progress, prepend=0.0)

    def statistics(self, epoch: int, batch_size: float) -> tuple[float, float]:
        """(grad_sqr, grad_var) that a run at this batch size measures in an epoch."""
        wanted = np.array([batch_size])
        sqr = _between(self.batch_sizes, self.grad_sqr[epoch], wanted)
        var = _between(self.batch_sizes, self.grad_var[epoch], wanted)
        return float(sqr[0]), float(var[0])

    def iterations(self, batch_size: int) -> Floats:
        """Iterations that each epoch takes at this batch size."""
        wanted = np.array([float(batch_size)])
        if self.run_iterations is None:
            return np.asarray(self.epoch_progress / gain(self, wanted)[:, 0])
        runs = _between(self.batch_sizes, self.run_iterations, wanted)[:, 0]
        return np.diff(runs, prepend=0.0)

    @cached_property
    def gains(self) -> Floats:
        """Gain at every whole batch size from B0 to the largest, epochs × sizes."""
        sizes = np.arange(self.base_batch, self.max_batch + 1, dtype=float)
        return gain(self, sizes)


def gain(convergence: Convergence, batch_sizes: Floats) -> Floats:
    """(var + sqr) / (var · B0/B + sqr) per epoch, the statistics linear in B between the runs.

    Where both statistics vanish they say nothing; a larger batch then counts for no more.
    """
    sqr = _between(convergence.batch_sizes, convergence.grad_sqr, batch_sizes)
    var = _between(convergence.batch_sizes, convergence.grad_var, batch_sizes)
    useful = var * (convergence.base_batch / batch_sizes) + sqr
    known = useful > 0
    return np.where(known, (var + sqr) / np.where(known, useful, 1.0), 1.0)


def efficiency(convergence: Convergence, batch_sizes: Floats) -> Floats:
    """Statistical efficiency: progress per sample, relative to B0."""
    return gain(convergence, batch_sizes) * (convergence.base_batch / batch_sizes)


def _between(known: tuple[int, ...], values: Floats, wanted: Floats) -> Floats:
    """Linear interpolation along the last axis, flat outside."""
    if len(known) == 1:
        return np.repeat(values, len(wanted), axis=-1)
    points = np.asarray(known, dtype=float)
    right = np.clip(np.searchsorted(points, wanted), 1, len(known) - 1)
    mix = np.clip((wanted - points[right - 1]) / (points[right] - points[right - 1]), 0.0, 1.0)
    return np.asarray(values[..., right - 1] * (1.0 - mix) + values[..., right] * mix)
