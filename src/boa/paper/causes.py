"""Where the optimum wins: BOA's lead split into its causes, by switching each off.

First the way from Pollux to BOA, one habit at a time, at the same held GPUs. Then the lead over
the best rule for single jobs (nobody queues, nobody waits for others), as the world offers less to
win: no rescaling time, no epochs, neither; one GPU type or three. What is left with neither, on one
type, is left to nobody: every rule that prices seconds by one exchange rate is optimal there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from boa.paper.compare import BILL, JCT, SPEND, Mean
from boa.paper.figures import BOA, RIVAL, drawing, new_figure, panel
from boa.paper.leads import BOA_LOADS, KNOBS, RULES, by_trace, leads, over_bound, runs_of
from boa.paper.runs import Document, Run
from boa.paper.study import BEYOND, Evidence, Row, Study, StudyOutcome, Table, nothing
from boa.paper.traces import NEWTRACE
from boa.plots import style
from boa.policy.registry import ROUND_S

AT = (1.4, 1.6, 2.0, 2.5)
"""Loads over which leads are averaged."""
OFF: Mapping[str, dict[str, Any]] = {
    "nothing": {},
    "rescaling time": {"rescale_s": 0.0},
    "epochs": {"epochs": False},
    "both": {"rescale_s": 0.0, "epochs": False},
}
BILLED = ("T4", "nothing, and whole nodes billed")
WORLDS = {"T4": "pollux", "T4, V100 and A100": "sia"}
LADDER: Sequence[tuple[str, str, dict[str, Any]]] = (
    ("Pollux with autoscaling", "pollux-autoscale", {}),
    ("every job by itself, in rounds", "efficiency", {"interval_s": ROUND_S}),
    ("… at events", "efficiency", {}),
    ("… at one price of time", "optimus-price", {}),
    ("BOA: and which rescalings to pay for", "boa", {}),
)
"""Each drops a habit of the one before: sharing a cluster; waiting for rounds; the same efficiency
for all; a width for the rest of the job."""


def _common(evidence: Evidence, setting: str, number: int) -> dict[str, Any]:
    return {
        "setting": setting,
        "draw": number,
        "hours": evidence.scale.hours,
        "learning": "perfect",
    }


def _knobs(evidence: Evidence, policy: str) -> Sequence[float]:
    if policy == "boa":
        return BOA_LOADS[:: 2 if evidence.scale.quick else 1]
    if policy == "pollux-autoscale":
        return evidence.scale.few_targets
    return KNOBS[policy][:: 2 if evidence.scale.quick else 1]


def _ladder(evidence: Evidence) -> list[list[Run]]:
    common = _common(evidence, "pollux", evidence.scale.draws[0])
    return [
        runs_of(policy, _knobs(evidence, policy), **common, **more) for _, policy, more in LADDER
    ]


def _switched(evidence: Evidence) -> dict[tuple[str, str], dict[str, list[Run]]]:
    draws = evidence.scale.draws[:2]
    return {
        (world, off): {
            policy: [
                run
                for number in (draws if setting == "pollux" else draws[:1])
                for run in runs_of(
                    policy,
                    _knobs(evidence, policy),
                    **_common(evidence, setting, number),
                    **more,
                )
            ]
            for policy in ("boa", *RULES)
        }
        for world, setting in WORLDS.items()
        for off, more in OFF.items()
    }


def _nodes(evidence: Evidence) -> dict[str, list[Run]]:
    """BOA by the node and the rules, where nodes boot and are billed whole."""
    known = NEWTRACE.groups(evidence)
    return {policy: known.get(policy, []) for policy in ("boa", *RULES)}


def runs(evidence: Evidence) -> list[Run]:
    steps = [run for group in _ladder(evidence) for run in group]
    cells = [*_switched(evidence).values(), _nodes(evidence)]
    return steps + [run for cell in cells for group in cell.values() for run in group]


@dataclass(frozen=True, slots=True)
class _Cell:
    """A world with something switched off."""

    boa: float
    """BOA's JCT over the bound."""
    lead: Mean
    """The best rule's JCT over BOA's."""


