"""The theorems without rescaling: concave hulls, and the optimum over fractional widths.

With z = 1/s(k) for the time that a unit of work takes, its cost z · k is convex in z when s is
concave. So the whole problem is convex: for a multiplier μ on the budget every epoch minimises
time + μ · cost alone, in closed form where s has one and over the hull's points otherwise, and a
bisection on μ meets the budget. With several GPU types an epoch takes the best of them, and its
jobs are split between two where both are equally good (the theorem on heterogeneous systems).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boa.errors import BudgetTooSmall
from boa.model.plan import ClassPlan, Plan, Route
from boa.model.speedup import Amdahl, Floats, Power, Speedup, amdahl_rates, power_rates
from boa.model.workload import Epoch, JobClass, Workload
from boa.solver.lagrangian import ROUNDING
from boa.solver.objective import Rules, evaluate
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, UsdPerHour

Ints = NDArray[np.intp]

_STRAIGHT = 1e-12
"""Relative difference in slope under which a point counts as on the line."""
_EXTREME = 1e15
"""How much more money (or time) counts than the other when only one of them is to matter."""
_FREE = Rules(rescaling=False, routing="epoch")


def concave_hull(widths: Floats, rates: Floats) -> NDArray[np.bool_]:
    """Which widths lie on the non-decreasing concave hull of each curve, one curve per row.

    The hull begins at the first width that can run (rate > 0), not at the origin: nobody can
    mix time with a width of zero. Points on its straight pieces belong to it.
    """
    runs = rates > 0
    first = widths[runs.argmax(axis=1)]
    start = np.where((widths == first[:, None]) & runs, rates, -1.0).argmax(axis=1)
    return _wrapped(widths, rates, start)


def efficient_hull(prices: Floats, rates: Floats) -> NDArray[np.bool_]:
    """The part of the hull on which somebody would run, one curve per row.

    It begins where work is cheapest, at the largest s(k)/k: narrower widths are slower and
    dearer. Where s(k)/k never grows, as the theorems ask, this is the whole hull.
    """
    value = rates / prices
    best = value.max(axis=1, keepdims=True)
    last = np.where(value >= best * (1.0 - _STRAIGHT), np.arange(len(prices)), -1)
    return _wrapped(prices, rates, last.max(axis=1))


def _wrapped(x: Floats, y: Floats, start: Ints) -> NDArray[np.bool_]:
    """From the start, always on to the point with the steepest rise; the nearest, if several."""
    on = np.zeros(y.shape, dtype=bool)
    rows, at = np.arange(len(y)), start
    while len(rows):
        on[rows, at] = True
        ahead = x - x[at][:, None]
        rise = y[rows] - y[rows, at][:, None]
        slope = np.divide(rise, ahead, out=np.zeros_like(rise), where=(ahead > 0) & (rise > 0))
        best = slope.max(axis=1)
        rows, slope, best = rows[best > 0], slope[best > 0], best[best > 0]
        at = (slope >= best[:, None] * (1.0 - _STRAIGHT)).argmax(axis=1)
    return on


@dataclass(frozen=True, slots=True)
class Fractional:
    """The optimum of the theorems without rescaling, per epoch and with fractional widths."""

    plan: Plan
    widths: tuple[tuple[float, ...], ...]
    """Per class and epoch: GPUs held, averaged over the time they are held (β(1/z))."""
    objective: Seconds
    spend: UsdPerHour
    multiplier: float
    """−d objective / d budget."""


def fractional_optimum(workload: Workload, budget: UsdPerHour) -> Fractional:
    """The least average JCT at a spend of at most the budget, if rescaling took no time.

    Measured curves stand for their hull, reached by splitting jobs between two of its widths;
    Amdahl and power curves take any width between the class's limits.
    """
    options = _Options.of(workload)
    fast, frugal = options.extremes()
    cheapest = options.best(frugal)
    if budget < cheapest.spend * (1 - ROUNDING):
        raise BudgetTooSmall(budget, cheapest.spend)
    budget = max(budget, cheapest.spend)
    fastest = options.best(fast)
    if fastest.spend <= budget:
        return _answer(workload, options, fastest, fastest, budget, 0.0)
    dear, cheap = (fast, fastest), (frugal, cheapest)
    while dear[0] < cheap[0] * (1 - 1e-15):
        mu = float(np.sqrt(dear[0] * cheap[0]))
        if not dear[0] < mu < cheap[0]:
            break
        found = options.best(mu)
        if found.spend > budget:
            dear = (mu, found)
        else:
            cheap = (mu, found)
    return _answer(workload, options, cheap[1], dear[1], budget, cheap[0])


@dataclass(frozen=True, slots=True)
class _Choice:
    """One option per epoch, its width, and what the jobs in it spend per hour."""

    options: Ints
    widths: Floats
    spends: Floats

    @property
    def spend(self) -> UsdPerHour:
        return float(self.spends.sum())


@dataclass(frozen=True, slots=True)
class _Options:
    """Every way to run every epoch: a type with its best width, or one width of a measured curve.

    Parallel arrays, ordered by epoch; epochs are numbered through all classes.
    """

    gpus: tuple[GpuName, ...]
    epochs: Ints
    starts: Ints
    """Where each epoch's options begin."""
    work: Floats
    weights: Floats
    """w_i / Σ w λ."""
    arrivals: Floats
    prices: Floats
    """Dollars per GPU and second."""
    low: Floats
    high: Floats
    amdahl: NDArray[np.bool_]
    shape: Floats
    """f or a, the share of the work (or of its logarithm) that is parallel; 0 where measured."""
    scale: Floats
    """The measured rate, or the curve's scale."""

    @classmethod
    def of(cls, workload: Workload) -> "_Options":
        number, gpus, rows = 0, [], []
        for job_class in workload.classes:
            for epoch in job_class.epochs:
                for gpu, row in _rows(workload, job_class, epoch):
                    gpus.append(gpu)
                    rows.append((number, *row))
                number += 1
        columns = np.array(rows).T
        epochs = columns[0].astype(np.intp)
        starts = np.flatnonzero(np.diff(epochs, prepend=-1))
        work, weights, arrivals, prices, low, high, amdahl, shape, scale = columns[1:]
        weights = weights / workload.weighted_arrivals_per_hour
        return cls(
            tuple(gpus),
            epochs,
            starts,
            work,
            weights,
            arrivals,
            prices,
            low,
            high,
            amdahl > 0,
            shape,
            scale,
        )

    def extremes(self) -> tuple[float, float]:
        """Multipliers at which only time, and only money, matters."""
        worth = self.weights / self.prices
        return float((worth / self.high).min()) / _EXTREME, float(worth.max()) * _EXTREME

    def best(self, mu: float) -> _Choice:
        """Every epoch's optimum at μ."""
        # d/dk (w·time + μ·cost) = 0 at k = (w/(μ c) · f/(1−f)) ** e, with e = 1/2 for Amdahl's
        # law and e = 1 for a power of k.
        with np.errstate(divide="ignore"):
            odds = self.shape / (1.0 - self.shape)
        still = self.weights / (mu * self.prices) * odds
        widths = np.clip(np.where(self.amdahl, np.sqrt(still), still), self.low, self.high)
        times = self.work / np.where(
            self.amdahl,
            amdahl_rates(self.shape, self.scale, widths),
            power_rates(self.shape, self.scale, widths),
        )
        costs = self.prices * widths * times
        values = self.weights * times + mu * costs
        least = np.minimum.reduceat(values, self.starts)
        ties = np.flatnonzero(values == least[self.epochs])
        chosen = ties[np.unique(self.epochs[ties], return_index=True)[1]]
        return _Choice(chosen, widths[chosen], (self.arrivals * costs)[chosen])


