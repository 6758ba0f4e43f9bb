"""Steering: the budget to plan with, so that the *bill* averages to the budget. Pure.

For a budget on average the best price of money is constant. Only evidence that plans are wrong
(arrivals misjudged, nodes that boot or idle) should move it, and never luck. The errors of plans
are learned as a *gain*, dollars committed per dollar planned, with the weight that Bayes gives them
against the measured luck. Dollars left over or owed are made good over a horizon that is so long
that luck moves the price by a few per cent: see docs/concepts/bill.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from boa.scheduler.money.luck import BELIEVED_H, Luck, variance, watched
from boa.units import SECONDS_PER_HOUR, PerHour, Seconds, Usd, UsdPerHour

UNSURE = 0.35
"""Standard deviation of the gain's two factors before anything was measured: a rate of arrivals
that is wrong by two is two of them away."""
DRIFT_H = 720.0
"""Hours in which the gain drifts as far as that."""
ONCE_H = 12.0
"""Hours that the whole surprise counts for, as one more sample of luck: a single burst is less
likely to be a new rate than to be luck that is larger than was seen before."""
WEEK_H = 168.0
"""Hours of calm against which that is weighed at most: a calm month rules out no burst."""
LEAST_H = 1.0
"""Hours of budget that a belief counts for at least, or one boot would upset it."""
GAIN = (0.2, 5.0)
"""Least and most that the gain is believed to be."""
SHARE = (0.25, 2.0)
"""Least and most that is spent while a debt, or savings, are made good, as shares of the budget."""
MOST = 0.5
"""Horizons of budget that are saved up or owed at most: a dead month ends in no spree."""
LONGEST_WAIT_S: Seconds = 1800.0
"""The longest that a job waits for money, however much is owed …"""
DEEP = 0.5
"""… and the part of the most that is ever owed from which on jobs wait at all."""
OVERHEAD = 1.1
"""Dollars billed per dollar that jobs hold, before anything was measured, in a cluster of ten
nodes or fewer …"""
TEN_NODES = 10.0
LEAST_OVERHEAD = 1.04
"""… and in a very large one: what is empty grows as the root of what is there …"""
LIFE_S: Seconds = 3600.0
"""… and the life of a node, of which boots and reclamations above two minutes are lost as well."""
LOST_S: Seconds = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """The controller's state: JSON by `as_document`."""

    at: Seconds
    """Time of the last look."""
    billed: Usd
    """The ledger's total then …"""
    to_go: Usd = 0.0
    """… and the dollars that jobs were to cost from there on."""
    left: Usd = 0.0
    """Dollars allowed and not billed; negative: a debt."""
    committed: Usd = 0.0
    """Dollars billed, or still to be billed to current jobs, each forgotten as hours pass …"""
    promised: Usd = 0.0
    """… dollars that plans promised to spend in those hours …"""
    came: Usd = 0.0
    """… and dollars that plans promised for the jobs that arrived in them."""
    jobs: float = 0.0
    """Jobs that arrived in those hours …"""
    believed: float = 0.0
    """… those that were believed to, by what is believed now …"""
    per_hour: PerHour = 0.0
    """… of so many per hour."""
    luck: Luck = field(default_factory=Luck)
    """Surprises of the dollars of arrivals, by which evidence is weighed …"""
    counts: Luck = field(default_factory=Luck)
    """… and of their number."""

    def as_document(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {**plain, "luck": self.luck.as_document(), "counts": self.counts.as_document()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Steered":
        """Read a document. Older ones lack luck, or the dollars of arrivals: those are taken to
        have been as promised."""
        luck, counts = (Luck.from_document(document.get(name, {})) for name in ("luck", "counts"))
        came = document.get("came", document.get("promised", 0.0))
        return cls(**{**document, "came": came, "luck": luck, "counts": counts})


class Commitments(NamedTuple):
    """Dollars that jobs take, as far as it is known."""

    to_go: Usd
    """Dollars that current jobs will still cost."""
    promised: UsdPerHour
    """Dollars per hour that the plan promises to spend on arrivals …"""
    variance: float = 0.0
    """… and the variance of that in an hour, USD², if they come one by one."""
    came: Usd = 0.0
    """Dollars that the plan promises for jobs that arrived since the last look …"""
    jobs: int = 0
    """… and their number …"""
    per_hour: PerHour = 0.0
    """… of which the plan believes in so many per hour."""


def forgiven(steered: Steered) -> Steered:
    """Start anew with another budget: nothing is left over or owed."""
    return replace(steered, left=0.0, committed=0.0, promised=0.0, came=0.0, jobs=0.0, believed=0.0)


def looked(
    steered: Steered,
    budget: UsdPerHour,
    now: Seconds,
    *,
    billed: Usd,
    found: Commitments,
    horizon_h: float,
    ends_at: Seconds = math.inf,
    allowed: Usd | None = None,
) -> Steered:
    """Look at the ledger and at the current jobs. `ends_at`: there is no budget after that, only
    what is left of it. `allowed`: dollars that the budget allowed since the last look, where it
    changes by the hour; `budget` is then that of a week on average."""
    hours = (now - steered.at) / SECONDS_PER_HOUR
    if hours <= 0:
        return steered
    if allowed is None:
        allowed = budget * max(min(now, ends_at) - steered.at, 0.0) / SECONDS_PER_HOUR
    spent = billed - steered.billed
    luck = watched(
        steered.luck, hours, came=found.came, promised=found.promised, expected=found.variance
    )
    per_hour = found.per_hour
    counts = watched(steered.counts, hours, came=found.jobs, promised=per_hour, expected=per_hour)
    kept = math.exp(-hours / _remembered_h(luck, budget))
    most = _most(budget, horizon_h)
    # What plans have learned of rates since then is not to be learned twice.
    more = per_hour / steered.per_hour if per_hour and steered.per_hour else 1.0
    return replace(
        steered,
        at=now,
        billed=billed,
        to_go=found.to_go,
        left=min(max(steered.left + allowed - spent, -most), most),
        committed=kept * steered.committed + spent + found.to_go - steered.to_go,
        promised=kept * more * steered.promised + found.promised * hours,
        came=kept * steered.came + found.came,
        jobs=kept * steered.jobs + found.jobs,
        believed=kept * more * steered.believed + per_hour * hours,
        per_hour=per_hour,
        luck=luck,
        counts=counts,
    )


def _remembered_h(luck: Luck, budget: UsdPerHour) -> float:
    """Hours after which evidence is forgotten: the Kalman filter's, in its steady state, for a gain
    that drifts by `UNSURE` in `DRIFT_H`."""
    believed_h = variance(luck) / (UNSURE * budget) ** 2
    return min(max(math.sqrt(believed_h * DRIFT_H), LEAST_H), DRIFT_H)


def overhead(nodes: float, lost_s: Seconds) -> float:
    """Dollars billed per dollar that jobs hold, before anything was measured; `nodes`: that the
    budget pays for; `lost_s`: seconds that a node takes to boot and to be reclaimed."""
    empty = (OVERHEAD - LEAST_OVERHEAD) * math.sqrt(TEN_NODES / max(nodes, TEN_NODES))
    return LEAST_OVERHEAD + empty + max(lost_s - LOST_S, 0.0) / LIFE_S


def gain(
    steered: Steered, budget: UsdPerHour, expected: float = OVERHEAD, unsure: float = UNSURE
) -> float:
    """Dollars committed per dollar planned. `expected`: before anything was measured; `unsure`:
    standard deviation of the arrivals per arrival believed, 0 if their rates are known."""
    found = demand(steered, budget, unsure) * cost(steered, budget, expected)
    return min(max(found, GAIN[0]), GAIN[1])


def demand(steered: Steered, budget: UsdPerHour, unsure: float = UNSURE) -> float:
    """Dollars of arrivals per dollar promised. Numbers of jobs are less noisy than dollars, so what
    they say of rates is learned first, and from dollars what is left."""
    if not unsure:
        return 1.0
    more = _learned(steered.jobs, steered.believed, steered.per_hour, steered.counts, unsure)
    return more * _learned(steered.came, more * steered.promised, budget, steered.luck, unsure)


def _learned(came: float, promised: float, per_hour: float, luck: Luck, unsure: float) -> float:
    """What came per unit promised: the mean of a normal belief after the surprise.

    The belief counts for variance/(unsure² per_hour) units. The surprise is itself a sample of the
    variance, in as far as the estimate does not explain it, so both are found together, from no
    change on: of two ways to see a large surprise that one counts which takes it for luck.
    """
    if promised <= 0.0 or per_hour <= 0.0:
        return 1.0
    surprise, usual, hours = came - promised, variance(luck), promised / per_hour
    seen_h, found = BELIEVED_H + min(luck.hours, WEEK_H), 1.0
    for _ in range(30):
        strayed = (surprise - (found - 1.0) * promised) ** 2 / hours
        noise = (usual * seen_h + strayed * ONCE_H) / (seen_h + ONCE_H)
        found = 1.0 + surprise / (promised + _believed(noise, per_hour, unsure))
    return max(found, 1e-3)


def cost(steered: Steered, budget: UsdPerHour, expected: float = OVERHEAD) -> float:
    """Dollars committed per dollar promised for the jobs that arrived: sizes misjudged, nodes that
    boot or idle. It does not depend on how many arrive, so a belief counts for few jobs."""
    believed = _believed(steered.luck.expected, budget, UNSURE)
    return (steered.committed + expected * believed) / (steered.came + believed)


def _believed(noise: float, per_hour: float, unsure: float) -> float:
    """Units that a belief counts for against evidence with so much noise, squared per hour."""
    return max(noise / (unsure**2 * per_hour), LEAST_H * per_hour)


def effective(
    steered: Steered,
    budget: UsdPerHour,
    horizon_h: float,
    expected: float = OVERHEAD,
    unsure: float = UNSURE,
) -> UsdPerHour:
    """The budget to plan with; `expected`, `unsure`: as for the gain."""
    share = 1.0 + steered.left / (horizon_h * budget)
    return min(max(share, SHARE[0]), SHARE[1]) * budget / gain(steered, budget, expected, unsure)


def patience_s(steered: Steered, budget: UsdPerHour, horizon_h: float) -> Seconds:
    """Seconds that a job may wait for GPUs that it is not worth. No job waits before a quarter of a
    horizon's budget is owed: waiting saves little and costs much."""
    deep = max(-steered.left / _most(budget, horizon_h) - DEEP, 0.0) / (1.0 - DEEP)
    return LONGEST_WAIT_S * min(deep, 1.0)


def _most(budget: UsdPerHour, horizon_h: float) -> Usd:
    """Dollars that are saved up or owed at most."""
    return MOST * horizon_h * budget
