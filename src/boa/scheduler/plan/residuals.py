"""How far jobs end from what was expected of them: the interval around an estimate. Pure.

A residual is the logarithm of what a job really took ÷ what its class is expected to take on the
GPUs that the job held. Jobs of a class are taken to be alike, so the next job's residual lies

- with `MANY` residuals or more, between their empirical quantiles: between the i-th and the j-th
  of n it lies in (j − i) / (n + 1) of all cases, whatever their distribution;
- with fewer, between the quantiles of Student's t for one more value of a normal distribution. The
  deviation that is usual for other classes counts as `HELD` residuals;
- with none, around 0, `UNSEEN` times as far as jobs of other classes lie from each other.
"""

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

LOW, HIGH = 0.1, 0.9
"""Four of five jobs lie between these."""
STUDENT = (
    3.078,
    1.886,
    1.638,
    1.533,
    1.476,
    1.440,
    1.415,
    1.397,
    1.383,
    1.372,
    1.363,
    1.356,
    1.350,
)
"""Student's t at 90 %, by degrees of freedom from 1."""
MANY = 12
USUAL = 0.17
"""Standard deviation of residuals within a class, where no class has shown it."""
HELD = 3.0
UNSEEN = 2.0
FURTHEST = 50.0
"""Logarithm of the largest factor."""
LAST = 40
"""Residuals that are used: the newest, so that queues and stops are those of late."""


class Spread(NamedTuple):
    """Factors from an expected figure to the range that residuals give it."""

    low: float
    centre: float
    high: float

    def around(self, expected: float) -> tuple[float, float, float]:
        return self.low * expected, self.centre * expected, self.high * expected


def spread_of(residuals: Sequence[float], usual: float = USUAL) -> Spread:
    """Return where four of five further jobs lie. `residuals`: newest first; `usual`: standard
    deviation within other classes."""
    newest = residuals[:LAST]
    count = len(newest)
    if not count:
        half = STUDENT[-1] * UNSEEN * usual
        return Spread(math.exp(-half), 1.0, math.exp(half))
    if count >= MANY:
        ordered = sorted(newest)
        low, high = (_ranked(ordered, part) for part in (LOW, HIGH))
    else:
        mean = fmean(newest)
        squares = sum((value - mean) ** 2 for value in newest)
        freedom = HELD + count - 1.0
        deviation = math.sqrt((HELD * usual**2 + squares) / freedom)
        half = STUDENT[round(freedom) - 1] * deviation * math.sqrt(1.0 + 1.0 / count)
        low, high = mean - half, mean + half
    centre = min(max(median(newest), low), high)
    return Spread(*(math.exp(min(max(at, -FURTHEST), FURTHEST)) for at in (low, centre, high)))


def _ranked(ordered: Sequence[float], part: float) -> float:
    """Return the value below which this part of all further ones lies."""
    at = min(max(part * (len(ordered) + 1) - 1.0, 0.0), len(ordered) - 1.0)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
