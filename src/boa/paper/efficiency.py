"""Figure 7: cluster efficiency over time, both policies at the same average spend."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from boa.paper.compare import JCT, SPEND, Tuned, row, tune
from boa.paper.figures import colour, drawing, legend_above, new_figure, panel, series_panel
from boa.paper.runs import Document, Run
from boa.paper.study import Evidence, Study, StudyOutcome, judge, nothing

RIVAL = "pollux-autoscale"
CLAIMED = {"boa": 0.64, RIVAL: 0.73}


def _common(evidence: Evidence) -> dict[str, Any]:
    scale = evidence.scale
    return {"setting": "pollux", "draw": scale.draws[0], "hours": scale.hours}


def _rival(evidence: Evidence) -> Run:
    """The target whose efficiency is about the one that the paper shows."""
    target = min(evidence.scale.targets, key=lambda target: abs(target - CLAIMED[RIVAL]))
    return Run(policy=RIVAL, knob=target, **_common(evidence))


def _boa(evidence: Evidence, spend: float) -> Tuned:
    common = _common(evidence)
    return tune(
        evidence,
        lambda load: Run(policy="boa", knob=load, **common),
        evidence.scale.loads,
        spend,
    )


def runs(evidence: Evidence) -> list[Run]:
    rival = _rival(evidence)
    found = evidence.get(rival)
    return [rival] if found is None else [rival, *_boa(evidence, found[SPEND]).wanted]


def result(evidence: Evidence) -> StudyOutcome:
    rival = evidence.get(_rival(evidence))
    boa = None if rival is None else _boa(evidence, rival[SPEND]).best
    if rival is None or boa is None:
        return nothing("a run is missing")
    both = {"boa": boa, RIVAL: rival}
    means = {policy: mean_efficiency(found) for policy, found in both.items()}
    faster = rival[JCT] / boa[JCT]
    verdict, reason = judge(
        means["boa"] < means[RIVAL] and faster > 1,
        {f"efficiency of {name}": (means[name], CLAIMED[name]) for name in means},
    )
    return StudyOutcome(
        rows=[row(doc, mean_efficiency=means[name]) for name, doc in both.items()],
        measured=(
            f"Pollux {means[RIVAL]:.2f}, BOA {means['boa']:.2f} at {boa[SPEND]:.0f} and "
            f"{rival[SPEND]:.0f} GPUs, where Pollux's jobs take {faster:.2f}× as long"
        ),
        verdict=verdict,
        reason=reason,
        numbers={"boa": means["boa"], "rival": means[RIVAL], "jct_ratio": faster},
        drawn={"both": both, "means": means},
    )


def mean_efficiency(found: Document) -> float:
    """Over the time in which jobs arrive; afterwards the cluster only empties."""
    return float(np.mean([value for value in found["series"]["efficiency"] if value is not None]))


def draw(outcome: StudyOutcome) -> Figure:
    means = outcome.drawn["means"]
    title = (
        f"Cluster efficiency at the same spend: BOA {means['boa']:.2f}, Pollux {means[RIVAL]:.2f}"
    )
    with drawing():
        figure = new_figure(1, title, width=8.4, height=3.6)
        axes = panel(figure, 1, 1, "", "Hours", "Cluster efficiency")
        series_panel(axes, outcome.drawn["both"], "efficiency", smooth=5)
        for policy, mean in means.items():
            axes.axhline(mean, lw=1.0, ls=(0, (4, 3)), color=colour(policy))
        axes.set_ylim(0, 1.05)
        legend_above(axes)
        return figure


STUDY = Study(
    name="efficiency",
    where="Figure 7",
    claim="at the same budget BOA runs at a lower cluster efficiency (0.64) than Pollux (0.73), "
    "and its jobs are faster",
    runs=runs,
    result=result,
    draw=draw,
)
