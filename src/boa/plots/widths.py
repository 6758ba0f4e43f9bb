"""The plan as a picture: for every class, GPUs by epoch and GPU type."""

import math
from collections.abc import Mapping

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from boa.amounts import percent
from boa.plots import style
from boa.plots.panels import Panel, Panels, VariantLine
from boa.units import GpuName

MOST = 15
"""Panels in one picture; a plan of more classes shows those that spend most."""
COLUMNS = 3
LONGEST = 30
"""Characters of a class's name that fit over its panel."""
SIZE = (3.1, 2.15)


def draw_widths(panels: Panels) -> Figure:
    shown = panels.panels[:MOST]
    columns = min(COLUMNS, len(shown))
    rows = math.ceil(len(shown) / columns)
    with matplotlib.rc_context(style.RC):
        figure = Figure(
            figsize=(max(SIZE[0] * columns, 5.2), SIZE[1] * rows + 0.8),
            layout=ConstrainedLayoutEngine(h_pad=0.09, w_pad=0.07),
        )
        widest = max(s.width for panel in shown for line in panel.lines for s in line.stretches)
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for n, axes in enumerate(grid.flat):
            if n >= len(shown):
                axes.set_visible(False)
                continue
            _panel(axes, shown[n], panels, widest)
            if n % columns == 0:
                axes.set_ylabel("GPUs")
            if n + columns >= len(shown):
                axes.set_xlabel("Epochs done")
        hidden = len(panels.panels) - len(shown)
        more = f" ({hidden} smaller classes not shown)" if hidden else ""
        figure.suptitle(panels.title + more, fontsize=11.5, fontweight="bold", ha="left", x=0.015)
        _legend(figure, panels)
        return figure


def _panel(axes: Axes, panel: Panel, panels: Panels, widest: float) -> None:
    style.quiet_axes(axes)
    colours = style.gpu_colours(panels.gpus)
    name = panel.name if len(panel.name) <= LONGEST else panel.name[: LONGEST - 1] + "…"
    axes.set_title(name, loc="left", fontweight="bold", pad=16)
    axes.annotate(
        panel.said,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 5),
        textcoords="offset points",
        fontsize=8,
        color=style.QUIET,
    )
    _axes(axes, panel.epochs, widest)
    for line in panel.lines:
        _line(axes, line, colours)
    if len(panel.lines) <= 2:
        _labels(axes, panel, colours)


def _axes(axes: Axes, epochs: int, widest: float) -> None:
    """Epochs are stretches: epoch 1 lies between 0 and 1. Widths double from line to line."""
    axes.set_xlim(0, epochs)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_yscale("log", base=2)
    top = max(1, math.ceil(math.log2(widest)))
    axes.set_ylim(2**-0.6, 2 ** (top + 0.8))
    axes.yaxis.set_major_locator(FixedLocator([2.0**n for n in range(top + 1)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _line(axes: Axes, line: VariantLine, colours: Mapping[GpuName, str]) -> None:
    """Thicker where more jobs go this way."""
    before = None
    for stretch in line.stretches:
        if before is not None:
            axes.plot(
                [stretch.first] * 2,
                [before.width, stretch.width],
                color=style.QUIET,
                lw=0.8,
                zorder=2,
            )
        axes.plot(
            [stretch.first, stretch.end],
            [stretch.width] * 2,
            color=colours[stretch.gpu],
            lw=1.2 + 2.4 * line.share,
            solid_capstyle="butt",
            zorder=3,
        )
        before = stretch


def _labels(axes: Axes, panel: Panel, colours: Mapping[GpuName, str]) -> None:
    """Label the longest stretch of each line; the lower line's label goes below it."""
    longest = [max(line.stretches, key=lambda s: s.end - s.first) for line in panel.lines]
    lowest = min(stretch.width for stretch in longest)
    for line, stretch in zip(panel.lines, longest, strict=True):
        below = len(longest) > 1 and stretch.width == lowest
        share = f"{percent(line.share)}: " if len(longest) > 1 else ""
        axes.annotate(
            f"{share}{stretch.width:g}×{stretch.gpu}",
            ((stretch.first + stretch.end) / 2, stretch.width),
            xytext=(0, -4 if below else 4),
            textcoords="offset points",
            ha="center",
            va="top" if below else "bottom",
            fontsize=8.5,
            color=colours[stretch.gpu],
        ).set_path_effects([withStroke(linewidth=2.5, foreground="white")])


def _legend(figure: Figure, panels: Panels) -> None:
    colours = style.gpu_colours(panels.gpus)
    handles = [Line2D([], [], color=colours[gpu], lw=3, label=gpu) for gpu in panels.used]
    figure.legend(
        handles=handles,
        loc="outside upper right",
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        handlelength=1.4,
        columnspacing=1.2,
    )
