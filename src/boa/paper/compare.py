"""Two policies at the same average spend, and how sure we are of it over several draws."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from boa.paper.runs import MONEY, Document, Run
from boa.paper.study import Evidence
from boa.sim.equal_money import AtMoney, value_at

T975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
)  # fmt: skip
"""Student's t at 97.5 % with 1, 2, ... degrees of freedom; beyond, NORMAL975 is near enough."""
NORMAL975 = 1.96
SPEND, RENTED, BILL = MONEY
TraceKey: TypeAlias = tuple[object, ...]
JCT, P95 = "average_jct_s", "p95_jct_s"
WITHIN = 0.03
"""How near a tuned run has to come to the spend that was wanted."""
TRIES = 3
COLUMNS = (
    "completed",
    "average_jct_s",
    "p95_jct_s",
    "spend_per_hour",
    "average_gpus",
    "rented_gpus",
    "rescalings_per_job",
    "average_efficiency",
    "average_queueing_s",
    "wall_s",
)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over draws with its 95 % confidence interval; one draw has none."""

    value: float
    half: float | None
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Mean":
        n = len(values)
        if n < 2:
            return cls(values[0], None, n)
        t = T975[n - 2] if n - 2 < len(T975) else NORMAL975
        return cls(float(np.mean(values)), float(t * np.std(values, ddof=1)) / math.sqrt(n), n)

    @property
    def surely_above_1(self) -> bool:
        """Whether the interval leaves 1 out; of one draw nothing is sure but its value."""
        return self.value - (self.half or 0.0) > 1.0

    def text(self, sign: str = "×") -> str:
        return f"{self.value:.2f}{sign}" + ("" if self.half is None else f" ±{self.half:.2f}")


def at_spend(
    curve: Sequence[Document],
    spend: float,
    key: str,
    by: str = SPEND,
    *,
    bound: float | None = None,
) -> float | None:
    """BOA's value at this spend, between its runs; None: it was not there.

    Who may spend more than the dearest run need not, so beyond it that run's value stands.
    """
    if not curve:
        return None
    dearest = max(curve, key=lambda found: found[by])
    if spend > dearest[by]:
        return float(dearest[key])
    runs = [AtMoney(found[by], found[key], bound_of(found, by)) for found in curve]
    return value_at(runs, spend, bound)


def bound_of(found: Document, by: str = SPEND) -> float | None:
    """The least average JCT that anybody can reach for this run's money."""
    bound: float | None = found.get("bounds", {}).get(by)
    return bound


def spend_for(curve: Sequence[Document], jct: float, by: str = SPEND) -> float | None:
    """The least spend at which BOA reaches this JCT; None outside of what it was run at."""
    points = sorted((found[by], found[JCT]) for found in curve)
    if not points or jct > points[0][1]:
        return None
    if points[0][1] == jct:
        return float(points[0][0])
    for (spend, value), (dearer, faster) in pairwise(points):
        if faster <= jct < value:
            share = math.log(value / jct) / math.log(value / faster)
            return float(spend + share * (dearer - spend))
    return None


def mean_at(curve: Sequence[Document], spend: float, key: str, by: str = SPEND) -> float | None:
    """A plain quantity at this spend, straight between runs; the mean of the draws there."""
    values = []
    for draw in sorted({found["run"]["draw"] for found in curve}):
        points = sorted((f[by], f[key]) for f in curve if f["run"]["draw"] == draw)
        if points[0][0] <= spend <= points[-1][0]:
            spends, found_there = zip(*points, strict=True)
            values.append(float(np.interp(spend, spends, found_there)))
    return float(np.mean(values)) if values else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """A rival's run against BOA on the same draw at the same average spend."""

    rival: Document
    jct: float | None
    """The rival's average JCT over BOA's."""
    p95: float | None
    budget: float | None
    """The rival's spend over what BOA needs for the rival's JCT."""

    @property
    def knob(self) -> float:
        return float(self.rival["run"]["knob"])


def duels(boa: Sequence[Document], rivals: Sequence[Document], by: str = SPEND) -> list[Duel]:
    """Each against the BOA runs of its own draw."""
    found = []
    for rival in rivals:
        own = [doc for doc in boa if trace_key(doc) == trace_key(rival)]
        spend = rival[by]
        bound = bound_of(rival, by)
        jct, p95 = (at_spend(own, spend, key, by, bound=bound) for key in (JCT, P95))
        needed = spend_for(own, rival[JCT], by)
        found.append(
            Duel(
                rival=rival,
                jct=None if jct is None else rival[JCT] / jct,
                p95=None if p95 is None else rival[P95] / p95,
                budget=None if needed is None else spend / needed,
            )
        )
    return found


