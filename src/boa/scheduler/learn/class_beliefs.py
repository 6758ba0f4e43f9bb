"""Beliefs about jobs, by what is known of their classes (see `beliefs.Beliefs`)."""

from collections.abc import Mapping
from dataclasses import dataclass

from boa.model.cluster import Prediction
from boa.model.job import JobRecord
from boa.model.placements import Placement
from boa.model.service import ClassPrior
from boa.model.speedup import Floats
from boa.model.streams import class_of
from boa.model.workload import GpuType
from boa.scheduler.learn.bars import NO_BARS
from boa.scheduler.learn.beliefs import Believed
from boa.scheduler.learn.class_knowledge import Known
from boa.scheduler.learn.measurements import units_before
from boa.units import GpuName, Seconds


@dataclass(frozen=True, slots=True, eq=False)
class _Predicted:
    """A class's rates as they were when it was asked for."""

    tables: Mapping[GpuName, Floats]

    def rates(self, gpu: GpuName, epoch: int) -> Floats | None:
        table = self.tables.get(gpu)
        return None if table is None else table[min(epoch, len(table) - 1)]


class ClassBeliefs:
    def __init__(
        self, gpu_types: Mapping[GpuName, GpuType], priors: Mapping[str, ClassPrior]
    ) -> None:
        self.gpu_types, self._priors = gpu_types, priors
        self._known: dict[str, Known] = {}
        self._predictions: dict[str, tuple[object, _Predicted]] = {}

    def prediction(self, job_class: str) -> Prediction:
        """On types that were tried, or that a profile tells of; nothing of an unknown class."""
        known = self._known.get(job_class)
        if known is None:
            return _Predicted({})
        picture, cached = known.picture, self._predictions.get(job_class)
        if cached is None or cached[0] is not picture:
            told = picture.tables if known.profile is not None else known.tried
            tables = {gpu: table for gpu, table in picture.tables.items() if gpu in told}
            cached = self._predictions[job_class] = (picture, _Predicted(tables))
        return cached[1]

    def tried(self, job_class: str) -> Mapping[GpuName, int]:
        """The most GPUs of each type that jobs of the class have made progress on.

        A profile that counts as measured stands for jobs that have tried all its widths.
        """
        known, prior = self._known.get(job_class), self._priors.get(job_class)
        if known is None:
            return {}
        if prior is not None and prior.profile is not None and prior.measured_weight > 0:
            return {gpu: table.shape[2] - 1 for gpu, table in prior.profile.rates.items()}
        return known.tried

    def kin(self, job: JobRecord) -> str:
        return job.job_class

    def of(self, job: JobRecord) -> Believed:
        name = job.job_class
        epochs, rescale_s = self.epochs(name), self.rescale_s(name)
        known = self._known.get(name)
        bars = NO_BARS if known is None else known.picture.bars
        saves = None if known is None else known.saving.believed
        return Believed(epochs, self.prediction(name), rescale_s, self.tried(name), bars, saves)

    def worked(self, job: JobRecord) -> frozenset[Placement]:
        known = self._known.get(job.job_class)
        found = {*job.worked, *(() if known is None else known.placements.worked)}
        return frozenset(place for place in found if place.gpu in self.gpu_types)

    @property
    def left_passes(self) -> bool:
        return False

    def left(self, job: JobRecord) -> float:
        """Part of its current epoch."""
        known = self._known.get(job.job_class)
        if known is None:
            return 1.0
        work = known.picture.units
        units = work[min(job.epoch, len(work) - 1)]
        if job.total_work is not None:
            units *= job.total_work / sum(work)
        if job.total is not None and job.epoch >= len(work):  # more epochs than its class has
            left = job.total - units_before(work, job.epoch) - job.progress
            return min(max(left / units, 0.0), 1.0)
        left = max(units - job.progress, 0.0)
        whole = left + job.progress
        return left / whole if whole > 0 else 1.0

    def rescale_s(self, job_class: str) -> Seconds:
        known = self._known.get(job_class)
        return 0.0 if known is None else known.rescale_s

    def epochs(self, job_class: str) -> int:
        known = self._known.get(job_class)
        return 1 if known is None else known.epochs

    def units(self, stream: str) -> tuple[float, ...]:
        """Expected of every epoch; none where neither its jobs nor their specs told a total."""
        known = self._known.get(class_of(stream))
        return () if known is None or not known.knows_work else known.picture.units

    def work(self, job: JobRecord) -> tuple[float, ...]:
        """Return a job's units by epoch, by its own total where it has one; none: unknown."""
        known = self._known.get(job.job_class)
        if known is None or (job.total_work is None and not known.knows_work):
            return ()
        return self._supposed(job)

    def _supposed(self, job: JobRecord) -> tuple[float, ...]:
        """Return a job's units by epoch, supposed where they are unknown."""
        known, total = self._known.get(job.job_class), job.total_work
        units = () if known is None else known.picture.units
        if total is None or not units:
            return units
        scale = total / sum(units)
        return tuple([scale * unit for unit in units])

    def remaining(self, job: JobRecord) -> tuple[float, ...]:
        """Units that are expected to be left, by epoch, from the job's current one on."""
        work = self._supposed(job)
        left = work[min(job.epoch, len(work) - 1) :]
        return (max(left[0] - job.progress, 0.0), *left[1:]) if left else ()
