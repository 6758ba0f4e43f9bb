"""Every rival on newTrace: rules that rent what they like, and policies on a fixed cluster.

By the GPU on T4s, as in Figure 5; what a fixed cluster leaves empty costs it nothing here.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from boa.model.policies import policies_with
from boa.paper.compare import SPEND, Mean, duels, row
from boa.paper.figures import (
    drawing,
    frontier_panel,
    legend_below,
    new_figure,
    panel,
    spend_label,
    title_of,
)
from boa.paper.lead_table import lead_table
from boa.paper.leads import KNOBS, RULES, Lead, leads, runs_of, span, strongest
from boa.paper.runs import Document, Run
from boa.paper.study import BEYOND, Evidence, Study, StudyOutcome, Table, nothing

RENTING = (*RULES, "rubberband", "elasticflow")
"""Rules for single jobs: nobody queues. On one type gavel-cost is the same as elasticflow."""
POLLUX, SIA = "pollux-autoscale", "sia-autoscale"
FIXED = tuple(name for name in policies_with("nodes") if name != "rubick")
"""On a cluster of their own; Rubick's profiles are others."""
SIZES = (1.6, 2.5)
"""Their clusters, over the least that the trace can be run on."""
SHOWN = ("boa", *RULES, POLLUX)
SLOW_DRAWS = 1
"""Draws that fixed clusters and Sia are run on: they are far behind on the first."""


def _runs(evidence: Evidence) -> dict[str, list[Run]]:
    scale = evidence.scale
    step = 2 if scale.quick else 1
    wanted: dict[str, list[Run]] = {}
    for number in scale.draws:
        common: dict[str, Any] = {"setting": "pollux", "draw": number, "hours": scale.hours}
        wanted.setdefault("boa", []).extend(runs_of("boa", scale.loads, **common))
        for name in RENTING:
            wanted.setdefault(name, []).extend(runs_of(name, KNOBS[name][::step], **common))
        wanted.setdefault(POLLUX, []).extend(runs_of(POLLUX, scale.targets, **common))
        if number in scale.draws[:SLOW_DRAWS]:
            for name in FIXED:
                wanted[name] = runs_of(name, SIZES[::step], **common)
            if not scale.quick:
                wanted[SIA] = runs_of(SIA, scale.few_targets, **common)
    return wanted


def runs(evidence: Evidence) -> list[Run]:
    return [run for group in _runs(evidence).values() for run in group]


def result(evidence: Evidence) -> StudyOutcome:
    found = {policy: evidence.all(group) for policy, group in _runs(evidence).items()}
    if not found["boa"] or not any(found[name] for name in RENTING):
        return nothing("runs are missing")
    table = leads({name: docs for name, docs in found.items() if name not in FIXED})
    best = strongest(table)
    fixed = {name: _fixed(found["boa"], found[name]) for name in FIXED if found.get(name)}
    return StudyOutcome(
        rows=[row(doc) for docs in found.values() for doc in docs],
        measured=_said(table, best, fixed),
        verdict="ours",
        reason="the paper compares with Pollux, Sia and Rubick only",
        numbers={
            "best": {
                f"{load:g}": {"policy": lead.policy, "jct_ratio": lead.jct and lead.jct.value}
                for load, lead in best.items()
            },
            "fixed": {name: mean.value for name, mean in fixed.items() if mean is not None},
        },
        tables=[
            lead_table("newTrace on T4s, at the same held GPUs", table),
            _fixed_table(found, fixed),
        ],
        drawn={"runs": {name: found[name] for name in SHOWN if found.get(name)}, "best": best},
    )


def _fixed(boa: Sequence[Document], docs: Sequence[Document]) -> Mean | None:
    """A fixed cluster's JCT over BOA's at the same held GPUs, where both have been."""
    ratios = [duel.jct for duel in duels(boa, docs) if duel.jct is not None]
    return Mean.of(ratios) if ratios else None


def _said(table: Sequence[Lead], best: dict[float, Lead], fixed: dict[str, Mean | None]) -> str:
    nearest = ", ".join(
        f"{title_of(lead.policy)} {lead.jct.text()} at {load:g}"
        for load, lead in sorted(best.items())
        if lead.jct is not None
    )
    rules = [lead.jct for lead in table if lead.policy in RULES and lead.jct is not None]
    behind = [mean for mean in fixed.values() if mean is not None]
    return (
        f"JCT over BOA's, the best rival by load: {nearest}; rules for single jobs "
        f"{span(rules)}, fixed clusters {span(behind)}"
    )


def _fixed_table(found: dict[str, list[Document]], fixed: dict[str, Mean | None]) -> Table:
    rows = []
    for name, mean in fixed.items():
        docs = sorted(found[name], key=lambda doc: doc["run"]["knob"])
        rows.append(
            [
                title_of(name),
                " and ".join(f"{doc['average_jct_s'] / 60:.0f}" for doc in docs),
                " and ".join(f"{doc[SPEND]:.0f}" for doc in docs),
                " and ".join(f"{doc['average_queueing_s'] / 60:.0f}" for doc in docs),
                "–" if mean is None else f"{mean.value:.1f}×",
            ]
        )
    heads = ["fixed cluster", "JCT (min)", "GPUs held", "without GPUs (min)", "JCT over BOA's"]
    sizes = " and ".join(f"{size:g}" for size in SIZES)
    title = f"newTrace, draw 1, on clusters of {sizes} times the least that it can be run on"
    return Table(title, heads, rows)


def draw(outcome: StudyOutcome) -> Figure:
    found, best = outcome.drawn["runs"], outcome.drawn["best"]
    ratios = [lead.jct.value for lead in best.values() if lead.jct is not None]
    low, high = min(ratios, default=1.0), max(ratios, default=1.0)
    title = f"The best of all rivals takes {low:.2f} to {high:.2f} times as long as BOA"
    with drawing():
        figure = new_figure(1, title, width=6.8, height=4.4)
        axes = panel(figure, 1, 1, "", spend_label(True), "Average JCT (min)")
        frontier_panel(axes, found, "average_jct_s")
        legend_below(figure, axes, 3)
        return figure


STUDY = Study(
    name="rivals",
    where=BEYOND,
    claim="every rival that has a rule, on newTrace at the same held GPUs",
    runs=runs,
    result=result,
    draw=draw,
)
