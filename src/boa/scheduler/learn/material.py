"""Marks of classes: by these a plan is found to be out of date."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from boa.model.speedup import Floats
from boa.scheduler.learn.class_knowledge import Known
from boa.units import GpuName, PerHour, Seconds

MATERIAL = 0.05
"""The whole training at some offered width takes so much longer or shorter than it did at the last
plan: that is material. So is a new width, type, weight or number of epochs."""
MATERIAL_COUNTED = 0.20
"""The same for the rate of arrivals and the rescaling time, which come one by one."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A class as it was when its plan was last called out of date."""

    shape: tuple[object, ...]
    times: Mapping[GpuName, Floats]
    """As offered to a plan, then as hoped for by trials: a hope that was wrong ends its trial."""
    per_hour: PerHour
    rescale_s: Seconds
    payers: Mapping[str, float]
    """Parts of its jobs by who pays for them."""

    def differs(self, other: "Mark") -> bool:
        return (
            self.shape != other.shape
            or _apart(self.per_hour, other.per_hour) > MATERIAL_COUNTED
            or _apart(self.rescale_s, other.rescale_s) > MATERIAL_COUNTED
            or any(
                abs(share - other.payers.get(payer, 0.0)) > MATERIAL_COUNTED
                for payer, share in self.payers.items()
            )
            or any(
                float(np.abs(times / other.times[gpu] - 1.0).max()) > MATERIAL
                for gpu, times in self.times.items()
            )
        )


def _apart(one: float, other: float) -> float:
    return abs(one - other) / max(one, other) if one != other else 0.0


def mark_of(known: Known, at: Seconds) -> Mark:
    picture = known.picture
    offered = tuple(
        (gpu, curve.widths, picture.hoped[gpu].widths) for gpu, curve in picture.curves.items()
    )
    return Mark(
        (offered, known.epochs, known.weight, tuple(sorted(known.payers.weights))),
        {gpu: np.append(picture.times[gpu], hopes) for gpu, hopes in picture.hopes.items()},
        known.arrivals.per_hour(at),
        known.rescale_s,
        known.payers.shares(),
    )
