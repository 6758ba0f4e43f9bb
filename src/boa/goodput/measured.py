"""True step times: interpolated in what was measured, placement by placement.

A placement that was measured itself is interpolated in the local batch size alone. Any other goes
by its numbers of nodes and GPUs: linear in the batch size, then in the GPUs among placements on as
many nodes, then in the nodes. Outside of what was measured, the nearest counts.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from boa.goodput.simplices import SimplexTimes
from boa.goodput.throughput import Throughput, times_on
from boa.goodput.timing import Curve, Times
from boa.model.cluster import Shape


@dataclass(frozen=True)
class MeasuredTimes:
    """One model on one GPU type, as it was measured."""

    placements: Mapping[Shape, Curve]
    """Curves by placement, each rotated to be the smallest."""
    counts: Mapping[int, Mapping[int, Curve]]
    """Nodes -> GPUs -> curve."""
    _known: dict[tuple[Shape, int], Times] = field(default_factory=dict, compare=False, repr=False)

    def times(self, shape: Shape, local_batch: int) -> Times:
        found = self._known.get((shape, local_batch))
        if found is None:
            found = self._known[shape, local_batch] = self._times(shape, local_batch)
        return found

    def published(self, shape: Shape, local_batch: int) -> Times:
        measured = self.placements.get(smallest_rotation(shape))
        if measured is not None:
            return measured.at(local_batch)
        return self._simplices.times(shape, local_batch)

    @cached_property
    def _simplices(self) -> SimplexTimes:
        return SimplexTimes(self.counts, self)

    def __getstate__(self) -> dict[str, object]:
        """Without what was worked out."""
        return {"placements": self.placements, "counts": self.counts, "_known": {}}

    def _times(self, shape: Shape, local_batch: int) -> Times:
        measured = self.placements.get(smallest_rotation(shape))
        if measured is not None:
            return measured.at(local_batch)
        nodes, gpus = len(shape), sum(shape)
        by_nodes = {
            n: _between(
                {g: curve.at(local_batch) for g, curve in _around(self.counts[n], gpus).items()},
                gpus,
            )
            for n in _around(self.counts, nodes)
        }
        return _between(by_nodes, nodes)


@dataclass(frozen=True, slots=True)
class FittedTimes:
    """One model on one GPU type, where only the fitted constants are known."""

    model: Throughput

    def times(self, shape: Shape, local_batch: int) -> Times:
        return times_on(self.model, len(shape), sum(shape), local_batch)

    def published(self, shape: Shape, local_batch: int) -> Times:
        return self.times(shape, local_batch)


def smallest_rotation(shape: Shape) -> Shape:
    """How the profiles write a placement: nodes stand in a ring, so any may come first."""
    return min(shape[n:] + shape[:n] for n in range(len(shape))) if len(shape) > 1 else shape


def _around(known: Mapping[int, "Curve | Mapping[int, Curve]"], wanted: int) -> dict[int, Curve]:
    """The entries at or on both sides of a number."""
    keys = sorted(known)
    right = bisect_left(keys, wanted)
    if right < len(keys) and keys[right] == wanted:
        chosen = [wanted]
    else:
        chosen = [keys[n] for n in (right - 1, right) if 0 <= n < len(keys)]
    return {key: known[key] for key in chosen}  # type: ignore[misc]


def _between(points: Mapping[int, Times], wanted: int) -> Times:
    keys = sorted(points)
    if len(keys) == 1:
        return points[keys[0]]
    low, high = keys
    mix = (wanted - low) / (high - low)
    (step_a, pass_a), (step_b, pass_b) = points[low], points[high]
    return step_a + mix * (step_b - step_a), pass_a + mix * (pass_b - pass_a)
