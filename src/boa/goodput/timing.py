"""How long a step takes: what answers that, and one placement's answer by local batch size."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from boa.model.cluster import Shape
from boa.model.speedup import Floats
from boa.units import Seconds

Times: TypeAlias = tuple[Seconds, Seconds]
"""(step, accumulation): a step that synchronises, and a pass that does not."""


class Timing(Protocol):
    """How long a step really takes."""

    def times(self, shape: Shape, local_batch: int) -> Times: ...

    def published(self, shape: Shape, local_batch: int) -> Times:
        """The same, as simulators have it that others have published results of."""
        ...


@dataclass(frozen=True, slots=True)
class Curve:
    """Step and accumulation times of one placement by local batch size, rising."""

    local_batch: Floats
    step_s: Floats
    accumulation_s: Floats

    @classmethod
    def of(cls, rows: Iterable[tuple[float, Seconds, Seconds]]) -> "Curve":
        """From (local batch, step, accumulation); several of one batch size are averaged."""
        table = np.array(sorted(rows), dtype=float)
        sizes, where, counts = np.unique(table[:, 0], return_inverse=True, return_counts=True)
        means = [np.bincount(where.reshape(-1), table[:, n]) / counts for n in (1, 2)]
        return cls(sizes, means[0], means[1])

    def at(self, local_batch: float) -> Times:
        """Linear between the measured sizes. Beyond them only computing takes longer."""
        step = float(np.interp(local_batch, self.local_batch, self.step_s))
        accumulation = float(np.interp(local_batch, self.local_batch, self.accumulation_s))
        beyond = local_batch - float(self.local_batch[-1])
        if beyond <= 0:
            return step, accumulation
        per_sample = accumulation / float(self.local_batch[-1])
        return step + beyond * per_sample, accumulation + beyond * per_sample
