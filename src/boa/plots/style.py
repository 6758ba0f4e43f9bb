"""How our figures look: one palette that colour-blind readers can tell apart, quiet axes."""

import warnings
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

from boa.units import GpuName

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, without its yellow, which is lost on white.
BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, BLACK = "#CC79A7", "#56B4E9", "#333333"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, BLACK)
INK, QUIET, FAINT = "#222222", "#6b7280", "#e5e7eb"

RC: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Inter", "Helvetica Neue", "Helvetica", "Arial", "DejaVu Sans"],
    "font.size": 10,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.axisbelow": True,
    "text.color": INK,
    "text.parse_math": False,  # a class may be called "$x$"
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "pdf.fonttype": 42,
    "svg.hashsalt": "boa",
}


def gpu_colours(names: Iterable[GpuName]) -> Mapping[GpuName, str]:
    """A colour per GPU type, in the workload's order."""
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def quiet_axes(axes: "Axes") -> None:
    axes.grid(True, axis="y")
    axes.tick_params(length=3, width=0.8)


def saved(figure: "Figure", suffix: str) -> bytes:
    """The figure as a file of this kind; the same figure gives the same bytes."""
    import matplotlib

    kind = suffix.lower().lstrip(".")
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    out = BytesIO()
    with matplotlib.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a name in letters the font lacks
        figure.savefig(
            out, format=kind, dpi=200, bbox_inches="tight", pad_inches=0.12, metadata=dated
        )
    return out.getvalue()
