"""Jobs that keep the batch size that their users asked for, as in systems that cannot tune it.

Their steps are known from the start, by what was measured: such systems profile every model before
it runs, or are given its times. Work is counted in iterations, and an epoch takes whole seconds,
as in the simulators that these systems were published with.
"""

from dataclasses import replace

import numpy as np

from boa.catalogue.calibration import RIGID_BATCH
from boa.catalogue.rates import typical_shape
from boa.goodput.tuning import Limits, Setting, first_setting
from boa.model.cluster import Shape
from boa.model.speedup import Floats
from boa.model.trace import TraceJob
from boa.policy.rivals.common import WIDEST
from boa.sim.learners import TrueRates
from boa.sim.physics import AdaptiveTruth
from boa.units import GpuName, Seconds


def asked_batch(truth: AdaptiveTruth, asked: TraceJob) -> int:
    """Batch size of a job for life: its user's, or the base one on every GPU asked for."""
    batch = asked.batch_size or truth.convergence.base_batch * (asked.gpus or 1)
    return min(max(batch, truth.convergence.base_batch), truth.convergence.max_batch)


class RigidLearner:
    """Jobs of one class at one batch size; `widest`: GPUs that their users asked for."""

    version = 1

    def __init__(self, truth: AdaptiveTruth, batch: int, widest: int = 1) -> None:
        self.truth, self.batch = truth, batch
        self.work: list[float] = truth.convergence.iterations(batch).tolist()
        self._widest = widest
        self._tables: dict[GpuName, Floats] = {}
        self._paces: dict[tuple[GpuName, Shape], TrueRates] = {}

    def rates(self, gpu: GpuName, epoch: int) -> Floats | None:
        """Iterations per second; a single GPU is taken to need two passes at least, as by Optimus:
        they tell the gradient's variance."""
        if gpu not in self.truth.limits:
            return None
        known = self._tables.get(gpu)
        if known is None:
            known = self._tables[gpu] = self._table(gpu)
        return known

    def pace(self, gpu: GpuName, shape: Shape, epoch: int) -> TrueRates:
        shape = tuple(sorted(shape, reverse=True))  # as they are given out: the emptiest first
        known = self._paces.get((gpu, shape))
        if known is None:
            setting = first_setting(self._limits(gpu), sum(shape), self.batch)
            seconds, total = self._seconds(gpu, shape, setting), setting.total(sum(shape))
            rates = [self.truth.seen(at, total).worth / seconds for at in range(self.truth.epochs)]
            known = self._paces[gpu, shape] = TrueRates(0, rates)
        return known

    def most_gpus(self, gpu: GpuName) -> int:
        """More have no samples to work on, or were never measured."""
        alone = self.truth.application in RIGID_BATCH
        possible = 1 if alone else self.batch // self.truth.limits[gpu].min_local
        possible = max(possible, self._widest, 1)
        return min(possible, self.truth.measured_to[gpu], WIDEST)

    def _limits(self, gpu: GpuName) -> Limits:
        """A model that is only ever trained on one GPU may fill it, as it was measured there."""
        limits = self.truth.limits[gpu]
        rigid = RIGID_BATCH.get(self.truth.application, 0)
        return replace(limits, max_local=max(limits.max_local, rigid))

    def _table(self, gpu: GpuName) -> Floats:
        limits, per_node = self._limits(gpu), self.truth.gpus_per_node[gpu]
        table = np.zeros((2, self.most_gpus(gpu) + 1))
        for width in range(1, table.shape[1]):
            setting = first_setting(limits, width, self.batch)
            if width == 1 and not setting.passes:
                setting = Setting(-(-setting.local_batch // 2), 1)
            for row in (0, 1):
                if row or width <= per_node:
                    shape = typical_shape(width, per_node, across=bool(row))
                    table[row, width] = 1.0 / self._seconds(gpu, shape, setting)
        return table

    def _seconds(self, gpu: GpuName, shape: Shape, setting: Setting) -> Seconds:
        """Seconds of one iteration."""
        step, one_pass = self.truth.timings[gpu].published(shape, setting.local_batch)
        return (step + one_pass * setting.passes) * self.truth.slowdown
