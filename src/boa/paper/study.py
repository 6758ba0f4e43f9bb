"""A figure or table of the paper as it is redone here: a claim, the runs it takes, the verdict."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from matplotlib.figure import Figure

from boa.paper.pool import ResultStore
from boa.paper.runs import Document, Run

Verdict: TypeAlias = Literal["matches", "partly", "differs", "ours"]
"""How it stands to the paper's claim; ours: the paper has none."""
BEYOND = "beyond the paper"
"""Where a study of our own is to be found in it."""
Row: TypeAlias = Mapping[str, Any]
CLOSE = 0.35
"""An effect (a factor less 1) this near to the paper's, relative to it, is the paper's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is simulated: all of it, or as much as shows the direction in minutes."""

    name: str
    draws: tuple[int, ...] = (1, 2, 3, 4, 5)
    targets: tuple[float, ...] = (0.3, 0.45, 0.6, 0.75, 0.9)
    few_targets: tuple[float, ...] = (0.3, 0.45, 0.75, 0.9)
    """Where a whole second set of slow runs is needed."""
    loads: tuple[float, ...] = (1.02, 1.08, 1.15, 1.25, 1.4, 1.6, 1.9, 2.3, 2.8, 3.4)
    """BOA's budgets, over the cheapest spend there is."""
    hours: float | None = None
    """newTrace is cut after so many hours."""
    every: int = 2
    """Where the mix matters more than the hours: one job in so many, of each application."""
    trace_hours: float | None = None
    """Other traces are cut after so many hours."""
    experiment_hours: float | None = None
    """The 85-job experiment is cut after so many hours."""
    rubick_hours: float | None = None
    """Rubick's trace is cut after so many hours."""
    cv2s: tuple[float, ...] = (1.0, 2.65, 5.0, 10.0, 20.0)
    seeds: tuple[int, ...] = (1, 2)
    """Seeds of redrawn arrivals, per C²."""

    @property
    def quick(self) -> bool:
        """Whether it is cut short."""
        return self.hours is not None

    @property
    def newtrace(self) -> str:
        """The part of newTrace that is replayed, in words."""
        draws = "draw 1" if len(self.draws) == 1 else f"{len(self.draws)} draws"
        return draws if self.hours is None else f"first {self.hours:g} h of {draws}"


FULL = Scale(name="full")
QUICK = Scale(
    name="quick",
    draws=(1,),
    targets=(0.4, 0.8),
    few_targets=(0.4, 0.8),
    loads=(1.05, 1.2, 1.45, 1.9, 2.6),
    hours=6.0,
    trace_hours=10.0,
    every=8,
    cv2s=(1.0, 20.0),
    seeds=(1,),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that a study may look at: the runs so far, the scale, and the public data."""

    store: ResultStore
    scale: Scale
    data: Path

    def get(self, run: Run) -> Document | None:
        return self.store.get(run)

    def all(self, runs: Iterable[Run]) -> list[Document]:
        """Results of the runs that have one."""
        return [found for run in runs if (found := self.get(run)) is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOutcome:
    rows: Sequence[Row]
    """Rows of the CSV file; the columns are those of the first row and of any after it."""
    measured: str
    """Our finding, beside the paper's claim: one line."""
    verdict: Verdict
    reason: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """The figures in `measured`, for programs."""
    tables: Sequence["Table"] = ()
    """Tables that the report prints below its line."""
    drawn: Mapping[str, Any] = field(default_factory=dict)
    """Values that only the picture needs."""


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def lines(self) -> Iterator[str]:
        """In Markdown."""
        yield f"*{self.title}*"
        yield ""
        yield from table_lines(self.heads, self.rows)


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table in Markdown."""
    for row in (heads, ["---"] * len(heads), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    name: str
    where: str
    """Which figure or table of the paper."""
    claim: str
    """The paper's words, short."""
    runs: Callable[[Evidence], list[Run]]
    """Runs it needs, as far as that can be told from what is there: asked again after each batch,
    since a target may have to be tuned to a spend."""
    result: Callable[[Evidence], StudyOutcome]
    draw: Callable[[StudyOutcome], Figure]


def no_runs(_: Evidence) -> list[Run]:
    """For studies that need no simulation."""
    return []


def nothing(reason: str) -> StudyOutcome:
    """There is nothing to compare: too few runs came to an end."""
    return StudyOutcome(rows=[], measured="nothing to compare", verdict="differs", reason=reason)


def judge(
    holds: bool, sizes: Mapping[str, tuple[float, float]], *, close: float = CLOSE
) -> tuple[Verdict, str]:
    """From the direction of a claim and its sizes, each as (measured, the paper's)."""
    if not holds:
        return "differs", "the direction of the claim does not hold"
    off = [
        f"{name} {measured:.2f} against {claimed:g}"
        for name, (measured, claimed) in sizes.items()
        if abs(measured - claimed) > close * abs(claimed - 1)
    ]
    if not sizes:
        return "matches", "the direction holds, and the paper states no size"
    if not off:
        return "matches", f"direction and size of the effect, within {close:.0%}"
    return "partly", f"the direction holds; {'; '.join(off)}"
