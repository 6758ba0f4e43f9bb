"""All classes together: from the cheapest plan, buy time where it is cheapest.

The frontier of the whole workload is the sum of the classes' own frontiers, so it is walked by
taking the classes' edges in the order of their slopes: the seconds of objective that a dollar
per hour buys there, falling from edge to edge.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from boa.solver.chain import TIE, Chain, Edge, Point, mixed
from boa.units import PerHour, Seconds, UsdPerHour


@dataclass(frozen=True, slots=True)
class Totals:
    spend: UsdPerHour
    objective: Seconds
    average_jct: Seconds

    def moved(self, spend: float, objective: float, jct: float) -> "Totals":
        return Totals(self.spend + spend, self.objective + objective, self.average_jct + jct)


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a walk ended: every class's point, and the multiplier there."""

    points: tuple[Point, ...]
    multiplier: float


@dataclass(frozen=True, slots=True)
class Walk:
    """The classes' points at the cheapest end, and the edges from there to the fastest."""

    start: tuple[Point, ...]
    edges: tuple[Edge, ...]
    weights: tuple[float, ...]
    """w_i / Σ w λ."""
    arrivals: tuple[PerHour, ...]
    total_arrivals: PerHour

    def totals(self, points: Sequence[Point]) -> Totals:
        jobs = list(zip(points, self.weights, self.arrivals, strict=True))
        return Totals(
            sum(rate * p.cost for p, _, rate in jobs),
            sum(rate * weight * p.time for p, weight, rate in jobs),
            sum(rate * p.time for p, _, rate in jobs) / self.total_arrivals,
        )

    def step(self, edge: Edge) -> tuple[float, float, float]:
        """Spend, objective and average JCT that taking an edge adds."""
        rate = self.arrivals[edge.class_index]
        saved = rate * (edge.faster.time - edge.slower.time)
        return (
            rate * (edge.faster.cost - edge.slower.cost),
            saved * self.weights[edge.class_index],
            saved / self.total_arrivals,
        )

    def until(self, share: Callable[[Totals, Totals], float]) -> Stop:
        """Walk until `share(before, after)` of an edge, the part to take of it, is below 1."""
        points = list(self.start)
        here = self.totals(points)
        for edge in self.edges:
            after = here.moved(*self.step(edge))
            part = share(here, after)
            if part < 1.0:
                i = edge.class_index
                if part > TIE:
                    points[i] = mixed(edge.slower, edge.faster, part)
                return Stop(tuple(points), edge.slope)
            points[edge.class_index] = edge.faster
            here = after
        return Stop(tuple(points), 0.0)


def walk_of(chains: Sequence[Chain], arrivals: Sequence[PerHour]) -> Walk:
    edges = [edge for chain in chains for edge in chain.edges()]
    edges.sort(key=lambda edge: -edge.slope)
    return Walk(
        tuple(chain.points()[-1] for chain in chains),
        tuple(edges),
        tuple(chain.weight for chain in chains),
        tuple(arrivals),
        sum(arrivals),
    )
