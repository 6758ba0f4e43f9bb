"""A simulation as a picture: GPUs, jobs and efficiency over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, StrMethodFormatter

from boa.amounts import duration, percent
from boa.model.speedup import Floats
from boa.plots import style
from boa.plots.words import significant, unit_for
from boa.sim.report import ClusterSample, SimulationReport
from boa.units import Seconds

SIZE = (9.6, 6.4)
BINS = 360
"""Points of every line: samples are averaged in between, or bursts would smear into a carpet."""
ROOM = 1.16
"""The height of an axis over its highest value, for the labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Numbers behind the picture: averages over stretches of equal length."""

    title: str
    ends: Floats
    """Where each stretch ends; the first begins at 0."""
    busy: Floats
    rented: Floats
    jobs: Floats
    waiting: Floats
    efficiency: Floats
    """nan where no GPU is held."""
    span_s: Seconds
    average_gpus: float
    average_rented: float
    average_efficiency: float | None


def timeline_of(report: SimulationReport, what: str) -> Timeline:
    jct = duration(report.average_jct)
    until = max(report.tally.last_end, report.span_s, 1.0)
    ends = np.linspace(0.0, until, BINS + 1)[1:]
    samples = [s for s in report.series if s.time <= until] or [
        ClusterSample(0.0, 0, 0, 0, 0, None)
    ]
    at = np.minimum(np.searchsorted(ends, [s.time for s in samples], side="right"), BINS - 1)
    gpu_hours = report.document()
    return Timeline(
        title=f"{what}: {len(report.tally.jcts):,} jobs, average JCT {jct}",
        ends=ends,
        busy=_means(at, [s.busy_gpus for s in samples]),
        rented=_means(at, [s.rented_gpus for s in samples]),
        jobs=_means(at, [s.jobs for s in samples]),
        waiting=_means(at, [s.waiting for s in samples]),
        efficiency=_means(
            at, [np.nan if s.efficiency is None else s.efficiency for s in samples], fill=False
        ),
        span_s=report.span_s,
        average_gpus=report.average_gpus,
        average_rented=gpu_hours["rented_gpus"],
        average_efficiency=report.average_efficiency,
    )


def _means(at: Any, values: Sequence[float], *, fill: bool = True) -> Floats:
    """The mean of the samples in every stretch; one without any goes on as the one before."""
    known = ~np.isnan(np.asarray(values, dtype=np.float64))
    sums = np.bincount(at[known], np.asarray(values, dtype=np.float64)[known], BINS)
    counts = np.bincount(at[known], minlength=BINS)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    if not fill:
        return means
    last = np.maximum.accumulate(np.where(counts > 0, np.arange(BINS), 0))
    return np.nan_to_num(means[last])


def simulation_picture(report: SimulationReport, what: str, suffix: str) -> bytes:
    timeline = timeline_of(report, what)
    if suffix.lower() == ".html":
        return _page(timeline, report).encode("utf-8")
    return style.saved(draw_simulation(timeline), suffix)


def draw_simulation(timeline: Timeline) -> Figure:
    with matplotlib.rc_context(style.RC):
        figure = Figure(figsize=SIZE, layout="constrained")
        grid = figure.add_gridspec(3, 1, height_ratios=[1.5, 1, 0.8], hspace=0.05)
        gpus = figure.add_subplot(grid[0])
        jobs = figure.add_subplot(grid[1], sharex=gpus)
        efficiency = figure.add_subplot(grid[2], sharex=gpus)
        length, sign = unit_for(float(timeline.ends[-1]))
        _gpus(gpus, timeline, length)
        _jobs(jobs, timeline, length)
        _efficiency(efficiency, timeline, length)
        for axes in (gpus, jobs, efficiency):
            _last_arrival(axes, timeline, length, label=axes is gpus)
        gpus.set_xlim(0, float(timeline.ends[-1]) / length)
        gpus.tick_params(labelbottom=False)
        jobs.tick_params(labelbottom=False)
        efficiency.set_xlabel(f"Time ({sign})")
        efficiency.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
        figure.suptitle(timeline.title, fontsize=11.5, fontweight="bold", ha="left", x=0.012)
        return figure


def _edges(timeline: Timeline, length: float) -> Floats:
    return np.concatenate([[0.0], timeline.ends]) / length


def _panel(axes: Axes, name: str, most: float) -> None:
    style.quiet_axes(axes)
    axes.set_ylabel(name)
    axes.set_ylim(0, max(most, 1e-9) * ROOM)


def _gpus(axes: Axes, timeline: Timeline, length: float) -> None:
    edges = _edges(timeline, length)
    most = float(max(timeline.rented.max(), timeline.busy.max(), 1.0))
    held, rented = significant(timeline.average_gpus), significant(timeline.average_rented)
    _panel(axes, "GPUs", most)
    axes.stairs(timeline.busy, edges, fill=True, color=style.BLUE, alpha=0.3, lw=0)
    axes.stairs(timeline.rented, edges, color=style.ORANGE, lw=1.3, baseline=None)
    axes.stairs(timeline.busy, edges, color=style.BLUE, lw=1.3, baseline=None)
    _key(
        axes,
        [
            (f"held by jobs ({held} on average)", style.BLUE),
            (f"rented, whole nodes ({rented})", style.ORANGE),
        ],
    )
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))


def _jobs(axes: Axes, timeline: Timeline, length: float) -> None:
    edges = _edges(timeline, length)
    _panel(axes, "Jobs", float(max(timeline.jobs.max(), 1.0)))
    axes.stairs(timeline.jobs, edges, color=style.GREEN, lw=1.3, baseline=None)
    axes.stairs(timeline.waiting, edges, fill=True, color=style.VERMILLION, alpha=0.6, lw=0)
    _key(axes, [("active", style.GREEN), ("of these waiting for GPUs", style.VERMILLION)])
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))


def _efficiency(axes: Axes, timeline: Timeline, length: float) -> None:
    edges = _edges(timeline, length)
    most = float(np.nanmax(np.append(timeline.efficiency, 1.0)))
    _panel(axes, "Efficiency", most)
    axes.stairs(timeline.efficiency, edges, color=style.PURPLE, lw=1.3, baseline=None)
    said = "speedup per GPU held"
    if timeline.average_efficiency is not None:
        said += f" ({percent(timeline.average_efficiency)} on average)"
        axes.axhline(timeline.average_efficiency, color=style.INK, lw=0.9, ls=(0, (4, 3)))
    _key(axes, [(said, style.PURPLE)])
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))


def _key(axes: Axes, names: Sequence[tuple[str, str]]) -> None:
    """Names over the panel, each in the colour of its line."""
    axes.legend(
        [Line2D([], [], color=colour, lw=4) for _, colour in names],
        [name for name, _ in names],
        loc="lower left",
        bbox_to_anchor=(-0.008, 0.985),
        ncols=3,
        frameon=False,
        borderpad=0.1,
        handlelength=1.0,
        handletextpad=0.5,
        columnspacing=1.8,
        fontsize=9,
        labelcolor=[colour for _, colour in names],
    )


def _last_arrival(axes: Axes, timeline: Timeline, length: float, *, label: bool) -> None:
    """Averages are over the time in which jobs arrived: what comes after is the tail."""
    if not 0 < timeline.span_s < 0.98 * float(timeline.ends[-1]):
        return
    axes.axvline(timeline.span_s / length, color=style.QUIET, lw=1.0, ls=(0, (1, 2)))
    if label:
        axes.annotate(
            "last arrival",
            (timeline.span_s / length, 1.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-4, -3),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=8.5,
            color=style.QUIET,
        )


def _page(timeline: Timeline, report: SimulationReport) -> str:
    """One HTML file: the picture, and the figures as a table."""
    drawn = style.saved(draw_simulation(timeline), ".svg").decode("utf-8")
    css = resources.files("boa.plots").joinpath("page.css").read_text("utf-8")
    classes = report.document()["classes"]
    rows = "".join(
        f"<tr><td>{escape(c['name'])}</td><td>{c['jobs']:,}</td>"
        f"<td>{escape(duration(c['average_jct_s']))}</td></tr>"
        for c in sorted(classes, key=lambda c: -c["jobs"])
    )
    tails = ", ".join(f"P{n} {duration(report.percentile(n))}" for n in (50, 95, 99))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(timeline.title)}</title>
<style>
{css}</style>
</head>
<body>
<h1>{escape(timeline.title)}</h1>
<p>JCT: {escape(tails)}. GPUs, jobs and efficiency over time.</p>
{drawn[drawn.index("<svg") :]}
<table><thead><tr><th>class</th><th>jobs</th><th>average JCT</th></tr></thead>
<tbody>{rows}</tbody></table>
</body>
</html>
"""
