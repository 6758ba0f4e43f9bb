"""Value to go: what the rest of a job's training comes to, in seconds, at a price of money.

A plan minimises Σ w_i λ_i E[T_i] subject to Σ λ_i E[cost_i] ≤ b. With ρ, the multiplier on the
budget in (weighted) job-seconds per dollar, a job adds w·seconds + ρ·dollars, so that a second on
a state s (a GPU type and a width, at c_s dollars per second) comes to v_s = w + ρ·c_s. From the
end of training backwards

    V[e, s] = v_s · t[e, s] + min(V[e+1, s], min over s' of V[e+1, s'] + r · v_s')

is what is still to come at the beginning of epoch e on state s: the solver's own shortest path.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boa import compiled
from boa.model.cluster import Allocation
from boa.model.job_spec import GpuLimits
from boa.model.speedup import Floats
from boa.model.workload import GpuType, JobClass, Workload
from boa.solver.objective import cost_rates, run_times
from boa.units import GpuName, Seconds

Barred: TypeAlias = frozenset[tuple[GpuName, int]]
NEVER_S: Seconds = 1e12
"""Time of an epoch where it cannot run: finite, so that sums of it stay numbers."""
MOST_URGENT = 1e4
"""The most that a cap on a class's mean JCT multiplies its weight by."""
ROUNDING = 1e-9
AS_FAST = 1.02
"""Times the time with twice the GPUs, or more, that counts as no longer: they bring nothing."""
KEPT = 4
"""Prices whose worths are kept: what is rented by may be another than what is planned with."""


