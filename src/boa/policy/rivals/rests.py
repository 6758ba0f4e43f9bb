"""Rates of a job by the GPUs that it would have, as rules of thumb see them."""

import numpy as np

from boa.model.speedup import Floats


def packed_rates(rates: Floats, gpus_per_node: int) -> Floats:
    """Rates at every width on the fewest nodes; `rates` as `Prediction.rates` gives them."""
    widths = np.arange(rates.shape[-1])
    return np.where(widths <= gpus_per_node, rates[..., 0, :], rates[..., 1, :])
