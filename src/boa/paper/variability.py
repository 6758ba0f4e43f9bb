"""Figure 10: bursts. The same jobs at arrival times of growing C², at ~120 GPUs for newTrace.

120 GPUs are 1.28 times the least that newTrace can be run on; where the trace is thinned, the
same factor is taken of what is then the least.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from boa.paper.compare import JCT, SPEND, WITHIN, Mean, Tuned, row, tune
from boa.paper.figures import BOA, RIVAL, drawing, new_figure, panel, title_of
from boa.paper.runs import Document, Run
from boa.paper.study import Evidence, Study, StudyOutcome, nothing
from boa.plots import style

POLICY = "pollux-autoscale"
GROWS = 0.05
"""A lead that changes by less has not grown."""
OVER_LEAST = 120.0 / 94.0
LOADS = (1.1, 1.2, 1.28, 1.4, 1.6)
TARGETS = (0.7, 0.9)
"""Between these lies the target that uses as much; a third one is interpolated."""


def _tuned(evidence: Evidence) -> dict[tuple[float, int], dict[str, Tuned]]:
    scale = evidence.scale
    return {(cv2, seed): _pair(evidence, cv2, seed) for cv2 in scale.cv2s for seed in scale.seeds}


def _pair(evidence: Evidence, cv2: float, seed: int) -> dict[str, Tuned]:
    def make(policy: str, knob: float) -> Run:
        every = evidence.scale.every
        return Run(setting="pollux", policy=policy, knob=knob, draw=seed, redrawn=cv2, every=every)

    first = make("boa", LOADS[0])
    found = evidence.get(first)
    if found is None:
        return {"boa": Tuned([first] if evidence.store.missing([first]) else [])}
    gpus = OVER_LEAST * found["cheapest_per_hour"]
    return {
        "boa": tune(evidence, lambda load: make("boa", load), LOADS, gpus),
        POLICY: tune(evidence, lambda target: make(POLICY, target), TARGETS, gpus),
    }


def runs(evidence: Evidence) -> list[Run]:
    pairs = _tuned(evidence).values()
    return [run for pair in pairs for tuned in pair.values() for run in tuned.wanted]


def result(evidence: Evidence) -> StudyOutcome:
    rows: list[dict[str, object]] = []
    found: dict[float, list[Mapping[str, Document]]] = {}
    for (cv2, _), pair in _tuned(evidence).items():
        both = {name: tuned.best for name, tuned in pair.items() if tuned.best is not None}
        if len(both) < 2:
            continue
        wanted = OVER_LEAST * both["boa"]["cheapest_per_hour"]
        near = all(abs(doc[SPEND] / wanted - 1) <= WITHIN for doc in both.values())
        found.setdefault(cv2, []).append(both)
        rows += [
            row(doc, cv2=cv2, realised_cv2=doc["cv2"], wanted_gpus=wanted, tuned=near)
            for doc in both.values()
        ]
    if len(found) < 2:
        return nothing("too few values of C²")
    return _outcome(found, rows)


def _outcome(
    found: Mapping[float, Sequence[Mapping[str, Document]]], rows: list[dict[str, object]]
) -> StudyOutcome:
    jcts = {
        cv2: {name: Mean.of([pair[name][JCT] for pair in pairs]) for name in ("boa", POLICY)}
        for cv2, pairs in found.items()
    }
    ratios = {
        cv2: Mean.of([pair[POLICY][JCT] / pair["boa"][JCT] for pair in pairs])
        for cv2, pairs in found.items()
    }
    low, high = min(ratios), max(ratios)
    always = all(ratio.value > 1 for ratio in ratios.values())
    spread = (ratios[high].half or 0.0) + (ratios[low].half or 0.0)
    grows = ratios[high].value - ratios[low].value > max(spread, GROWS)
    off = sum(not line["tuned"] for line in rows)
    missed = f"; {off} runs are more than {WITHIN:.0%} from the GPUs wanted" if off else ""
    return StudyOutcome(
        rows=rows,
        measured=f"Pollux's JCT over BOA's: {ratios[low].text()} at C² = {low:g}, "
        f"{ratios[high].text()} at C² = {high:g}{missed}",
        verdict="matches" if always and grows else "partly" if always or grows else "differs",
        reason="BOA is ahead and its lead grows"
        if always and grows
        else "BOA is ahead, but its lead does not grow with C²"
        if always
        else "BOA is not ahead everywhere",
        numbers={f"ratio_at_{cv2:g}": ratio.value for cv2, ratio in ratios.items()},
        drawn={"jcts": jcts, "ratios": ratios},
    )


def draw(outcome: StudyOutcome) -> Figure:
    jcts, ratios = outcome.drawn["jcts"], outcome.drawn["ratios"]
    cv2s = sorted(jcts)
    with drawing():
        figure = new_figure(2, "At the same spend, as arrivals become burstier", width=4.8)
        axes = panel(figure, 1, 2, "Average JCT", "C² of interarrival times", "Average JCT (min)")
        for policy, ink, marker in ((POLICY, RIVAL, "s"), ("boa", BOA, "o")):
            means = [jcts[cv2][policy] for cv2 in cv2s]
            axes.errorbar(
                cv2s,
                [mean.value / 60 for mean in means],
                yerr=[(mean.half or 0) / 60 for mean in means],
                color=ink, marker=marker, ms=5.5, lw=2, capsize=3, label=title_of(policy),
            )  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=9, loc="lower right")
        beside = panel(
            figure, 2, 2, "Pollux against BOA", "C² of interarrival times", "Pollux's JCT / BOA's"
        )
        values = [ratios[cv2] for cv2 in cv2s]
        beside.errorbar(
            cv2s, [v.value for v in values], yerr=[v.half or 0 for v in values],
            color=style.INK, marker="o", ms=5, lw=1.6, capsize=3,
        )  # fmt: skip
        beside.axhline(1.0, color=style.QUIET, lw=1.0, ls=(0, (4, 3)))
        for each in (axes, beside):
            each.set_xscale("log")
            each.set_xticks(cv2s, [f"{cv2:g}" for cv2 in cv2s])
            each.xaxis.set_minor_locator(NullLocator())
        return figure


STUDY = Study(
    name="variability",
    where="Figure 10",
    claim="at ~120 GPUs BOA outperforms Pollux by an increasing margin as C² grows",
    runs=runs,
    result=result,
    draw=draw,
)
