"""Who takes how long for the same money: policies of a setting side by side, over traces.

Money is counted in cheapest plans of a trace (its *load*), so that traces can be averaged. At a
load every policy is read between its own runs, in JCTs over the bound for that money.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from boa.paper.compare import JCT, P95, SPEND, Mean, TraceKey, bound_of, trace_key
from boa.paper.runs import Document, Run
from boa.sim.equal_money import AtMoney, value_at

LOADS = (1.2, 1.4, 1.6, 2.0, 2.5)
"""Where policies are held against each other."""
BOA_LOADS = (1.02, 1.1, 1.25, 1.5, 1.8, 2.2, 2.8)
KNOBS: Mapping[str, tuple[float, ...]] = {
    "optimus-price": (30.0, 100.0, 300.0, 1_000.0, 3_000.0),
    "scavenger": (0.05, 0.15, 0.3, 0.5, 0.7, 0.85),
    "efficiency": (0.3, 0.45, 0.6, 0.75, 0.9),
    "rubberband": (0.05, 0.1, 0.2, 0.3, 0.5),
    "elasticflow": (0.05, 0.1, 0.2, 0.3, 0.5),
    "gavel-cost": (0.05, 0.1, 0.2, 0.3, 0.5),
    "pollux-autoscale": (0.4, 0.7),
    "sia-autoscale": (0.4, 0.6, 0.8),
}
"""Values that take a rival from the cheapest spends to the dearest."""
RULES = ("optimus-price", "scavenger", "efficiency")
"""The strongest: rules for single jobs, that nobody queues under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """A policy at one load (money in cheapest plans), on average over traces."""

    policy: str
    load: float
    over_bound: Mean
    """Its average JCT over the least that anybody could reach for the money."""
    jct: Mean | None
    """Its average JCT over BOA's; None: BOA has no run there."""
    p95: Mean | None
    traces: int


def runs_of(policy: str, knobs: Iterable[float], **common: object) -> list[Run]:
    return [Run(policy=policy, knob=knob, **common) for knob in knobs]  # type: ignore[arg-type]


def by_trace(docs: Iterable[Document]) -> dict[TraceKey, list[Document]]:
    found: dict[TraceKey, list[Document]] = {}
    for doc in docs:
        found.setdefault(trace_key(doc), []).append(doc)
    return found


def over_bound(docs: Iterable[Document], load: float, key: str, by: str = SPEND) -> float | None:
    """At so many cheapest plans of the trace; None where its runs do not go."""
    runs = [
        AtMoney(doc[by] / doc["cheapest_per_hour"], doc[key] / bound)
        for doc in docs
        if (bound := bound_of(doc, by)) is not None
    ]
    return value_at(runs, load)


def leads(
    found: Mapping[str, Sequence[Document]],
    by: str = SPEND,
    loads: Sequence[float] = LOADS,
) -> list[Lead]:
    """Every policy at every load that it reaches in half of its traces at least."""
    traces = {policy: by_trace(docs) for policy, docs in found.items()}
    table = []
    for policy, own in traces.items():
        for load in loads:
            lead = _lead(policy, load, own, traces["boa"], by)
            if lead is not None and 2 * lead.traces >= len(own):
                table.append(lead)
    return table


def _lead(
    policy: str,
    load: float,
    own: Mapping[TraceKey, Sequence[Document]],
    boa: Mapping[TraceKey, Sequence[Document]],
    by: str,
) -> Lead | None:
    bounds: list[float] = []
    ratios: dict[str, list[float]] = {JCT: [], P95: []}
    for trace, docs in own.items():
        there = over_bound(docs, load, JCT, by)
        if there is None:
            continue
        bounds.append(there)
        for key, known in ratios.items():
            mine, theirs = (over_bound(d, load, key, by) for d in (docs, boa.get(trace, ())))
            if mine is not None and theirs is not None:
                known.append(mine / theirs)
    if not bounds:
        return None
    jct, p95 = (Mean.of(known) if known else None for known in ratios.values())
    return Lead(
        policy=policy,
        load=load,
        over_bound=Mean.of(bounds),
        jct=jct,
        p95=p95,
        traces=len(bounds),
    )


def strongest(table: Iterable[Lead]) -> dict[float, Lead]:
    """The best rival at every load."""
    best: dict[float, Lead] = {}
    for lead in table:
        if lead.policy.startswith("boa") or lead.jct is None:
            continue
        known = best.get(lead.load)
        if known is None or known.jct is None or lead.jct.value < known.jct.value:
            best[lead.load] = lead
    return best


def span(means: Iterable[Mean]) -> str:
    """Least to most, as a factor."""
    values = sorted(mean.value for mean in means)
    if not values:
        return "–"
    low, high = f"{values[0]:.2f}", f"{values[-1]:.2f}"
    return f"{low}×" if low == high else f"{low}–{high}×"