def trace_key(found: Document) -> TraceKey:
    """Runs of the same trace have the same."""
    keys = ("setting", "draw", "redrawn", "hours", "every")
    return tuple(found["run"][key] for key in keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtKnob:
    """All draws of one target: the mean spend, and the mean ratios."""

    policy: str
    knob: float
    spend: float
    rival_jct: float
    jct: Mean
    p95: Mean
    budget: Mean | None
    """None where BOA was not run at the rival's JCT in every draw."""


def by_knob(found: Iterable[Duel], by: str = SPEND) -> list[AtKnob]:
    """Only of knobs that every draw has an answer for: few draws make extremes of their own.

    Several readings of a rival are one rival: what another of them beats in both is left out.
    """
    groups: dict[tuple[str, float], list[Duel]] = {}
    for duel in found:
        if duel.jct is not None and duel.p95 is not None:
            groups.setdefault((duel.rival["run"]["policy"], duel.knob), []).append(duel)
    most = max((len(group) for group in groups.values()), default=0)
    points = [_at_knob(*at, group, by) for at, group in groups.items() if len(group) == most]
    best = [p for p in points if not any(_beats(other, p) for other in points)]
    return sorted(best, key=lambda point: point.spend)


def _at_knob(policy: str, knob: float, group: Sequence[Duel], by: str) -> AtKnob:
    budgets = [duel.budget for duel in group if duel.budget is not None]
    return AtKnob(
        policy=policy,
        knob=knob,
        spend=float(np.mean([duel.rival[by] for duel in group])),
        rival_jct=float(np.mean([duel.rival[JCT] for duel in group])),
        jct=Mean.of([duel.jct for duel in group if duel.jct is not None]),
        p95=Mean.of([duel.p95 for duel in group if duel.p95 is not None]),
        budget=Mean.of(budgets) if len(budgets) == len(group) else None,
    )


def _beats(one: AtKnob, other: AtKnob) -> bool:
    """A different reading that is cheaper and faster. One reading's own points all count."""
    return (
        one.policy != other.policy
        and one.spend <= other.spend
        and (one.rival_jct <= other.rival_jct)
    )


def most_saved(points: Iterable[AtKnob]) -> Mean | None:
    """The most budget that BOA saves at an equal JCT: the best target, on average over draws."""
    saved = [point.budget for point in points if point.budget is not None]
    return max(saved, key=lambda mean: mean.value, default=None)


# Runs that have to spend a certain amount


@dataclass(frozen=True, slots=True)
class Tuned:
    """Runs still to be made, and the best so far."""

    wanted: list[Run]
    best: Document | None = None


def tune(
    evidence: Evidence,
    make: Callable[[float], Run],
    knobs: Sequence[float],
    spend: float,
    by: str = SPEND,
) -> Tuned:
    """Find the knob whose run spends so much: the grid first, then between its nearest points.

    The same answers lead to the same questions, so a later call takes up where one left off.
    """
    runs = [make(knob) for knob in knobs]
    missing = evidence.store.missing(runs)
    if missing:
        return Tuned(missing)
    known: dict[float, Document] = {
        run.knob: found for run in runs if run.knob is not None and (found := evidence.get(run))
    }
    for _ in range(TRIES):
        best = min(known.values(), key=lambda found: abs(found[by] - spend), default=None)
        if best is None or abs(best[by] / spend - 1) <= WITHIN:
            break
        knob = _between(known, spend, by)
        if knob is None or knob in known:
            break
        run = make(knob)
        found = evidence.get(run)
        if found is None:
            failed = run in evidence.store.failed
            return Tuned([] if failed else [run], best)
        known[knob] = found
    best = min(known.values(), key=lambda found: abs(found[by] - spend), default=None)
    return Tuned([], best)


def _between(known: Mapping[float, Document], spend: float, by: str) -> float | None:
    """Where a straight line between the two nearest knobs around the spend meets it."""
    points = sorted((found[by], knob) for knob, found in known.items())
    below = [point for point in points if point[0] <= spend]
    above = [point for point in points if point[0] > spend]
    if not below or not above:
        return None
    (low, at_low), (high, at_high) = below[-1], above[0]
    share = (math.log(spend) - math.log(low)) / (math.log(high) - math.log(low))
    return round(at_low + share * (at_high - at_low), 4)


def row(found: Document, **more: Any) -> dict[str, Any]:
    """A run as a line of a CSV file."""
    run = found["run"]
    told = {key: run[key] for key in ("setting", "draw", "policy", "knob", "learning")}
    return told | {key: found[key] for key in COLUMNS} | more