class _Class(ctypes.Structure):
    _fields_ = (
        ("epochs", ctypes.c_int64),
        ("states", ctypes.c_int64),
        ("rescale_s", ctypes.c_double),
        ("weight", ctypes.c_double),
        ("times", ctypes.c_void_p),
        ("reached", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("afters", ctypes.c_void_p),
        ("front", ctypes.c_void_p),
        ("fronts", ctypes.c_void_p),
        ("narrower", ctypes.c_void_p),
        ("rates", ctypes.c_void_p),
        ("dollars", ctypes.c_void_p),
    )


_library = compiled.load(__file__, "_worth")
COMPILED = _library is not None
if _library is not None:
    _library.boa_worth.argtypes = (
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_double,
        *[ctypes.c_void_p] * 6,
    )
    _library.boa_worth.restype = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Course:
    """A class's states and its times on them: what does not depend on the price."""

    name: str
    states: tuple[tuple[GpuName, int], ...]
    """Every GPU type and width that it may be given: a part of a node, or whole nodes."""
    widths: Floats
    kinds: "NDArray[np.int64]"
    """The GPU type of every state, as its place among all types."""
    rates: Floats
    """Dollars per second of every state."""
    times: Floats
    """Seconds of every epoch on every state."""
    rescale_s: Seconds
    weight: float
    cap_s: Seconds | None
    _forbids: "dict[tuple[GpuLimits, Barred], NDArray[np.bool_] | None]" = field(
        default_factory=dict
    )

    @cached_property
    def index(self) -> dict[tuple[GpuName, int], int]:
        return {state: n for n, state in enumerate(self.states)}

    def column(self, held: Allocation | None) -> int:
        """The state that a job is on with these GPUs; -1: none of them."""
        return -1 if held is None else self.index.get((held.gpu, held.width), -1)

    def forbids(
        self, limits: GpuLimits, barred: Barred = frozenset()
    ) -> "NDArray[np.bool_] | None":
        """States outside of what a job's own user allows, or barred for it; None: there are no
        such."""
        key = (limits, barred)
        if key not in self._forbids:
            found = np.array(
                [
                    not limits.allow(gpu, width) or (gpu, width) in barred
                    for gpu, width in self.states
                ]
            )
            self._forbids[key] = found if found.any() else None
        return self._forbids[key]

    @cached_property
    def narrower(self) -> "NDArray[np.int64] | None":
        """For states whose GPUs bring next to nothing, the state with half of them or fewer that is
        as fast; -1 for all others. None: there are no such states."""
        found = np.full(len(self.states), -1, dtype=np.int64)
        for n in range(len(self.states)):
            for m in range(len(self.states)):
                half = self.kinds[m] == self.kinds[n] and 2 * self.widths[m] <= self.widths[n]
                if half and (self.times[:, m] <= AS_FAST * self.times[:, n]).all():
                    found[n] = m
                    break
        return found if (found >= 0).any() else None

    @cached_property
    def whole(self) -> Floats:
        """Seconds of all epochs together, by state."""
        return np.asarray(self.times.sum(axis=0))

    @cached_property
    def reached(self) -> Floats:
        """Seconds from the first epoch to the beginning of every one, and to the end, by state."""
        total = np.cumsum(self.times, axis=0)
        return np.vstack([np.zeros((1, total.shape[1])), total])


def course_of(job_class: JobClass, gpu_types: Mapping[GpuName, GpuType]) -> Course | None:
    """None if the class runs on none of these types."""
    states: list[tuple[GpuName, int]] = []
    kinds, rates, times = [], [], []
    for n, (gpu, kind) in enumerate(gpu_types.items()):
        widths = _widths(job_class, kind)
        if not widths:
            continue
        states += [(gpu, width) for width in widths]
        kinds += [n] * len(widths)
        rates.append(cost_rates(np.array(widths, dtype=float), kind, "gpu"))
        times.append(_times(job_class, gpu, widths))
    if not states:
        return None
    found = Course(
        name=job_class.name,
        states=tuple(states),
        widths=np.array([float(width) for _, width in states]),
        kinds=np.array(kinds, dtype=np.int64),
        rates=np.concatenate(rates),
        times=np.ascontiguousarray(np.concatenate(times, axis=1)),
        rescale_s=job_class.rescale_s,
        weight=job_class.weight,
        cap_s=job_class.max_jct_s,
    )
    return found if (found.times < NEVER_S).any(axis=1).all() else None


def _widths(job_class: JobClass, kind: GpuType) -> list[int]:
    """Parts of a node, then whole nodes: what lies between is paid for anyway."""
    per_node, most = kind.gpus_per_node, job_class.max_on(kind.name)
    bases = [job_class.base_on(kind.name, epoch) for epoch in job_class.epochs]
    least = min((base for base in bases if base is not None), default=None)
    if least is None:
        return []
    part = range(least, min(per_node, most) + 1)
    whole = range(2 * per_node, most + 1, per_node)
    found = [*part, *(width for width in whole if width >= least)]
    return found or ([least] if least <= most else [])


def _times(job_class: JobClass, gpu: GpuName, widths: list[int]) -> Floats:
    found = np.full((len(job_class.epochs), len(widths)), NEVER_S)
    asked = np.array(widths, dtype=float)
    bases = [job_class.base_on(gpu, epoch) for epoch in job_class.epochs]
    for base in {base for base in bases if base is not None}:
        rows = np.array([n for n, other in enumerate(bases) if other == base])
        runs = np.flatnonzero(asked >= base)
        times = run_times((job_class.epochs[n] for n in rows), gpu, asked[runs])
        found[np.ix_(rows, runs)] = times
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Worth:
    """A course at a price of money."""

    course: Course
    price: float
    """ρ: job-seconds per dollar."""
    weight: float
    """Weight of a second: the class's own, or as much more as its cap on the mean JCT takes."""
    values: Floats
    """v_s of every state."""
    afters: Floats
    """From the end of every epoch on, by the state it was run on: seconds and dollars' worth …"""
    dollars: Floats
    """… and dollars alone."""

    @cached_property
    def _as_class(self) -> tuple[_Class, object]:
        """As the C kernels take it, with what must live as long."""
        course = self.course
        own = (course.times, course.reached, self.values, self.afters)
        arrays = [np.ascontiguousarray(array) for array in own]
        fronts = self._fronts()
        addresses = [array.ctypes.data for array in (*arrays, *fronts)]
        paid = [np.ascontiguousarray(array) for array in (course.rates, self.dollars)]
        found = _Class(
            *course.times.shape,
            course.rescale_s,
            self.weight,
            *addresses,
            None if course.narrower is None else course.narrower.ctypes.data,
            *(array.ctypes.data for array in paid),
        )
        return found, (arrays, fronts, paid)

    def _fronts(self) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """States of every epoch that `starts` may find the least, and how many these are: no
        other is below at both ends of the epoch, and so all along."""
        course = self.course
        at_end = course.rescale_s * self.values + self.afters
        order = at_end.argsort(axis=1, kind="stable")
        at_start = np.take_along_axis(at_end + course.times * self.values, order, axis=1)
        least = np.minimum.accumulate(at_start, axis=1)
        kept = np.ones(order.shape, dtype=bool)
        kept[:, 1:] = at_start[:, 1:] <= least[:, :-1] * (1.0 + ROUNDING)
        front = np.take_along_axis(order, (~kept).argsort(axis=1, kind="stable"), axis=1)
        return np.ascontiguousarray(front, dtype=np.int64), kept.sum(axis=1, dtype=np.int64)

    @property
    def address(self) -> int:
        return ctypes.addressof(self._as_class[0])

    def starts(self, epochs: "NDArray[np.int64]", left: Floats) -> Floats:
        """From now to the end for jobs that hold nothing, with this part of an epoch left."""
        course = self.course
        to_come = (left[..., None] * course.times[epochs] + course.rescale_s) * self.values
        return np.asarray((to_come + self.afters[epochs]).min(axis=-1))


def worth_of(course: Course, price: float) -> Worth:
    found = _worth(course, price, course.weight)
    if course.cap_s is None or _jct(found) <= course.cap_s:
        return found
    low, high = 1.0, MOST_URGENT
    for _ in range(30):
        middle = (low * high) ** 0.5
        if _jct(_worth(course, price, course.weight * middle)) <= course.cap_s:
            high = middle
        else:
            low = middle
    return _worth(course, price, course.weight * high)


def at_weight(course: Course, price: float, weight: float) -> Worth:
    """A course for which a second counts so much, whatever its class's does."""
    return _worth(course, price, weight)


def _worth(course: Course, price: float, weight: float) -> Worth:
    values = weight + price * course.rates
    compute = _to_go_in_python if _library is None else _to_go
    afters, dollars = compute(course, values)
    return Worth(
        course=course, price=price, weight=weight, values=values, afters=afters, dollars=dollars
    )


def _to_go(course: Course, values: Floats) -> tuple[Floats, Floats]:
    assert _library is not None
    afters, dollars = np.empty_like(course.times), np.empty_like(course.times)
    arrays = (course.times, course.rates, values, afters, dollars, np.empty(2 * len(values)))
    addresses = [array.ctypes.data for array in arrays]
    _library.boa_worth(*course.times.shape, course.rescale_s, *addresses)
    return afters, dollars


def _to_go_in_python(course: Course, values: Floats) -> tuple[Floats, Floats]:
    """From the end of every epoch on, by the state it was run on: value, and dollars alone."""
    entry = course.rescale_s * values
    afters, dollars = np.zeros_like(course.times), np.zeros_like(course.times)
    after, bill = np.zeros(len(values)), np.zeros(len(values))
    for n in range(len(course.times) - 1, -1, -1):
        afters[n], dollars[n] = after, bill
        here = values * course.times[n] + after
        paid = course.rates * course.times[n] + bill
        best = int((here + entry).argmin())
        moves = here > here[best] + entry[best]
        after = np.where(moves, here[best] + entry[best], here)
        bill = np.where(moves, paid[best] + course.rescale_s * course.rates[best], paid)
    return afters, dollars


def fresh_job(worth: Worth) -> tuple[Seconds, float]:
    """Mean JCT and dollars of a job that always has what it is worth."""
    course = worth.course
    values = worth.values * (course.times[0] + course.rescale_s) + worth.afters[0]
    state = int(values.argmin())
    first = course.times[0, state] + course.rescale_s
    dollars = first * course.rates[state] + worth.dollars[0, state]
    return float((values[state] - worth.price * dollars) / worth.weight), float(dollars)


def _jct(worth: Worth) -> Seconds:
    return fresh_job(worth)[0]


class Worths:
    """The worths of a workload's classes, worked out once for a price, when first asked for."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._found: dict[float, dict[str, Worth]] = {}

    @cached_property
    def _courses(self) -> dict[str, Course]:
        types = self._workload.gpu_types
        found = ((c.name, course_of(c, types)) for c in self._workload.classes)
        return {name: course for name, course in found if course is not None}

    def __call__(self, price: float) -> Mapping[str, Worth]:
        found = self._found.get(price)
        if found is None:
            found = {name: worth_of(course, price) for name, course in self._courses.items()}
            while len(self._found) >= KEPT:
                del self._found[next(iter(self._found))]
            self._found[price] = found
        return found
