"""Choosing one sequence per class within the budget: a multiple-choice knapsack by merging."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boa.model.speedup import Floats
from boa.solver.labels import Sequences, TooManyLabels, undominated
from boa.solver.tables import Ints
from boa.units import PerHour, Seconds, UsdPerHour

_PAIRS = 8_000_000
"""Pairs looked at in one merge before a proof is given up."""
_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class Choices:
    """One class's candidate sequences, as what they add to the whole workload."""

    objectives: Floats
    spends: Floats
    excesses: Floats
    sources: Ints
    labels: Ints
    lists: tuple[Sequences, ...]

    @classmethod
    def of(
        cls,
        lists: Sequence[Sequences],
        arrivals: PerHour,
        weight: float,
        capped_weight: float,
        mu: float,
        least: float,
        cap: Seconds | None,
    ) -> "Choices":
        """Pool the lists of a class's rows; drop what breaks the cap or is beaten in both."""
        times = np.concatenate([one.times for one in lists])
        costs = np.concatenate([one.costs for one in lists])
        sources = np.repeat(np.arange(len(lists)), [len(one.times) for one in lists])
        labels = np.concatenate([np.arange(len(one.times)) for one in lists])
        allowed = (
            np.arange(len(times)) if cap is None else np.flatnonzero(times <= cap * (1 + 1e-9))
        )
        keep = allowed[undominated(times[allowed], costs[allowed])]
        values = capped_weight * times[keep] + mu * costs[keep]
        return cls(
            arrivals * weight * times[keep],
            arrivals * costs[keep],
            arrivals * np.maximum(values - least, 0.0),
            sources[keep],
            labels[keep],
            tuple(lists),
        )

    def sequence(self, choice: int) -> tuple[int, list[int]]:
        """The row and the states of one candidate."""
        found = self.lists[int(self.sources[choice])]
        return found.row, found.states(int(self.labels[choice]))


@dataclass(frozen=True, slots=True)
class _Partial:
    """Plans for the classes merged so far, each grown from one for the classes before."""

    objectives: Floats
    spends: Floats
    excesses: Floats
    parents: Ints
    choices: Ints


@dataclass(frozen=True, slots=True)
class Selection:
    objective: Seconds
    classes: tuple[Choices, ...]
    picked: tuple[int, ...]

    def sequences(self) -> list[tuple[int, list[int]]]:
        return [c.sequence(k) for c, k in zip(self.classes, self.picked, strict=True)]


def best_selection(
    classes: Sequence[Choices], budget: UsdPerHour, mu: float, room: float
) -> Selection | None:
    """The least objective within the budget, among plans at most `room` above the bound."""
    if any(not len(c.objectives) for c in classes):
        return None
    order = sorted(range(len(classes)), key=lambda i: len(classes[i].objectives))
    least = np.array([classes[i].spends.min() for i in order])
    most = np.array([classes[i].spends.max() for i in order])
    least_later, most_later = _sums_after(least), _sums_after(most)
    zero = np.zeros(1)
    none = np.zeros(1, dtype=np.intp)
    merged = [_Partial(zero, zero, zero, none, none)]
    for n, i in enumerate(order):
        grown = _merge(merged[-1], classes[i], room)
        fits = grown.spends + least_later[n] <= budget * (1 + _SLACK)
        unspent = mu * np.maximum(budget - grown.spends - most_later[n], 0.0)
        fits &= grown.excesses + unspent <= room * (1 + 1e-9)
        merged.append(_kept(grown, np.flatnonzero(fits)))
        if not len(merged[-1].objectives):
            return None
    return _traced(classes, order, merged)


def _sums_after(values: Floats) -> Floats:
    return np.concatenate([np.cumsum(values[::-1])[::-1][1:], [0.0]])


def _merge(old: _Partial, new: Choices, room: float) -> _Partial:
    by_excess = np.argsort(old.excesses, kind="stable")
    left = room * (1 + 1e-9) - new.excesses
    count = np.searchsorted(old.excesses[by_excess], left, side="right")
    total = int(count.sum())
    if total > _PAIRS:
        raise TooManyLabels
    choices = np.repeat(np.arange(len(count)), count)
    parents = by_excess[np.arange(total) - np.repeat(np.cumsum(count) - count, count)]
    return _Partial(
        old.objectives[parents] + new.objectives[choices],
        old.spends[parents] + new.spends[choices],
        old.excesses[parents] + new.excesses[choices],
        parents,
        choices,
    )


def _kept(partial: _Partial, fits: Ints) -> _Partial:
    keep = fits[undominated(partial.objectives[fits], partial.spends[fits])]
    return _Partial(
        partial.objectives[keep],
        partial.spends[keep],
        partial.excesses[keep],
        partial.parents[keep],
        partial.choices[keep],
    )


def _traced(
    classes: Sequence[Choices], order: Sequence[int], merged: Sequence[_Partial]
) -> Selection:
    at = int(merged[-1].objectives.argmin())
    objective = float(merged[-1].objectives[at])
    picked = [0] * len(classes)
    for i, partial in zip(reversed(order), reversed(merged), strict=False):
        picked[i] = int(partial.choices[at])
        at = int(partial.parents[at])
    return Selection(objective, tuple(classes), tuple(picked))
