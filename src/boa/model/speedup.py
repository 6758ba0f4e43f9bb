"""Speedup curves s(k): the rate of inherent work at width k.

The theorems ask that s be non-decreasing and s(k)/k non-increasing. Measured curves are often
neither; the path solver needs no such thing, so nothing here insists on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


class Speedup(Protocol):
    """Rate s(k) > 0 for every width k >= base, fractional widths included."""

    @property
    def base(self) -> int:
        """The smallest width at which the curve is defined."""
        ...

    @property
    def scale(self) -> float: ...

    def __call__(self, width: float) -> float: ...

    def rates(self, widths: Floats) -> Floats:
        """s at many widths."""
        ...


@dataclass(frozen=True, slots=True)
class Amdahl:
    """s(k) = scale / ((1 − f) + f/k): a share f of the work runs in parallel."""

    parallel: float
    scale: float = 1.0
    base: int = 1

    def rates(self, widths: Floats) -> Floats:
        return amdahl_rates(self.parallel, self.scale, widths)

    def __call__(self, width: float) -> float:
        return float(self.rates(np.float64(width)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Power:
    """s(k) = scale · k ** exponent."""

    exponent: float
    scale: float = 1.0
    base: int = 1

    def rates(self, widths: Floats) -> Floats:
        return power_rates(self.exponent, self.scale, widths)

    def __call__(self, width: float) -> float:
        return float(self.rates(np.float64(width)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Measured rates: linear between the points, flat after the last."""

    widths: tuple[int, ...]
    measured: Floats
    scale: float = 1.0

    def __post_init__(self) -> None:
        measured = np.array(self.measured, dtype=float)
        measured.flags.writeable = False
        object.__setattr__(self, "measured", measured)

    @classmethod
    def of(cls, points: Mapping[int, float], scale: float = 1.0) -> "Table":
        widths = sorted(points)
        rates: Any = [points[k] for k in widths]  # made an array, and no longer to be changed
        return cls(tuple(widths), rates, scale)

    @property
    def base(self) -> int:
        return self.widths[0]

    def rates(self, widths: Floats) -> Floats:
        return table_rates(self.widths, self.measured, self.scale, widths)

    def __call__(self, width: float) -> float:
        return float(np.interp(width, self.widths, self.measured)) * self.scale

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Table)
            and (self.widths, self.scale) == (other.widths, other.scale)
            and bool(np.array_equal(self.measured, other.measured))
        )

    def __hash__(self) -> int:
        return hash((self.widths, self.scale, self.measured.tobytes()))


def amdahl_rates(parallel: Any, scale: Any, widths: Floats) -> Floats:
    return np.asarray(scale / ((1.0 - parallel) + parallel / widths))


def power_rates(exponent: Any, scale: Any, widths: Floats) -> Floats:
    return np.asarray(scale * widths**exponent)


def table_rates(points: tuple[int, ...], measured: Floats, scale: Any, widths: Floats) -> Floats:
    """Interpolate along the last axis of `measured`: one curve, or a stack of them."""
    known = np.asarray(points, dtype=float)
    if known.shape == np.shape(widths) and (known == widths).all():
        return np.asarray(measured * scale)
    right = np.clip(np.searchsorted(known, widths), 1, max(len(points) - 1, 1))
    if len(points) == 1:
        flat = np.broadcast_to(measured, (*measured.shape[:-1], len(np.atleast_1d(widths))))
        return np.asarray(flat * scale)
    left = right - 1
    mix = np.clip((widths - known[left]) / (known[right] - known[left]), 0.0, 1.0)
    return np.asarray((measured[..., left] * (1.0 - mix) + measured[..., right] * mix) * scale)


def stacked_rates(curves: Sequence[Speedup], widths: Floats) -> Floats:
    """Rates of many curves at many widths, one row per curve.

    The curves of a class's epochs are nearly always of one kind, and then a whole class takes a
    handful of array operations; any other mixture goes curve by curve.
    """
    first = curves[0]
    scales = np.array([[c.scale] for c in curves])
    if isinstance(first, Table):
        same = [c.measured for c in curves if isinstance(c, Table) and c.widths == first.widths]
        if len(same) == len(curves):
            return table_rates(
                first.widths, np.concatenate(same).reshape(len(same), -1), scales, widths
            )
    elif isinstance(first, Amdahl):
        shares = [c.parallel for c in curves if isinstance(c, Amdahl)]
        if len(shares) == len(curves):
            return amdahl_rates(np.array(shares)[:, None], scales, widths)
    elif isinstance(first, Power):
        exponents = [c.exponent for c in curves if isinstance(c, Power)]
        if len(exponents) == len(curves):
            return power_rates(np.array(exponents)[:, None], scales, widths)
    return np.stack([curve.rates(widths) for curve in curves])
