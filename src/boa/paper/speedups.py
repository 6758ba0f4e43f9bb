"""Figure 2: how a Cifar10 job speeds up with GPUs in two phases of training, and its cost."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from boa.paper.data import workload_for
from boa.paper.figures import drawing, new_figure, panel
from boa.paper.study import Evidence, Row, Study, StudyOutcome, judge, no_runs
from boa.plots import style

WIDTHS = np.arange(1.0, 65.0)
PHASES = {"after 10 % of training": 10, "at its end": -1}
"""Epochs, of 100."""


def result(evidence: Evidence) -> StudyOutcome:
    workload = workload_for(evidence.data, "pollux")
    job = next(c for c in workload.classes if c.name == "resnet18")
    curves = {name: job.epochs[n].speedups["T4"].rates(WIDTHS) for name, n in PHASES.items()}
    early, late = curves.values()
    rows: list[Row] = [
        {"phase": name, "gpus": int(k), "speedup": float(s), "gpu_hours_over_one_gpu": k / float(s)}
        for name, curve in curves.items()
        for k, s in zip(WIDTHS.tolist(), curve, strict=True)
    ]
    sublinear = all((curve <= WIDTHS * (1 + 1e-9)).all() for curve in curves.values())
    verdict, reason = judge(bool(sublinear and late[-1] > early[-1]), {})
    at = [16, 64]
    said = [f"{early[k - 1]:.1f}× and {late[k - 1]:.1f}× on {k} GPUs" for k in at]
    cost = 64 / float(early[63]), 64 / float(late[63])
    return StudyOutcome(
        rows=rows,
        measured=f"after 10 % of training and at its end {', '.join(said)}, where "
        f"training takes {cost[0]:.1f} and {cost[1]:.1f} times "
        "the GPU-hours",
        verdict=verdict,
        reason=reason,
        numbers={"early_64": float(early[63]), "late_64": float(late[63])},
    )


def draw(outcome: StudyOutcome) -> Figure:
    panels = (
        ("speedup", "Speedup functions", "Speedup over one GPU"),
        ("gpu_hours_over_one_gpu", "Training cost", "GPU-hours / those on one GPU"),
    )
    with drawing():
        figure = new_figure(2, "A Cifar10 job on T4s", width=4.6)
        for n, (key, title, up) in enumerate(panels, start=1):
            axes = panel(figure, n, 2, title, "GPUs", up)
            for phase, ink in zip(PHASES, (style.GREEN, style.PURPLE), strict=True):
                own = [row for row in outcome.rows if row["phase"] == phase]
                axes.plot(
                    [r["gpus"] for r in own], [r[key] for r in own], color=ink, lw=2, label=phase
                )
            if key == "speedup":
                axes.plot([1, 16], [1, 16], color=style.QUIET, lw=1, ls=(0, (4, 3)), label="linear")
            else:
                axes.set_ylim(bottom=0)
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.set_xticks([1, 8, 16, 32, 48, 64])
            if n == 1:
                axes.legend(frameon=False, fontsize=9)
        return figure


STUDY = Study(
    name="speedups",
    where="Figure 2",
    claim="a Cifar10 job's speedup is sublinear and changes during training; wider training "
    "costs more",
    runs=no_runs,
    result=result,
    draw=draw,
)
