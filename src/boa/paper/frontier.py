"""Figures 5 (and 1): the frontier of JCT against spend, BOA's and its rival's, in one setting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from boa.paper.compare import JCT, P95, AtKnob, Duel, Mean, by_knob, duels, mean_at, most_saved, row
from boa.paper.data import SETTINGS
from boa.paper.figures import (
    drawing,
    frontier_panel,
    new_figure,
    panel,
    ratio_panel,
    spend_label,
    title_of,
)
from boa.paper.runs import Document, Run
from boa.paper.study import Evidence, Study, StudyOutcome, judge, nothing
from boa.policy.registry import ROUND_S

IN_ROUNDS = "boa in rounds"
ROUNDS_TO = 1
"""The last draw that BOA is also run on in rounds: what that costs is alike in all."""
RUBICK_LOADS = (1.02, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.75, 1.9, 2.1)
"""Beyond about twice the cheapest spend more money buys nothing there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontiers:
    """One setting's comparison; the claims are factors, measured at equal spend or equal JCT."""

    name: str
    where: str
    setting: str
    claim: str
    claimed_jct: float
    claimed_p95: float
    claimed_budget: float | None = None
    reference: str | None = None
    """A policy without a knob, drawn as one point."""
    rescalings_at: float | None = None
    """A spend at which the paper counts rescalings per job."""

    def study(self) -> Study:
        return Study(
            name=self.name,
            where=self.where,
            claim=self.claim,
            runs=self.runs,
            result=self.result,
            draw=draw,
        )

    def runs(self, evidence: Evidence) -> list[Run]:
        return [run for group in self._runs(evidence).values() for run in group]

    def _runs(self, evidence: Evidence) -> Mapping[str, list[Run]]:
        scale, rival = evidence.scale, SETTINGS[self.setting].rival
        rubick = self.setting == "rubick"
        loads = RUBICK_LOADS if rubick else scale.loads
        rivals = (rival, *SETTINGS[self.setting].readings)
        wanted: dict[str, list[Run]] = {"boa": [], IN_ROUNDS: [], **{name: [] for name in rivals}}
        for cut in cuts(evidence, self.setting):
            wanted["boa"] += [Run(policy="boa", knob=load, **cut) for load in loads]
            if cut["draw"] <= ROUNDS_TO and not scale.quick:
                wanted[IN_ROUNDS] += [
                    Run(policy="boa", knob=load, interval_s=ROUND_S, **cut) for load in loads
                ]
            for name in rivals:
                wanted[name] += [Run(policy=name, knob=target, **cut) for target in scale.targets]
            if self.reference is not None:
                wanted.setdefault(self.reference, []).append(Run(policy=self.reference, **cut))
        return wanted

    def result(self, evidence: Evidence) -> StudyOutcome:
        found = {policy: evidence.all(runs) for policy, runs in self._runs(evidence).items()}
        setting = SETTINGS[self.setting]
        rivals = [doc for name in (setting.rival, *setting.readings) for doc in found[name]]
        fought = duels(found["boa"], rivals)
        points = by_knob(fought)
        if not points:
            return nothing("no rival run spends what BOA was run at")
        in_rounds = by_knob(duels(found.pop(IN_ROUNDS), rivals))
        return self._outcome(found, fought, points, in_rounds)

    def _outcome(
        self,
        found: Mapping[str, Sequence[Document]],
        fought: Sequence[Duel],
        points: Sequence[AtKnob],
        in_rounds: Sequence[AtKnob],
    ) -> StudyOutcome:
        saved = most_saved(points)
        jct = max((p.jct for p in points), key=lambda mean: mean.value)
        p95 = max((p.p95 for p in points), key=lambda mean: mean.value)
        least = min((p.jct for p in points), key=lambda mean: mean.value)
        outside = sum(duel.jct is None for duel in fought)
        sizes = {"JCT": (jct.value, self.claimed_jct), "P95": (p95.value, self.claimed_p95)}
        if saved is not None and self.claimed_budget is not None:
            sizes["budget"] = (saved.value, self.claimed_budget)
        verdict, reason = judge(least.surely_above_1, sizes)
        rival = SETTINGS[self.setting].rival
        moved = self._rescalings(found["boa"], found[rival])
        less = "" if saved is None else f", up to {saved.text()} less budget"
        waits = max((p.jct.value for p in in_rounds), default=None)
        rounds = "" if waits is None else f" ({waits:.2f}× with BOA in rounds of 60 s too)"
        left_out = f"; {outside} rival runs spend less than any of BOA's" if outside else ""
        return StudyOutcome(
            rows=_rows(found, fought),
            measured=(
                f"{jct.text()} lower average JCT at most{rounds}, {least.text()} at least, up to "
                f"{p95.text()} lower P95{less}; rescalings per job {moved}{left_out}"
            ),
            verdict=verdict,
            reason=reason,
            numbers=_numbers(jct, p95, least.value, saved),
            drawn={
                "runs": found,
                "points": points,
                "title": f"{title_of(rival)}: jobs take {least.value:.2f} to {jct.value:.2f} times "
                "as long as under BOA",
                "counts_gpus": SETTINGS[self.setting].counts_gpus,
            },
        )

    def _rescalings(self, boa: Sequence[Document], rival: Sequence[Document]) -> str:
        """The rival's and BOA's: at the spend that the paper names, or over all there is."""
        key, at = "rescalings_per_job", self.rescalings_at
        if at is not None:
            here = [mean_at(docs, at, key) for docs in (rival, boa)]
            if here[0] is not None and here[1] is not None:
                return f"{here[0]:.2f} against {here[1]:.2f} at ${at:g}/h"
        spans = [[doc[key] for doc in docs] for docs in (rival, boa)]
        low_high = [f"{min(values):.1f}–{max(values):.1f}" for values in spans]
        return f"{low_high[0]} against {low_high[1]}"


