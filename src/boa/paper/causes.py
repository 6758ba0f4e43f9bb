"""Where the optimum wins: BOA's lead split into its causes, by switching each off.

First the way from Pollux to BOA, one habit at a time, at the same held GPUs. Then the lead over
the best rule for single jobs (nobody queues, nobody waits for others), as the world offers less to
win: no rescaling time, no epochs, neither; one GPU type or three. What is left with neither, on one
type, is left to nobody: every rule that prices seconds by one exchange rate is optimal there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from boa.paper.compare import JCT, Mean
from boa.paper.figures import BOA, RIVAL, drawing, new_figure, panel
from boa.paper.leads import BOA_LOADS, KNOBS, RULES, leads, runs_of, strongest
from boa.paper.runs import Document, Run
from boa.paper.study import BEYOND, Evidence, Study, StudyOutcome, Table, nothing
from boa.plots import style
from boa.policy.registry import ROUND_S

AT = (1.4, 1.6, 2.0, 2.5)
"""Loads over which leads are averaged."""
OFF: Mapping[str, dict[str, Any]] = {
    "as it is": {},
    "no rescaling time": {"rescale_s": 0.0},
    "no epochs": {"epochs": False},
    "neither": {"rescale_s": 0.0, "epochs": False},
}
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


def runs(evidence: Evidence) -> list[Run]:
    steps = [run for group in _ladder(evidence) for run in group]
    cells = _switched(evidence).values()
    return steps + [run for cell in cells for group in cell.values() for run in group]


def result(evidence: Evidence) -> StudyOutcome:
    steps = [evidence.all(group) for group in _ladder(evidence)]
    ladder = [_over_bound(docs) for docs in steps]
    found = {
        which: {policy: evidence.all(group) for policy, group in cell.items()}
        for which, cell in _switched(evidence).items()
    }
    lead = {which: best_lead(docs) for which, docs in found.items()}
    boa = {which: _over_bound(docs["boa"]) for which, docs in found.items()}
    if ladder[0] is None or ladder[-1] is None or any(mean is None for mean in lead.values()):
        return nothing("runs are missing")
    first, last = ladder[0], ladder[-1]
    queueing = _queueing(steps[0])
    parts = [
        f"{name} {was / now:.2f}×"
        for (name, *_), was, now in zip(LADDER[1:], ladder, ladder[1:], strict=False)
        if was is not None and now is not None
    ]
    told = ", ".join(f"{off} {lead['T4', off].text()}" for off in OFF)  # type: ignore[union-attr]
    types = ", ".join(
        f"{off} {lead['T4, V100 and A100', off].text()}"  # type: ignore[union-attr]
        for off in OFF
    )
    return StudyOutcome(
        rows=[
            {"world": world, "off": off, "lead": mean and mean.value, "boa": boa[world, off]}
            for (world, off), mean in lead.items()
        ]
        + [
            {"world": "ladder", "off": name, "boa": at}
            for (name, *_), at in zip(LADDER, ladder, strict=True)
        ],
        measured=f"Pollux takes {first / last:.2f}× as long as BOA: {', '.join(parts)} (its "
        f"jobs queue for {queueing:.1%} of their time). The best rule for single "
        f"jobs over BOA, on T4s: {told}; on three types: {types}",
        verdict="ours",
        reason=f"mean over loads {AT[0]:g} to {AT[-1]:g}",
        numbers={
            "ladder": dict(zip((name for name, *_ in LADDER), ladder, strict=True)),
            "lead": {f"{world}, {off}": m and m.value for (world, off), m in lead.items()},
            "queueing": queueing,
        },
        tables=[_ladder_table(ladder), _switched_table(lead, boa)],
        drawn={"ladder": ladder, "lead": lead},
    )


def _over_bound(docs: Sequence[Document]) -> float | None:
    """JCT over the bound, the mean over loads and traces."""
    known = [lead.over_bound.value for lead in leads({"boa": docs}, loads=AT)] if docs else []
    return sum(known) / len(known) if known else None


def best_lead(found: Mapping[str, Sequence[Document]]) -> Mean | None:
    """JCT of the best rule over BOA's, the mean over loads."""
    best = [lead.jct for lead in strongest(leads(found, loads=AT)).values() if lead.jct]
    if not best:
        return None
    halves = [mean.half for mean in best if mean.half is not None]
    value = sum(mean.value for mean in best) / len(best)
    return Mean(value, sum(halves) / len(halves) if halves else None, best[0].n)


