"""Charges of some time, read from the store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from boa.model.budgets import Budget
from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.model.records import NodeRecord
from boa.runtime.history import BEFORE_S, average_budget
from boa.scheduler.money.costs import costs
from boa.scheduler.money.forecast import Forecast, forecast, looks_back_to
from boa.scheduler.money.grouping import Grouped, grouped
from boa.scheduler.money.ledger import Bill, bill
from boa.store.base import Store
from boa.units import Seconds, UsdPerHour

PAGE = 1000
"""Jobs that are read at a time where it is asked whose they are."""
MAX_NAMED = 10_000
"""Jobs whose names a list by job can give; those before have their ids only."""


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
    month: Forecast | None = None
    """If its nodes tell of all of it."""


def charged(
    store: Store,
    since: Seconds,
    until: Seconds,
    now: Seconds,
    by: Grouped | None,
    sharing: Budget | None = None,
) -> Charged:
    """`by`: with rows. `sharing`: those who share the budget, if somebody does."""
    nodes = store.nodes_between(since, until)
    whole, rows = _billed(store, nodes, since, until, by, sharing)
    covers = since <= looks_back_to(now) and until >= now
    first = _first(nodes, now)
    allowed = None
    if by is None:
        samples = store.sampled_between(max(since, first) - BEFORE_S, until)
        allowed = average_budget(samples, max(since, first), until)
    return Charged(
        since=since,
        until=until,
        bill=whole,
        first=first,
        allowed=allowed,
        rows=rows,
        month=_of_month(store, nodes, now) if covers else None,
    )


def this_month(store: Store, now: Seconds) -> Forecast:
    return _of_month(store, store.nodes_between(looks_back_to(now), now), now)


def _of_month(store: Store, nodes: Sequence[NodeRecord], now: Seconds) -> Forecast:
    """Return the forecast with the budget over the same seconds as its pace."""
    found = forecast(nodes, now)
    first = now - found.over_s
    allowed = average_budget(store.sampled_between(first - BEFORE_S, now), first, now)
    return replace(found, allowed=allowed)


def _billed(
    store: Store,
    nodes: Sequence[NodeRecord],
    since: Seconds,
    until: Seconds,
    by: Grouped | None,
    sharing: Budget | None,
) -> tuple[Bill, Sequence[dict[str, Any]]]:
    if since >= until:
        return bill((), (), since, until), ()
    held = store.held_between(since, until)
    if by is not None and by.what not in ("day", "class", "job"):
        records = {} if by.what == "payer" else jobs_of(store, held.job.tolist())
        return grouped(nodes, held, since, until, by, records, sharing)
    jobs = store.jobs(limit=MAX_NAMED) if by is not None and by.what == "job" else ()
    names = {job.id: job.name for job in jobs}
    return costs(nodes, held, since, until, None if by is None else by.of_ledger, names)


def jobs_of(store: Store, numbers: Iterable[int]) -> Mapping[JobId, JobRecord]:
    """Jobs of these numbers, as far as they are kept."""
    wanted = set(numbers)
    found: dict[JobId, JobRecord] = {}
    before = max(wanted, default=0) + 1
    least = min(wanted, default=0)
    while before > least:
        page = store.jobs(limit=PAGE, before=before)
        found |= {job.id: job for job in page if int(job.id) in wanted}
        before = int(page[-1].id) if page else 0
    return found


def _first(nodes: Sequence[NodeRecord], now: Seconds) -> Seconds:
    return min((n.billed_from for n in nodes if n.billed_from is not None), default=now)
