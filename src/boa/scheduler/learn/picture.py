"""A class as a plan sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from boa.catalogue.estimate import Curves
from boa.model.speedup import Floats
from boa.scheduler.learn.bars import Bars
from boa.scheduler.learn.curves import Learned
from boa.units import GpuName


@dataclass(frozen=True, eq=False)
class Picture:
    """Consequences of all that is known, until that has changed."""

    learned: Learned
    tables: Mapping[GpuName, Floats]
    """Rates within the limits of the class, on the types that it may use."""
    curves: Mapping[GpuName, Curves]
    """Curves on the fewest nodes, at the widths that are offered to a plan."""
    expected: Mapping[GpuName, Curves]
    """The same, with the widths that a trial may try."""
    hoped: Mapping[GpuName, Curves]
    """The same, as a trial may find them."""
    work: Floats
    """Units of every epoch."""
    bars: Bars
    """Placements that jobs are kept off."""

    def widest(self, gpu: GpuName) -> int:
        """The widest that a plan or a trial may give."""
        trial = self.hoped[gpu] is not self.expected[gpu]
        return (self.hoped if trial else self.curves)[gpu].widths[-1]

    @cached_property
    def units(self) -> tuple[float, ...]:
        """The same as plain numbers."""
        return tuple(self.work.tolist())

    @property
    def times(self) -> dict[GpuName, Floats]:
        """Seconds of the whole training at every offered width."""
        return {gpu: self.work @ (1.0 / curve.rates) for gpu, curve in self.curves.items()}

    @property
    def hopes(self) -> dict[GpuName, Floats]:
        """Seconds of the whole training at every width that a trial may try, as it is hoped."""
        return {gpu: self.work @ (1.0 / self.hoped[gpu].rates) for gpu in self.curves}
