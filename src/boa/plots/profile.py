"""A learned class: s(k) by GPU type with its samples, as a picture and as text.

Both are made from the document that the service gives out (`scheduler/learn/class_document.py`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from boa.amounts import duration
from boa.plots import style
from boa.plots.words import significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (8.0, 4.6)
DOTS = (12.0, 160.0)
"""Areas of the smallest and the largest sample, in square points."""
BAR = 32
"""Characters of the longest bar in the terminal."""
MOST_ROWS = 12
"""Rows of one GPU type in the terminal, at most."""
LONGEST = 60
"""Characters of a class's name that are shown."""
DASHES = (0, (4, 3))

Document = Mapping[str, Any]


def profile_picture(document: Document, suffix: str) -> bytes:
    """The document as a PNG, SVG or PDF file."""
    return style.saved(draw_profile(document), suffix)


def draw_profile(document: Document) -> "Figure":
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(style.RC):
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        style.quiet_axes(axes)
        types = [kind for kind in document["gpu_types"] if kind["curve"]["widths"]]
        colours = style.gpu_colours(kind["name"] for kind in types)
        longest = max((s["seconds"] for kind in types for s in kind["samples"]), default=1.0)
        for kind in types:
            _curve(axes, kind, colours[kind["name"]])
            _samples(axes, kind, colours[kind["name"]], longest)
        _axes(axes, types)
        _title(axes, document)
        _legend(axes, types, colours, longest)
        return figure


def _curve(axes: "Axes", kind: Document, colour: str) -> None:
    """Solid as far as it was measured, thin as far as plans may go, and no further."""
    widths, speedups = kind["curve"]["widths"], kind["curve"]["speedup"]
    base, first = widths[0], speedups[0]
    shown = [(k, s) for k, s in zip(widths, speedups, strict=True) if k <= _end(kind)]
    measured = [(k, s) for k, s in shown if k <= kind["tried"]]
    axes.plot(*zip(*shown, strict=True), color=colour, lw=1.1, zorder=3)
    if measured:
        axes.plot(*zip(*measured, strict=True), color=colour, lw=2.4, zorder=3)
    ends = [base, max(_end(kind), 2 * base)]
    perfect = [first * k / base for k in ends]
    axes.plot(ends, perfect, color=colour, lw=1.0, ls=DASHES, alpha=0.6, zorder=2)


def _end(kind: Document) -> int:
    """The widest width that there is something to say of."""
    return int(max(kind["offered"], kind["tried"], kind["curve"]["widths"][0]))


def _samples(axes: "Axes", kind: Document, colour: str, longest: float) -> None:
    """Full: on one node; hollow: across nodes."""
    for sample in kind["samples"]:
        if sample["speedup"] is None:
            continue
        axes.scatter(
            sample["width"],
            sample["speedup"],
            s=_area(sample["seconds"], longest),
            facecolor="white" if sample["across_nodes"] else colour,
            edgecolor=colour if sample["across_nodes"] else "white",
            linewidth=1.3 if sample["across_nodes"] else 0.6,
            zorder=4,
        )


def _area(seconds: float, longest: float) -> float:
    return DOTS[0] + (DOTS[1] - DOTS[0]) * math.sqrt(seconds / longest)


def _axes(axes: "Axes", types: Sequence[Document]) -> None:
    """Both double from line to line, so that perfect scaling is straight."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    widest = max((_end(kind) for kind in types), default=1)
    top = max(1, math.ceil(math.log2(widest)))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlim(2**-0.25, 2 ** (top + 0.25))
    axes.xaxis.set_major_locator(FixedLocator([2.0**n for n in range(top + 1)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)
    axes.set_xlabel("GPUs")
    axes.set_ylabel("Speedup s(k)")


def _title(axes: "Axes", document: Document) -> None:
    axes.set_title(
        f"Learned speedup of {_short(document['class'])}", loc="left", fontweight="bold", pad=20
    )
    axes.annotate(
        _said(document),
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 7),
        textcoords="offset points",
        fontsize=8.5,
        color=style.QUIET,
    )


def _legend(
    axes: "Axes", types: Sequence[Document], colours: Mapping[str, str], longest: float
) -> None:
    """Beside the axes: nobody knows where the curves will lie."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colours[k["name"]], lw=2.4, label=k["name"]) for k in types]
    handles.append(Line2D([], [], color=style.QUIET, lw=1.1, label="not tried yet"))
    handles.append(Line2D([], [], color=style.QUIET, lw=1.0, ls=DASHES, label="perfect scaling"))
    samples = [sample for kind in types for sample in kind["samples"]]
    handles += [
        Line2D(
            [],
            [],
            ls="",
            marker="o",
            markersize=math.sqrt(DOTS[1]) / 2,
            markerfacecolor="white" if across else style.QUIET,
            markeredgecolor=style.QUIET,
            label="across nodes" if across else "on one node",
        )
        for across in sorted({sample["across_nodes"] for sample in samples})
    ]
    if samples:
        handles.append(Line2D([], [], ls="", label=f"largest dot: {duration(longest)}"))
    axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        frameon=False,
        fontsize=9,
        labelspacing=0.6,
    )


