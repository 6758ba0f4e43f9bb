"""Standings: where every job is in its training, as columns; and where it will be in a while.

Made once for a decision and looked at over several horizons. Jobs come class by class, in the
order in which their classes come first. `_prospects.c` has the quicker `later`.
"""

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boa import compiled
from boa.model.cluster import Allocation, JobId, JobView
from boa.model.kept_rows import Ints
from boa.model.speedup import Floats
from boa.policy.market.facts import Facts, KeptFacts
from boa.policy.market.worth import Course, Worth
from boa.units import GpuName, Seconds


class _Jobs(ctypes.Structure):
    _fields_ = (
        ("classes", ctypes.c_int64),
        ("of", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("epoch", ctypes.c_void_p),
        ("held", ctypes.c_void_p),
        ("left", ctypes.c_void_p),
        ("pause", ctypes.c_void_p),
        ("lost", ctypes.c_void_p),
    )


_library = compiled.load(__file__, "_prospects")
if _library is not None:
    _library.boa_later.argtypes = (ctypes.c_void_p, ctypes.c_double, *[ctypes.c_void_p] * 4)
    _library.boa_later.restype = None
    _library.boa_ends_in.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    _library.boa_ends_in.restype = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Standings:
    """A row for every job of a class with a worth; one column per state of its class, padded."""

    views: tuple[JobView, ...]
    worths: tuple[Worth, ...]
    """Worths of every class that has jobs."""
    rows: Ints
    """First row of every class, and the number of rows."""
    order: Ints
    """Places that jobs have among those that were shown."""
    epochs: Ints
    left: Floats
    """Part of the current epoch."""
    held: Ints
    """State that a job is on, as its column; -1: none of them."""
    pauses: Floats
    """Seconds until a job makes progress where it is."""
    gpus: Floats
    """Width of every state; states that a class does not have are too wide for anything."""
    kinds: Ints
    """GPU type of every state."""
    forbidden: NDArray[np.bool_] | None
    """States that a job's own user does not allow; None: there are no such."""
    lost: Floats | None = None
    """Seconds of work that jobs lose when they are stopped; None: none of them loses any."""

    def by_class(self) -> Iterator[tuple[Worth, slice]]:
        first, *ends = self.rows.tolist()
        for worth, end in zip(self.worths, ends, strict=True):
            yield worth, slice(first, end)
            first = end

    @cached_property
    def jobs(self) -> tuple[JobId, ...]:
        return tuple([view.id for view in self.views])

    @cached_property
    def states(self) -> tuple[tuple[tuple[GpuName, int], ...], ...]:
        found: list[tuple[tuple[GpuName, int], ...]] = []
        for worth, rows in self.by_class():
            found += [worth.course.states] * (rows.stop - rows.start)
        return tuple(found)

    @cached_property
    def ends_in(self) -> Floats:
        """Seconds until a job would end where it is; never, without GPUs."""
        if _library is None:
            return ends_in_python(self)
        found = np.empty(len(self.held))
        _library.boa_ends_in(self.address, found.ctypes.data)
        return found

    @cached_property
    def _columns(self) -> tuple[_Jobs, object]:
        """As the C kernels take them, with what must live as long."""
        of = (ctypes.c_void_p * len(self.worths))(*(w.address for w in self.worths))
        columns = (self.rows, self.epochs, self.held, self.left, self.pauses, self.lost)
        addresses = [None if column is None else column.ctypes.data for column in columns]
        return _Jobs(len(self.worths), ctypes.addressof(of), *addresses), of

    @property
    def address(self) -> int:
        return ctypes.addressof(self._columns[0])


def ends_in_python(standings: Standings) -> Floats:
    """`Standings.ends_in` without a compiler."""
    found = np.full(len(standings.held), np.inf)
    for worth, rows in standings.by_class():
        runs = rows.start + np.flatnonzero(standings.held[rows] >= 0)
        course, columns, epochs = worth.course, standings.held[runs], standings.epochs[runs]
        done = (1.0 - standings.left[runs]) * course.times[epochs, columns]
        to_come = course.reached[-1, columns] - course.reached[epochs, columns] - done
        found[runs] = standings.pauses[runs] + to_come
    return found


def standings_of(
    views: Sequence[JobView], worths: Mapping[str, Worth], facts: Facts | None = None
) -> Standings:
    """Jobs of classes without a worth are left out: nothing is known of them yet. `facts`: those
    of these views, if they are known."""
    if facts is None:
        facts = KeptFacts().of(views, worths)
    known = facts.columns
    here, count = known.views, len(known.views)
    resumes_in = np.fromiter(map(_resumes_in, here), float, count)
    lost = np.fromiter(map(_lost_s, here), float, count)
    return Standings(
        views=here,
        worths=tuple([worths[name] for name in known.names]),
        rows=known.rows,
        order=known.order,
        epochs=known.epochs,
        left=np.minimum(np.maximum(np.fromiter(map(_left, here), float, count), 0.0), 1.0),
        held=known.held,
        # No longer than getting there would take: what is believed of that may have changed since
        # the plan, and whoever has just been given GPUs would lose them to the next, and so on.
        pauses=np.minimum(resumes_in, known.rescale_s),
        gpus=known.gpus,
        kinds=known.kinds,
        forbidden=known.forbidden,
        lost=lost if np.count_nonzero(lost) else None,
    )


_left, _resumes_in, _lost_s = map(attrgetter, ("left", "resumes_in", "lost_s"))


def moved(standings: Standings, given: Mapping[JobId, Allocation]) -> Standings:
    """Where jobs stand with what they are given now.

    A job that moves, or loses its GPUs, falls back by the work that its stop loses.
    """
    views, get = standings.views, given.get
    others = [n for n, view in enumerate(views) if get(view.id) is not view.allocation]
    if not others:
        return standings
    held, pauses = standings.held.copy(), standings.pauses.copy()
    epochs, left, lost = standings.epochs, standings.left, standings.lost
    if lost is not None:
        epochs, left, lost = epochs.copy(), left.copy(), lost.copy()
    for row in others:
        gets = get(views[row].id)
        if gets != views[row].allocation:
            kind = int(np.searchsorted(standings.rows, row, side="right")) - 1
            course = standings.worths[kind].course
            if lost is not None and lost[row] > 0 and held[row] >= 0:
                was = _before(course, int(held[row]), epochs[row], left[row], lost[row])
                epochs[row], left[row] = was
                lost[row] = 0.0
            held[row], pauses[row] = course.column(gets), course.rescale_s
    return _replaced(standings, held=held, pauses=pauses, lost=lost, epochs=epochs, left=left)


def _before(
    course: Course, column: int, epoch: int, left: float, seconds: Seconds
) -> tuple[int, float]:
    """Epoch, and part of it still to be done, of a job so many seconds ago on this state."""
    reached, times = course.reached[:, column], course.times[:, column]
    at = max(reached[epoch] + (1.0 - left) * times[epoch] - seconds, 0.0)
    epoch = int(np.searchsorted(reached, at, side="right")) - 1
    return epoch, float((reached[epoch + 1] - at) / times[epoch])


def later(standings: Standings, given: Mapping[JobId, Allocation], seconds: Seconds) -> Standings:
    """Where jobs will stand by then on what they are given now; those that end are left out."""
    start = moved(standings, given)
    if _library is None:
        epochs, left, pauses, ends = advanced_in_python(start, seconds)
    else:
        epochs, left, pauses, ends = _advanced(start, seconds)
    then = _replaced(start, epochs=epochs, left=left, pauses=pauses, lost=start.lost)
    return only(then, ~ends) if ends.any() else then


Advanced: TypeAlias = tuple[Ints, Floats, Floats, NDArray[np.bool_]]
"""Epochs, what is left of them, pauses; and which jobs have ended."""


def _advanced(standings: Standings, seconds: Seconds) -> Advanced:
    assert _library is not None
    count = len(standings.held)
    epochs, ends, parts = np.empty(count, np.int64), np.empty(count, bool), np.empty((2, count))
    left, pauses = parts
    first = parts.ctypes.data
    addresses = (epochs.ctypes.data, first, first + parts.strides[0], ends.ctypes.data)
    _library.boa_later(standings.address, seconds, *addresses)
    return epochs, left, pauses, ends


def advanced_in_python(standings: Standings, seconds: Seconds) -> Advanced:
    """The same without a compiler."""
    epochs, left = standings.epochs.copy(), standings.left.copy()
    pauses, ends = standings.pauses.copy(), np.zeros(len(epochs), dtype=bool)
    for worth, rows in standings.by_class():
        course = worth.course
        for row in range(rows.start, rows.stop):
            column, epoch = standings.held[row], epochs[row]
            if column < 0:
                continue
            reached, times = course.reached[:, column], course.times[:, column]
            at = reached[epoch] + (1.0 - left[row]) * times[epoch]
            at += max(seconds - pauses[row], 0.0)
            ends[row] = at >= reached[-1]
            if not ends[row]:
                epoch = int(np.searchsorted(reached, at, side="right")) - 1
                epochs[row], left[row] = epoch, (reached[epoch + 1] - at) / times[epoch]
                pauses[row] = max(pauses[row] - seconds, 0.0)
    return epochs, left, pauses, ends


def _replaced(
    standings: Standings,
    *,
    pauses: Floats,
    lost: Floats | None,
    held: Ints | None = None,
    epochs: Ints | None = None,
    left: Floats | None = None,
) -> Standings:
    """Return the standings with other columns. `dataclasses.replace` takes longer than all the
    rest, and would forget what is known of the jobs and their states, which stay the same."""
    found = object.__new__(Standings)
    found.__dict__.update(standings.__dict__, pauses=pauses, lost=lost)
    changed = {"held": held, "epochs": epochs, "left": left}
    found.__dict__.update({name: new for name, new in changed.items() if new is not None})
    for passing in ("ends_in", "_columns"):
        found.__dict__.pop(passing, None)
    return found


def only(standings: Standings, some: NDArray[np.bool_]) -> Standings:
    """Standings of some of the jobs; of classes that are left, the first job's comes first."""
    parts = [
        (rows.start + np.flatnonzero(some[rows]), worth) for worth, rows in standings.by_class()
    ]
    parts = sorted(
        ((kept, worth) for kept, worth in parts if len(kept)),
        key=lambda part: int(standings.order[part[0][0]]),
    )
    kept = np.concatenate([rows for rows, _ in parts]) if parts else np.zeros(0, dtype=np.int64)
    columns = max((len(worth.values) for _, worth in parts), default=1)
    return Standings(
        views=tuple([standings.views[row] for row in kept]),
        worths=tuple([worth for _, worth in parts]),
        rows=_ends(len(rows) for rows, _ in parts),
        order=standings.order[kept],
        epochs=standings.epochs[kept],
        left=standings.left[kept],
        held=standings.held[kept],
        pauses=standings.pauses[kept],
        gpus=np.ascontiguousarray(standings.gpus[kept, :columns]),
        kinds=np.ascontiguousarray(standings.kinds[kept, :columns]),
        forbidden=None
        if standings.forbidden is None
        else np.ascontiguousarray(standings.forbidden[kept, :columns]),
        lost=None if standings.lost is None else standings.lost[kept],
    )


def _ends(counts: Iterable[int]) -> Ints:
    return np.cumsum([0, *counts], dtype=np.int64)
