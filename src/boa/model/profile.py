"""A class's speed: rates of progress by GPU type, epoch and width."""

from collections.abc import Mapping
from dataclasses import dataclass

from boa.model.speedup import Floats
from boa.units import GpuName, Seconds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassProfile:
    """A class as measured elsewhere: what a replay job acts out, or a new class starts from."""

    name: str
    work: tuple[float, ...]
    """Units of progress of every epoch."""
    rates: Mapping[GpuName, Floats]
    """Units per second, epochs × 2 × (K + 1): on one node and across nodes, at widths 0 … K."""
    rescale_s: Seconds = 0.0