def _numbers(jct: Mean, p95: Mean, least: float, saved: Mean | None) -> dict[str, Any]:
    return {
        "jct_ratio": jct.value,
        "jct_ratio_ci": jct.half,
        "least_jct_ratio": least,
        "p95_ratio": p95.value,
        "p95_ratio_ci": p95.half,
        "budget_ratio": None if saved is None else saved.value,
        "draws": jct.n,
    }


def cuts(evidence: Evidence, setting: str) -> list[dict[str, Any]]:
    """The traces that a setting is run on: its draws, and how much of each."""
    scale = evidence.scale
    if setting != "rubick":
        return [{"setting": setting, "draw": n, "hours": scale.hours} for n in scale.draws]
    rubick: dict[str, Any] = {"setting": "rubick", "hours": scale.rubick_hours}
    own = {**rubick, "draw": 0}  # the artifact has but one
    more = [{**rubick, "draw": n, "redrawn": "own"} for n in scale.draws]
    return [own, *more] if len(scale.draws) > 1 else [own]


def _rows(found: Mapping[str, Sequence[Document]], fought: Sequence[Duel]) -> list[dict[str, Any]]:
    ratios = {id(duel.rival): duel for duel in fought}
    rows = []
    for docs in found.values():
        for doc in docs:
            duel = ratios.get(id(doc))
            rows.append(
                row(
                    doc,
                    jct_ratio=duel.jct if duel else None,
                    p95_ratio=duel.p95 if duel else None,
                    budget_ratio=duel.budget if duel else None,
                )
            )
    return rows


def draw(outcome: StudyOutcome) -> Figure:
    shown = outcome.drawn
    across = spend_label(shown["counts_gpus"])
    with drawing():
        figure = new_figure(3, shown["title"])
        for n, (key, name) in enumerate(((JCT, "Average JCT"), (P95, "P95 JCT")), start=1):
            axes = panel(figure, n, 3, name, across, f"{name} (min)")
            frontier_panel(axes, shown["runs"], key)
            if n == 1:
                axes.legend(frameon=False, fontsize=9)
        ratios = panel(figure, 3, 3, "At the same spend", across, "Rival's JCT / BOA's")
        ratio_panel(ratios, shown["points"], axes)
        return figure