def profile_text(document: Document) -> str:
    """The same for a terminal, in rich's markup."""
    lines = [
        f"[bold]{escape(_short(document['class']))}[/bold]  {escape(_said(document))}",
        f"[dim]starts from {escape(document['prior'])}[/dim]",
        *(escape(line) for line in _training_lines(document)),
    ]
    types = [kind for kind in document["gpu_types"] if kind["curve"]["widths"]]
    most = max((_longest(kind) for kind in types), default=1.0)
    for kind in types:
        lines += ["", *_type_lines(kind, most)]
    for kind in document["gpu_types"]:
        if not kind["curve"]["widths"] and kind.get("failed"):
            lines += ["", f"[bold]{escape(kind['name'])}[/bold]", *_failed_lines(kind)]
    return "\n".join(lines)


def _training_lines(document: Document) -> Iterator[str]:
    """Lines on the batch size and the noise, where jobs tell of them."""
    engines = document.get("rescaling", {})
    for engine, parts in sorted(engines.items(), key=lambda e: e[0] != document.get("engine")):
        yield from _rescaling_lines(engine, parts)
    noise = [(n + 1, value) for n, value in enumerate(document.get("noise_scale", ())) if value]
    if noise:
        (first, before), (last, now) = noise[0], noise[-1]
        then = f", {significant(now)} in epoch {last}" if last > first else ""
        yield f"{'noise scale':<12} {significant(before)} samples in epoch {first}{then}"


def _rescaling_lines(engine: str, parts: Mapping[str, Document]) -> Iterator[str]:
    """Lines on one engine's rescalings; parts that were told more or less often than the whole say
    how often."""
    total = parts.get("total", {"mean_s": None, "count": 0})
    count, took = total["count"], total["mean_s"]
    said = "by parts" if took is None else f"{duration(took)}, measured {count:,}×"
    yield f"{'rescaling':<12} on {engine}: {said}"
    known = []
    for name, part in parts.items():
        if name != "total":
            seen = "" if part["count"] == count else f" ({part['count']:,}×)"
            known.append(f"{name.replace('_', ' ')} {duration(part['mean_s'])}{seen}")
    if known:
        yield f"{'':<12} {', '.join(known)}"


def _longest(kind: Document) -> float:
    """Perfect scaling, or what is even better, at the widths that are shown."""
    curve = dict(zip(kind["curve"]["widths"], kind["curve"]["speedup"], strict=True))
    base = min(curve)
    return float(max(max(curve[base] * k / base, s) for k, s in curve.items() if k <= _end(kind)))


def _type_lines(kind: Document, most: float) -> Iterator[str]:
    curve = dict(zip(kind["curve"]["widths"], kind["curve"]["speedup"], strict=True))
    base, failed = min(curve), {one["width"] for one in kind.get("failed", ())}
    yield f"[bold]{escape(kind['name'])}[/bold]  [dim]GPUs  s(k)  (░ perfect scaling)[/dim]"
    for width in _rows(kind, sorted(curve)):
        speedup, perfect = curve[width], curve[base] * width / base
        full = max(round(BAR * speedup / most), 1)
        bar = "█" * full + "░" * max(round(BAR * perfect / most) - full, 0)
        samples = [s for s in kind["samples"] if s["width"] == width]
        untried = "failed" if width in failed else "not tried yet"
        said = "; ".join(_sample_said(s, kind) for s in samples) or untried
        row = f"{width:>6} {significant(speedup):>6}  {bar:<{BAR}}  {said}"
        yield row if samples else f"[dim]{row}[/dim]"
    yield from _failed_lines(kind)
    yield from _layout_lines(kind)


