"""Samples by column, where there are too many for a record each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from boa.model.held import Floats
from boa.model.records import Sample
from boa.units import GpuName


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """Samples by column, by time: a month has 43,000."""

    at: Floats
    every_s: Floats
    budget: Floats
    wanted: Mapping[GpuName, Floats]
    active: Floats
    waiting: Floats

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> "Sampled":
        """From records, where there are few."""
        names = sorted({gpu for sample in samples for gpu in sample.wanted})
        return cls(
            at=np.array([sample.at for sample in samples], dtype=float),
            every_s=np.array([sample.every_s for sample in samples], dtype=float),
            budget=np.array([sample.budget for sample in samples], dtype=float),
            wanted={gpu: np.array([s.wanted.get(gpu, 0) for s in samples], float) for gpu in names},
            active=np.array([sample.active for sample in samples], dtype=float),
            waiting=np.array([sample.waiting for sample in samples], dtype=float),
        )
