"""Charges of some time, read from the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from boa.api.answers import Grouping
from boa.model.cluster import NodeId
from boa.model.held import Held
from boa.model.records import NodeRecord
from boa.runtime.history import average_budget
from boa.scheduler.money.costs import bill_by_node, cost_rows, costs_by_class, month_of
from boa.scheduler.money.ledger import Bill, bill
from boa.store.base import Store
from boa.units import Seconds, Usd, UsdPerHour

DAY_S: Seconds = 86_400.0
"""So far back the budget of a moment was noted down at the latest, unless the service was away."""
MAX_NAMED = 10_000
"""Jobs whose names a list by job can give; those before have their ids only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """This month so far."""

    at: Seconds
    spent: Usd
    first: Seconds
    """When the first node began to cost anything; `at`, if none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """Charges between two moments."""

    since: Seconds
    until: Seconds
    bill: Bill
    first: Seconds
    """When the first of its nodes began to cost anything."""
    allowed: UsdPerHour | None = None
    """The budget in force since then, on average; None where nobody noted it down."""
    rows: Sequence[dict[str, Any]] = ()
    month: Month | None = None
    """If its nodes tell of all of it."""


def charged(
    store: Store, since: Seconds, until: Seconds, now: Seconds, by: Grouping | None
) -> Charged:
    """`by`: with rows."""
    nodes = store.nodes_between(since, until)
    whole, rows = _billed(store, nodes, since, until, by)
    covers = since <= month_of(now)[0] and until >= now
    first = _first(nodes, now)
    samples = store.samples_between(max(since, first) - DAY_S, until) if by is None else ()
    return Charged(
        since=since,
        until=until,
        bill=whole,
        first=first,
        allowed=average_budget(samples, max(since, first), until),
        rows=rows,
        month=_month(nodes, now) if covers else None,
    )


def this_month(store: Store, now: Seconds) -> Month:
    return _month(store.nodes_between(month_of(now)[0], now), now)


def _billed(
    store: Store,
    nodes: Sequence[NodeRecord],
    since: Seconds,
    until: Seconds,
    by: Grouping | None,
) -> tuple[Bill, Sequence[dict[str, Any]]]:
    if by == "class":
        return costs_by_class(nodes, store.held_between(since, until), since, until)
    if by is not None:
        holds = store.holds_between(since, until)
        jobs = {job.id: job for job in store.jobs(limit=MAX_NAMED)} if by == "job" else {}
        rows = cost_rows(nodes, holds, jobs, by, since, until)
        return bill(nodes, holds, since, until), rows
    if since >= until:
        return bill((), (), since, until), ()

    def apart(ids: Sequence[NodeId]) -> Held:
        return store.held_between(since, until, nodes=ids)

    held = store.held_by_node(since, until)
    return bill_by_node(nodes, held, apart, since, until), ()


def _month(nodes: Sequence[NodeRecord], now: Seconds) -> Month:
    begin, _ = month_of(now)
    here = [node for node in nodes if node.gone_at is None or node.gone_at > begin]
    spent = bill(here, (), begin, now).total
    return Month(at=now, spent=spent, first=max(_first(here, now), begin))


def _first(nodes: Sequence[NodeRecord], now: Seconds) -> Seconds:
    return min((n.billed_from for n in nodes if n.billed_from is not None), default=now)
