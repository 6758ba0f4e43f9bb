"""How the lead depends on what a restart takes: who gains most by cheap ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from boa.paper.compare import JCT, SPEND, Mean, TraceKey
from boa.paper.figures import drawing, legend_below, line, new_figure, panel, title_of
from boa.paper.leads import BOA_LOADS, KNOBS, RULES, by_trace, runs_of
from boa.paper.runs import Document, Run
from boa.paper.study import BEYOND, Evidence, Study, StudyOutcome, Table, nothing
from boa.sim.equal_money import AtMoney, value_at

RESTARTS = (0.3, 2.0, 20.0, 50.0)
COUPLED = "pollux-autoscale"
SHOWN = ("boa", *RULES, COUPLED)
GPUS_OVER_LEAST = 1.6
"""Held GPUs at which JCTs are read, over the least that the trace could be run on by the slowest
restarts: the same GPUs for all."""


def _runs(evidence: Evidence) -> dict[tuple[str, float], list[Run]]:
    scale = evidence.scale
    step = 2 if scale.quick else 1
    wanted: dict[tuple[str, float], list[Run]] = {}
    for policy in SHOWN[:-1] if scale.quick else SHOWN:
        draws = scale.draws[:1] if policy == COUPLED else scale.draws[:2]
        knobs: Sequence[float] = BOA_LOADS[::step] if policy == "boa" else KNOBS[policy][::step]
        for restart in RESTARTS:
            wanted[policy, restart] = [
                run
                for number in draws
                for run in runs_of(
                    policy,
                    knobs,
                    setting="pollux",
                    draw=number,
                    hours=scale.hours,
                    learning="perfect",
                    rescale_s=restart,
                )
            ]
    return wanted


def runs(evidence: Evidence) -> list[Run]:
    return [run for group in _runs(evidence).values() for run in group]


def result(evidence: Evidence) -> StudyOutcome:
    found = {which: evidence.all(group) for which, group in _runs(evidence).items()}
    if not all(found.values()):
        return nothing("runs are missing")
    at = _gpus(found["boa", RESTARTS[-1]])
    jcts = {which: _at(docs, at) for which, docs in found.items()}
    known = {which: mean for which, mean in jcts.items() if mean is not None}
    if any((policy, restart) not in known for policy in ("boa", *RULES) for restart in RESTARTS):
        return nothing("no runs at a common spend")
    gains = {
        policy: known[policy, RESTARTS[-1]].value / known[policy, RESTARTS[0]].value
        for policy in SHOWN
        if (policy, RESTARTS[0]) in known and (policy, RESTARTS[-1]) in known
    }
    order = sorted(gains, key=lambda policy: -gains[policy])
    lead = {restart: _lead(known, restart) for restart in RESTARTS}
    leads_told = ", ".join(f"{ratio:.2f}× at {restart:g} s" for restart, ratio in lead.items())
    faster = ", ".join(f"{title_of(policy)} {gains[policy]:.2f}×" for policy in order)
    return StudyOutcome(
        rows=[
            {"policy": policy, "restart_s": restart, "average_jct_s": mean.value, "ci": mean.half}
            for (policy, restart), mean in known.items()
        ],
        measured=f"from {RESTARTS[-1]:g} s to {RESTARTS[0]:g} s, at the same GPUs: {faster} "
        f"faster; the best rule for single jobs over BOA {leads_told}",
        verdict="ours",
        reason=f"at {GPUS_OVER_LEAST:g} times the cheapest spend",
        numbers={"gains": gains, "leads": {f"{at:g}": ratio for at, ratio in lead.items()}},
        tables=[_table(known)],
        drawn={"jcts": known},
    )


def _gpus(docs: Sequence[Document]) -> Mapping[TraceKey, float]:
    """Spend of every trace at which JCTs are read."""
    return {
        trace: GPUS_OVER_LEAST * own[0]["cheapest_per_hour"]
        for trace, own in by_trace(docs).items()
    }


def _at(docs: Sequence[Document], at: Mapping[TraceKey, float]) -> Mean | None:
    values = []
    for trace, own in by_trace(docs).items():
        runs = [AtMoney(doc[SPEND], doc[JCT]) for doc in own]
        value = value_at(runs, at[trace]) if trace in at else None
        if value is not None:
            values.append(value)
    return Mean.of(values) if values else None


def _lead(known: Mapping[tuple[str, float], Mean], restart: float) -> float:
    best = min(known[policy, restart].value for policy in RULES)
    return best / known["boa", restart].value


def _table(known: Mapping[tuple[str, float], Mean]) -> Table:
    rows = []
    for policy in SHOWN:
        means = [known.get((policy, restart)) for restart in RESTARTS]
        cells = ["–" if mean is None else f"{mean.value / 60:.1f}" for mean in means]
        rows.append([title_of(policy), *cells])
    heads = ["average JCT, minutes", *(f"r = {restart:g} s" for restart in RESTARTS)]
    return Table("newTrace on T4s at the same held GPUs, by what a restart takes", heads, rows)


def draw(outcome: StudyOutcome) -> Figure:
    known: Mapping[tuple[str, float], Mean] = outcome.drawn["jcts"]
    with drawing():
        figure = new_figure(1, "Cheap restarts make everybody faster", width=6.4, height=4.2)
        axes = panel(figure, 1, 1, "", "Seconds of a restart", "Average JCT (min)")
        for policy in reversed(SHOWN):
            own = [(r, known[policy, r]) for r in RESTARTS if (policy, r) in known]
            minutes: list[Any] = [mean.value / 60 for _, mean in own]
            halves = [(mean.half or 0.0) / 60 for _, mean in own]
            lows = [value - half for value, half in zip(minutes, halves, strict=True)]
            highs = [value + half for value, half in zip(minutes, halves, strict=True)]
            line(axes, policy, [r for r, _ in own], minutes, lows, highs)
        axes.set_xscale("log")
        axes.set_xticks(RESTARTS, [f"{restart:g}" for restart in RESTARTS])
        axes.xaxis.set_minor_locator(NullLocator())
        legend_below(figure, axes, 3)
        return figure


STUDY = Study(
    name="restarts",
    where=BEYOND,
    claim="how everybody's JCT depends on what a restart takes",
    runs=runs,
    result=result,
    draw=draw,
)
