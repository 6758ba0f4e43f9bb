"""Asking the classes: given multipliers, what would each class do? One batch per call."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boa.errors import InputError, no_less
from boa.model.speedup import Floats
from boa.model.workload import Workload
from boa.solver.chain import Chain, Vertex
from boa.solver.objective import Rules
from boa.solver.path import shortest_paths
from boa.solver.tables import Block, Ints, Tables, build_tables

_EXTREME = 1e9
"""How much more money (or time) counts than the other when only one of them is to matter."""
_FEASIBLE = 1e-9
_SEED_WIDTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


@dataclass(frozen=True, slots=True)
class Pricing:
    """Tables, and what has been learned so far of every class's own frontier."""

    tables: Tables
    chains: tuple[Chain, ...]

    @classmethod
    def of(cls, workload: Workload, rules: Rules) -> "Pricing":
        tables = build_tables(workload, rules)
        weights = tables.time_weights.tolist()
        chains = tuple(
            Chain(i, weight, cap=job_class.max_jct_s)
            for i, (weight, job_class) in enumerate(zip(weights, workload.classes, strict=True))
        )
        pricing = cls(tables, chains)
        pricing._find_ends()
        return pricing

    def ask(self, classes: Sequence[int], multipliers: Sequence[float]) -> bool:
        """Learn the optimum of each class at its multiplier. True if any was new."""
        new = False
        for i, mu, vertex in self._optima(np.array(classes), np.array(multipliers, dtype=float)):
            new |= self.chains[i].add(mu, vertex)
        return new

    def best(self, class_index: int, multiplier: float) -> Vertex:
        """The best sequence of one class at a multiplier."""
        ((_, _, vertex),) = self._optima(np.array([class_index]), np.array([multiplier]))
        return vertex

    def _find_ends(self) -> None:
        """Every class's fastest and cheapest sequence, and a few between to start from.

        At the multiplier w / (k · price of one GPU) a second costs as much as k GPUs do, so
        multipliers of this form reach every width that can be worth choosing.
        """
        everyone = np.arange(len(self.chains))
        dearest, cheapest = self._rate_range()
        weights = self.tables.time_weights
        ends = [(weights / dearest) / _EXTREME, (weights / cheapest) * _EXTREME]
        seeds = [weights / (cheapest * k) for k in _SEED_WIDTHS if (cheapest * k < dearest).any()]
        asked = [*ends, *seeds]
        self.ask(np.tile(everyone, len(asked)).tolist(), np.concatenate(asked).tolist())
        for chain in self.chains:
            chain.vertices[0].low = 0.0
            chain.vertices[-1].high = np.inf
            _check_cap(chain)

    def _rate_range(self) -> tuple[Floats, Floats]:
        """The highest and lowest cost rate among each class's states."""
        dearest = np.zeros(len(self.chains))
        cheapest = np.full(len(self.chains), np.inf)
        for row in self.tables.rows:
            i = row.class_index
            dearest[i] = max(dearest[i], row.cost_rates.max())
            cheapest[i] = min(cheapest[i], row.cost_rates.min())
        return dearest, cheapest

    def _optima(self, classes: Ints, mus: Floats) -> list[tuple[int, float, Vertex]]:
        """The best sequence for every (class, μ), over all the class's rows."""
        best = np.full(len(classes), np.inf)
        found: list[tuple[int, float, Vertex] | None] = [None] * len(classes)
        order = np.argsort(classes, kind="stable")
        for block in self.tables.blocks:
            at, asked = _pairs(block, classes, order)
            if not len(at):
                continue
            weights = self.tables.time_weights[classes[asked]]
            paths = shortest_paths(block, at, weights, mus[asked])
            for p in np.lexsort((paths.values, asked)).tolist():
                q = int(asked[p])
                if paths.values[p] < best[q]:
                    best[q] = paths.values[p]
                    mu = float(mus[q])
                    vertex = Vertex(
                        float(paths.times[p]),
                        float(paths.costs[p]),
                        int(block.rows[at[p]]),
                        paths.states[p],
                        mu,
                        mu,
                    )
                    found[q] = (int(classes[q]), mu, vertex)
        return [f for f in found if f is not None]


def _check_cap(chain: Chain) -> None:
    fastest = chain.vertices[0].time
    if chain.cap is None or chain.cap >= fastest:
        return
    if chain.cap < fastest * (1 - _FEASIBLE):
        field = f"classes[{chain.class_index}].max_jct_s"
        raise InputError(field, chain.cap, f"at least {no_less(fastest)}, its fastest JCT")
    chain.cap = fastest


def _pairs(block: Block, classes: Ints, order: Ints) -> tuple[Ints, Ints]:
    """All (row of the block, request) pairs of the same class, rows ascending."""
    ordered = classes[order]
    first = np.searchsorted(ordered, block.class_of, side="left")
    count = np.searchsorted(ordered, block.class_of, side="right") - first
    at = np.repeat(np.arange(len(block.class_of)), count)
    offset = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
    return at, order[np.repeat(first, count) + offset]
