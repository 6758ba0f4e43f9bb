"""Facts of jobs: what changes with their views alone, by column, kept from decision to decision.

Time passes by itself, and only in `left` and `resumes_in`; a view that is the same object is the
same in all else. So of thousands of jobs only the few are looked at one by one that something has
happened to.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boa.model.cluster import JobView
from boa.model.kept_rows import Ints, KeptRows
from boa.model.speedup import Floats
from boa.policy.market.strangers import is_stranger
from boa.policy.market.worth import Course, Worth

Named: TypeAlias = Callable[[JobView], str]
"""Name of the worth that a job goes by."""
by_class: Named = attrgetter("job_class")


class Alike(NamedTuple):
    """Jobs that go by one worth, with the same limits."""

    name: str
    course: Course | None
    """None: nothing is known of them yet."""
    strange: bool
    forbids: NDArray[np.bool_] | None
    """States that their users do not allow; None: there are no such."""


class Columns(NamedTuple):
    """Facts of all jobs of which something is known: class by class, in the order in which their
    classes come first."""

    views: tuple[JobView, ...]
    names: tuple[str, ...]
    """Worths of the classes."""
    rows: Ints
    """First row of every class, and the number of rows."""
    order: Ints
    """Places that jobs have among those that were shown."""
    epochs: Ints
    held: Ints
    """State that a job is on, as its column; -1: none of them."""
    rescale_s: Floats
    gpus: Floats
    """Width of every state; states that a class does not have are too wide for anything."""
    kinds: Ints
    """GPU type of every state."""
    forbidden: NDArray[np.bool_] | None
    """States that a job's own user does not allow; None: there are no such."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """A row for every view that was shown."""

    views: Sequence[JobView]
    alikes: Sequence[Alike]
    table: Ints
    """Place among `alikes`, epoch, state held: a row of each."""

    @cached_property
    def _odd(self) -> NDArray[np.bool_]:
        """Which of the views are strangers'."""
        strange = np.array([alike.strange for alike in self.alikes], dtype=bool)
        return np.asarray(strange[self.table[0]])

    @cached_property
    def strangers(self) -> list[JobView]:
        return [self.views[n] for n in np.flatnonzero(self._odd).tolist()]

    @cached_property
    def others(self) -> "Facts":
        """Without the strangers."""
        if not self.strangers:
            return self
        rest = np.flatnonzero(~self._odd)
        views = [self.views[n] for n in rest.tolist()]
        return Facts(views=views, alikes=self.alikes, table=self.table[:, rest])

    @cached_property
    def columns(self) -> Columns:
        alike, epochs, held = self.table
        courses = dict[str, Course]()
        ranks = np.full(len(self.alikes), -1)
        present = dict.fromkeys(alike.tolist())
        for kind in present:
            name, course, _, _ = self.alikes[kind]
            if course is not None:
                courses[name] = course
                ranks[kind] = list(courses).index(name)
        rank = ranks[alike]
        order = rank.argsort(kind="stable")[np.count_nonzero(rank < 0) :]
        counts = np.bincount(rank[order], minlength=len(courses))
        rows = np.concatenate([[0], counts.cumsum()]).astype(np.int64)
        gpus, types = _states(list(courses.values()), rows)
        return Columns(
            views=tuple([self.views[n] for n in order.tolist()]),
            names=tuple(courses),
            rows=rows,
            order=order,
            epochs=epochs[order],
            held=held[order],
            rescale_s=np.repeat([course.rescale_s for course in courses.values()], counts),
            gpus=gpus,
            kinds=types,
            forbidden=self._forbidden(present, alike[order], gpus.shape[1]),
        )

    def _forbidden(
        self, present: Iterable[int], alike: Ints, states: int
    ) -> NDArray[np.bool_] | None:
        forbids = [(n, some) for n in present if (some := self.alikes[n].forbids) is not None]
        if not forbids:
            return None
        masks = np.zeros((len(self.alikes), states), dtype=bool)
        for n, some in forbids:
            masks[n, : len(some)] = some
        return masks[alike]


def _states(courses: Sequence[Course], rows: Ints) -> tuple[Floats, Ints]:
    shape = int(rows[-1]), max((len(course.states) for course in courses), default=1)
    gpus, kinds = np.full(shape, 1e9), np.zeros(shape, dtype=np.int64)
    for n, course in enumerate(courses):
        columns = len(course.states)
        gpus[rows[n] : rows[n + 1], :columns] = course.widths
        kinds[rows[n] : rows[n + 1], :columns] = course.kinds
    return gpus, kinds


class KeptFacts:
    """Facts of the jobs that were shown last, by courses and names that stay the same."""

    def __init__(self) -> None:
        self._rows = KeptRows()
        self._alikes: list[Alike] = []
        self._places: dict[tuple[object, ...], int] = {}
        self._facts = Facts(views=(), alikes=(), table=np.zeros((3, 0), dtype=np.int64))

    def of(
        self, views: Sequence[JobView], worths: Mapping[str, Worth], named: Named = by_class
    ) -> Facts:
        before = self._rows.before(views)
        if before is None:
            return self._facts
        had = self._facts.table
        table = had[:, before] if had.size else np.zeros((3, len(before)), dtype=np.int64)
        for n in np.flatnonzero(before < 0).tolist():
            table[:, n] = self._row(views[n], worths, named(views[n]))
        self._facts = Facts(views=tuple(views), alikes=tuple(self._alikes), table=table)
        return self._facts

    def _row(self, view: JobView, worths: Mapping[str, Worth], name: str) -> tuple[int, int, int]:
        limits = view.limits
        key: tuple[object, ...] = (name,)
        if limits is not None:
            key = (name, limits.min, limits.max, limits.types, view.barred)
        if view.pinned or view.modest:
            key = (*key, view.pinned, view.modest)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self._alikes)
            self._alikes.append(_alike(view, worths, name))
        course = self._alikes[place].course
        if course is None:
            return place, 0, -1
        return place, min(view.epoch, len(course.times) - 1), course.column(view.allocation)


def _alike(view: JobView, worths: Mapping[str, Worth], name: str) -> Alike:
    course = worths[name].course if name in worths else None
    limits = view.limits
    forbids = None if course is None or limits is None else course.forbids(limits, view.barred)
    return Alike(name, course, is_stranger(view, worths), forbids)
