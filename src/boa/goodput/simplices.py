"""Measured step times between placements as the simulators of Pollux and its heirs find them.

They interpolate linearly within Delaunay simplices over nodes, GPUs and local batch size. Measured
sizes lie on a grid, so simplices are not unique: Qhull's are taken, as theirs were, and jobs then
end in the very second in which they ended there. What lies outside of all goes by `MeasuredTimes`.
"""

import math
from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from boa.goodput.timing import Curve, Times, Timing
from boa.model.cluster import Shape
from boa.model.speedup import Floats
from boa.one_thread import for_one_thread

MOST_NODES = 16
"""Beyond, nodes count as these: nobody measured more."""


class SimplexTimes:
    """`counts`: nodes -> GPUs -> curve."""

    def __init__(self, counts: Mapping[int, Mapping[int, Curve]], others: Timing) -> None:
        self._counts, self._others = counts, others
        self._known: dict[tuple[int, int, int], Times] = {}

    def times(self, shape: Shape, local_batch: int) -> Times:
        key = (min(len(shape), MOST_NODES), sum(shape), local_batch)
        found = self._known.get(key)
        if found is None:
            step, one_pass = self._between(np.array([key], dtype=float))[0].tolist()
            if math.isnan(step):
                step, one_pass = self._others.times(shape, local_batch)
            found = self._known[key] = (step, one_pass)
        return found

    @cached_property
    def _between(self) -> Callable[[Floats], Floats]:
        with for_one_thread():  # half a second that few need
            from scipy.interpolate import LinearNDInterpolator

        rows = [
            (nodes, gpus, *row)
            for nodes, by_gpus in sorted(self._counts.items())
            for gpus, curve in sorted(by_gpus.items())
            for row in zip(curve.local_batch, curve.step_s, curve.accumulation_s, strict=True)
        ]
        table = np.array(rows, dtype=float)
        found: Callable[[Floats], Floats] = LinearNDInterpolator(table[:, :3], table[:, 3:])
        return found
