"""A class whose jobs share one model of their speed, corrected by what was measured."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from boa.catalogue.rates import typical_shape
from boa.goodput import belief
from boa.goodput.belief import Belief
from boa.goodput.efficiency import gain
from boa.goodput.learning import StepTime, learn
from boa.goodput.throughput import Throughput, accumulation_time, step_time
from boa.goodput.tuning import Setting, Stretch, best_settings, first_setting, grid, rate_table
from boa.model.cluster import Shape
from boa.model.speedup import Floats
from boa.sim.learners import TrueRates, order
from boa.sim.physics import AdaptiveTruth
from boa.units import GpuName

Errors: TypeAlias = dict[int, dict[int, float]]
"""Logarithms of measured over fitted time: width -> local batch -> error."""
BATCH_STEP = 0.1
"""As `belief.STEP`, over an octave of batch sizes at one width."""


class ClassLearner:
    """All jobs of a class share one model; one earlier job has tried two widths per octave.

    Where a width was run, the model is corrected by what was measured there: the fit says how
    speed changes between batch sizes and widths, the samples how fast it is at them.
    """

    def __init__(self, truth: AdaptiveTruth) -> None:
        self.truth = truth
        self.version = 0
        self._stale = True
        self._samples: dict[GpuName, dict[tuple[int, int, int], StepTime]] = {}
        self._models: dict[GpuName, Throughput] = {}
        self._tables: dict[GpuName, Floats] = {}
        self._stretches: dict[GpuName, Sequence[Stretch]] = {}
        self._forecasts: dict[GpuName, tuple[Floats, Floats]] = {}
        self._ran: dict[GpuName, set[tuple[int, int]]] = {}
        """Placements (0: one node) and widths that jobs have run at, by GPU type."""
        self._paces: dict[tuple[GpuName, Shape], TrueRates] = {}
        for gpu in truth.limits:
            self._try_widths(gpu)
        self.refresh()

    def refresh(self) -> None:
        """Fit again, if there is anything new."""
        if not self._stale:
            return
        for gpu, seen in self._samples.items():
            self._models[gpu] = learn(sorted(seen.values(), key=order))
        for known in (self._tables, self._paces, self._stretches, self._forecasts):
            known.clear()
        self._stale = False
        self.version += 1

    def rates(self, gpu: GpuName, epoch: int) -> Floats | None:
        if gpu not in self._models:
            return None
        table = self._tables.get(gpu)
        if table is None:
            table = self._tables[gpu] = self._table(gpu)
        return table[min(epoch, len(table) - 1)]  # type: ignore[no-any-return]

    def table(self, gpu: GpuName) -> Floats:
        """Every epoch's rates: epochs × 2 × (K + 1)."""
        self.rates(gpu, 0)
        return self._tables[gpu]

    def pace(self, gpu: GpuName, shape: Shape, epoch: int) -> TrueRates:
        found = self._paces.get((gpu, shape))
        if found is None:
            found = self._paces[gpu, shape] = self._pace(gpu, shape)
        return found

    def _pace(self, gpu: GpuName, shape: Shape) -> TrueRates:
        truth, gpus = self.truth, sum(shape)
        found = self._stretch(gpu)[int(len(shape) > 1)]
        settings = best_settings(
            self._models[gpu],
            truth.gains,
            truth.limits[gpu],
            nodes=len(shape),
            gpus=gpus,
            stretch=_row(found, gpus - 1) if gpus <= len(found.step) else None,
        )
        if gpus <= len(found.step):
            self._ran.setdefault(gpu, set()).add((int(len(shape) > 1), gpus))
        totals = np.array([float(s.total(gpus)) for s in settings])
        worth = np.diagonal(gain(truth.convergence, totals))
        for setting in set(settings):
            self._observe(gpu, shape, setting)
        each = zip(settings, worth.tolist(), strict=True)
        return TrueRates(0, [truth.rate(gpu, shape, setting, w) for setting, w in each])

    def _observe(self, gpu: GpuName, shape: Shape, setting: Setting) -> None:
        seen = self._samples.setdefault(gpu, {})
        key = (len(shape), sum(shape), setting.local_batch)
        if key not in seen:
            times = self.truth.timings[gpu].times(shape, setting.local_batch)
            seen[key] = StepTime(*key, *times)
            self._stale = True

    def _try_widths(self, gpu: GpuName) -> None:
        """The earlier job: it grew from one GPU to the most, tuning its batch size as it went."""
        truth, limits = self.truth, self.truth.limits[gpu]
        for width in widths_tried(truth.widest(gpu)):
            shape = typical_shape(width, truth.gpus_per_node[gpu], across=False)
            self._observe(gpu, shape, first_setting(limits, width))
            model = learn(sorted(self._samples[gpu].values(), key=order))
            tuned = best_settings(model, truth.gains, limits, nodes=len(shape), gpus=width)
            for setting in (tuned[0], tuned[-1]):
                self._observe(gpu, shape, setting)

    def forecast(self, gpu: GpuName, gpus_per_node: int) -> tuple[Floats, Floats]:
        """Every epoch's rates as a plan should expect them, and as a trial may find them."""
        known = self._forecasts.get(gpu)
        if known is None:
            each = self._beliefs(gpu)
            expected = [Stretch(*(np.exp(-_rate(b).expected) for b in pair)) for pair in each]
            hoped = [Stretch(*(np.exp(-_rate(b).hoped) for b in pair)) for pair in each]
            rates = self._rates_at(gpu, expected)
            better = np.maximum(rates, self._rates_at(gpu, hoped))
            for row, width in self._ran.get(gpu, ()):  # jobs there have tuned what there is to tune
                better[:, row, width] = rates[:, row, width]
            known = self._forecasts[gpu] = (rates, better)
        return known

    def _table(self, gpu: GpuName) -> Floats:
        return self._rates_at(gpu, self._stretch(gpu))

    def _rates_at(self, gpu: GpuName, stretches: Sequence[Stretch]) -> Floats:
        truth, model = self.truth, self._models[gpu]
        within, across = stretches
        widest = truth.widest(gpu)
        table = rate_table(model, truth.gains, truth.limits[gpu], widest, (within, across))
        table[:, 0, truth.gpus_per_node[gpu] + 1 :] = 0.0
        return np.asarray(table / truth.slowdown)

    def _stretch(self, gpu: GpuName) -> Sequence[Stretch]:
        """Measured over fitted times of every candidate, on one node and across nodes."""
        known = self._stretches.get(gpu)
        if known is None:
            sizes, steps, passes = self._errors(gpu)
            alike = np.exp(mean_errors(passes, sizes))
            known = self._stretches[gpu] = [
                Stretch(np.exp(mean_errors(found, sizes)), alike) for found in steps
            ]
        return known

    def _beliefs(self, gpu: GpuName) -> list[tuple[Belief, Belief]]:
        """How much longer steps and passes take than by the model, by placement."""
        sizes, steps, passes = self._errors(gpu)
        alike = believed_errors(passes, sizes)
        return [(believed_errors(found, sizes), alike) for found in steps]

    def _errors(self, gpu: GpuName) -> tuple[Floats, tuple[Errors, Errors], Errors]:
        """Batch sizes to be considered; errors measured of steps, by placement, and of passes."""
        model = self._models[gpu]
        sizes = grid(self.truth.limits[gpu], self.truth.widest(gpu)).local_batch
        steps: tuple[Errors, Errors] = ({}, {})
        passes: Errors = {}
        samples = list(self._samples[gpu].values())
        placed = [(s.nodes, s.gpus, s.local_batch) for s in samples]
        nodes, gpus, batch = np.array(placed, dtype=float).T
        of_passes = _logs([s.accumulation_s for s in samples], accumulation_time(model, batch))
        of_steps = _logs([s.step_s for s in samples], step_time(model, nodes, gpus, batch))
        for sample, on_pass, on_step in zip(samples, of_passes, of_steps, strict=True):
            passes.setdefault(sample.gpus, {})[sample.local_batch] = on_pass
            mine = steps[int(sample.nodes > 1)].setdefault(sample.gpus, {})
            mine[sample.local_batch] = on_step
        return sizes, steps, passes


