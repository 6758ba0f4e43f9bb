"""Reservations: on a full cluster, GPUs that come free are kept for the next in line. Pure.

Where jobs start on whatever comes free, a job that needs several GPUs waits for ever behind narrow
ones, and one that gains little behind newcomers. So the first job that has waited for long gets a
reservation, as in backfilling: from when enough running jobs are expected to end, GPUs are its own.
Later jobs start before it only if they are expected to end by then.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.model.plan import Variant
from boa.policy.boa import Planned
from boa.units import GpuName, Seconds

OVERDUE_S: Seconds = 600.0
"""Seconds that a job waits before it gets a reservation."""
WIDE_OVERDUE_S: Seconds = 300.0
"""Seconds for a job that needs several GPUs. A job that has run before does not wait."""
LATE_S: Seconds = 60.0
"""Seconds that a running job is expected to take at least: it may be later than expected."""
MOST = 16
"""Jobs that GPUs are reserved for, at most: later ones are nearer to the end of the line."""
WINDOW_S: Seconds = 600.0
"""Where nothing says when GPUs come free, they are kept for the next in line in every other one of
such stretches: for long enough that running jobs may end, and never empty for ever."""


def is_overdue(job: JobRecord, waited_s: Seconds) -> bool:
    """Return whether a job has waited long enough for a reservation."""
    if job.attempts:
        return True
    return waited_s > (OVERDUE_S if job.spec.gpus.min == 1 else WIDE_OVERDUE_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The jobs of a decision, and what is expected of them."""

    jobs: Sequence[JobRecord]
    rank: Callable[[JobRecord], int]
    waited_s: Callable[[JobRecord], Seconds]
    ends_in: Callable[[JobRecord], Seconds]
    """Seconds until a running job is expected to end; infinite where that is unknown."""
    takes_s: Callable[[JobRecord], Seconds]
    """Seconds that a waiting job is expected to run, likewise."""
    spare: Callable[[JobRecord], int]
    """GPUs that a running job can give up at once."""
    usable: Callable[[JobRecord], Collection[GpuName]]
    free: Mapping[GpuName, int]
    """GPUs of every type that no job has."""

    def turn(self, job: JobRecord) -> tuple[float, ...]:
        return (-self.rank(job), job.attempts == 0, job.submitted_at, job.serial)

    def is_behind(self, job: JobRecord, first: JobRecord) -> bool:
        """Return whether a job comes after another one, and not only by its number."""
        return self.rank(job) <= self.rank(first) and self.turn(job)[:-1] > self.turn(first)[:-1]


class Reservations(NamedTuple):
    first: frozenset[JobId] = frozenset()
    """Jobs that are next in line: later ones get no GPUs that these can have now."""
    held_up: Mapping[JobId, JobId] = MappingProxyType({})
    """Jobs that may not start now, and the job that they would delay."""


def reservations(line: Line) -> Reservations:
    """Return which jobs are next in line, and which must not start before them."""
    waiting = [job for job in line.jobs if job.allocation is None and job.run is None]
    overdue = [job for job in waiting if is_overdue(job, line.waited_s(job))]
    found, first = dict[JobId, JobId](), sorted(overdue, key=line.turn)[:MOST]
    books = {gpu: _Book.of(line, gpu) for gpu in {gpu for job in first for gpu in line.usable(job)}}
    for head in first:
        kinds = set(line.usable(head))
        ways = [(books[gpu].starts_in(head.spec.gpus.min), gpu) for gpu in sorted(kinds)]
        in_s, gpu = min(ways, default=(0.0, ""))
        if not in_s and gpu and head.id not in found:
            books[gpu].take(head.spec.gpus.min, line.takes_s(head))
        if math.isinf(in_s):
            in_s = _left_of_window(line.waited_s(head))
        if not in_s:
            continue  # it starts now, or others may start
        for job in waiting:
            rivals = line.is_behind(job, head) and not kinds.isdisjoint(line.usable(job))
            if rivals and line.takes_s(job) > in_s:
                found.setdefault(job.id, head.id)
    return Reservations(frozenset(job.id for job in first if job.id not in found), found)


def expected_s(
    memory: object, job: JobRecord, gpu: GpuName, width: int, left: float, scale: float | None
) -> Seconds:
    """Return how long a job is expected to train on these GPUs; infinite where that is unknown.

    `left`: the part of its epoch that is still to be done; `scale`: its work over its class's.
    """
    if scale is None or not isinstance(memory, Planned) or job.stream not in memory.by_class:
        return math.inf
    course = memory.rests.course(job.stream, Variant(1.0, (gpu,), (width,)))
    epoch = min(job.epoch, len(course.times) - 1)
    times = course.times[epoch:] * scale
    seconds = float(times[1:].sum()) + float(times[0]) * left
    return seconds if math.isfinite(seconds) else math.inf


def _left_of_window(waited_s: Seconds) -> Seconds:
    """Return how long GPUs stay reserved for a job that has waited for the given time."""
    past = waited_s % (2 * WINDOW_S)
    return max(WINDOW_S - past, 0.0)


@dataclass(slots=True)
class _Book:
    """GPUs of a type: those that are free, and when others come free."""

    free: int
    ends: list[tuple[Seconds, int]]

    @classmethod
    def of(cls, line: Line, gpu: GpuName) -> "_Book":
        free, ends = line.free.get(gpu, 0), list[tuple[Seconds, int]]()
        for job in line.jobs:
            if job.run is not None and job.run.allocation.gpu == gpu:
                spare = line.spare(job)
                free += spare
                ends.append((max(line.ends_in(job), LATE_S), job.run.allocation.width - spare))
        return cls(free, ends)

    def starts_in(self, width: int) -> Seconds:
        """Return the seconds until the given number of GPUs is expected to be free."""
        missing = width - self.free
        for in_s, count in sorted([(0.0, 0), *self.ends]):
            missing -= count
            if missing <= 0:
                return in_s
        return math.inf

    def take(self, width: int, seconds: Seconds) -> None:
        """Give GPUs to a job that starts now."""
        self.free -= width
        self.ends.append((max(seconds, LATE_S), width))