def _rows(
    workload: Workload, job_class: JobClass, epoch: Epoch
) -> Iterator[tuple[GpuName, tuple[float, ...]]]:
    """The options of one epoch, as (work, weight, λ, price, low, high, is Amdahl, shape, scale)."""
    for name, curve in epoch.speedups.items():
        base = job_class.base_on(name, epoch)
        if base is None or base > job_class.max_on(name):
            continue
        price = workload.gpu_types[name].price / SECONDS_PER_HOUR
        common = (epoch.work, job_class.weight, job_class.arrivals_per_hour, price)
        for piece in _pieces(curve, base, job_class.max_on(name)):
            yield name, (*common, *piece)


def _pieces(curve: Speedup, low: int, high: int) -> list[tuple[float, ...]]:
    """(low, high, is Amdahl, shape, scale): one smooth piece, or a point for every width."""
    if isinstance(curve, Amdahl):
        return [(low, high, 1.0, curve.parallel, curve.scale)]
    if isinstance(curve, Power):
        return [(low, high, 0.0, curve.exponent, curve.scale)]
    widths = np.arange(low, high + 1, dtype=float)
    points = zip(widths.tolist(), curve.rates(widths).tolist(), strict=True)
    return [(k, k, 0.0, 0.0, rate) for k, rate in points]


def _answer(
    workload: Workload,
    options: _Options,
    cheap: _Choice,
    dear: _Choice,
    budget: UsdPerHour,
    mu: float,
) -> Fractional:
    """From the cheap choice to the dear one, epoch by epoch, for as long as the budget lasts.

    Both are optimal at μ: whichever epochs move, a dollar buys the same time.
    """
    extra = np.maximum(dear.spends - cheap.spends, 0.0)
    left = budget - cheap.spend - (np.cumsum(extra) - extra)
    shares = np.divide(left, extra, out=np.zeros(len(extra)), where=extra > 0).clip(0.0, 1.0)
    routes = iter([tuple(_routes(options, cheap, dear, e, shares[e])) for e in range(len(extra))])
    plans = [
        ClassPlan(name=job_class.name, routes=tuple(next(routes) for _ in job_class.epochs))
        for job_class in workload.classes
    ]
    plan = Plan(tuple(plans))
    outcome = evaluate(workload, plan, _FREE)
    widths = tuple(
        tuple(map(_mean_width, job_class.epochs, of_class.routes))
        for job_class, of_class in zip(workload.classes, plans, strict=True)
    )
    return Fractional(plan, widths, outcome.objective, outcome.spend, mu)


def _routes(
    options: _Options, cheap: _Choice, dear: _Choice, epoch: int, share: float
) -> Iterator[Route]:
    """`share` of the jobs in this epoch as in the dear choice, the others as in the cheap one."""
    slow, fast = cheap.options[epoch], dear.options[epoch]
    if slow == fast:  # one smooth curve, whose two widths differ by rounding only
        share = 0.0
    if share < 1.0:
        yield Route(1.0 - share, options.gpus[slow], float(cheap.widths[epoch]))
    if share > 0.0:
        yield Route(float(share), options.gpus[fast], float(dear.widths[epoch]))


def _mean_width(epoch: Epoch, routes: tuple[Route, ...]) -> float:
    held = [(r.share / epoch.speedups[r.gpu_type](r.width), r.width) for r in routes]
    return sum(time * width for time, width in held) / sum(time for time, _ in held)
