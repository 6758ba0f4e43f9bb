"""Policies against each other: JCT against spend, or the bill, on average and at the tail."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from itertools import pairwise
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, StrMethodFormatter

from boa.amounts import duration
from boa.plots import style
from boa.plots.words import Money, significant, unit_for
from boa.units import Seconds, UsdPerHour

SIZE = (11.4, 4.7)
BOA = "boa"
STEEP = 5.0
"""Ratio of longest to shortest JCT from which the axes are logarithmic."""
MARKERS = "osD^vPX<>"
LETTER, LINE = 5.6, 12.0
"""Points that a letter is wide and a line of text high, about."""
NEAR = 12.0
"""Points above its dot from which a label is tied to it by a line."""
SPEND, BILL = "spend_per_hour", "bill_per_hour"
MONEY = {SPEND: "Average spend", BILL: "Average bill"}
PANELS = (("average_jct_s", "Average JCT"), ("p95_jct_s", "95th percentile of JCTs"))


@dataclass(frozen=True, slots=True)
class Dot:
    """One simulation: what it spent, how long jobs took, what the policy was told."""

    spend: UsdPerHour
    jcts: Mapping[str, Seconds]
    said: str


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """One policy over its knob, by rising spend."""

    name: str
    colour: str
    marker: str
    dots: tuple[Dot, ...]

    @property
    def is_boa(self) -> bool:
        return self.name == BOA

    @property
    def shown(self) -> str:
        return "BOA" if self.is_boa else self.name


def lines_of(
    points: Sequence[Mapping[str, Any]], money: Money, key: str = SPEND
) -> list[PolicyLine]:
    """`key`: a point's money. BOA last, so that it is drawn on top; the others in their order."""
    names = dict.fromkeys(p["policy"] for p in points)
    others = [name for name in names if name != BOA]
    colours = [colour for colour in style.PALETTE if colour != style.BLUE]
    lines = []
    for n, name in enumerate([*others, *(name for name in names if name == BOA)]):
        dots = [_dot(p, money, key) for p in points if p["policy"] == name]
        is_boa = name == BOA
        lines.append(
            PolicyLine(
                name,
                style.BLUE if is_boa else colours[n % len(colours)],
                "o" if is_boa else MARKERS[(n + 1) % len(MARKERS)],
                tuple(sorted(dots, key=lambda dot: dot.spend)),
            )
        )
    return lines


def _dot(point: Mapping[str, Any], money: Money, key: str) -> Dot:
    told = "" if point["value"] is None else f" ({point['knob']} {point['value']})"
    said = (
        f"{point['policy']}{told}\n{money.rate(point[key])}: "
        f"average JCT {duration(point['average_jct_s'])}, P95 {duration(point['p95_jct_s'])}"
    )
    return Dot(point[key], {jct: point[jct] for jct, _ in PANELS}, said)


def headline(compared: Sequence[Mapping[str, Any]]) -> str:
    """The finding: how much longer jobs take elsewhere for the same money."""
    rivals = list(dict.fromkeys(c["policy"] for c in compared))
    if not rivals:
        return "Job completion times against average spend"
    ratios = [c["jct_ratio"] for c in compared]
    least, most = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
    span = least if least == most else f"{least}–{most}"
    who = rivals[0] if len(rivals) == 1 else f"{len(rivals)} other policies"
    return f"For the same money, jobs take {span} times as long under {who} as under BOA"


def comparison_picture(found: Mapping[str, Any], money: Money, suffix: str) -> bytes:
    key = BILL if found.get("billing") == "node" else SPEND
    lines, title = lines_of(found["points"], money, key), headline(found["comparisons"])
    if suffix.lower() == ".html":
        return _page(found, lines, title, money, key).encode("utf-8")
    return style.saved(draw_comparison(lines, title, money, key=key), suffix)


def draw_comparison(
    lines: Sequence[PolicyLine],
    title: str,
    money: Money,
    *,
    key: str = SPEND,
    named: bool = False,
) -> Figure:
    """The figure; `named` gives every dot an id, for a page to say what it is."""
    with matplotlib.rc_context(style.RC):
        figure = Figure(figsize=SIZE, layout="constrained")
        figure.suptitle(title, fontsize=12, fontweight="bold", ha="left", x=0.012)
        panels: list[tuple[Axes, str, float]] = []
        for n, (jct, name) in enumerate(PANELS):
            axes = figure.add_subplot(1, len(PANELS), n + 1)
            length, sign = _scale(axes, lines, jct)
            axes.set_title(name, loc="left")
            axes.set_ylabel(f"JCT ({sign})")
            axes.set_xlabel(f"{MONEY[key]} ({money.unit})")
            for line in lines:
                _draw(axes, line, jct, length, f"panel-{n}" if named else "")
            panels.append((axes, jct, length))
        figure.draw_without_rendering()  # places the axes: labels are put where there is room
        figure.set_layout_engine("none")
        for axes, jct, length in panels:
            _label(axes, lines, jct, length)
        return figure


