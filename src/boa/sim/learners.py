"""Beliefs about a job's speed, and the batch size at which it therefore runs.

Every learner gives the policy its predictions and the simulator the true pace that follows from
the batch sizes chosen by them. Three kinds: a job that learns alone, from nothing, as in Pollux
and Sia; a class whose jobs share what they learn, from one earlier job on; and one that knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from boa.goodput import belief
from boa.goodput.learning import StepTime, learn
from boa.goodput.throughput import Throughput
from boa.goodput.tuning import (
    Limits,
    Setting,
    best_setting,
    first_setting,
    gains_of,
    rate_table,
)
from boa.model.cluster import Shape
from boa.model.speedup import Floats
from boa.sim.physics import AdaptiveTruth, Truth
from boa.units import GpuName

MOST_TABLES, MOST_SETTINGS = 20_000, 500_000
"""Kept of what was worked out before; a run that needs more begins again."""


@dataclass(frozen=True, slots=True)
class TrueRates:
    """True rates of progress from one epoch on, as long as nothing changes."""

    first: int
    rates: list[float]
    end: int = field(init=False)
    """One past the last epoch that it tells of."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "end", self.first + len(self.rates))


class Learner(Protocol):
    """A job's (or a class's) knowledge: `Prediction` for the policy, `pace` for the simulator."""

    def rates(self, gpu: GpuName, epoch: int) -> Floats | None: ...

    def pace(self, gpu: GpuName, shape: Shape, epoch: int) -> TrueRates: ...


class Fits:
    """Results worked out before, by what they were worked out from.

    Jobs of a class often see the same, and each would fit, tune and tabulate it again.
    """

    def __init__(self) -> None:
        self._models: dict[tuple[str, GpuName, frozenset[StepTime]], Throughput] = {}
        self._settings: dict[tuple[object, ...], Setting] = {}
        self._tables: dict[tuple[object, ...], Floats] = {}

    def model(self, application: str, gpu: GpuName, samples: frozenset[StepTime]) -> Throughput:
        key = (application, gpu, samples)
        if key not in self._models:
            if len(self._models) >= MOST_TABLES:
                self._models.clear()
            self._models[key] = learn(sorted(samples, key=order))
        return self._models[key]

    def setting(
        self, model: Throughput, gradients: tuple[float, float], limits: Limits, shape: Shape
    ) -> Setting:
        nodes, gpus = len(shape), sum(shape)
        key = (model, gradients, limits, nodes > 1, gpus)
        known = self._settings.get(key)
        if known is None:
            if len(self._settings) >= MOST_SETTINGS:
                self._settings.clear()
            gains = gains_of(limits.base_batch, *gradients)
            known = best_setting(model, gains, limits, nodes=nodes, gpus=gpus)
            self._settings[key] = known
        return known

    def table(
        self, model: Throughput, gradients: tuple[float, float], limits: Limits, widest: int
    ) -> Floats:
        key = (model, gradients, limits)
        known = self._tables.get(key)
        if known is None:
            if len(self._tables) >= MOST_TABLES:
                self._tables.clear()
            gains = gains_of(limits.base_batch, *gradients)
            known = self._tables[key] = rate_table(model, gains, limits, widest)
        return known


def order(sample: StepTime) -> tuple[int, int, int]:
    return sample.nodes, sample.gpus, sample.local_batch


class JobLearner:
    """One job that fits its own model to what it has run.

    It starts knowing nothing, or, `profiled`, how one GPU of every type does: as Sia's jobs do.
    """

    def __init__(
        self,
        truth: AdaptiveTruth,
        fits: Fits,
        *,
        batch_cap: int | None = None,
        rigid_batch: int | None = None,
        profiled: bool = False,
    ) -> None:
        self.truth, self.fits = truth, fits
        self._cap, self._rigid = batch_cap, rigid_batch
        self._samples: dict[GpuName, dict[tuple[int, int, int], StepTime]] = {}
        self._models: dict[GpuName, Throughput] = {}
        self._gradients: tuple[float, float] | None = None
        self._tables: dict[GpuName, tuple[Throughput, tuple[float, float], Floats]] = {}
        self._last: tuple[object, object, object, TrueRates] | None = None
        if profiled:
            for gpu in truth.limits:
                self._observe(gpu, (1,), first_setting(truth.limits[gpu], 1))
            self._gradients = truth.seen(0, truth.convergence.base_batch).gradients

    def rates(self, gpu: GpuName, epoch: int) -> Floats | None:
        model, gradients = self._models.get(gpu), self._gradients
        if model is None or gradients is None:
            return None
        known = self._tables.get(gpu)
        if known is None or known[0] is not model or known[1] is not gradients:
            limits = _capped(self.truth.limits[gpu], self._cap)
            widest = min(self.truth.widest(gpu), limits.max_gpus)
            table = self.fits.table(model, gradients, limits, widest)
            known = self._tables[gpu] = (model, gradients, table)
        return known[2]

    def pace(self, gpu: GpuName, shape: Shape, epoch: int) -> TrueRates:
        """One epoch at a time: what it shows may change the next batch size."""
        key = (gpu, shape, epoch)
        known = self._last
        model, gradients = self._models.get(gpu), self._gradients
        if known and known[0] == key and known[1] is model and known[2] is gradients:
            return known[3]
        setting = self._setting(gpu, shape)
        seen = self.truth.seen(epoch, setting.total(sum(shape)))
        if self._gradients != seen.gradients:
            self._gradients = seen.gradients
        self._observe(gpu, shape, setting)
        pace = TrueRates(epoch, [self.truth.rate(gpu, shape, setting, seen.worth)])
        if self._models[gpu] is model and self._gradients is gradients:
            self._last = (key, model, gradients, pace)  # nothing new: so it will go on
        return pace

    def _setting(self, gpu: GpuName, shape: Shape) -> Setting:
        limits, model = self.truth.limits[gpu], self._models.get(gpu)
        if self._rigid is not None:
            wide = replace(limits, max_local=max(limits.max_local, self._rigid))
            return first_setting(wide, sum(shape), self._rigid)
        if model is None or self._gradients is None:
            return first_setting(limits, sum(shape))
        return self.fits.setting(model, self._gradients, limits, shape)

    def _observe(self, gpu: GpuName, shape: Shape, setting: Setting) -> None:
        seen = self._samples.setdefault(gpu, {})
        key = (len(shape), sum(shape), setting.local_batch)
        if key not in seen:
            seen[key] = StepTime(*key, *self.truth.timings[gpu].times(shape, setting.local_batch))
            samples = frozenset(seen.values())
            self._models[gpu] = self.fits.model(self.truth.application, gpu, samples)


