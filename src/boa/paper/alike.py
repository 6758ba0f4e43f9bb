"""Jobs whose epochs are all alike: what is left of a policy's lead without them, is not theirs.

At any constant batch size an averaged job takes as long as the real one; only that it would pay
to change the width between epochs is gone.
"""

from dataclasses import replace

import numpy as np

from boa.goodput.efficiency import Convergence, gain
from boa.model.speedup import Floats
from boa.sim.physics import AdaptiveTruth, Truth

NEARLY_ALL = 1.0 - 1e-9
"""A batch that is worth as much as all of its samples would take noise without end."""


def alike(truth: Truth) -> Truth:
    """A model whose batch size cannot be tuned has the same speed in all epochs already."""
    if not isinstance(truth, AdaptiveTruth):
        return truth
    return replace(truth, convergence=averaged(truth.convergence))


def averaged(convergence: Convergence) -> Convergence:
    """The same progress in as many epochs, each with the mean worth of an iteration."""
    sizes = np.array(convergence.batch_sizes, dtype=float)
    progress = convergence.epoch_progress
    iterations = (progress[:, None] / gain(convergence, sizes)).sum(axis=0)
    noise = _noise(progress.sum() / iterations, sizes / convergence.base_batch)
    shape = (len(progress), len(sizes))
    return replace(
        convergence,
        grad_sqr=np.ones(shape),
        grad_var=np.broadcast_to(noise, shape).copy(),
        run_iterations=None,
    )


def _noise(worth: Floats, times: Floats) -> Floats:
    """Variance over squared norm at which batches of so many times the smallest are worth this.

    Solves worth = (1 + noise) / (1 + noise / times). The smallest batch is worth 1 whatever the
    noise: it has that of the next larger one.
    """
    worth = np.minimum(worth, NEARLY_ALL * times)
    noise = np.maximum(worth - 1.0, 0.0) / np.where(times > 1.0, 1.0 - worth / times, 1.0)
    if len(noise) > 1:
        noise[0] = noise[1]
    return np.asarray(noise)
