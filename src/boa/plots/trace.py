"""A trace as a picture: arrivals over time by application, and the mix."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib import resources

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from boa.amounts import duration, percent
from boa.model.speedup import Floats
from boa.model.trace import Trace
from boa.plots import style
from boa.plots.words import DAY, HOUR, MINUTE, significant, unit_for
from boa.units import SECONDS_PER_HOUR, PerHour, Seconds

SIZE = (9.6, 4.8)
SHOWN = 6
"""Applications with a colour of their own; the rest are drawn as one."""
LONGEST = 22
"""Characters of an application's name that fit beside its bar."""
MOST_BINS = 60
WIDTHS = (
    *(1.0, 5.0, 10.0, 30.0),
    *(MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE),
    *(HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR),
)
"""Bins that people count in; longer ones are whole days."""
POINTS = 240
"""Points of the cumulative curves."""
OTHERS = "#9ca3af"


@dataclass(frozen=True, slots=True)
class Layer:
    """One application, or all the rare ones together."""

    name: str
    colour: str
    times: Floats
    mean_gpus: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalsPicture:
    """Numbers behind the picture."""

    title: str
    span_s: Seconds
    rate: PerHour
    bin_s: Seconds
    edges: Floats
    layers: tuple[Layer, ...]
    """Most frequent first; the rest, if any, at the end."""

    @property
    def jobs(self) -> int:
        return sum(len(layer.times) for layer in self.layers)

    def per_hour(self, layer: Layer) -> Floats:
        """The rate in every bin; the last is cut short by the end of the trace, and may be low."""
        counts = np.histogram(layer.times, self.edges)[0]
        return counts * (SECONDS_PER_HOUR / self.bin_s)


def arrivals_of(trace: Trace) -> ArrivalsPicture:
    times: dict[str, list[Seconds]] = {}
    for job in trace.jobs:
        times.setdefault(job.application, []).append(job.arrival_s)
    span = trace.span_s or 1.0  # all at once: one bin
    width = bin_width(span)
    rate = len(trace.jobs) * SECONDS_PER_HOUR / span
    cv2 = trace.interarrival_cv2()
    burstiness = "" if cv2 is None else f", C² = {significant(cv2)}"
    return ArrivalsPicture(
        title=f"{len(trace.jobs):,} jobs in {duration(span)}: "
        f"{significant(rate)} per hour{burstiness}",
        span_s=span,
        rate=rate,
        bin_s=width,
        edges=np.arange(int(np.ceil(span / width)) + 1, dtype=np.float64) * np.float64(width),
        layers=_layers(trace, times),
    )


def bin_width(span_s: Seconds) -> Seconds:
    """The shortest that keeps the bars countable."""
    for width in WIDTHS:
        if span_s <= MOST_BINS * width:
            return width
    return float(np.ceil(span_s / MOST_BINS / DAY) * DAY)


def _layers(trace: Trace, times: Mapping[str, list[Seconds]]) -> tuple[Layer, ...]:
    mix = trace.mix()
    own = mix if len(mix) <= SHOWN + 1 else mix[:SHOWN]
    layers = [
        Layer(part.name, style.PALETTE[n], np.array(times[part.name]), part.mean_gpus)
        for n, part in enumerate(own)
    ]
    rest = [time for part in mix[len(own) :] for time in times[part.name]]
    if rest:
        layers.append(Layer(f"{len(mix) - len(own)} others", OTHERS, np.sort(rest)))
    return tuple(layers)


def trace_picture(trace: Trace, suffix: str) -> bytes:
    arrivals = arrivals_of(trace)
    if suffix.lower() == ".html":
        return trace_page(arrivals).encode("utf-8")
    return style.saved(draw_trace(arrivals), suffix)


def draw_trace(arrivals: ArrivalsPicture, *, slots: bool = False) -> Figure:
    """The figure; `slots` puts an invisible bar over every bin, for a page to say what is there."""
    with matplotlib.rc_context(style.RC):
        figure = Figure(figsize=SIZE, layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=[2.5, 1], wspace=0.04, hspace=0.06)
        rate = figure.add_subplot(grid[0, 0])
        total = figure.add_subplot(grid[1, 0], sharex=rate)
        length, sign = unit_for(arrivals.span_s)
        _rate(rate, arrivals, length, slots)
        _total(total, arrivals, length)
        total.set_xlabel(f"Time ({sign})")
        _mix(figure.add_subplot(grid[:, 1]), arrivals)
        figure.suptitle(arrivals.title, fontsize=11.5, fontweight="bold", ha="left", x=0.012)
        return figure


