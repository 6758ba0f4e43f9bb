"""One class's own trade-off, as far as known: the vertices of its (cost, time) frontier.

Each vertex is a width sequence that is optimal for some multiplier μ; the class's true frontier
is convex and touches every one of them. A vertex remembers the range of μ for which it was
*proven* best, so a class is asked again only where something better may still hide.
"""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boa.units import Seconds, Usd

TIE = 1e-12
"""Relative difference under which two values of the Lagrangian are the same."""
_NEAR = (1.0, 0.98, 1.02, 0.9, 1.1)


@dataclass(slots=True, eq=False)
class Vertex:
    """One width sequence: mean JCT and cost per job, and the multipliers it was proven best for."""

    time: Seconds
    cost: Usd
    row: int
    states: NDArray[np.int32]
    low: float
    high: float

    @property
    def mix(self) -> tuple[tuple[float, "Vertex"], ...]:
        return ((1.0, self),)


@dataclass(frozen=True, slots=True)
class Blend:
    """Shares of a class's jobs at different vertices."""

    time: Seconds
    cost: Usd
    mix: tuple[tuple[float, Vertex], ...]


Point: TypeAlias = Vertex | Blend
"""A point of a class's frontier."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A class moving from a cheaper point of its frontier to the next faster one."""

    slope: float
    class_index: int
    slower: Point
    faster: Point


@dataclass(slots=True)
class Chain:
    """Vertices from the fastest (μ = 0) to the cheapest (μ = ∞), convex by construction."""

    class_index: int
    weight: float
    """w_i / Σ w λ: turns seconds into what they add to the objective."""
    cap: Seconds | None = None
    vertices: list[Vertex] = field(default_factory=list)
    _points: list[Point] = field(default_factory=list)
    _edges: list[Edge] = field(default_factory=list)

    def add(self, mu: float, found: Vertex) -> bool:
        """Take in the optimum at μ. True if it is a new vertex."""
        self._points, self._edges = [], []
        if not self.vertices:
            self.vertices.append(found)
            return True
        k = self._best(mu)
        value = self._value(k, mu)
        if value - (self.weight * found.time + mu * found.cost) > TIE * value:
            self._insert(found)
            return True
        for side in (range(k, -1, -1), range(k + 1, len(self.vertices))):
            for n in side:
                if self._value(n, mu) - value > TIE * value:
                    break
                vertex = self.vertices[n]
                vertex.low, vertex.high = min(vertex.low, mu), max(vertex.high, mu)
        return False

    def _insert(self, found: Vertex) -> None:
        """Keep the order, and keep slopes rising strictly along the chain.

        A path found at a tie lies on the line between its neighbours, give or take rounding. It
        is no vertex, and would put edges out of order: it goes when a neighbour is seen beside it.
        """
        v = self.vertices
        k = bisect_left(v, -found.cost, key=lambda vertex: -vertex.cost)
        while k < len(v) and v[k].cost >= found.cost:  # as dear, and slower
            self._absorb(found, v.pop(k))
        while k > 0 and v[k - 1].time >= found.time:  # as slow, and dearer
            k -= 1
            self._absorb(found, v.pop(k))
        v.insert(k, found)
        while k + 2 < len(v) and self.slope(v[k], v[k + 1]) >= self.slope(v[k + 1], v[k + 2]):
            v.pop(k + 1)
        while k >= 2 and self.slope(v[k - 2], v[k - 1]) >= self.slope(v[k - 1], v[k]):
            v.pop(k - 1)
            k -= 1

    @staticmethod
    def _absorb(found: Vertex, beaten: Vertex) -> None:
        """At the multipliers where the beaten vertex was best, the new one is."""
        found.low, found.high = min(found.low, beaten.low), max(found.high, beaten.high)

    def _best(self, mu: float) -> int:
        """The best known vertex at μ: slopes rise along the chain."""
        v = self.vertices
        return bisect_left(range(len(v) - 1), mu, key=lambda k: self.slope(v[k], v[k + 1]))

    def _value(self, k: int, mu: float) -> float:
        return self.weight * self.vertices[k].time + mu * self.vertices[k].cost

    def slope(self, faster: Point, cheaper: Point) -> float:
        """The μ at which both are equally good."""
        return self.weight * (cheaper.time - faster.time) / (faster.cost - cheaper.cost)

    def proven(self, k: int) -> bool:
        """Whether nothing lies below the edge between vertices k and k + 1."""
        faster, cheaper = self.vertices[k], self.vertices[k + 1]
        mu = self.slope(faster, cheaper)
        return faster.high >= mu * (1 - TIE) and cheaper.low <= mu * (1 + TIE)

    def crossing(self) -> int | None:
        """The edge on which the class reaches its cap, if the cap binds anywhere."""
        if self.cap is None or self.vertices[-1].time <= self.cap:
            return None
        return sum(v.time <= self.cap for v in self.vertices[1:])

    def points(self) -> list[Point]:
        """The usable frontier: vertices up to the cap, then the mixture that meets it."""
        if not self._points:
            self._points = self._usable()
        return self._points

    def edges(self) -> list[Edge]:
        """The usable frontier as moves, from the fastest to the cheapest."""
        if not self._edges:
            self._edges = [
                Edge(self.slope(faster, slower), self.class_index, slower, faster)
                for faster, slower in pairwise(self.points())
            ]
        return self._edges

    def _usable(self) -> list[Point]:
        edge = self.crossing()
        last = len(self.vertices) - 1 if edge is None else edge
        points: list[Point] = list(self.vertices[: last + 1])
        if edge is not None and self.cap is not None:
            faster, slower = self.vertices[edge], self.vertices[edge + 1]
            share = max(0.0, (self.cap - faster.time) / (slower.time - faster.time))
            at_cap = mixed(faster, slower, share)
            if at_cap.cost < faster.cost:  # not where the cap is all but met by the vertex itself
                points.append(at_cap)
        return points

    def questions(self, mu: float) -> list[float]:
        """Multipliers at which the class must be asked before it is known at μ; none if it is."""
        edge = self.crossing()
        if edge is not None:
            at_cap = self.slope(self.vertices[edge], self.vertices[edge + 1])
            if not self.proven(edge):
                return [at_cap]
            if mu >= at_cap:
                return []
        if any(v.low <= mu <= v.high for v in self.vertices):
            return []
        below = max((v.high for v in self.vertices if v.high < mu), default=0.0)
        above = min((v.low for v in self.vertices if v.low > mu), default=float("inf"))
        # Paths at several multipliers cost little more than at one, and the next μ will be near.
        around = [mu * near for near in _NEAR if below < mu * near < above]
        edges = [
            self.slope(faster, cheaper)
            for faster, cheaper in pairwise(self.vertices)
            if faster.high < mu < cheaper.low
        ]
        return around + edges


def mixed(first: Point, second: Point, share: float) -> Blend:
    """(1 − share) of the jobs at the first point, share at the second."""
    shares: dict[Vertex, float] = defaultdict(float)
    for part, point in ((1.0 - share, first), (share, second)):
        for inner, vertex in point.mix:
            shares[vertex] += part * inner
    return Blend(
        first.time + share * (second.time - first.time),
        first.cost + share * (second.cost - first.cost),
        tuple((share, vertex) for vertex, share in shares.items() if share > 0.0),
    )
