"""The protocol behind which jobs are learned from: the profiler's when live, a simulation's own."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from boa.model.cluster import Prediction
from boa.model.job import JobRecord
from boa.model.placements import FailedPlacement, Placement
from boa.model.records import Report
from boa.model.workload import Workload
from boa.scheduler.learn.bars import NO_BARS, Bars
from boa.scheduler.learn.rescaling import Told
from boa.units import GpuName, Seconds


class Believed(NamedTuple):
    """Beliefs about a job's speed, as a policy is shown them."""

    epochs: int
    prediction: Prediction
    rescale_s: Seconds
    tried: Mapping[GpuName, int]
    """The most GPUs of each type that progress was made on."""
    bars: Bars = NO_BARS
    """Placements that such jobs are kept off."""
    saves: bool | None = None
    """Whether stops keep the work of such jobs: True, known; None, a job's own word counts; False,
    it does not, since stops have lost work."""


class Beliefs(Protocol):
    """Told what jobs do; asked what to expect of them."""

    def arrived(self, job: JobRecord, now: Seconds) -> None: ...

    def reported(self, job: JobRecord, before: Report | None, report: Report) -> None: ...

    def epoch_done(self, job: JobRecord, epoch: int, units: float) -> None: ...

    def rescaled(self, job: JobRecord, what: Told) -> None: ...

    def ended(self, job: JobRecord, now: Seconds) -> None: ...

    def failed(
        self, job: JobRecord, found: FailedPlacement, began: Seconds, *, counted: bool
    ) -> None:
        """A run that began then failed by itself. `counted`: as a failure of the job's."""
        ...

    def worked(self, job: JobRecord) -> AbstractSet[Placement]:
        """Placements that there can be, at which this job or one of its like made progress."""
        ...

    def look(self, now: Seconds) -> None:
        """Time has passed: something may be tried again."""
        ...

    def kin(self, job: JobRecord) -> Hashable:
        """Jobs of one kin are believed the same of, and asked about once."""
        ...

    def of(self, job: JobRecord) -> Believed: ...

    @property
    def left_passes(self) -> bool:
        """Whether `left` changes though the record and what is believed do not."""
        ...

    def left(self, job: JobRecord) -> float:
        """Part of its current epoch that is still to be done."""
        ...

    def work(self, job: JobRecord) -> Sequence[float]:
        """Progress that each of its epochs takes, in the units of its prediction; empty: nobody
        knows."""
        ...

    # The forecast that plans are made from (`scheduler/plan/planning.py`)

    @property
    def version(self) -> int: ...

    def workload(self, now: Seconds, active: Collection[str] | None = None) -> Workload | None: ...

    def units(self, stream: str) -> tuple[float, ...]: ...