def _scale(axes: Axes, lines: Sequence[PolicyLine], key: str) -> tuple[float, str]:
    """Limits of both axes, and the unit in which durations are read most easily."""
    style.quiet_axes(axes)
    spends = [dot.spend for line in lines for dot in line.dots]
    jcts = [dot.jcts[key] for line in lines for dot in line.dots]
    low, high = max(min(jcts), 1e-9), max(max(jcts), 1e-9)
    length, sign = unit_for(float(np.sqrt(low * high)))
    room = max(0.06 * (max(spends) - min(spends)), 0.02 * max(spends), 1e-9)
    axes.set_xlim(max(0.0, min(spends) - room), max(spends) + 2.2 * room)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    if high < STEEP * low:
        axes.set_ylim(0, high * 1.12 / length)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
        return length, sign
    axes.set_yscale("log")
    axes.set_ylim(low * 0.8 / length, high * 1.25 / length)
    few = (1.0, 2.0, 5.0) if high > 20 * low else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    axes.yaxis.set_major_locator(LogLocator(subs=few))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    return length, sign


def _draw(axes: Axes, line: PolicyLine, key: str, length: float, names: str) -> None:
    above = 2 if line.is_boa else 0
    places = [(dot.spend, dot.jcts[key] / length) for dot in line.dots]
    across, up = zip(*places, strict=True)
    axes.plot(across, up, color=line.colour, lw=2.6 if line.is_boa else 1.6, zorder=3 + above)
    for n, place in enumerate(places):
        axes.plot(
            *place,
            marker=line.marker,
            ms=7.5 if line.is_boa else 6.8,
            color=line.colour,
            mec="white",
            mew=1.0,
            ls="none",
            zorder=4 + above,
            gid=f"{names}-{line.name}-{n}" if names else None,
        )


# Labels beside their lines, where they cover least


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    low: float
    right: float
    high: float

    def covers(self, others: Sequence["_Box"], dots: Any) -> float:
        """How much of other labels and of the lines would be hidden."""
        hidden = sum(
            self.left < o.right and o.left < self.right and self.low < o.high and o.low < self.high
            for o in others
        )
        inside = (dots[:, 0] > self.left) & (dots[:, 0] < self.right)
        inside &= (dots[:, 1] > self.low) & (dots[:, 1] < self.high)
        return 40.0 * hidden + float(inside.sum())


def _label(axes: Axes, lines: Sequence[PolicyLine], key: str, length: float) -> None:
    figure = axes.figure
    to_points = 72.0 / figure.dpi
    drawn = {line.name: _places(axes, line, key, length) * to_points for line in lines}
    everything = np.concatenate([_along(places) for places in drawn.values()])
    frame = axes.get_window_extent()
    edges = _Box(*(float(v) * to_points for v in frame.extents))
    placed: list[_Box] = []
    # BOA gets the best place; then those that have the fewest to choose from.
    for line in sorted(lines, key=lambda line: (not line.is_boa, len(line.dots))):
        spot, box = _best(line, drawn[line.name], everything, placed, edges)
        placed.append(box)
        dot = line.dots[spot.dot]
        axes.annotate(
            line.shown,
            (dot.spend, dot.jcts[key] / length),
            xytext=spot.offset,
            textcoords="offset points",
            ha=spot.ha,
            va="center",
            arrowprops=_leader(line.colour) if abs(spot.offset[1]) > NEAR + 1 else None,
            fontsize=10 if line.is_boa else 9.5,
            fontweight="bold",
            color=line.colour,
            path_effects=[withStroke(linewidth=3, foreground="white")],
            annotation_clip=False,
            zorder=9,
        )


def _places(axes: Axes, line: PolicyLine, key: str, length: float) -> Any:
    """The dots in pixels of the figure."""
    data = [(dot.spend, dot.jcts[key] / length) for dot in line.dots]
    return axes.transData.transform(np.array(data))


