"""Other traces: BOA and its five strongest rivals at the same held GPUs, and at the same bill.

Speeds are known and restarts take what the authors measured; nodes boot for two minutes. A
rival's run is read twice: at the GPUs that its jobs held, and at what whole nodes were billed.
BOA plans for either.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from boa.paper.compare import BILL, SPEND, Mean, row, trace_key
from boa.paper.data import ITP, SYNTHETIC
from boa.paper.figures import BY_GPU, drawing, lead_panel, legend_below, new_figure, panel, title_of
from boa.paper.lead_table import lead_table
from boa.paper.leads import KNOBS, RULES, Lead, leads, runs_of, span, strongest
from boa.paper.runs import Document, Run
from boa.paper.study import BEYOND, Evidence, Study, StudyOutcome, Table, nothing

BOOT_S = 120.0
GPU_LOADS = (1.1, 1.25, 1.45, 1.75, 2.1, 2.6, 3.2)
NODE_LOADS = (1.2, 1.7, 2.6)
ONE_TYPE = (*RULES, "sia-autoscale", "pollux-autoscale")
SEVERAL = (*RULES, "rubberband", "sia-autoscale")
"""Pollux knows one GPU type."""
WAYS = {"held": "at the same held GPUs", "bill": "at the same bill"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """One family of traces."""

    name: str
    words: str
    settings: tuple[str, ...]
    draws: tuple[int, ...] = (1,)
    rivals: tuple[str, ...] = ONE_TYPE
    billed: tuple[str, ...] = ()
    """Settings that BOA is also run by the node on; none: all."""
    slow: tuple[str, ...] = ()
    """Settings that are too large for rivals that look at all jobs at once."""
    in_short: tuple[int, float] = (2, 1.0)
    """Where it is to be quick: so many settings, and hours over those of other traces."""

    def study(self) -> Study:
        return Study(
            name=self.name,
            where=BEYOND,
            claim=f"{self.words}: BOA and five rivals at the same held GPUs and at the same bill",
            runs=self.runs,
            result=self.result,
            draw=draw,
        )

    def runs(self, evidence: Evidence) -> list[Run]:
        return [run for group in self.groups(evidence).values() for run in group]

    def groups(self, evidence: Evidence) -> dict[str, list[Run]]:
        """Runs by policy; BOA by the node is `boa`."""
        quick = evidence.scale.quick
        draws = self.draws[:1] if quick else self.draws
        wanted: dict[str, list[Run]] = {}
        for setting in self.settings[: self.in_short[0]] if quick else self.settings:
            for number in draws:
                for policy, group in self._of(evidence, setting, number).items():
                    wanted.setdefault(policy, []).extend(group)
        return wanted

    def _of(self, evidence: Evidence, setting: str, number: int) -> dict[str, list[Run]]:
        quick, hours = evidence.scale.quick, evidence.scale.trace_hours
        common: dict[str, Any] = {
            "setting": setting,
            "draw": number,
            "learning": "perfect",
            "provision_s": BOOT_S,
            "hours": hours and hours * self.in_short[1],
        }
        step = 2 if quick else 1
        found = {BY_GPU: runs_of("boa", GPU_LOADS[::step], **common)}
        if setting in (self.billed or self.settings) and not quick:
            found["boa"] = runs_of("boa", NODE_LOADS, billing="node", **common)
        for rival in self.rivals:
            coupled = rival not in (*RULES, "rubberband")
            if not coupled or (setting not in self.slow and not quick):
                found[rival] = runs_of(rival, KNOBS[rival][::step], **common)
        return found

    def result(self, evidence: Evidence) -> StudyOutcome:
        found = {policy: evidence.all(runs) for policy, runs in self.groups(evidence).items()}
        by_gpu = found.pop(BY_GPU)
        if not by_gpu or not any(found.values()):
            return nothing("runs are missing")
        by_node = found.pop("boa", [])
        tables = {"held": leads({"boa": by_gpu, **found}, SPEND)}
        if by_node:
            traces = {trace_key(doc) for doc in by_node}
            others = {
                policy: [doc for doc in docs if trace_key(doc) in traces]
                for policy, docs in {BY_GPU: by_gpu, **found}.items()
            }
            tables["bill"] = leads({"boa": by_node, **others}, BILL)
        every = [*by_gpu, *by_node, *(doc for docs in found.values() for doc in docs)]
        return StudyOutcome(
            rows=[_row(doc) for doc in every],
            measured="; ".join(f"{WAYS[way]} {_said(table)}" for way, table in tables.items()),
            verdict="ours",
            reason=f"C² of gaps {_span_of(doc['cv2'] or 0.0 for doc in by_gpu)}",
            numbers={way: [_number(lead) for lead in table] for way, table in tables.items()},
            tables=[
                *(lead_table(f"{self.words}, {WAYS[way]}", table) for way, table in tables.items()),
                *self._each(found, by_gpu, by_node),
            ],
            drawn={"tables": tables, "words": self.words},
        )

    def _each(
        self,
        found: Mapping[str, Sequence[Document]],
        by_gpu: Sequence[Document],
        by_node: Sequence[Document],
    ) -> list[Table]:
        """Setting by setting, where there are several."""
        if len(self.settings) == 1:
            return []
        rows = []
        for setting in self.settings:
            own = {name: _of(docs, setting) for name, docs in found.items()}
            gpu, node = _of(by_gpu, setting), _of(by_node, setting)
            if not gpu:
                continue
            held = leads({"boa": gpu, **own}, SPEND)
            billed = leads({"boa": node or gpu, **own}, BILL)
            rows.append(
                [setting, f"{gpu[0]['jobs']:,}", f"{gpu[0]['cv2']:.1f}", *_best(held, billed)]
            )
        heads = [
            "trace",
            "jobs",
            "C²",
            "best at the same held GPUs",
            "P95",
            "at the same bill",
            "P95",
        ]
        return [
            Table(f"{self.words}. The best rival's JCT over BOA's, trace by trace", heads, rows)
        ]


def _of(docs: Iterable[Document], setting: str) -> list[Document]:
    return [doc for doc in docs if doc["run"]["setting"] == setting]


def _best(*ways: Sequence[Lead]) -> list[str]:
    cells = []
    for table in ways:
        best = strongest(table)
        jct = span(lead.jct for lead in best.values() if lead.jct is not None)
        names = sorted({title_of(lead.policy) for lead in best.values()})
        p95 = span(lead.p95 for lead in best.values() if lead.p95 is not None)
        cells += [f"{jct} ({', '.join(names)})" if names else "–", p95]
    return cells


def _said(table: Sequence[Lead]) -> str:
    """BOA over the bound, and each rival over BOA, over all loads."""
    own = span(lead.over_bound for lead in table if lead.policy == "boa")
    rivals: dict[str, list[Mean]] = {}
    for lead in table:
        if lead.policy != "boa" and lead.jct is not None:
            rivals.setdefault(lead.policy, []).append(lead.jct)
    order = sorted(rivals, key=lambda name: np.mean([mean.value for mean in rivals[name]]))
    told = ", ".join(f"{title_of(name)} {span(rivals[name])}" for name in order)
    return f"BOA takes {own} the bound, over BOA's: {told}"


def _number(lead: Lead) -> dict[str, Any]:
    return {
        "policy": lead.policy,
        "load": lead.load,
        "traces": lead.traces,
        "over_bound": lead.over_bound.value,
        "jct_ratio": None if lead.jct is None else lead.jct.value,
        "p95_ratio": None if lead.p95 is None else lead.p95.value,
    }


def _row(doc: Document) -> dict[str, Any]:
    bounds = {f"bound_at_{key}": doc["bounds"][key] for key in (SPEND, BILL)}
    return row(
        doc, billing=doc["run"]["billing"], bill_per_hour=doc[BILL], cv2=doc["cv2"], **bounds
    )


def _span_of(values: Iterable[float]) -> str:
    known = list(values)
    low, high = f"{min(known):.1f}", f"{max(known):.1f}"
    return low if low == high else f"{low}–{high}"


def draw(outcome: StudyOutcome) -> Figure:
    tables = outcome.drawn["tables"]
    with drawing():
        figure = new_figure(len(tables), outcome.drawn["words"], width=5.0, height=4.2)
        for n, (way, table) in enumerate(tables.items(), start=1):
            title = WAYS[way][0].upper() + WAYS[way][1:]
            axes = panel(
                figure, n, len(tables), title, "Money, in cheapest plans", "JCT over the bound"
            )
            lead_panel(axes, table)
        legend_below(figure, axes)
        return figure


NEWTRACE = Traces(
    name="trace-newtrace",
    words="newTrace on T4s",
    settings=("pollux",),
    draws=(1, 2),
)
THREE_TYPES = Traces(
    name="trace-three-types",
    words="newTrace on T4s, V100s and A100s",
    settings=("sia",),
    rivals=SEVERAL,
)
CLUSTERS = Traces(
    name="trace-itp",
    words="Seven clusters of Microsoft's ITP, three days each",
    settings=ITP,
)
SATURN = Traces(
    name="trace-saturn",
    words="Saturn on T4s and A100s",
    settings=("saturn",),
    draws=(1, 2, 3, 4, 5),
    rivals=SEVERAL,
)
DENSE = Traces(
    name="trace-dense",
    words="newTrace's jobs at 10, 100 and 1,000 times its rate",
    settings=SYNTHETIC,
    billed=SYNTHETIC[:1],
    slow=SYNTHETIC,
    in_short=(1, 1 / 12),
)
STUDIES = tuple(each.study() for each in (NEWTRACE, THREE_TYPES, CLUSTERS, SATURN, DENSE))
