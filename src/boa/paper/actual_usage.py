"""Figure 11 (appendix): what the cloud bills for nodes that are on their way back.

The paper gives no time for that; we take five minutes, for both policies.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from boa.paper.compare import BILL, JCT, RENTED, duels, row
from boa.paper.figures import colour, drawing, new_figure, panel, title_of
from boa.paper.figures import logarithmic as log_axis
from boa.paper.implementation import COLD, RECLAIM_S, RIVAL, grid
from boa.paper.runs import Document, Run
from boa.paper.study import Evidence, Study, StudyOutcome, Verdict, nothing

EFFECTIVE, ACTUAL = RENTED, BILL
"""A T4 costs 1 here, so that money counts GPUs."""


def runs(evidence: Evidence) -> list[Run]:
    return [run for group in grid(evidence, COLD).values() for run in group]


def result(evidence: Evidence) -> StudyOutcome:
    found = {policy: evidence.all(group) for policy, group in grid(evidence, COLD).items()}
    if not all(found.values()):
        return nothing("runs are missing")
    more = {policy: float(np.mean(_surcharge(docs))) for policy, docs in found.items()}
    lead = [duel.jct for duel in duels(found["boa"], found[RIVAL], ACTUAL) if duel.jct]
    if not lead:
        return nothing("no runs at a common usage")
    verdict, reason = _judged(lead, more["boa"] < more[RIVAL])
    return StudyOutcome(
        rows=[
            row(doc, reclaim_s=RECLAIM_S, effective_gpus=doc[EFFECTIVE], actual_gpus=doc[ACTUAL])
            for docs in found.values()
            for doc in docs
        ],
        measured=(
            f"with {RECLAIM_S:.0f} s to reclaim a node BOA is billed {more['boa']:.0%} more, "
            f"Pollux {more[RIVAL]:.0%}; at the same actual usage Pollux's jobs take "
            f"{min(lead):.2f}–{max(lead):.2f}× as long"
        ),
        verdict=verdict,
        reason=reason,
        numbers={"boa_more": more["boa"], "rival_more": more[RIVAL], "jct_ratio": max(lead)},
        drawn={"found": found},
    )


def _judged(lead: Sequence[float], less: bool) -> tuple[Verdict, str]:
    ahead = sum(ratio > 1 for ratio in lead)
    if ahead == len(lead) and less:
        return "matches", "BOA stays ahead everywhere, and reclaiming costs it less"
    where = f"BOA stays ahead at {ahead} of {len(lead)} usages"
    cost = "less" if less else "no less"
    verdict: Verdict = "partly" if 2 * ahead > len(lead) else "differs"
    return verdict, f"{where}, and reclaiming costs it {cost}"


def _surcharge(docs: Sequence[Document]) -> list[float]:
    return [doc["reclaiming_gpus"] / doc[EFFECTIVE] for doc in docs]


def draw(outcome: StudyOutcome) -> Figure:
    words = {EFFECTIVE: "effective", ACTUAL: "actual"}
    with drawing():
        title = f"What reclaiming nodes adds ({RECLAIM_S:.0f} s each)"
        figure = new_figure(1, title, width=6.4, height=4.2)
        axes = panel(figure, 1, 1, "", "Average GPUs rented", "Average JCT (min)")
        values: list[float] = []
        for policy, docs in outcome.drawn["found"].items():
            for key, word in words.items():
                points = sorted((doc[key], doc[JCT] / 60.0) for doc in docs)
                values += [value for _, value in points]
                axes.plot(
                    *zip(*points, strict=True),
                    color=colour(policy), ls="-" if key == EFFECTIVE else "--", lw=1.8,
                    marker="o" if policy == "boa" else "s", ms=4.5,
                    mfc=colour(policy) if key == EFFECTIVE else "white",
                    label=f"{title_of(policy)}, {word}",
                )  # fmt: skip
        log_axis(axes, values)
        axes.legend(frameon=False, fontsize=9)
        return figure


STUDY = Study(
    name="actual-usage",
    where="Figure 11, Appendix C",
    claim="reclamation time adds to both policies' usage, less to BOA's, which stays ahead",
    runs=runs,
    result=result,
    draw=draw,
)