def result(evidence: Evidence) -> StudyOutcome:
    steps = [evidence.all(group) for group in _ladder(evidence)]
    common = [load for load in AT if all(over_bound(docs, load, JCT) for docs in steps)]
    ladder = [at for docs in steps if (at := _over_bound(docs, loads=common)) is not None]
    cells = {
        which: found
        for which, groups in _switched(evidence).items()
        if (found := _cell(evidence, groups)) is not None
    }
    if len(ladder) < len(LADDER) or len(cells) < len(WORLDS) * len(OFF):
        return nothing("runs are missing")
    billed = _cell(evidence, _nodes(evidence), BILL)
    queueing = _queueing(steps[0])
    return StudyOutcome(
        rows=_rows(ladder, cells),
        measured=_said(ladder, cells, billed, queueing),
        verdict="ours",
        reason=f"mean over loads {AT[0]:g} to {AT[-1]:g}",
        numbers={
            "ladder": dict(zip((name for name, *_ in LADDER), ladder, strict=True)),
            "lead": {f"{world}, {off}": cell.lead.value for (world, off), cell in cells.items()},
            "billed": None if billed is None else billed.lead.value,
            "queueing": queueing,
        },
        tables=[
            _ladder_table(ladder),
            _switched_table(cells if billed is None else {**cells, BILLED: billed}),
        ],
        drawn={"ladder": ladder, "cells": cells},
    )


def _cell(evidence: Evidence, groups: Mapping[str, Sequence[Run]], by: str = SPEND) -> _Cell | None:
    found = {policy: evidence.all(group) for policy, group in groups.items()}
    boa, lead = _over_bound(found["boa"], by), best_lead(found, by)
    return None if boa is None or lead is None else _Cell(boa, lead)


def _said(
    ladder: Sequence[float],
    cells: Mapping[tuple[str, str], _Cell],
    billed: _Cell | None,
    queueing: float,
) -> str:
    parts = ", ".join(
        f"{name} {was / now:.2f}×"
        for (name, *_), was, now in zip(LADDER[1:], ladder[:-1], ladder[1:], strict=True)
    )
    worlds = "; ".join(
        f"{world}: " + ", ".join(f"{off} off {cells[world, off].lead.text()}" for off in OFF)
        for world in WORLDS
    )
    nodes = "" if billed is None else f"; whole nodes billed {billed.lead.text()}"
    return (
        f"Pollux takes {ladder[0] / ladder[-1]:.2f}× as long as BOA: {parts} (its jobs queue for "
        f"{queueing:.1%} of their time). The best rule for single jobs over BOA, {worlds}{nodes}"
    )


def _rows(ladder: Sequence[float], cells: Mapping[tuple[str, str], _Cell]) -> list[Row]:
    steps: list[Row] = [
        {"world": "ladder", "off": name, "boa": at}
        for (name, *_), at in zip(LADDER, ladder, strict=True)
    ]
    return steps + [
        {"world": world, "off": off, "boa": cell.boa, "lead": cell.lead.value}
        for (world, off), cell in cells.items()
    ]


def _over_bound(
    docs: Sequence[Document], by: str = SPEND, loads: Sequence[float] = AT
) -> float | None:
    """JCT over the bound, the mean over loads and traces."""
    known = [lead.over_bound.value for lead in leads({"boa": docs}, by, loads)] if docs else []
    return float(np.mean(known)) if known else None


def best_lead(found: Mapping[str, Sequence[Document]], by: str = SPEND) -> Mean | None:
    """JCT of the best rule over BOA's: of every trace the mean over loads."""
    traces = {policy: by_trace(docs) for policy, docs in found.items()}
    means = []
    for trace, own in traces["boa"].items():
        ratios = []
        for load in AT:
            boa = over_bound(own, load, JCT, by)
            rules = [over_bound(traces[rule].get(trace, ()), load, JCT, by) for rule in RULES]
            best = min((at for at in rules if at is not None), default=None)
            if boa is not None and best is not None:
                ratios.append(best / boa)
        if ratios:
            means.append(float(np.mean(ratios)))
    return Mean.of(means) if means else None


