"""The truth about a model that is trained under one of many execution plans, as it was measured.

The work is a number of iterations at a fixed global batch, so a placement is as good as its
fastest plan. Nodes are interchangeable: a placement is known by its sorted counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from boa.model.cluster import Shape
from boa.model.speedup import Floats
from boa.units import Seconds

Best: TypeAlias = tuple[str, Seconds]
"""(plan, seconds per iteration)."""


@dataclass(frozen=True)
class PlanTimes:
    """The fastest measured plan of every measured placement."""

    fastest: Mapping[Shape, Best]
    """Best plan by placement, the fullest node first."""
    _known: dict[Shape, Best | None] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, rows: Iterable[tuple[str, Shape, Seconds]]) -> "PlanTimes":
        """From (plan, placement, seconds per iteration). Every plan counts, offloading too."""
        fastest: dict[Shape, Best] = {}
        for plan, shape, seconds in rows:
            key = _fullest_first(shape)
            if key not in fastest or seconds < fastest[key][1]:
                fastest[key] = (plan, seconds)
        return cls(fastest)

    def best(self, shape: Shape) -> Best | None:
        """The fastest plan on this placement; None if nothing that was measured fits on it.

        On a placement that was not measured a job runs as on the best measured one inside it and
        leaves the other GPUs idle. Where even that finds nothing, as a measured one whose nodes
        can be merged into these: LLaMA-30B on 24 GPUs was measured on six half nodes only, and
        three whole ones are no slower.
        """
        key = _fullest_first(shape)
        if key not in self._known:
            self._known[key] = self._best(key)
        return self._known[key]

    def _best(self, shape: Shape) -> Best | None:
        if shape in self.fastest:
            return self.fastest[shape]
        for fits in (_inside, _merged_into):
            found = [best for known, best in self.fastest.items() if fits(known, shape)]
            if found:
                return min(found, key=lambda best: best[1])
        return None

    def rates(self, gpus_per_node: int, max_gpus: int) -> Floats:
        """Iterations per second of the best plan at widths 0..K: on one node, and across nodes.

        Across nodes means full nodes and the rest on one more; a width that would fit on one node
        counts at its best split over two. 0 where that is impossible or nothing fits.
        """
        table = np.zeros((2, max_gpus + 1))
        for width in range(1, max_gpus + 1):
            if width <= gpus_per_node:
                splits = [(width - few, few) for few in range(1, width // 2 + 1)]
                table[:, width] = self._rate((width,)), max(map(self._rate, splits), default=0.0)
            else:
                whole, rest = divmod(width, gpus_per_node)
                table[1, width] = self._rate((gpus_per_node,) * whole + (rest,) * (rest > 0))
        return table

    def _rate(self, shape: Shape) -> float:
        best = self.best(shape)
        return 0.0 if best is None else 1.0 / best[1]


def _fullest_first(shape: Shape) -> Shape:
    return tuple(sorted((count for count in shape if count), reverse=True))


def _inside(small: Shape, large: Shape) -> bool:
    """Whether every node of one finds a node of the other to itself, with as many GPUs."""
    return len(small) <= len(large) and all(a <= b for a, b in zip(small, large, strict=False))


def _merged_into(small: Shape, large: Shape) -> bool:
    """Whether the nodes of one can be put onto those of the other, several onto one (first fit)."""
    free = list(large)
    for count in small:
        room = next((n for n, gpus in enumerate(free) if gpus >= count), None)
        if room is None:
            return False
        free[room] -= count
    return True
