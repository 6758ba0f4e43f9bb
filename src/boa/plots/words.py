"""Numbers as people read them: money or GPUs, widths. Tables and figures share them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from boa.amounts import dollars, duration, percent
from boa.units import Seconds, Usd, UsdPerHour

if TYPE_CHECKING:
    from boa.model.plan import ClassPlan, Variant
    from boa.model.workload import Workload

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
_UNITS = ((2 * DAY, DAY, "d"), (2 * HOUR, HOUR, "h"), (3 * MINUTE, MINUTE, "min"))


def unit_for(seconds: Seconds) -> tuple[float, str]:
    """The unit (its length in seconds, its sign) in which this duration is easiest to read."""
    for least, length, sign in _UNITS:
        if abs(seconds) >= least:
            return length, sign
    return 1.0, "s"


def significant(value: float, digits: int = 3) -> str:
    """So many digits, zeros included: 16.0, 7.68, 1,234; never an exponent in between."""
    if value == 0 or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.{digits - 1}g}"
    return f"{value:#.{digits}g}".rstrip(".")


@dataclass(frozen=True, slots=True)
class Money:
    """How spend is worded: dollars, or GPUs where every GPU-hour costs 1."""

    counts_gpus: bool

    @classmethod
    def of(cls, workload: "Workload") -> "Money":
        return cls(all(gpu.price == 1.0 for gpu in workload.gpu_types.values()))

    def rate(self, spend: UsdPerHour) -> str:
        return f"{_count(spend)} GPUs" if self.counts_gpus else f"{dollars(spend)}/h"

    def job(self, cost: Usd) -> str:
        return f"{_count(cost)} GPU-h" if self.counts_gpus else dollars(cost)

    @property
    def one_more(self) -> str:
        return "one more GPU" if self.counts_gpus else "one more $/h"

    def saving(self, shadow_price: float, jct: Seconds) -> str:
        """The shadow price in words: `one more $/h saves 12 s`.

        Near the cheapest budget the price holds for a few cents only; then those are named.
        """
        step = 1.0
        while shadow_price * step > 0.1 * jct and step > 1e-6:
            step /= 10
        more = self.one_more if step == 1.0 else f"another {self.rate(step)}"
        return f"{more} saves {duration(shadow_price * step)}"

    @property
    def unit(self) -> str:
        return "GPUs" if self.counts_gpus else "USD per hour"


def _count(value: float) -> str:
    """Digits of an amount of money, but 150 rather than 150.00."""
    return dollars(value).replace("$", "").removesuffix(".00")


def runs(variant: "Variant") -> Iterator[str]:
    """The stretches between two rescalings: `2×T4 ep 1–30`, `4×T4 ep 31–100`."""
    for first, end, gpu, width in variant.stretches():
        yield f"{width:g}×{gpu} {_epochs(first, end, len(variant.widths))}"


def routed_runs(plan: "ClassPlan") -> Iterator[str]:
    """Under per-epoch routing: `ep 1–30: 70 % 2×T4 + 30 % 1×A100`."""
    start = 0
    for routes, same in groupby(plan.routes):
        end = start + sum(1 for _ in same)
        ways = sorted(routes, key=lambda r: -r.share)
        parts = [f"{r.width:g}×{r.gpu_type}" for r in ways]
        if len(ways) > 1:
            parts = [f"{percent(r.share)} {part}" for r, part in zip(ways, parts, strict=True)]
        yield f"{_epochs(start, end, len(plan.routes))}: {' + '.join(parts)}"
        start = end


def _epochs(first: int, end: int, total: int) -> str:
    if first == 0 and end == total:
        return "all epochs" if total > 1 else "ep 1"
    return f"ep {first + 1}" if end == first + 1 else f"ep {first + 1}–{end}"
