"""Table 1: what newTrace and Rubick's trace are made of."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from boa.paper.data import Cut, trace_of
from boa.paper.figures import drawing, new_figure, panel
from boa.paper.study import Evidence, Row, Study, StudyOutcome, no_runs
from boa.plots import style

PRINTED: Mapping[str, Mapping[str, tuple[str, float]]] = {
    "pollux": {
        "cifar10": ("ResNet18", 50.42),
        "deepspeech2": ("DeepSpeech2", 23.54),
        "bert": ("BERT", 21.67),
        "yolov3": ("YOLOv3", 4.75),
        "imagenet": ("ResNet50", 0.62),
    },
    "rubick": {
        "gpt2": ("GPT-2", 17.00),
        "bert": ("BERT", 15.76),
        "t5": ("T5", 15.27),
        "roberta": ("RoBERTa", 14.29),
        "llama7": ("LLaMA-2-7B", 13.30),
        "llama30": ("LLaMA-30B", 12.56),
        "vit": ("ViT", 11.82),
    },
}
TITLES = {"pollux": "newTrace", "rubick": "Rubick"}
ROUNDING = 0.011


def result(evidence: Evidence) -> StudyOutcome:
    rows: list[Row] = []
    for setting, printed in PRINTED.items():
        trace = trace_of(evidence.data, setting, Cut())
        counts = trace.counts()
        rows += [
            {
                "trace": TITLES[setting],
                "model": model,
                "jobs": counts.get(app, 0),
                "of": len(trace.jobs),
                "share_percent": 100 * counts.get(app, 0) / len(trace.jobs),
                "printed_percent": share,
            }
            for app, (model, share) in printed.items()
        ]
    off = [r for r in rows if abs(r["share_percent"] - r["printed_percent"]) > ROUNDING]
    sums = {t: sum(r["printed_percent"] for r in rows if r["trace"] == t) for t in TITLES.values()}
    said = [f"{r['model']} {r['share_percent']:.2f} % ({r['jobs']} of {r['of']})" for r in off]
    return StudyOutcome(
        rows=rows,
        measured=f"{len(rows) - len(off)} of {len(rows)} shares as printed"
        + (f"; {', '.join(said)}" if off else ""),
        verdict="matches" if not off else "partly" if len(off) == 1 else "differs",
        reason="; ".join(f"the printed shares of {t} sum to {s:.2f} %" for t, s in sums.items()),
        numbers={"as_printed": len(rows) - len(off), "rows": len(rows)},
    )


def draw(outcome: StudyOutcome) -> Figure:
    with drawing():
        figure = new_figure(2, "Shares of jobs, as printed and as in the traces", width=4.6)
        for n, trace in enumerate(TITLES.values(), start=1):
            own = [row for row in outcome.rows if row["trace"] == trace][::-1]
            axes = panel(figure, n, 2, trace, "Share of jobs (%)", "")
            axes.grid(False)
            axes.grid(True, axis="x")
            places = range(len(own))
            axes.barh(
                [p + 0.19 for p in places], [row["printed_percent"] for row in own], 0.36,
                color=style.FAINT, edgecolor=style.QUIET, lw=0.6, label="printed in the paper",
            )  # fmt: skip
            axes.barh(
                [p - 0.19 for p in places], [row["share_percent"] for row in own], 0.36,
                color=style.SKY, label="in the trace",
            )  # fmt: skip
            axes.set_yticks(list(places), [row["model"] for row in own])
            if n == 1:
                axes.legend(frameon=False, fontsize=9, loc="lower right")
        return figure


STUDY = Study(
    name="workload-table",
    where="Table 1",
    claim="newTrace: 960 jobs, ResNet18 50.42 %, ..., YOLOv3 4.75 %; Rubick: 406 jobs, GPT-2 "
    "17.00 %, ..., ViT 11.82 %",
    runs=no_runs,
    result=result,
    draw=draw,
)
