"""Prices of GPUs at which jobs, each choosing alone, come closest to the capacity."""

from dataclasses import dataclass

import numpy as np

from boa.model.speedup import Floats
from boa.solver.tables import Ints

_SMOOTHING = (0.1, 0.03, 0.01, 0.003)  # how readily jobs take what is not their best
_NEWTON_STEPS = 4
_BALANCED = 0.05  # excess demand, to the capacity, at which the next smoothing may follow


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices that make sense for each job, job after job in one list; the last is always
    nothing."""

    job: Ints
    option: Ints  # the configuration, −1 for none
    cost: Floats
    gpus: Ints
    kind: Ints  # the GPU type, −1 for none
    start: Ints  # jobs: where its choices begin
    capacity: Ints
    pool: Ints  # the GPU type, 0 for none: which takes 0 GPUs of any type
    cell: Ints  # job and pool as one number

    def priced(self, prices: Floats) -> Floats:
        return self.cost + prices[self.kind] * self.gpus

    def unit(self) -> float:
        """The coarsest decimal that divides every cost, and so every total; 0 if none does."""
        exact = (10.0**-d for d in range(5) if (np.round(self.cost, d) == self.cost).all())
        return next(exact, 0.0)


def prices_of(choices: Choices) -> Floats:
    """The prices at which what the jobs choose alone comes closest to the capacity.

    The bound is concave in the prices, with edges; smoothed, it has Newton steps. Any prices give
    a bound that holds, so that a step gone astray would cost time only.
    """
    offered = np.where(choices.option >= 0, choices.cost, -np.inf)
    worst = np.maximum.reduceat(offered, choices.start)
    gains = np.maximum(worst - np.minimum.reduceat(choices.cost, choices.start), 0.0)
    stakes = max(float(gains.mean()), 1e-9)  # the scale of what a choice decides about
    fair = 0.5 * stakes * len(choices.start) / choices.capacity.sum()
    prices = np.full(len(choices.capacity), fair)
    for smoothing in _SMOOTHING:
        now = _smoothed(choices, prices, smoothing * stakes)
        for _ in range(_NEWTON_STEPS):
            step = now.step()
            if np.abs(now.excess * (step != 0.0)).max() < _BALANCED * choices.capacity.max():
                break
            now = _climbed(choices, now, step)
        prices = now.prices
    return prices


@dataclass(frozen=True, slots=True)
class _Smoothed:
    """The bound at some prices, if jobs took almost-best choices too."""

    prices: Floats
    smoothing: float
    bound: float
    excess: Floats  # GPUs wanted beyond the capacity: the gradient
    curve: Floats

    def step(self) -> Floats:
        """Newton's, for the prices that may move: none goes below nothing."""
        moving = (self.prices > 0.0) | (self.excess > 0.0)
        excess, curve = self.excess, self.curve
        if not moving.all():
            excess = np.where(moving, excess, 0.0)
            curve = np.where(np.outer(moving, moving), curve, np.eye(len(moving)))
        step = excess / curve[0] if len(moving) == 1 else np.linalg.solve(curve, excess)
        stepped: Floats = np.maximum(self.prices + step, 0.0) - self.prices
        return stepped


def _smoothed(choices: Choices, prices: Floats, smoothing: float) -> _Smoothed:
    jobs, kinds = len(choices.start), len(prices)
    paid = choices.priced(prices)
    cheapest = np.minimum.reduceat(paid, choices.start)
    odds = np.exp((cheapest[choices.job] - paid) / smoothing)
    total = np.add.reduceat(odds, choices.start)
    wanted = odds / total[choices.job] * choices.gpus
    use = np.bincount(choices.cell, wanted, jobs * kinds).reshape(jobs, kinds)
    squares = np.bincount(choices.pool, wanted * choices.gpus, kinds)
    curve = np.zeros((kinds, kinds))
    curve.flat[:: kinds + 1] = squares * 1.001 + 1e-9
    curve = (curve - use.T @ use) / smoothing
    bound = float((cheapest - smoothing * np.log(total)).sum() - prices @ choices.capacity)
    return _Smoothed(prices, smoothing, bound, use.sum(axis=0) - choices.capacity, curve)


def _climbed(choices: Choices, now: _Smoothed, step: Floats) -> _Smoothed:
    """Along the step, as far as that leads upwards."""
    for shortened in (1.0, 0.3, 0.1, 0.03, 0.01):
        reached = _smoothed(choices, now.prices + shortened * step, now.smoothing)
        if reached.bound >= now.bound:
            return reached
    return now