def _layout_lines(kind: Document) -> Iterator[str]:
    """Layouts of the model that were tried: the fastest at each width stands out."""
    if kind.get("layouts"):
        yield f"[bold]{escape(kind['name'])}[/bold]  [dim]GPUs  layouts that were tried[/dim]"
    for one in kind.get("layouts", ()):
        nodes = f" on {one['nodes']} nodes" if one["nodes"] > 1 else ""
        row = f"{one['width']:>6}  {one['layout'] + nodes:<20} {layout_said(one)}"
        yield escape(row) if one["fastest"] else f"[dim]{escape(row)}[/dim]"


def layout_said(one: Document) -> str:
    """A layout in words: its speed, or that it ran out of memory, and why it was tried."""
    at_a_time = f"{one['local_batch']:,} sample{'s' * (one['local_batch'] != 1)} at a time"
    if one["out_of_memory"]:
        return f"out of memory with {at_a_time}"
    rate, peak = one["samples_per_s"], one["peak_bytes"]
    words = [at_a_time] if rate is None else [f"{significant(rate)} samples/s", at_a_time]
    words += [] if peak is None else [f"{significant(peak / 1e9)} GB"]
    best = "fastest; " if one["fastest"] else ""
    return f"{', '.join(words)} ({best}{one['why']})"


def _failed_lines(kind: Document) -> Iterator[str]:
    for one in kind.get("failed", ()):
        yield f"[red]{escape(failed_said(kind['name'], one))}[/red]"


def failed_said(gpu: str, one: Document) -> str:
    """A width that failed, and what becomes of it."""
    where = f"{one['width']}×{gpu}{' across nodes' if one['across_nodes'] else ''}"
    times = "once" if one["times"] == 1 else f"{one['times']} times"
    later = "" if one["again_at"] is None else " for now"
    said = f": {one['said']}" if one.get("said") else ""
    return f"{where} failed {times}: {one['reason']}{said}; not used{later}"


def _rows(kind: Document, widths: Sequence[int]) -> list[int]:
    """Those that were measured longest, the least and the widest, and powers of two between."""
    end = _end(kind)
    measured = {s["width"]: s["seconds"] for s in kind["samples"] if s["width"] in widths}
    chosen = {widths[0], *(k for k in widths if k == end)}
    candidates = sorted(measured, key=lambda k: -measured[k])
    candidates += [k for k in widths if k <= end and k & (k - 1) == 0]
    for width in candidates:
        if len(chosen) < MOST_ROWS:
            chosen.add(width)
    return sorted(chosen)


def _sample_said(sample: Document, kind: Document) -> str:
    """Where s(k) is held against a width that was not measured: also against the least that was."""
    where = " across nodes" if sample["across_nodes"] else ""
    measured = "" if sample["speedup"] is None else f"{significant(sample['speedup'])} "
    said = f"{measured}measured{where} in {duration(sample['seconds'])}"
    ratio, least = sample.get("measured_speedup"), kind.get("measured_from")
    if (
        ratio is None
        or least is None
        or sample["width"] == least
        or math.isclose(ratio, sample["speedup"])
    ):
        return said
    return f"{said}, {significant(ratio)} × {least} GPU{'s' * (least > 1)}"


def _said(document: Document) -> str:
    jobs, epochs = document["jobs"], document["epochs"]
    return ", ".join(
        (
            f"{jobs:,} job{'s' if jobs != 1 else ''} so far",
            f"{significant(document['arrivals_per_hour'])} arrivals per hour",
            f"{_units(document)} in {epochs} epoch{'s' * (epochs > 1)}",
            f"{duration(document['rescale_s'])} per rescaling",
        )
    )


def _units(document: Document) -> str:
    known = document.get("work_known", True)  # an older service does not say
    return f"{significant(sum(document['work']))} units" if known else "an unknown number of units"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
