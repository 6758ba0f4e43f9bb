"""The month's forecast: dollars spent in it, and the pace of late for the rest of it; and how far
off that may be. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import stdev
from typing import Literal, TypeAlias

from boa.model.records import NodeRecord
from boa.scheduler.money.costs import forecast_month, month_of
from boa.scheduler.money.ledger import bill
from boa.units import DAY_S, LEAST_HISTORY_S, SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

Basis: TypeAlias = Literal["none", "short", "spend"]
"""Ground of a forecast: nothing was spent yet, or for less than an hour, so that there is none; the
pace of an hour or more. Never the budget: what may be spent says nothing of what is."""

BLOCKS = 8
"""Equal stretches that the time of the pace is cut into, to see how much spend varies."""
LEAST_BLOCK_S: Seconds = 3600.0
T_80 = 1.415
"""Student's t of 7 degrees of freedom, between whose −t and t it is in 80 % of all cases."""
BAND_WORDS = (
    "between these in 80 % of all cases, if spend goes on varying as it has over the last {over}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The month at its end, if it goes on like this."""

    at: Seconds
    spent: Usd
    """USD since the month began."""
    over_s: Seconds
    """Seconds that the pace is of, up to `at`; 0: nothing was spent in them."""
    pace: UsdPerHour
    """The average bill over these seconds."""
    allowed: UsdPerHour | None = None
    """The budget in force over them, on average; None: it was not noted down."""
    spread: UsdPerHour | None = None
    """Standard deviation of the mean spend of stretches as long as one of `BLOCKS`; None: there is
    too little history to say."""

    @property
    def band(self) -> tuple[Usd, Usd] | None:
        """Amounts between which the month ends in 80 % of all cases, if stretches of time go on
        varying as they did; None: too little history.

        Two things are not known: what is to come, which varies less the longer it is, and the pace
        itself, which is known the better the longer it was seen.
        """
        amount = self.amount
        if self.spread is None or amount is None:
            return None
        block_h = self.over_s / BLOCKS / SECONDS_PER_HOUR
        rest_h = (month_of(self.at)[1] - self.at) / SECONDS_PER_HOUR
        known_h = self.over_s / SECONDS_PER_HOUR
        variance = self.spread**2 * block_h * rest_h * (1.0 + rest_h / known_h)
        margin = T_80 * math.sqrt(variance)
        return max(amount - margin, self.spent), amount + margin

    @property
    def amount(self) -> Usd | None:
        """Dollars that the month costs; None: too little history."""
        if self.basis != "spend":
            return None
        return forecast_month(self.spent, self.pace, self.at)

    @property
    def basis(self) -> Basis:
        if self.over_s <= 0:
            return "none"
        return "short" if self.over_s < LEAST_HISTORY_S else "spend"


def looks_back_to(now: Seconds) -> Seconds:
    """Beginning of the time that the pace is of, at the earliest: the month's, or a day ago while
    the month is younger than that."""
    return min(month_of(now)[0], now - DAY_S)


def forecast(nodes: Sequence[NodeRecord], now: Seconds) -> Forecast:
    """`nodes`: all that were charged for since `looks_back_to`, others do no harm. The time before
    the first of them counts for nothing."""
    back = looks_back_to(now)
    begins = [
        max(node.billed_from, back)
        for node in nodes
        if node.billed_from is not None and (node.gone_at is None or node.gone_at > back)
    ]
    first = min(begins, default=now)
    hours = (now - first) / SECONDS_PER_HOUR
    return Forecast(
        spread=_spread(nodes, first, now),
        at=now,
        spent=bill(nodes, (), month_of(now)[0], now).total,
        over_s=max(now - first, 0.0),
        pace=bill(nodes, (), first, now).total / hours if hours > 0 else 0.0,
    )


def _spread(nodes: Sequence[NodeRecord], first: Seconds, now: Seconds) -> UsdPerHour | None:
    """As in `Forecast`. Stretches of hours, not minutes: neighbours of a few minutes are alike."""
    block_s = (now - first) / BLOCKS
    if block_s < LEAST_BLOCK_S:
        return None
    cuts = [first + number * block_s for number in range(BLOCKS)] + [now]
    spent = [bill(nodes, (), begin, end).total for begin, end in pairwise(cuts)]
    return stdev(spent) / block_s * SECONDS_PER_HOUR
