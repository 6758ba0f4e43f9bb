"""How the learning rate follows the batch size, and what an iteration is worth."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch

from boa.goodput.tuning import gains_of
from boa.train.torch.noise import Statistics

Rule: TypeAlias = Literal["none", "linear", "sqrt", "adascale"]


def gain(batch: int, base_batch: int, statistics: Statistics | None) -> float:
    """Worth of an iteration, in iterations at `base_batch`; 1 while nothing is known."""
    if statistics is None:
        return 1.0
    gains = gains_of(base_batch, statistics.grad_sqr, statistics.grad_var)
    return float(gains(np.array([float(batch)]))[0])


def factor(rule: Rule, batch: int, base_batch: int, statistics: Statistics | None) -> float:
    """The factor for the learning rate that was tuned for `base_batch`.

    AdaScale's is the gain: as much further as an iteration gets.
    """
    match rule:
        case "none":
            return 1.0
        case "linear":
            return batch / base_batch
        case "sqrt":
            return math.sqrt(batch / base_batch)
        case "adascale":
            return gain(batch, base_batch, statistics)
    raise ValueError(f"learning rate rule: got {rule!r}; expected one of {get_args(Rule)}")


@contextmanager
def scaled(optimizer: torch.optim.Optimizer, by: float) -> Iterator[None]:
    """Multiply the learning rates for one step; afterwards schedulers find their own values."""
    if by == 1.0:
        yield
        return
    own = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * by  # not in place: it may be a tensor
    try:
        yield
    finally:
        for group, rate in zip(optimizer.param_groups, own, strict=True):
            group["lr"] = rate