def _queueing(docs: Sequence[Document]) -> float:
    """Part of their time that jobs have no GPUs."""
    return float(np.mean([doc["average_queueing_s"] / doc[JCT] for doc in docs]))


def _ladder_table(ladder: Sequence[float | None]) -> Table:
    rows = []
    before: float | None = None
    for (name, *_), at in zip(LADDER, ladder, strict=True):
        gained = "" if before is None or at is None else f"{before / at:.2f}×"
        rows.append([name, "–" if at is None else f"{at:.2f}", gained])
        before = at
    heads = ["", "JCT over the bound", "faster than the one before"]
    return Table("From Pollux to BOA, at the same held GPUs (newTrace, T4)", heads, rows)


def _switched_table(
    lead: Mapping[tuple[str, str], Mean | None], boa: Mapping[tuple[str, str], float | None]
) -> Table:
    rows = [
        [world, off, "–" if boa[world, off] is None else f"{boa[world, off]:.2f}", _text(mean)]
        for (world, off), mean in lead.items()
    ]
    heads = ["GPU types", "switched off", "BOA's JCT over the bound", "best rule's JCT over BOA's"]
    return Table("What is left of the lead over the best rule for single jobs", heads, rows)


def _text(mean: Mean | None) -> str:
    return "–" if mean is None else mean.text()


def draw(outcome: StudyOutcome) -> Figure:
    ladder, lead = outcome.drawn["ladder"], outcome.drawn["lead"]
    with drawing():
        figure = new_figure(2, "Where the optimum wins", width=5.6, height=3.8)
        axes = panel(
            figure, 1, 2, "From Pollux to BOA, a habit at a time", "JCT over the bound", ""
        )
        names = [name for name, *_ in LADDER]
        inks = [RIVAL, *[style.QUIET] * (len(names) - 2), BOA]
        axes.barh(names, [at or 0.0 for at in ladder], color=inks, height=0.62)
        for n, at in enumerate(ladder):
            axes.annotate(f" {at:.2f}", (at or 0.0, n), va="center", fontsize=9)
        axes.invert_yaxis()
        axes.set_xlim(left=1.0, right=1.12 * max(at or 1.0 for at in ladder))
        axes.grid(visible=False)
        beside = panel(figure, 2, 2, "The best rule for single jobs", "", "Its JCT over BOA's")
        for shift, (world, hatch) in enumerate(zip(WORLDS, ("", "///"), strict=True)):
            means = [lead[world, off] for off in OFF]
            beside.bar(
                [n + 0.38 * shift for n in range(len(OFF))],
                [mean.value - 1 for mean in means],
                bottom=1.0,
                width=0.34,
                yerr=[mean.half or 0.0 for mean in means],
                color=style.SKY if hatch else BOA, hatch=hatch, ec="white",
                error_kw={"lw": 1.0, "capsize": 3}, label=world,
            )  # fmt: skip
        beside.set_xticks([n + 0.19 for n in range(len(OFF))], list(OFF), fontsize=8.5)
        beside.axhline(1.0, color=style.QUIET, lw=1.0)
        beside.legend(frameon=False, fontsize=9)
        return figure


STUDY = Study(
    name="causes",
    where=BEYOND,
    claim="where BOA's lead comes from: queueing, coupling, rescaling, epochs, types",
    runs=runs,
    result=result,
    draw=draw,
)