def _queueing(docs: Sequence[Document]) -> float:
    """Part of their time that jobs have no GPUs."""
    return float(np.mean([doc["average_queueing_s"] / doc[JCT] for doc in docs]))


def _ladder_table(ladder: Sequence[float]) -> Table:
    gained = ["", *(f"{was / at:.2f}×" for was, at in pairwise(ladder))]
    rows = [
        [name, f"{at:.2f}", faster]
        for (name, *_), at, faster in zip(LADDER, ladder, gained, strict=True)
    ]
    heads = ["", "JCT over the bound", "faster than the one before"]
    return Table("From Pollux to BOA, at the same held GPUs (newTrace, T4)", heads, rows)


def _switched_table(cells: Mapping[tuple[str, str], _Cell]) -> Table:
    rows = [
        [world, off, f"{cell.boa:.2f}", cell.lead.text()] for (world, off), cell in cells.items()
    ]
    heads = ["GPU types", "switched off", "BOA's JCT over the bound", "best rule's JCT over BOA's"]
    return Table("What is left of the lead over the best rule for single jobs", heads, rows)


def draw(outcome: StudyOutcome) -> Figure:
    with drawing():
        figure = new_figure(2, "Where the optimum wins", width=5.6, height=3.8)
        title = "From Pollux to BOA, a habit at a time"
        _ladder_panel(panel(figure, 1, 2, title, "JCT over the bound", ""), outcome.drawn["ladder"])
        title = "The best rule for single jobs, with … switched off"
        beside = panel(figure, 2, 2, title, "", "Its JCT over BOA's")
        _switched_panel(beside, outcome.drawn["cells"])
        return figure


def _ladder_panel(axes: Axes, ladder: Sequence[float]) -> None:
    names = [name for name, *_ in LADDER]
    inks = [RIVAL, *[style.QUIET] * (len(names) - 2), BOA]
    axes.barh(names, ladder, color=inks, height=0.62)
    for n, at in enumerate(ladder):
        axes.annotate(f" {at:.2f}", (at, n), va="center", fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(left=1.0, right=1.12 * max(ladder))
    axes.grid(visible=False)


def _switched_panel(axes: Axes, cells: Mapping[tuple[str, str], _Cell]) -> None:
    for shift, (world, hatch) in enumerate(zip(WORLDS, ("", "///"), strict=True)):
        means = [cells[world, off].lead for off in OFF]
        axes.bar(
            [n + 0.38 * shift for n in range(len(OFF))],
            [mean.value - 1 for mean in means],
            bottom=1.0,
            width=0.34,
            yerr=[mean.half or 0.0 for mean in means],
            color=style.SKY if hatch else BOA, hatch=hatch, ec="white",
            error_kw={"lw": 1.0, "capsize": 3}, label=world,
        )  # fmt: skip
        for n, mean in enumerate(means):
            axes.annotate(
                f"{mean.value:.2f}", (n + 0.38 * shift, mean.value + (mean.half or 0.0)),
                xytext=(0, 3), textcoords="offset points", ha="center", fontsize=8.5,
                color=style.QUIET,
            )  # fmt: skip
    axes.set_xticks([n + 0.19 for n in range(len(OFF))], list(OFF), fontsize=8.5)
    axes.axhline(1.0, color=style.QUIET, lw=1.0)
    axes.legend(frameon=False, fontsize=9)


STUDY = Study(
    name="causes",
    where=BEYOND,
    claim="where BOA's lead comes from: queueing, coupling, rescaling, epochs, types",
    runs=runs,
    result=result,
    draw=draw,
)
