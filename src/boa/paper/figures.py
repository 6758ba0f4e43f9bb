"""Parts that the pictures share: BOA has one colour everywhere, so has its rival."""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, StrMethodFormatter
from matplotlib.typing import LineStyleType

from boa.model.policies import POLICIES
from boa.paper.compare import SPEND, AtKnob, Mean
from boa.paper.leads import Lead
from boa.paper.runs import Document
from boa.plots import style

BOA, RIVAL, OTHER = style.BLUE, style.VERMILLION, style.QUIET
MINUTES = 60.0
BY_GPU = "boa by the GPU"
"""BOA that counts held GPUs, where another counts whole nodes."""


@dataclass(frozen=True, slots=True)
class Look:
    """A policy's line, told from others in grey too: by its marker and its dashes."""

    colour: str
    marker: str
    line: LineStyleType = "-"
    width: float = 1.7


LOOKS: Mapping[str, Look] = {
    "boa": Look(BOA, "o", "-", 2.2),
    BY_GPU: Look(style.SKY, "o", (0, (1, 1.2))),
    "optimus-price": Look(style.GREEN, "^", (0, (5, 1.5))),
    "scavenger": Look(style.ORANGE, "v", (0, (5, 1.5, 1, 1.5))),
    "efficiency": Look(style.PURPLE, "P", (0, (2.5, 1.2))),
    "rubberband": Look(style.BLACK, "X", (0, (1, 1.5))),
    "sia-autoscale": Look(style.BLACK, "D", (0, (3, 1, 1, 1, 1, 1))),
    "rubick-autoscale-by-base": Look(style.ORANGE, "^", (0, (5, 1.5))),
    "rubick-autoscale-queueing": Look(style.PURPLE, "v", (0, (1, 1.5))),
    "reservation": Look(OTHER, "D"),
}
"""One look everywhere; who is not named is the rival of its figure."""
THE_RIVAL = Look(RIVAL, "s")


def look(policy: str) -> Look:
    return LOOKS.get(policy, THE_RIVAL)


def colour(policy: str) -> str:
    return look(policy).colour


def title_of(policy: str) -> str:
    """In a legend; a variant that only a figure has goes by its own name."""
    if policy == BY_GPU:
        return "BOA by the GPU"
    return POLICIES[policy].title if policy in POLICIES else policy


def drawing() -> AbstractContextManager[None]:
    return matplotlib.rc_context(style.RC)


def new_figure(panels: int, title: str, *, width: float = 4.2, height: float = 3.9) -> Figure:
    figure = Figure(figsize=(width * panels, height), layout="constrained")
    figure.suptitle(title, fontsize=12, fontweight="bold", ha="left", x=0.012)
    return figure


def panel(figure: Figure, n: int, of: int, title: str, across: str, up: str) -> Axes:
    axes = figure.add_subplot(1, of, n)
    style.quiet_axes(axes)
    axes.set_title(title, loc="left")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    return axes


def logarithmic(axes: Axes, values: Sequence[float]) -> None:
    """Ticks at round numbers; powers of ten alone would leave most of these axes bare."""
    low, high = min(values), max(values)
    axes.set_yscale("log")
    axes.set_ylim(low * 0.85, high * 1.18)
    few: tuple[float, ...] = (
        (1.0, 2.0, 5.0) if high > 12 * low else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    )
    if high < 4 * low:
        few = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
    axes.yaxis.set_major_locator(LogLocator(subs=few))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))


def spend_label(counts_gpus: bool) -> str:
    return "Average GPUs in use" if counts_gpus else "Average spend (USD per hour)"


def frontier_panel(
    axes: Axes, runs: Mapping[str, Sequence[Document]], key: str, by: str = SPEND
) -> None:
    """Each policy's means over draws, with a band of 95 % where there are several; BOA on top."""
    values: list[float] = []
    for policy in sorted(runs, key=lambda name: name == "boa"):
        if not runs[policy]:
            continue
        points = _mean_points(runs[policy], key, by)
        spends, means = [spend for spend, _ in points], [mean for _, mean in points]
        lows = [math.exp(mean.value - (mean.half or 0.0)) for mean in means]
        highs = [math.exp(mean.value + (mean.half or 0.0)) for mean in means]
        middle = [math.exp(mean.value) for mean in means]
        values += middle
        line(axes, policy, spends, middle, lows, highs, alone=policy == "reservation")
    logarithmic(axes, values)


def line(
    axes: Axes,
    policy: str,
    across: Sequence[float],
    up: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    *,
    alone: bool = False,
) -> None:
    """A policy's line and its band."""
    how = look(policy)
    axes.fill_between(across, lows, highs, color=how.colour, alpha=0.15, lw=0)
    axes.plot(
        across,
        up,
        color=how.colour,
        marker=how.marker,
        ls=how.line,
        ms=5.5,
        mec="white",
        mew=0.8,
        lw=0 if alone else how.width,
        label=title_of(policy),
    )


