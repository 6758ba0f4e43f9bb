"""Urgency: jobs that count more than others of their class, and how much more a deadline takes.

A second of a job that is u times as urgent adds u·w + ρ·c to what is minimised, and all else
follows as for its class: the widths that its rest is worth, the time and the dollars that these
take. So the price of a deadline is the difference in dollars between the least urgent way that
keeps it and the way at u = 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from boa.model.cluster import Allocation
from boa.model.job_spec import GpuLimits
from boa.model.plan import Variant
from boa.policy.market.worth import NEVER_S, Course, Worth, Worths, at_weight
from boa.units import Seconds, Usd

LADDER = tuple(2.0 ** (n / 2) for n in range(25))
"""Urgencies that a deadline may take: 1 to 4096."""
SLACK = 0.1
"""Part of a job's time to go that a deadline leaves room for: estimates are off by as much."""
AS_FAST = 1.02
"""Times the shortest time to go that counts as no longer than it."""


class Position(NamedTuple):
    """How far a job is."""

    epoch: int = 0
    left: float = 1.0
    """Part of that epoch."""
    held: Allocation | None = None
    resumes_in: Seconds = 0.0


class Way(NamedTuple):
    """How a job goes on: how much it counts, how long it takes, what it costs."""

    urgency: float
    seconds: Seconds
    usd: Usd


@dataclass(slots=True, eq=False)
class UrgentWorths:
    """Worths of classes at other weights than their own, worked out when first asked for."""

    worths: Worths
    _found: dict[tuple[str, float, float], Worth] = field(default_factory=dict)
    _within: dict[tuple[str, float, GpuLimits], list[Worth]] = field(default_factory=dict)

    def of(self, name: str, price: float, urgency: float) -> Worth | None:
        """The worth of a job of this class that counts so many times as much; None: unknown."""
        key = (name, price, urgency)
        if key not in self._found:
            usual = self.worths(price).get(name)
            if usual is None:
                return None
            self._found[key] = at_weight(usual.course, price, usual.weight * urgency)
        return self._found[key]

    def ways(self, name: str, price: float, limits: GpuLimits, at: Position) -> Iterator[Way]:
        """By rising urgency; none where nothing is known of the class within these limits."""
        key = (name, price, limits)
        if key not in self._within:
            usual = self.worths(price).get(name)
            course = None if usual is None else within(usual.course, limits)
            if usual is None or course is None:
                self._within[key] = []
            else:
                rungs = (usual.weight * urgency for urgency in LADDER)
                self._within[key] = [at_weight(course, price, weight) for weight in rungs]
        for urgency, worth in zip(LADDER, self._within[key], strict=False):
            yield Way(urgency, *to_go(worth, at))

    def variant(self, name: str, price: float, urgency: float) -> Variant | None:
        """The widths that a whole job which is so urgent is worth."""
        worth = self.of(name, price, urgency)
        return None if worth is None else _best_path(worth)


def within(course: Course, limits: GpuLimits) -> Course | None:
    """The states of a course that a job's user allows; None: there are none that it can run on."""
    forbids = course.forbids(limits)
    if forbids is None:
        return course
    keep = np.flatnonzero(~forbids)
    times = np.ascontiguousarray(course.times[:, keep])
    if not len(keep) or not (times < NEVER_S).any(axis=1).all():
        return None
    return replace(
        course,
        states=tuple(course.states[n] for n in keep.tolist()),
        widths=course.widths[keep],
        kinds=course.kinds[keep],
        rates=course.rates[keep],
        times=times,
        _forbids={},
    )


def to_go(worth: Worth, at: Position) -> tuple[Seconds, Usd]:
    """Seconds and dollars from here to the end, on whatever the rest is worth."""
    course = worth.course
    epoch = min(at.epoch, len(course.times) - 1)
    left = max(0.0, min(1.0, at.left))
    seconds = left * course.times[epoch]
    values = worth.values * (seconds + course.rescale_s) + worth.afters[epoch]
    state, pause = int(values.argmin()), course.rescale_s
    on = course.column(at.held)
    if on >= 0:
        stays = worth.values[on] * (seconds[on] + at.resumes_in) + worth.afters[epoch, on]
        if stays <= values[state]:
            state, pause = on, at.resumes_in
    first = float(seconds[state]) + pause
    usd = first * float(course.rates[state]) + float(worth.dollars[epoch, state])
    value = float(worth.values[state]) * first + float(worth.afters[epoch, state])
    return (value - worth.price * usd) / worth.weight, usd


def in_time(ways: Iterator[Way], within_s: Seconds) -> tuple[Way | None, bool]:
    """The least urgent way that keeps a deadline, or else the least of those that are as fast as
    can be; and whether it keeps it. None: there are no ways at all."""
    found = []
    for way in ways:
        if way.seconds * (1.0 + SLACK) <= within_s:
            return way, True
        found.append(way)
    if not found:
        return None, False
    fastest = min(way.seconds for way in found)
    return next(way for way in found if way.seconds <= AS_FAST * fastest), False


def _best_path(worth: Worth) -> Variant:
    course = worth.course
    entry = course.rescale_s * worth.values
    here = worth.values * course.times + worth.afters
    state, path = -1, []
    for epoch in range(len(course.times)):
        best = int((here[epoch] + entry).argmin())
        if state < 0 or here[epoch, state] > here[epoch, best] + entry[best]:
            state = best
        path.append(course.states[state])
    return Variant(1.0, tuple(gpu for gpu, _ in path), tuple(width for _, width in path))
