"""The frontier as a picture: budget against average JCT, ready for a paper or a slide."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from boa.amounts import duration
from boa.plots import style
from boa.plots.curve import Curve, Mark, slower
from boa.plots.words import unit_for

SIZE = (6.8, 4.2)
STEEP = 5.0
"""Ratio of slowest to fastest JCT from which the JCT axis is logarithmic."""

NEAR = 0.16
"""How close (of the axes' height) to the fastest JCT a label no longer fits in between."""


def draw_frontier(curve: Curve) -> Figure:
    with matplotlib.rc_context(style.RC):
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.add_subplot()
        style.quiet_axes(axes)
        length, sign = unit_for(_middle(curve))
        _scale(axes, curve, length)
        what = "Budget, or bill" if curve.foretold else "Budget"
        axes.set_xlabel(f"{what} ({curve.money.unit})")
        axes.set_ylabel(f"Average JCT ({sign})")
        _asymptotes(axes, curve, length)
        axes.plot(curve.budgets, curve.jcts / length, color=style.BLUE, lw=2.4, zorder=3)
        _label_curve(axes, curve, length)
        _glue(axes, curve, length)
        _foretold(axes, curve, length)
        if curve.chosen is not None:
            _chosen(axes, curve.chosen, curve, length)
        return figure


def _middle(curve: Curve) -> float:
    """A typical JCT: what the axis's unit is chosen for."""
    return float(np.sqrt(curve.jcts[0] * curve.jcts[-1]))


def _scale(axes: Axes, curve: Curve, length: float) -> None:
    bills, found = [mark.bill for mark in curve.foretold], [mark.jct for mark in curve.foretold]
    low, high = min([float(curve.budgets[0]), *bills]), max([float(curve.budgets[-1]), *bills])
    left = min(low, curve.cheapest) if low < curve.cheapest * 1.3 else low
    room = 0.05 * (high - left)
    axes.set_xlim(left - room, high + room)
    highest = max([float(curve.jcts[0]), *(mark.jct for mark in curve.glue), *found])
    lowest = min([float(curve.jcts[-1]), *found])
    if highest < STEEP * lowest:
        bottom = max(0.0, lowest - max(0.18 * (highest - lowest), 0.02 * lowest))
        axes.set_ylim(bottom / length, highest * 1.04 / length)
        return
    axes.set_yscale("log")
    axes.set_ylim(lowest * 0.82 / length, highest * 1.12 / length)
    few = (1.0, 2.0, 5.0) if highest > 20 * lowest else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    axes.yaxis.set_major_locator(LogLocator(subs=few))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _asymptotes(axes: Axes, curve: Curve, length: float) -> None:
    """The least spend and the shortest JCT: what no plan gets past."""
    dashes = {"color": style.QUIET, "lw": 1.0, "ls": (0, (4, 3)), "zorder": 1}
    low, high = axes.get_xlim()
    if low <= curve.cheapest <= high:
        axes.axvline(curve.cheapest, **dashes)  # type: ignore[arg-type]
        axes.axvspan(low, curve.cheapest, color=style.FAINT, alpha=0.5, lw=0, zorder=0)
        axes.annotate(
            f"cheapest {curve.money.rate(curve.cheapest)}",
            (curve.cheapest, 0.5),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-4, 0),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="center",
            fontsize=8.5,
            color=style.QUIET,
        )
    axes.axhline(curve.fastest_jct / length, **dashes)  # type: ignore[arg-type]
    axes.annotate(
        f"fastest {duration(curve.fastest_jct)}, from {curve.money.rate(curve.fastest)}",
        (1.0, curve.fastest_jct / length),
        xycoords=axes.get_yaxis_transform(),
        xytext=(-2, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8.5,
        color=style.QUIET,
    )


def _label_curve(axes: Axes, curve: Curve, length: float) -> None:
    """At the steep end, to the right of the curve: the one corner that is always empty."""
    steep = [(float(b), float(t) / length) for b, t in zip(curve.budgets, curve.jcts, strict=True)]
    where = min(steep, key=lambda point: abs(_place(axes, point)[1] - 0.85))
    _label(axes, "exact frontier", where, (28, 5), style.BLUE)


def _place(axes: Axes, where: tuple[float, float]) -> tuple[float, float]:
    """Where a point lies on the axes: 0 to 1 across, 0 to 1 up."""
    across, up = axes.transAxes.inverted().transform(axes.transData.transform(where))
    return float(across), float(up)


def _glue(axes: Axes, curve: Curve, length: float) -> None:
    if not curve.glue:
        return
    axes.plot(
        [mark.budget for mark in curve.glue],
        [mark.jct / length for mark in curve.glue],
        ls="none",
        marker="o",
        ms=5.5,
        mfc="white",
        mec=style.VERMILLION,
        mew=1.5,
        zorder=4,
    )
    first = _labelled(axes, curve, length)
    _label(
        axes,
        f"Algorithm 1\n{slower(curve)} slower",
        (first.budget, first.jct / length),
        (20, 20),
        style.VERMILLION,
    )


def _foretold(axes: Axes, curve: Curve, length: float) -> None:
    """Bill against JCT as simulated, each with its 95 % interval."""
    if not curve.foretold:
        return
    bills = [mark.bill for mark in curve.foretold]
    jcts = [mark.jct / length for mark in curve.foretold]
    axes.errorbar(
        bills,
        jcts,
        xerr=[mark.bill_error for mark in curve.foretold],
        yerr=[mark.jct_error / length for mark in curve.foretold],
        color=style.GREEN,
        marker="s",
        ms=4.5,
        lw=1.6,
        elinewidth=0.9,
        zorder=4,
    )
    beside = (3 * len(bills)) // 4
    text = "foretold, where nodes\nare billed (simulated)"
    _label(axes, text, (bills[beside], jcts[beside]), (18, 40), style.GREEN)


def _labelled(axes: Axes, curve: Curve, length: float) -> Mark:
    """The point whose label has most room: on the left, unless the chosen plan's label is there."""
    along = 0.2
    if curve.chosen is not None:
        across, up = _place(axes, (curve.chosen.budget, curve.chosen.jct / length))
        floor = _place(axes, (curve.chosen.budget, curve.fastest_jct / length))[1]
        along = 0.78 if up - floor < NEAR and across < 0.65 else along
    at = float(curve.budgets[0] + along * (curve.budgets[-1] - curve.budgets[0]))
    apart = [m for m in curve.glue if curve.chosen is None or m.budget != curve.chosen.budget]
    return min(apart or curve.glue, key=lambda mark: abs(mark.budget - at))


def _chosen(axes: Axes, chosen: Mark, curve: Curve, length: float) -> None:
    where = (chosen.budget, chosen.jct / length)
    axes.plot(*where, marker="o", ms=9, color=style.BLUE, mec="white", mew=1.5, zorder=6)
    text = f"{curve.money.rate(chosen.budget)}: {duration(chosen.jct)}"
    across, up = _place(axes, where)
    floor = _place(axes, (chosen.budget, curve.fastest_jct / length))[1]
    if up - floor < NEAR:  # too close to the fastest JCT for a label below
        offset = (28.0, 42.0) if across < 0.45 else (-28.0, 42.0)
    elif across < 0.35:  # no room to the left: into the corner under the curve
        edge = _place(axes, (max(curve.cheapest, axes.get_xlim()[0]), 1.0))[0]
        wide, high = 72 * SIZE[0] * 0.85, 72 * SIZE[1] * 0.8
        offset = (max(edge + 0.02 - across, 0.0) * wide, (floor + 0.06 - up) * high)
    else:
        offset = (-12.0, -24.0)
    _label(axes, text, where, offset, style.INK, bold=True)


def _label(
    axes: Axes,
    text: str,
    where: tuple[float, float],
    offset: tuple[float, float],
    colour: str,
    *,
    bold: bool = False,
) -> None:
    """Text beside a point, with a line to it from the nearest corner."""
    right, up = offset[0] >= 0, offset[1] >= 0
    note = axes.annotate(
        text,
        where,
        xytext=offset,
        textcoords="offset points",
        color=colour,
        fontsize=9.5,
        fontweight="bold" if bold else "normal",
        ha="left" if right else "right",
        va="bottom" if up else "top",
        arrowprops={
            "arrowstyle": "-",
            "color": colour,
            "lw": 0.8,
            "shrinkA": 1,
            "shrinkB": 5,
            "relpos": (0.0 if right else 1.0, 0.0 if up else 1.0),
        },
        zorder=7,
    )
    note.set_path_effects([withStroke(linewidth=3, foreground="white")])
