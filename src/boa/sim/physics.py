"""How fast jobs really run: what the simulator knows and no policy does."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from boa.catalogue.rates import best_rates, iteration_times, widest_measured
from boa.goodput.efficiency import Convergence, gain
from boa.goodput.plans import PlanTimes
from boa.goodput.timing import Timing
from boa.goodput.tuning import Limits, Setting, gains_of, grid
from boa.model.cluster import Shape
from boa.model.job import GpuLimits
from boa.model.profile import ClassProfile
from boa.model.speedup import Floats
from boa.model.trace import TraceJob
from boa.policy.rivals.autoscale import base_width
from boa.policy.rivals.common import WIDEST
from boa.units import GpuName, Seconds

MOST_GRIDS = 256
"""Grids of batch sizes whose gains are kept: the same few are asked for again and again."""


class Truth(Protocol):
    """One class of jobs, as it is."""

    @property
    def name(self) -> str: ...

    @property
    def rescale_s(self) -> Seconds: ...

    def work(self, asked: TraceJob) -> Floats:
        """Progress that each epoch of this job takes."""
        ...

    def widest(self, gpu: GpuName) -> int:
        """The most GPUs of a type that it can use; 0 if it cannot run there."""
        ...

    def best_on(self, gpu: GpuName, shape: Shape) -> list[float]:
        """The best true rate of every epoch on exactly this placement."""
        ...

    def rates(self, gpu: GpuName) -> Floats:
        """True best rates of progress, epochs × 2 × (K + 1), as `Prediction.rates`."""
        ...

    def base_rates(self, gpu: GpuName) -> list[float]:
        """The true best rate of every epoch at the smallest width that can run."""
        ...


def gpu_limits(rates: Mapping[GpuName, Floats]) -> GpuLimits:
    """GPUs that a job with these rates (epochs × 2 × (K + 1)) can run on, in every epoch."""
    found = [np.flatnonzero(table.max(axis=1).min(axis=0) > 0) for table in rates.values()]
    widths = [possible for possible in found if len(possible)]
    return GpuLimits(
        min=int(min(possible[0] for possible in widths)),
        max=int(max(possible[-1] for possible in widths)),
        types=tuple(rates),
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """An epoch's measurements at one batch size."""

    gradients: tuple[float, float]
    """(grad_sqr, grad_var)."""
    worth: float
    """Progress that an iteration makes."""


