"""Significant digits: what keeps files small and the same on every machine."""

import numpy as np

from boa.model.speedup import Floats


def rounded(values: Floats, digits: int) -> Floats:
    """Every value to so many significant digits; the result prints as short as it can."""
    flat = np.asarray(values, dtype=float)
    texts = np.char.mod(f"%.{digits - 1}e", flat.reshape(-1))
    return texts.astype(float).reshape(flat.shape)


def rounded_one(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")