def _capped(limits: Limits, cap: int | None) -> Limits:
    if cap is None or cap >= limits.max_batch:
        return limits
    return Limits(
        base_batch=limits.base_batch,
        max_batch=max(cap, limits.base_batch),
        min_local=limits.min_local,
        max_local=limits.max_local,
    )


class PerfectLearner:
    """Knows the truth; with noise, a truth that is off by a fixed factor at every width.

    A width that has been run is known from the next refresh on: noise is what nobody has tried yet.
    """

    def __init__(
        self, truth: Truth, noise: Mapping[GpuName, Floats] | None = None, size: float = 0.0
    ) -> None:
        """`size`: the noise's standard deviation, which whoever plans knows of."""
        self.truth, self._size = truth, size
        self.version = 1
        self._noise = {gpu: factors.copy() for gpu, factors in (noise or {}).items()}
        self._tables: dict[GpuName, Floats] = {}
        self._paces: dict[tuple[GpuName, Shape], TrueRates] = {}
        self._ran: dict[GpuName, set[int]] = {}
        self._forecasts: dict[GpuName, tuple[Floats, Floats]] = {}

    def refresh(self) -> None:
        """Take what has been run for what it is."""
        for gpu, widths in self._ran.items():
            if gpu in self._noise:
                self._noise[gpu][list(widths)] = 1.0
                self._tables.pop(gpu, None)
                self._forecasts.pop(gpu, None)
                self.version += 1
        self._ran.clear()

    def rates(self, gpu: GpuName, epoch: int) -> Floats | None:
        if not self.truth.widest(gpu):
            return None
        table = self.table(gpu)
        return table[min(epoch, len(table) - 1)]  # type: ignore[no-any-return]

    def table(self, gpu: GpuName) -> Floats:
        table = self._tables.get(gpu)
        if table is None:
            table = self.truth.rates(gpu)
            if gpu in self._noise:
                table = table * self._noise[gpu][: table.shape[-1]]
            self._tables[gpu] = table
        return table

    def forecast(self, gpu: GpuName, gpus_per_node: int) -> tuple[Floats, Floats]:
        """Every epoch's rates as a plan should expect them, and as a trial may find them.

        A prediction that is known to be off by so much is worth what its neighbours make of it.
        """
        known = self._forecasts.get(gpu)
        if known is None:
            table = self.table(gpu)
            known = (table, table)
            if gpu in self._noise and self._size:
                exact = self._noise[gpu][: table.shape[-1]] == 1.0
                known = smoothed(table, gpus_per_node, self._size, exact)
            self._forecasts[gpu] = known
        return known

    def pace(self, gpu: GpuName, shape: Shape, epoch: int) -> TrueRates:
        found = self._paces.get((gpu, shape))
        if found is None:
            found = self._paces[gpu, shape] = TrueRates(0, self.truth.best_on(gpu, shape))
            if gpu in self._noise and self._noise[gpu][sum(shape)] != 1.0:
                self._ran.setdefault(gpu, set()).add(sum(shape))
        return found


def noise_factors(
    size: float, gpus: Mapping[GpuName, int], seed: int, name: str
) -> dict[GpuName, Floats]:
    """Lognormal factors by GPU type and width; the same for a class in every run of a seed."""
    factors = {}
    for gpu in sorted(gpus):
        spawn = [seed, *name.encode(), 0, *gpu.encode()]
        factors[gpu] = np.exp(size * np.random.default_rng(spawn).standard_normal(65))
    return factors


def smoothed(
    table: Floats, gpus_per_node: int, size: float, exact: "NDArray[np.bool_]"
) -> tuple[Floats, Floats]:
    """Expected and hoped rates of a table (epochs × 2 × (K + 1)) whose every width is off by a
    factor of its own, with this standard deviation of its logarithm, unless it is `exact`."""
    widths = np.arange(table.shape[-1], dtype=float)
    packed = np.where(widths <= gpus_per_node, table[:, 0], table[:, 1])
    runs = np.flatnonzero((packed > 0).all(axis=0))
    if not len(runs):
        return table, table
    logs = -np.log((1.0 / packed[:, runs]).mean(axis=0))
    at, prior = belief.places(widths[runs], gpus_per_node), belief.amdahl(widths[runs])
    found = belief.believed(at, prior, logs - prior, at, np.where(exact[runs], 0.0, size))
    expected, hoped = np.array(table), np.array(table)
    expected[..., runs] *= np.exp(found.expected - logs)
    hoped[..., runs] *= np.exp(found.hoped - logs)
    return expected, hoped
