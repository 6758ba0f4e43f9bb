"""Figure 9: each policy with imperfect predictions against itself with perfect ones.

"Learned" is what all simulations use: classes learn together, from one earlier job of each type.
Ours are close to the truth by then, so a second kind is put beside it: the truth, off by a random
factor per class and width.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from boa.paper.compare import JCT, SPEND, Mean, at_spend, row
from boa.paper.figures import colour, drawing, new_figure, panel, title_of
from boa.paper.figures import logarithmic as log_axis
from boa.paper.runs import Document, Run
from boa.paper.study import Evidence, Study, StudyOutcome, judge, nothing

RIVAL = "pollux-autoscale"
NOISE = 0.3
KINDS: Mapping[str, dict[str, Any]] = {
    "perfect": {"learning": "perfect"},
    "learned": {"learning": "class"},
    "noisy": {"learning": "perfect", "noise": NOISE},
}
CLAIMED = 1.4
UNCHANGED = 1.05


def _grid(evidence: Evidence) -> dict[tuple[str, str], list[Run]]:
    scale = evidence.scale
    knobs = {"boa": scale.loads, RIVAL: scale.few_targets}
    return {
        (policy, kind): [
            Run(setting="pollux", policy=policy, knob=knob, draw=draw, hours=scale.hours, **more)
            for draw in scale.draws[:1]
            for knob in values
        ]
        for policy, values in knobs.items()
        for kind, more in KINDS.items()
    }


def runs(evidence: Evidence) -> list[Run]:
    return [run for group in _grid(evidence).values() for run in group]


def result(evidence: Evidence) -> StudyOutcome:
    found = {which: evidence.all(group) for which, group in _grid(evidence).items()}
    spends = [doc[SPEND] for kind in ("perfect", "learned") for doc in found[RIVAL, kind]]
    if not spends:
        return nothing("no runs of Pollux")
    span = min(spends), max(spends)
    worse = {
        (policy, kind): worst(docs, found[policy, "perfect"], span)
        for (policy, kind), docs in found.items()
        if kind != "perfect"
    }
    known = {which: mean for which, mean in worse.items() if mean is not None}
    if len(known) < len(worse):
        return nothing("no runs at a common spend")
    boa, rival = known["boa", "learned"], known[RIVAL, "learned"]
    verdict, reason = judge(
        boa.value <= UNCHANGED and rival.value > boa.value, {"Pollux": (rival.value, CLAIMED)}
    )
    return StudyOutcome(
        rows=[row(doc, kind=kind) for (_, kind), docs in found.items() for doc in docs],
        measured=(
            f"JCT over that with perfect predictions, at worst: learned, Pollux {rival.text()} "
            f"and BOA {boa.text()}; noisy (σ of log {NOISE}), "
            f"{known[RIVAL, 'noisy'].text()} and {known['boa', 'noisy'].text()}"
        ),
        verdict=verdict,
        reason=reason,
        numbers={f"{policy}_{kind}": mean.value for (policy, kind), mean in known.items()},
        drawn={"found": found},
    )


def worst(
    docs: Sequence[Document], perfect: Sequence[Document], span: tuple[float, float]
) -> Mean | None:
    """JCT over the one with perfect predictions at the same spend: the worst knob, over draws.

    Read at the spends of either's runs, as far as both curves go and as the rival ever goes.
    """
    groups: dict[tuple[bool, float], list[float]] = {}
    for doc in [*docs, *perfect]:
        draw, spend = doc["run"]["draw"], doc[SPEND]
        curves = [[d for d in group if d["run"]["draw"] == draw] for group in (docs, perfect)]
        jct, best = (at_spend(curve, spend, JCT) for curve in curves)
        if jct is not None and best is not None and span[0] <= spend <= span[1]:
            groups.setdefault((doc in perfect, doc["run"]["knob"]), []).append(jct / best)
    means = [Mean.of(values) for values in groups.values()]
    return max(means, key=lambda mean: mean.value, default=None)


def draw(outcome: StudyOutcome) -> Figure:
    found = outcome.drawn["found"]
    looks = {"perfect": ("-", 1.0), "learned": ("--", 0.85), "noisy": (":", 0.7)}
    words = {"perfect": "perfect", "learned": "learned", "noisy": f"noisy (σ of log {NOISE})"}
    with drawing():
        figure = new_figure(1, "With perfect and imperfect predictions", width=6.4, height=4.2)
        axes = panel(figure, 1, 1, "", "Average GPUs in use", "Average JCT (min)")
        values: list[float] = []
        first = min(doc["run"]["draw"] for docs in found.values() for doc in docs)
        for (policy, kind), docs in sorted(found.items(), key=lambda item: item[0][0] == "boa"):
            own = [doc for doc in docs if doc["run"]["draw"] == first]
            points = sorted((doc[SPEND], doc[JCT] / 60.0) for doc in own)
            values += [value for _, value in points]
            line, alpha = looks[kind]
            axes.plot(
                *zip(*points, strict=True),
                color=colour(policy),
                ls=line,
                marker="o" if policy == "boa" else "s",
                ms=4,
                lw=1.7,
                alpha=alpha,
                label=f"{title_of(policy)}, {words[kind]}",
            )
        log_axis(axes, values)
        axes.legend(frameon=False, fontsize=9)
        return figure


STUDY = Study(
    name="prediction",
    where="Figure 9",
    claim="BOA is essentially unchanged by prediction errors, Pollux's average JCT rises by up "
    "to ~1.4×",
    runs=runs,
    result=result,
    draw=draw,
)
