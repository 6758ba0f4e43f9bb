"""Appendix D: what routing at arrival loses against routing every epoch, without rescaling."""

import numpy as np
from matplotlib.figure import Figure

from boa.paper.data import workload_for
from boa.paper.figures import drawing, new_figure, panel
from boa.paper.study import Evidence, Row, Study, StudyOutcome, no_runs
from boa.plots import style
from boa.solver.planner import frontier

FACTORS = np.geomspace(1.001, 3.0, 60)
CLAIMED = 0.05


def result(evidence: Evidence) -> StudyOutcome:
    workload = workload_for(evidence.data, "sia")
    by_class = frontier(workload, rescaling=False, routing="class")
    by_epoch = frontier(workload, rescaling=False, routing="epoch")
    rows: list[Row] = []
    for factor in FACTORS.tolist():
        budget = max(by_class.cheapest, by_epoch.cheapest) * factor
        kept, free = by_class.at(budget).objective, by_epoch.at(budget).objective
        rows.append(
            {
                "budget_over_cheapest": factor,
                "budget_per_hour": budget,
                "by_class_s": kept,
                "by_epoch_s": free,
                "loss": max(0.0, kept / free - 1),  # rounding aside
            }
        )
    most = max(row["loss"] for row in rows)
    return StudyOutcome(
        rows=rows,
        measured=f"at most {most:.2%} over {len(rows)} budgets, "
        f"{np.median([row['loss'] for row in rows]):.2%} at the median",
        verdict="matches" if most <= CLAIMED else "differs",
        reason="within 5 % everywhere" if most <= CLAIMED else "more than 5 % at some budgets",
        numbers={"most": most},
    )


def draw(outcome: StudyOutcome) -> Figure:
    with drawing():
        figure = new_figure(
            1, "What routing at arrival loses, without rescaling times", width=6.4, height=3.6
        )
        axes = panel(figure, 1, 1, "", "Budget (USD per hour)", "JCT above per-epoch routing (%)")
        axes.plot(
            [row["budget_per_hour"] for row in outcome.rows],
            [100 * row["loss"] for row in outcome.rows],
            color=style.BLUE, lw=2,
        )  # fmt: skip
        axes.axhline(100 * CLAIMED, color=style.QUIET, lw=1, ls=(0, (4, 3)))
        axes.annotate(
            "the paper's bound", (1.0, 100 * CLAIMED), xycoords=("axes fraction", "data"),
            xytext=(-2, -11), textcoords="offset points", ha="right", fontsize=9,
            color=style.QUIET,
        )  # fmt: skip
        axes.set_ylim(0, 100 * CLAIMED * 1.15)
        return figure


STUDY = Study(
    name="routing",
    where="Appendix D",
    claim="routing a job once, at arrival, is always within 5 % of routing every epoch",
    runs=no_runs,
    result=result,
    draw=draw,
)