def _mean_points(found: Sequence[Document], key: str, by: str) -> list[tuple[float, Mean]]:
    """By rising spend: the mean spend of every knob, and its mean logarithm of minutes."""
    by_knob: dict[float | None, list[Document]] = {}
    for doc in found:
        by_knob.setdefault(doc["run"]["knob"], []).append(doc)
    points = [
        (
            float(np.mean([doc[by] for doc in group])),
            Mean.of([math.log(doc[key] / MINUTES) for doc in group]),
        )
        for group in by_knob.values()
    ]
    return sorted(points, key=lambda point: point[0])


def lead_panel(axes: Axes, table: Sequence[Lead]) -> None:
    """JCT over the bound by load, with a band of 95 % over traces."""
    policies = dict.fromkeys(lead.policy for lead in table)
    for policy in sorted(policies, key=lambda name: name == "boa"):
        known = [(lead.load, lead.over_bound) for lead in table if lead.policy == policy]
        loads, means = zip(*known, strict=True)
        line(
            axes,
            policy,
            loads,
            [mean.value for mean in means],
            [mean.value - (mean.half or 0.0) for mean in means],
            [mean.value + (mean.half or 0.0) for mean in means],
        )
    axes.axhline(1.0, color=style.QUIET, lw=1.0, ls=(0, (4, 3)))
    top = max((lead.over_bound.value for lead in table), default=1.5)
    axes.set_ylim(0.95, max(min(top * 1.05, 2.6), 1.25))


def ratio_panel(axes: Axes, points: Sequence[AtKnob], like: Axes) -> None:
    """Rival over BOA at the same spend, on average and at the tail; bars: 95 % over draws.

    The spend goes as far as in the panel beside it.
    """
    styles = (("jct", "average JCT", style.INK, "o"), ("p95", "P95 JCT", style.PURPLE, "^"))
    for key, name, ink, marker in styles:
        means = sorted(((p.spend, getattr(p, key)) for p in points), key=lambda pair: pair[0])
        axes.errorbar(
            [spend for spend, _ in means],
            [mean.value for _, mean in means],
            yerr=None if means[0][1].half is None else [mean.half or 0.0 for _, mean in means],
            color=ink,
            marker=marker,
            ms=5,
            lw=1.5,
            capsize=3,
            elinewidth=1.0,
            label=name,
        )
    axes.set_xlim(like.get_xlim())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axes.axhline(1.0, color=style.QUIET, lw=1.0, ls=(0, (4, 3)))
    top = axes.get_ylim()[1]
    axes.set_ylim(min(0.8, axes.get_ylim()[0]), max(top * 1.02, 1.5))
    axes.annotate(
        "as BOA", (1.0, 1.0), xycoords=("axes fraction", "data"), xytext=(-2, -10),
        textcoords="offset points", ha="right", fontsize=8.5, color=style.QUIET,
    )  # fmt: skip
    axes.legend(frameon=False, fontsize=9)


def series_panel(
    axes: Axes, runs: Mapping[str, Document], key: str, *, smooth: int = 1, factor: float = 1.0
) -> None:
    """A quantity over time under each policy; `smooth`: a moving average over so many points."""
    for policy in sorted(runs, key=lambda name: name == "boa"):
        series = runs[policy]["series"]
        known = [
            (at / 3600.0, value * factor)
            for at, value in zip(series["time_s"], series[key], strict=True)
            if value is not None
        ]
        hours, values = np.array(known).T
        if smooth > 1 and len(values) > smooth:
            values = np.convolve(values, np.ones(smooth) / smooth, mode="valid")
            hours = hours[smooth // 2 : smooth // 2 + len(values)]
        axes.plot(hours, values, color=colour(policy), lw=1.5, label=title_of(policy))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)


def legend_above(axes: Axes, columns: int = 2) -> None:
    """Over the panel, where no line can run through it."""
    axes.legend(
        frameon=False, fontsize=9, ncols=columns, loc="lower right", bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.2, handlelength=1.5, columnspacing=1.2,
    )  # fmt: skip


def legend_below(figure: Figure, axes: Axes, columns: int = 4) -> None:
    """Under all panels, BOA first."""
    lines, names = axes.get_legend_handles_labels()
    order = sorted(range(len(names)), key=lambda n: not names[n].startswith("BOA"))
    figure.legend(
        [lines[n] for n in order], [names[n] for n in order], frameon=False, fontsize=9,
        ncols=columns, loc="outside lower center", handlelength=2.6,
    )  # fmt: skip
