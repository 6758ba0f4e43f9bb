"""Every width sequence of one row that could be part of the best deterministic plan.

Sequences are grown epoch by epoch as labels (time, cost). A label is dropped if another one in
the same state is no slower and no dearer, or if even its best completion has a Lagrangian value
above the ceiling: such a sequence cannot be part of a plan better than one already known. What is
left at the end is exact.
"""

from dataclasses import dataclass

import numpy as np

from boa.model.speedup import Floats
from boa.solver.tables import Ints, Row


class TooManyLabels(Exception):
    """The search was given up: not a failure, but then nothing is proven."""


@dataclass(frozen=True, slots=True)
class Sequences:
    """Sequences of one row, none both slower and dearer than another."""

    row: int
    times: Floats
    costs: Floats
    history: tuple[tuple[Ints, Ints], ...]
    """Per epoch, each label's state and the label of the epoch before that it grew from."""

    def states(self, label: int) -> list[int]:
        """The state in every epoch of one sequence."""
        found = []
        for states, parents in reversed(self.history):
            found.append(int(states[label]))
            label = int(parents[label])
        return found[::-1]


@dataclass(frozen=True, slots=True)
class _Labels:
    states: Ints
    parents: Ints
    times: Floats
    costs: Floats

    def __getitem__(self, keep: Ints) -> "_Labels":
        return _Labels(self.states[keep], self.parents[keep], self.times[keep], self.costs[keep])


@dataclass(frozen=True, slots=True)
class LabelSearch:
    """Sequences of a row with time_weight · time + money_weight · cost at most the ceiling."""

    row_index: int
    row: Row
    time_weight: float
    money_weight: float
    ceiling: float
    limit: int
    """Labels alive at once before the search gives up."""

    def run(self) -> Sequences:
        row, worth = self.row, self._worth
        to_go = self._values_to_go()
        every = np.arange(len(row.widths))
        begun = row.rescale_s + row.times[0]
        labels = _Labels(every, every, begun, begun * row.cost_rates)
        labels = labels[np.flatnonzero(begun * worth + to_go[0] <= self.ceiling)]
        history = [(labels.states, labels.parents)]
        for j in range(1, len(row.times)) if len(labels.states) else ():
            labels = self._grow(labels, j, to_go[j])
            history.append((labels.states, labels.parents))
        labels = labels[undominated(labels.times, labels.costs)]
        history[-1] = (labels.states, labels.parents)
        return Sequences(self.row_index, labels.times, labels.costs, tuple(history))

    @property
    def _worth(self) -> Floats:
        return self.time_weight + self.money_weight * self.row.cost_rates

    def _values_to_go(self) -> Floats:
        """The least value of what follows epoch j, by the state in epoch j."""
        times, worth = self.row.times, self._worth
        values = np.zeros_like(times)
        for j in range(len(times) - 2, -1, -1):
            stay = worth * times[j + 1] + values[j + 1]
            values[j] = np.minimum(stay, (stay + worth * self.row.rescale_s).min())
        return values

    def _grow(self, old: _Labels, j: int, to_go: Floats) -> _Labels:
        """Labels after epoch j: every old one stays in its state or is started in another."""
        row, worth = self.row, self._worth
        values = self.time_weight * old.times + self.money_weight * old.costs
        started = row.rescale_s + row.times[j]
        pool = undominated(old.times, old.costs)
        pool = pool[np.argsort(values[pool], kind="stable")]
        room = self.ceiling - (worth * started + to_go)
        count = np.searchsorted(values[pool], room, side="right")
        if int(count.sum()) + len(old.states) > self.limit:
            raise TooManyLabels
        targets = np.repeat(np.arange(len(count)), count)
        sources = pool[np.arange(len(targets)) - np.repeat(np.cumsum(count) - count, count)]
        states = np.concatenate([old.states, targets])
        parents = np.concatenate([np.arange(len(old.states)), sources])
        held = np.concatenate([row.times[j][old.states], started[targets]])
        new = _Labels(
            states,
            parents,
            old.times[parents] + held,
            old.costs[parents] + held * row.cost_rates[states],
        )
        fits = values[parents] + held * worth[states] + to_go[states] <= self.ceiling
        new = new[np.flatnonzero(fits)]
        return new[undominated(new.times, new.costs, new.states)]


def undominated(times: Floats, costs: Floats, groups: Ints | None = None) -> Ints:
    """Indices of the entries that no other entry of the same group equals or beats in both."""
    if not len(times):
        return np.empty(0, dtype=np.intp)
    group = np.zeros(len(times), dtype=np.intp) if groups is None else groups
    order = np.lexsort((costs, times, group))
    # Ranks instead of costs, lower from group to group: one running minimum serves all groups.
    _, rank = np.unique(costs, return_inverse=True)
    key = rank[order] - group[order] * (len(costs) + 1)
    least_before = np.minimum.accumulate(key)[:-1]
    return np.asarray(order[np.concatenate([[True], key[1:] < least_before])])
