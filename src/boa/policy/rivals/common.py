"""Rules that several rivals share: the price of a rescaling, and where curves begin."""

import numpy as np

from boa.model.speedup import Floats
from boa.model.workload import DEFAULT_MAX_GPUS
from boa.units import Seconds

WIDEST = DEFAULT_MAX_GPUS
"""GPUs of one job: its profiles go no further."""


def rescale_factor(age: Seconds, rescalings: int, penalty: Seconds) -> float:
    """How much less a job is worth that would be rescaled now: max(a − n·p, 0) / (a + p)."""
    return max(age - rescalings * penalty, 0.0) / ((age + penalty) or 1.0)


def least_width(rates: Floats) -> int:
    """The smallest width that can run at all; `rates` as `Prediction.rates` gives them."""
    if rates[0, 1] > 0:  # as almost all do, and this is asked of every job in every round
        return 1
    return max(int(np.argmax(rates.max(axis=0) > 0)), 1)