def _rate(axes: Axes, arrivals: ArrivalsPicture, length: float, slots: bool) -> None:
    style.quiet_axes(axes)
    left, width = arrivals.edges[:-1] / length, arrivals.bin_s / length
    bottom = np.zeros(len(left))
    for layer in arrivals.layers:
        high = arrivals.per_hour(layer)
        axes.bar(left, high, width, bottom, align="edge", color=layer.colour, ec="white", lw=0.3)
        bottom += high
    axes.axhline(arrivals.rate, color=style.INK, lw=1.0, ls=(0, (4, 3)))
    axes.set_xlim(0, arrivals.edges[-1] / length)
    axes.set_ylim(0, float(bottom.max()) * 1.08)
    axes.set_ylabel("Arrivals per hour")
    axes.set_title(f"Every {_words(arrivals.bin_s)} (dashed: the mean)", loc="left", fontsize=9.5)
    axes.tick_params(labelbottom=False)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    if slots:
        full = axes.bar(left, axes.get_ylim()[1], width, align="edge", color="white", alpha=0.0)
        for n, bar in enumerate(full):
            bar.set_gid(f"slot-{n}")


def _words(seconds: Seconds) -> str:
    """The length of a bin: `hour`, `10 min`."""
    singular = {1.0: "second", MINUTE: "minute", HOUR: "hour", DAY: "day"}
    length, sign = next(
        u for u in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1.0, "s")) if seconds >= u[0]
    )
    return singular.get(seconds, f"{seconds / length:g} {sign}")


def _total(axes: Axes, arrivals: ArrivalsPicture, length: float) -> None:
    style.quiet_axes(axes)
    at = np.linspace(0.0, arrivals.span_s, POINTS)
    counts = [np.searchsorted(layer.times, at, side="right") for layer in arrivals.layers]
    colours = [layer.colour for layer in arrivals.layers]
    axes.stackplot(at / length, counts, colors=colours, ec="white", lw=0.3)
    ends = [0.0, arrivals.span_s / length], [0, arrivals.jobs]
    axes.plot(*ends, color=style.INK, lw=1.0, ls=(0, (4, 3)))
    axes.set_ylim(0, arrivals.jobs * 1.05)
    axes.set_ylabel("Jobs so far")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))


def _mix(axes: Axes, arrivals: ArrivalsPicture) -> None:
    """Bars in the order of the stacks: they are the legend, too."""
    rows = np.arange(len(arrivals.layers))
    shares = [len(layer.times) / arrivals.jobs for layer in arrivals.layers]
    axes.barh(rows, shares, 0.62, color=[layer.colour for layer in arrivals.layers])
    axes.set_yticks(rows, [_short(layer.name) for layer in arrivals.layers], color=style.INK)
    axes.set_ylim(max(len(rows), 4) - 0.4, -0.6)
    axes.set_xlim(0, max(shares) * 1.75)  # with room for the labels
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[["bottom", "left"]].set_visible(False)
    axes.set_title("Mix", loc="left", fontsize=9.5)
    for row, layer, share in zip(rows, arrivals.layers, shares, strict=True):
        axes.annotate(
            _said(layer, share),
            (share, row),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=style.QUIET,
        )


def _said(layer: Layer, share: float) -> str:
    gpus = "" if layer.mean_gpus is None else f"\n{significant(layer.mean_gpus)} GPUs each"
    return f"{percent(share)}{gpus}"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def trace_page(arrivals: ArrivalsPicture) -> str:
    """One HTML file: the picture, what is in every bin under the mouse, the mix as a table."""
    drawn = style.saved(draw_trace(arrivals, slots=True), ".svg").decode("utf-8")
    picture = drawn[drawn.index("<svg") :]
    for n, said in enumerate(_tips(arrivals)):
        group = f'<g id="slot-{n}">'
        picture = picture.replace(group, f"{group}<title>{escape(said)}</title>", 1)
    css = resources.files("boa.plots").joinpath("page.css").read_text("utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(arrivals.title)}</title>
<style>
{css}</style>
</head>
<body>
<h1>{escape(arrivals.title)}</h1>
<p>Arrivals over time by application. Rest the mouse on a bar to read it.</p>
{picture}
{_table(arrivals)}
</body>
</html>
"""


def _tips(arrivals: ArrivalsPicture) -> list[str]:
    """For every bin: when it is, and how many jobs of each application arrived in it."""
    counts = [np.histogram(layer.times, arrivals.edges)[0] for layer in arrivals.layers]
    tips = []
    for n, start in enumerate(arrivals.edges[:-1]):
        parts = [f"{duration(start)} – {duration(start + arrivals.bin_s)}"]
        parts += [
            f"{layer.name}: {count[n]:,}"
            for layer, count in zip(arrivals.layers, counts, strict=True)
            if count[n]
        ]
        tips.append("\n".join(parts))
    return tips


def _table(arrivals: ArrivalsPicture) -> str:
    rows = []
    for layer in arrivals.layers:
        share = len(layer.times) / arrivals.jobs
        asked = "" if layer.mean_gpus is None else significant(layer.mean_gpus)
        cells = (layer.name, f"{len(layer.times):,}", percent(share), asked)
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    heads = ("application", "jobs", "of all", "GPUs asked for")
    head = "".join(f"<th>{name}</th>" for name in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
