"""Figure 8: GPUs over time in the 85-job experiment, both policies tuned to ~55 GPUs."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from boa.paper.compare import JCT, SPEND, Tuned, row, tune
from boa.paper.figures import drawing, legend_above, new_figure, panel, series_panel
from boa.paper.runs import Document, Run
from boa.paper.study import Evidence, Study, StudyOutcome, judge, nothing

RIVAL = "pollux-autoscale"
GPUS = 55.0


def _tuned(evidence: Evidence) -> dict[str, Tuned]:
    scale = evidence.scale
    knobs = {"boa": scale.loads, RIVAL: scale.targets}
    common: dict[str, Any] = {
        "setting": "implementation",
        "learning": "perfect",
        "hours": scale.experiment_hours,
    }

    def tuned(policy: str) -> Tuned:
        return tune(
            evidence, lambda knob: Run(policy=policy, knob=knob, **common), knobs[policy], GPUS
        )

    return {policy: tuned(policy) for policy in knobs}


def runs(evidence: Evidence) -> list[Run]:
    return [run for tuned in _tuned(evidence).values() for run in tuned.wanted]


def result(evidence: Evidence) -> StudyOutcome:
    best = {policy: tuned.best for policy, tuned in _tuned(evidence).items()}
    both = {policy: found for policy, found in best.items() if found is not None}
    if len(both) < 2:
        return nothing("a run is missing")
    boa, rival = both["boa"], both[RIVAL]
    peaks = {policy: peak(found) for policy, found in both.items()}
    waits = {policy: found["average_queueing_s"] for policy, found in both.items()}
    ratio = rival[JCT] / boa[JCT]
    holds = ratio > 1 and peaks["boa"] > 1.05 * peaks[RIVAL] and waits["boa"] < waits[RIVAL]
    verdict, reason = judge(holds, {})
    return StudyOutcome(
        rows=[row(found, peak_gpus=peaks[policy]) for policy, found in both.items()],
        measured=(
            f"at {boa[SPEND]:.0f} and {rival[SPEND]:.0f} GPUs BOA rents up to {peaks['boa']:.0f}, "
            f"Pollux up to {peaks[RIVAL]:.0f}; jobs wait {waits['boa']:.0f} s and "
            f"{waits[RIVAL]:.0f} s without GPUs; Pollux's take {ratio:.2f}× as long"
        ),
        verdict=verdict,
        reason=reason,
        numbers={"jct_ratio": ratio, "boa_peak": peaks["boa"], "rival_peak": peaks[RIVAL]},
        drawn={"both": both},
    )


def peak(found: Document) -> float:
    return float(np.max([value for value in found["series"]["rented_gpus"] if value is not None]))


def draw(outcome: StudyOutcome) -> Figure:
    with drawing():
        figure = new_figure(1, "BOA follows bursts of arrivals", width=8.4, height=3.6)
        axes = panel(figure, 1, 1, "", "Hours", "GPUs rented")
        series_panel(axes, outcome.drawn["both"], "rented_gpus")
        legend_above(axes)
        return figure


STUDY = Study(
    name="usage",
    where="Figure 8",
    claim="at ~55 GPUs BOA reacts faster and more aggressively to bursts than Pollux, which lets "
    "jobs queue",
    runs=runs,
    result=result,
    draw=draw,
)