@dataclass(frozen=True, kw_only=True)
class AdaptiveTruth:
    """A data-parallel model whose batch size is tuned as it runs."""

    name: str
    application: str
    rescale_s: Seconds
    slowdown: float
    """How much slower than its profile it runs."""
    convergence: Convergence
    timings: Mapping[GpuName, Timing]
    limits: Mapping[GpuName, Limits]
    measured_to: Mapping[GpuName, int]
    """The widest placement measured on each type."""
    gpus_per_node: Mapping[GpuName, int]

    def work(self, asked: TraceJob) -> Floats:
        return self.convergence.epoch_progress

    @cached_property
    def epochs(self) -> int:
        return len(self.convergence.progress)

    def widest(self, gpu: GpuName) -> int:
        if gpu not in self.limits:
            return 0
        return widest_measured(self.limits[gpu], self.measured_to[gpu])

    def gains(self, totals: Floats) -> Floats:
        """Worth of an iteration at these total batch sizes, epochs × …"""
        key = (totals.__array_interface__["data"][0], totals.shape)
        known = self._gains.get(key)
        if known is None:
            if len(self._gains) >= MOST_GRIDS:
                self._gains.clear()
            worth = gain(self.convergence, totals.reshape(-1)).reshape(self.epochs, *totals.shape)
            known = self._gains[key] = (totals, worth)  # held, so the address stays theirs
        return known[1]

    @cached_property
    def _gains(self) -> dict[object, tuple[Floats, Floats]]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """Without what was worked out: some of it goes by addresses of this process."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def seen(self, epoch: int, total: int) -> Seen:
        known = self._seen.get((epoch, total))
        if known is None:
            gradients = self.convergence.statistics(epoch, total)
            worth = gains_of(self.convergence.base_batch, *gradients)(np.array([float(total)]))
            known = self._seen[epoch, total] = Seen(gradients, float(worth[0]))
        return known

    @cached_property
    def _seen(self) -> dict[tuple[int, int], Seen]:
        return {}

    def rate(self, gpu: GpuName, shape: Shape, setting: Setting, worth: float) -> float:
        """Progress per second at a setting whose iterations are worth so much."""
        step, accumulation = self.timings[gpu].times(shape, setting.local_batch)
        return worth / (step + accumulation * setting.passes) / self.slowdown

    def rates(self, gpu: GpuName) -> Floats:
        known = self._tables.get(gpu)
        if known is None:
            known = self._tables[gpu] = self._rates(gpu)
        return known

    @cached_property
    def _tables(self) -> dict[GpuName, Floats]:
        return {}

    def base_rates(self, gpu: GpuName) -> list[float]:
        return self.best_on(gpu, (1,))

    def best_on(self, gpu: GpuName, shape: Shape) -> list[float]:
        """The best true rate of every epoch on exactly this placement."""
        width, limits, widest = sum(shape), self.limits[gpu], self.widest(gpu)
        options = grid(limits, max(width, widest))
        worth = self.gains(options.total[width - 1]) * options.allowed[width - 1]
        seconds = iteration_times(self.timings[gpu], limits, shape, widest)
        return [float(rate) for rate in (worth / seconds).max(axis=1) / self.slowdown]

    def _rates(self, gpu: GpuName) -> Floats:
        """The best over all candidate batch sizes, by the true times."""
        table = best_rates(
            self.timings[gpu],
            self.limits[gpu],
            self.gains,
            widest=self.widest(gpu),
            gpus_per_node=self.gpus_per_node[gpu],
        )
        return np.asarray(table / self.slowdown)


@dataclass(frozen=True, kw_only=True)
class PlanTruth:
    """A model of fixed batch size under the best execution plan for its placement."""

    name: str
    application: str
    rescale_s: Seconds
    slowdown: float
    plans: Mapping[GpuName, PlanTimes]
    gpus_per_node: Mapping[GpuName, int]

    def work(self, asked: TraceJob) -> Floats:
        assert asked.steps is not None
        return np.array([float(asked.steps)])

    def widest(self, gpu: GpuName) -> int:
        return WIDEST if gpu in self.plans else 0

    def rates(self, gpu: GpuName) -> Floats:
        table = self.plans[gpu].rates(self.gpus_per_node[gpu], WIDEST)
        return table[None] / self.slowdown

    def base_rates(self, gpu: GpuName) -> list[float]:
        rates = self.rates(gpu)[0]
        base = base_width(rates)
        return [float(rates[:, base].max()) if base is not None else 0.0]

    def best_on(self, gpu: GpuName, shape: Shape) -> list[float]:
        return [self.rate(gpu, shape)]

    def rate(self, gpu: GpuName, shape: Shape) -> float:
        best = self.plans[gpu].best(shape)
        return 0.0 if best is None else 1.0 / best[1] / self.slowdown


@dataclass(frozen=True, kw_only=True)
class TableTruth:
    """A class whose rates are known by width, on one node and across nodes, and nothing else."""

    profile: ClassProfile
    scales: Mapping[str, float]
    """Work of each job over the profile's."""

    @property
    def name(self) -> str:
        return self.profile.name

    @property
    def rescale_s(self) -> Seconds:
        return self.profile.rescale_s

    def work(self, asked: TraceJob) -> Floats:
        return np.array(self.profile.work) * self.scales[asked.name]

    @property
    def mean_work(self) -> Floats:
        """Mean work of its jobs, by epoch."""
        return np.array(self.profile.work) * float(np.mean(list(self.scales.values())))

    def widest(self, gpu: GpuName) -> int:
        return self.profile.rates[gpu].shape[-1] - 1 if gpu in self.profile.rates else 0

    def rates(self, gpu: GpuName) -> Floats:
        return self.profile.rates[gpu]

    def base_rates(self, gpu: GpuName) -> list[float]:
        best = self.rates(gpu).max(axis=1)
        base = base_width(self.rates(gpu)[0])
        return [0.0 if base is None else float(rates[base]) for rates in best]

    def best_on(self, gpu: GpuName, shape: Shape) -> list[float]:
        rates, width = self.rates(gpu), sum(shape)
        if width >= rates.shape[-1]:
            return [0.0] * len(rates)
        return [float(rate) for rate in rates[:, int(len(shape) > 1), width]]
