"""How long things took, counted by size: names of counters that a histogram is made from."""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate

from boa.units import Seconds

BOUNDS: tuple[Seconds, ...] = (
    60.0,
    120.0,
    300.0,
    600.0,
    1200.0,
    1800.0,
    3600.0,
    7200.0,
    14_400.0,
    28_800.0,
    57_600.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
)
"""Upper bounds of the buckets, from a minute to a week."""


def bucket(name: str, seconds: Seconds) -> str:
    """The counter that this goes into: of the smallest bound that it is not above."""
    place = bisect_left(BOUNDS, seconds)
    return _counter(name, BOUNDS[place] if place < len(BOUNDS) else float("inf"))


def up_to(name: str, counters: Mapping[str, float]) -> list[tuple[Seconds, float]]:
    """By bound, rising: how many were not above it."""
    counts = (counters.get(_counter(name, bound), 0.0) for bound in BOUNDS)
    return list(zip(BOUNDS, accumulate(counts), strict=True))


def _counter(name: str, bound: Seconds) -> str:
    return f"{name}_up_to_{bound:g}"
