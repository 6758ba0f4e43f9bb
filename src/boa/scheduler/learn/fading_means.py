"""Numbers that are believed before they are measured, and whose past fades. Frozen values."""

import math
from dataclasses import dataclass

from boa.units import SECONDS_PER_HOUR, PerHour, Seconds

HALF_LIFE_H = 24.0
"""An arrival of a day ago counts half as much as one of now."""
ARRIVALS_PER_HOUR: PerHour = 1.0
"""Arrivals per hour of a class whose prior says nothing; worth `ARRIVALS_WEIGHT_H` of history."""
ARRIVALS_WEIGHT_H = 1.0
LEAST_WATCH_H = 1 / 60
"""A minute: what a watch that has only just begun, with a prior worth nothing, is taken for."""
RAREST: PerHour = 1e-6
"""No class is ever believed to be rarer: a plan needs some rate, and a job of it may yet come."""
FADE = 0.95
"""Weight that is left to every older value when a new one comes: some 20 values count."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How often jobs of a class come: a Gamma belief of `jobs` seen in `hours`, both fading.

    Whoever stops coming is forgotten: with no arrivals at all the rate falls to zero, by half a
    day once the history is older than that.
    """

    jobs: float
    hours: float
    at: Seconds

    @classmethod
    def prior(cls, per_hour: PerHour, weight_h: float, at: Seconds) -> "Arrivals":
        return cls(per_hour * weight_h, weight_h, at)

    def seen_until(self, now: Seconds) -> "Arrivals":
        """A clock that was set back takes nothing away."""
        passed = max(now - self.at, 0.0) / SECONDS_PER_HOUR
        left = 0.5 ** (passed / HALF_LIFE_H)
        watched = HALF_LIFE_H / math.log(2.0) * (1.0 - left)
        return Arrivals(self.jobs * left, self.hours * left + watched, max(now, self.at))

    def arrived(self, now: Seconds) -> "Arrivals":
        until = self.seen_until(now)
        return Arrivals(until.jobs + 1.0, until.hours, until.at)

    def per_hour(self, now: Seconds) -> PerHour:
        until = self.seen_until(now)
        return max(until.jobs / max(until.hours, LEAST_WATCH_H), RAREST)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean in which every value counts 5 % less with each one that comes after it."""

    value: float = 0.0
    weight: float = 0.0

    def add(self, value: float) -> "Mean":
        weight = self.weight * FADE + 1.0
        return Mean(self.value + (value - self.value) / weight, weight)

    def raised(self, by: float) -> "Mean":
        """As if the newest value had been larger by this."""
        return Mean(self.value + by / self.weight, self.weight)

    def after(self, prior: float) -> float:
        """With what was believed before, as if that had been the value before the first."""
        left = 1.0 - self.weight * (1.0 - FADE)  # FADE to the power of the number of values
        return (prior * left + self.value * self.weight) / (left + self.weight)
