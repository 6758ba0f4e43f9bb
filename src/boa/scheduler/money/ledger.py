"""Dollars: the only place where live ones are computed. Pure.

A node is charged from `billed_from` until `gone_at`. While it boots and after it was given back
nobody can use it: that is provisioning. In between, GPUs that jobs held are charged to them, and
the rest was idle. So the three always add up to what the cloud is owed. Every stretch is charged
at the price that held then: a node has those that it had, one after the other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from boa.model.cluster import NodeId
from boa.model.prices import NO_CHANGES, Changes, average, dearest, paid, price_at
from boa.model.records import Hold, NodeRecord
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

ALWAYS: Seconds = float("-inf")
NEVER: Seconds = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """total = jobs + idle + provisioning, none of them negative."""

    total: Usd
    jobs: Usd
    idle: Usd
    provisioning: Usd


NOTHING = Bill(total=0.0, jobs=0.0, idle=0.0, provisioning=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Cost of closed nodes and closed holds, so that "now" needs only the open ones."""

    total: Usd = 0.0
    provisioning: Usd = 0.0
    """Parts of gone nodes: holds of a node that is still there are in `jobs` already."""
    jobs: Usd = 0.0
    background: Usd = 0.0
    """Part of `jobs` that went to jobs in the background: without them it would be idle. Negative,
    while a hold is open whose job has only gone there since."""

    def as_document(self) -> dict[str, Any]:
        return {
            "total_usd": self.total,
            "provisioning_usd": self.provisioning,
            "jobs_usd": self.jobs,
            "background_usd": self.background,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Totals":
        return cls(
            total=document["total_usd"],
            provisioning=document["provisioning_usd"],
            jobs=document["jobs_usd"],
            background=document.get("background_usd", 0.0),
        )


def bill(
    nodes: Iterable[NodeRecord], holds: Iterable[Hold], since: Seconds, until: Seconds
) -> Bill:
    """Charges between two moments; none if the second is not after the first.

    A hold counts while its node was usable, at the node's price; one on a node that is not among
    `nodes` was never paid for.
    """
    return _split(*_sums(nodes, holds, since, until))


def closed_node(totals: Totals, node: NodeRecord) -> Totals:
    """With a node that is gone."""
    if node.billed_from is not None and node.gone_at is None:
        raise ValueError(f"node {node.id} is still charged for: it has no gone_at")
    total, provisioning, _ = _sums([node], (), ALWAYS, NEVER)
    return Totals(
        total=totals.total + total,
        provisioning=totals.provisioning + provisioning,
        jobs=totals.jobs,
        background=totals.background,
    )


def closed_hold(totals: Totals, hold: Hold, *, background: bool = False) -> Totals:
    """With a hold that has ended; `background`: its job was not to be paid for."""
    if hold.until is None:
        raise ValueError(f"job {hold.job} still holds GPUs of node {hold.node}")
    cost = hold_cost(hold, hold.until)
    return Totals(
        total=totals.total,
        provisioning=totals.provisioning,
        jobs=totals.jobs + cost,
        background=totals.background + (cost if background else 0.0),
    )


def as_until_now(
    totals: Totals, holds: Iterable[Hold], now: Seconds, *, background: bool
) -> Totals:
    """When their job leaves the background, or goes there: what they cost until now stays what it
    was. `background`: it was there."""
    cost = sum(hold_cost(hold, now) for hold in holds)
    return replace(totals, background=totals.background + (cost if background else -cost))


def at(
    totals: Totals, open_nodes: Iterable[NodeRecord], open_holds: Iterable[Hold], now: Seconds
) -> Bill:
    """Everything ever charged, up to now."""
    total, provisioning, jobs = _sums(open_nodes, open_holds, ALWAYS, now)
    return _split(totals.total + total, totals.provisioning + provisioning, totals.jobs + jobs)


def hold_cost(hold: Hold, now: Seconds) -> Usd:
    return held_between(hold, hold.since, now if hold.until is None else min(hold.until, now))


def held_between(hold: Hold, begin: Seconds, end: Seconds) -> Usd:
    """Cost of a hold in that time, as far as it had begun; none if the end is before."""
    begin = max(begin, hold.since)
    return hold.gpus * paid(hold.price, hold.changes, begin, end) / SECONDS_PER_HOUR


def hold_rate(hold: Hold, now: Seconds) -> UsdPerHour:
    """USD per hour that an open hold costs now."""
    return hold.gpus * price_at(hold.price, hold.changes, now)


def ended_hold(hold: Hold, until: Seconds) -> Hold:
    """A hold that ended then, at the price that it had on average: all that is stored of it."""
    price = average(hold.price, hold.changes, hold.since, until)
    return replace(hold, until=until, price=price, changes=NO_CHANGES)


def spend_now(nodes: Iterable[NodeRecord], now: Seconds) -> UsdPerHour:
    """USD per hour that the cloud charges now: nodes booting and nodes given back included."""
    charged = (n for n in nodes if n.billed_from is not None and n.gone_at is None)
    return sum(node.price_at(now) * node.gpus for node in charged)


def committed(nodes: Iterable[NodeRecord], now: Seconds, ahead_s: Seconds = 0.0) -> UsdPerHour:
    """`spend_now` once every node asked for is there, each at its dearest price within the seconds
    ahead: what the hard cap is held against."""
    return sum(
        node.gpus
        * (dearest(node.price, node.changes, now, now + ahead_s) if node.changes else node.price)
        for node in nodes
        if node.state != "gone"
    )


def charged_between(node: NodeRecord, since: Seconds, until: Seconds) -> tuple[Seconds, Seconds]:
    """When it was charged for; the end is before the beginning if it was not."""
    begin, end = node.billed_from, node.gone_at
    if begin is None:
        begin = NEVER
    return begin if begin > since else since, until if end is None or end > until else end


def usable_between(node: NodeRecord, since: Seconds, until: Seconds) -> tuple[Seconds, Seconds]:
    """When jobs could run on it: charged for, ready, not given back."""
    return _usable(node, *charged_between(node, since, until))


def _usable(node: NodeRecord, begin: Seconds, end: Seconds) -> tuple[Seconds, Seconds]:
    """`begin`, `end`: when it was charged for."""
    ready, released = node.ready_at, node.released_at
    if ready is None:
        begin = NEVER
    elif ready > begin:
        begin = ready
    return begin, end if released is None or released > end else released


def held_seconds(hold: Hold, usable: tuple[Seconds, Seconds]) -> Seconds:
    """For how long a hold is charged, of the time that its node was usable."""
    end = usable[1] if hold.until is None else min(hold.until, usable[1])
    return max(end - max(hold.since, usable[0]), 0.0)


def charged_gpu_seconds(
    gpus: int, billed_from: Seconds, released_at: Seconds | None, gone_at: Seconds
) -> tuple[float, float]:
    """GPU-seconds of a node that is gone: until it was given back, and from then on."""
    released = gone_at if released_at is None else min(max(released_at, billed_from), gone_at)
    return (released - billed_from) * gpus, (gone_at - released) * gpus


def _sums(
    nodes: Iterable[NodeRecord], holds: Iterable[Hold], since: Seconds, until: Seconds
) -> tuple[Usd, Usd, Usd]:
    """Total, provisioning, jobs."""
    total = provisioning = jobs = 0.0
    usable: dict[NodeId, tuple[Seconds, Seconds, UsdPerHour, Changes]] = {}
    for node in nodes:
        begin, end = charged_between(node, since, until)
        if begin < end:
            first, last = _usable(node, begin, end)
            usable[node.id] = first, last, node.price, node.changes
            if node.changes:
                whole = node.gpus * paid(node.price, node.changes, begin, end)
                total += whole
                used = node.gpus * paid(node.price, node.changes, first, last)
                provisioning += max(whole - used, 0.0)
                continue
            rate = node.price * node.gpus
            total += rate * (end - begin)
            provisioning += rate * (end - begin - max(last - first, 0.0))
    for hold in holds:  # as `held_seconds` has it, spelt out: there are thousands
        window = usable.get(hold.node)
        if window is not None:
            first, last, price, changes = window
            begin = hold.since if hold.since > first else first
            end = last if hold.until is None or hold.until > last else hold.until
            if end > begin:
                worth = paid(price, changes, begin, end) if changes else price * (end - begin)
                jobs += worth * hold.gpus
    return total / SECONDS_PER_HOUR, provisioning / SECONDS_PER_HOUR, jobs / SECONDS_PER_HOUR


def _split(total: Usd, provisioning: Usd, jobs: Usd) -> Bill:
    """Jobs get no more than could be used: a hold may outlast its node by a look at the cloud."""
    usable = max(total - provisioning, 0.0)
    jobs = min(jobs, usable)
    return Bill(total=total, jobs=jobs, idle=usable - jobs, provisioning=total - usable)
