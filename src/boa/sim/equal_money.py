"""A policy's figure at somebody else's money: read between its own runs, along the bound.

The bound (the exact plan's JCT for that money) is steep where money is short: a straight line
between two runs lies far above what the policy would do there, and flatters its rivals. A figure
over the bound hardly changes with money, so that is what is interpolated.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from boa.units import Seconds, UsdPerHour


class AtMoney(NamedTuple):
    """One run: its money, a figure of it, and the bound for that money, where there is one."""

    money: UsdPerHour
    value: float
    bound: Seconds | None = None


def value_at(
    runs: Iterable[AtMoney], money: UsdPerHour, bound: Seconds | None = None
) -> float | None:
    """The figure at this money, whose bound is `bound`; None outside of the runs.

    Straight between the logarithms of figures over bounds and of money; of figures alone where a
    bound is not known.
    """
    points = sorted(runs)
    after = bisect_left(points, money, key=lambda point: point.money)
    if after == len(points):
        return None
    right = points[after]
    if right.money == money:
        return right.value
    if after == 0:
        return None
    left = points[after - 1]
    share = math.log(money / left.money) / math.log(right.money / left.money)
    if bound is None or left.bound is None or right.bound is None:
        return _between(left.value, right.value, share)
    return bound * _between(left.value / left.bound, right.value / right.bound, share)


def _between(left: float, right: float, share: float) -> float:
    return math.exp((1.0 - share) * math.log(left) + share * math.log(right))
