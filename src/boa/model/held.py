"""Holds by column, where there are too many for a record each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Holds by column: there can be hundreds of thousands."""

    job_class: Sequence[str]
    node: NDArray[np.int64]
    gpus: Floats
    since: Floats
    until: Floats
    """Infinity: still held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOnNodes:
    """All that was held of each node, by column."""

    node: NDArray[np.int64]
    gpu_seconds: Floats
    """GPU-seconds between the two moments that were asked for …"""
    since: Floats
    """… while the first of these holds may have begun before, …"""
    until: Floats
    """… and the last have ended after; infinity: still held."""