def _along(places: Any) -> Any:
    """Points every few steps along a line through these places."""
    parts = [places]
    for a, b in pairwise(places):
        steps = max(2, int(np.hypot(*(b - a)) / 4))
        parts.append(a + (b - a) * np.linspace(0, 1, steps)[:, None])
    return np.concatenate(parts)


def _leader(colour: str) -> Any:
    """A thin line from a label to its dot, where it is not beside it."""
    return {
        "arrowstyle": "-",
        "color": colour,
        "lw": 0.9,
        "alpha": 0.8,
        "shrinkA": 0,
        "shrinkB": 4,
        "relpos": (0.0, 0.2),
    }


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place for a label: beside which dot, how far from it, and how bad that is by itself."""

    dot: int
    offset: tuple[float, float]
    ha: str
    cost: float

    def box(self, places: Any, wide: float) -> _Box:
        x, y = (float(v) for v in places[self.dot] + np.array(self.offset))
        left = {"left": x, "right": x - wide, "center": x - wide / 2}[self.ha]
        return _Box(left, y - LINE / 2, left + wide, y + LINE / 2)


def _best(
    line: PolicyLine, places: Any, everything: Any, placed: Sequence[_Box], edges: _Box
) -> tuple[_Spot, _Box]:
    """Beside one of the line's dots: the end if there is room, else wherever there is most."""
    wide = LETTER * len(line.shown) + 4
    best: tuple[float, _Spot, _Box] | None = None
    for spot in _spots(len(places), line.is_boa):
        box = spot.box(places, wide)
        outside = box.left < edges.left or box.right > edges.right + 4
        outside |= box.low < edges.low or box.high > edges.high
        cost = spot.cost + box.covers(placed, everything) + 60.0 * outside
        if best is None or cost < best[0]:
            best = (cost, spot, box)
    assert best is not None
    return best[1], best[2]


def _spots(dots: int, below: bool) -> Iterator[_Spot]:
    """To the right of a dot, or farther up where curves that fall leave room; BOA also below."""
    near = [(8.0, 0.0), (6.0, 11.0)]
    far = [(0.6 * up, up) for up in (18.0, 28.0, 40.0, 54.0, 70.0, 90.0)]
    for dot in range(dots):
        first = 0.0 if dot == dots - 1 else 0.5 if dot == 0 else 1.0
        for across, up in near + far:
            yield _Spot(dot, (across, up), "left", first + 0.04 * up)
        for down in (13.0, 26.0, 39.0):  # at the top of the picture, or beside another's label
            yield _Spot(dot, (9.0, -down), "left", first + 4.0 + 0.04 * down)
        if below:
            yield _Spot(dot, (-6.0, -11.0), "right", first + 1.0)


def _page(
    found: Mapping[str, Any], lines: Sequence[PolicyLine], title: str, money: Money, key: str
) -> str:
    """One HTML file: the picture, every dot's figures under the mouse and in a table."""
    figure = draw_comparison(lines, title, money, key=key, named=True)
    drawn = style.saved(figure, ".svg").decode("utf-8")
    picture = drawn[drawn.index("<svg") :]
    for panel in range(len(PANELS)):
        for line in lines:
            for n, dot in enumerate(line.dots):
                group = f'<g id="panel-{panel}-{line.name}-{n}">'
                tip = f"{group}<title>{escape(dot.said)}</title>"
                picture = picture.replace(group, tip, 1)
    css = resources.files("boa.plots").joinpath("page.css").read_text("utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{css}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>Every dot is one simulation of the same trace. Rest the mouse on one to read it.</p>
{picture}
{_table(found, money, key)}
</body>
</html>
"""


def _table(found: Mapping[str, Any], money: Money, key: str) -> str:
    ratios = {(c["policy"], c["value"]): c["jct_ratio"] for c in found["comparisons"]}
    rows = []
    for point in found["points"]:
        ratio = ratios.get((point["policy"], point["value"]))
        cells = (
            point["policy"],
            "" if point["value"] is None else f"{point['knob']} {point['value']}",
            money.rate(point[key]),
            duration(point["average_jct_s"]),
            duration(point["p95_jct_s"]),
            significant(point["rescalings_per_job"]),
            "" if ratio is None else f"{ratio:.2f}",
        )
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    spend = "bill" if key == BILL else "spend"
    heads = ("policy", "told", spend, "average JCT", "P95", "rescalings per job", "JCT × BOA's")
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
