"""How long to wait before what failed is tried again."""

from boa.units import Seconds

_ENOUGH = 1000
"""Doublings beyond which a float would overflow; any wait has reached its most long before."""


def doubled(first: Seconds, failures: int, most: Seconds) -> Seconds:
    """`first` after one failure, twice as long after each that follows, never above `most`."""
    return min(first * 2.0 ** min(failures - 1, _ENOUGH), most)