def _logs(measured: Sequence[float], fitted: Floats) -> list[float]:
    return np.log(np.array(measured) / fitted).tolist()  # type: ignore[no-any-return]


def _rate(error: Belief) -> Belief:
    """The same belief, of rates instead of times."""
    return Belief(-error.mean, error.sd)


def _row(stretch: Stretch, at: int) -> Stretch:
    return Stretch(stretch.step[at], stretch.accumulation[at])


def believed_errors(errors: Errors, local_batch: Floats) -> Belief:
    """Errors at every width (rows) and batch size: linear between sizes and between log-widths.

    The variance is that of bridges: over batch sizes at the widths that were run, then over widths.
    """
    mean, variance = mean_errors(errors, local_batch), np.zeros(local_batch.shape)
    if not errors:
        return Belief(mean, np.full(local_batch.shape, belief.STEP))
    places = np.log2(np.arange(1.0, len(local_batch) + 1))
    between = belief.STEP**2 * belief.bridged(np.log2(sorted(errors)), places)
    variance += between[:, None]
    known = {width: np.array(sorted(seen), dtype=float) for width, seen in errors.items()}
    for row, width, part in _mixed(errors, len(local_batch)):
        variance[row] += part**2 * _unsure(known[width], local_batch[row])
    return Belief(mean, np.sqrt(variance))


def mean_errors(errors: Errors, local_batch: Floats) -> Floats:
    """The mean of that belief; none where nothing was measured."""
    mean = np.zeros(local_batch.shape)
    known = {width: np.array(sorted(seen.items())).T for width, seen in errors.items()}
    for row, width, part in _mixed(errors, len(local_batch)):
        mean[row] += part * np.interp(local_batch[row], *known[width])
    return mean


def _mixed(errors: Errors, rows: int) -> Iterator[tuple[int, int, float]]:
    """Widths that were run on either side of each row's (row + 1), and their parts in it."""
    widths = sorted(errors)
    for row in range(rows if widths else 0):
        right = bisect_left(widths, row + 1)
        low, high = widths[max(right - 1, 0)], widths[min(right, len(widths) - 1)]
        span = float(np.log2(high / low))
        mix = min(max(float(np.log2((row + 1) / low)) / span, 0.0), 1.0) if span else 0.0
        for width, part in ((low, 1 - mix), (high, mix)):
            if part:
                yield row, width, part


def _unsure(known: Floats, sizes: Floats) -> Floats:
    apart = belief.bridged(np.log2(known), np.log2(np.maximum(sizes, 1.0)))
    return np.asarray(BATCH_STEP**2 * apart)


def widths_tried(widest: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, … and the widest."""
    steps = (step << n for n in range(widest.bit_length()) for step in (2, 3))
    return sorted({1, widest, *(width for width in steps if width <= widest)})
