"""Questions to the store, as statements."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from sqlalchemy import Select, func, select

from boa.model.cluster import JobId, NodeId
from boa.store import tables
from boa.store.codec import job_number, to_text
from boa.store.pages import COLUMNS
from boa.units import Seconds

Query: TypeAlias = Select[Any]
LARGEST = 2**63 - 1
"""The largest number that fits into a column."""


def number_of(job: JobId) -> int | None:
    """None: no job can be called so."""
    try:
        number = job_number(job)
    except ValueError:
        return None
    return number if 0 <= number <= LARGEST else None


def job(number: int) -> Query:
    return select(tables.jobs).where(tables.jobs.c.number == number)


def jobs(
    ended: bool | None,
    job_class: str | None,
    since: Seconds | None,
    limit: int,
    before: int | None,
) -> Query:
    """Newest first."""
    column = tables.jobs.c
    query = select(tables.jobs).order_by(column.number.desc()).limit(_within(limit))
    if ended is not None:
        query = query.where(column.ended == ended)
    if job_class is not None:
        query = query.where(column.job_class == to_text(job_class))
    if since is not None:
        query = query.where(column.submitted_at >= since)
    if before is not None:
        query = query.where(column.number < _within(before))
    return query


def events(after: int, number: int | None, limit: int, newest: bool) -> Query:
    """The newest ones come in falling order."""
    column = tables.events.c
    order = column.number.desc() if newest else column.number
    query = select(tables.events).where(column.number > _within(after)).order_by(order)
    if number is not None:
        query = query.where(column.job == number)
    return query.limit(_within(limit))


def audit(since: Seconds, who: str | None, before: int | None, limit: int) -> Query:
    """Newest first."""
    column = tables.audit.c
    query = select(tables.audit).where(column.at >= since).order_by(column.number.desc())
    if who is not None:
        query = query.where(column.who == who)
    if before is not None:
        query = query.where(column.number < _within(before))
    return query.limit(_within(limit))


def notices(target: str | None, waiting: bool | None, limit: int, newest: bool) -> Query:
    """The newest ones come in falling order."""
    column = tables.notices.c
    order = column.number.desc() if newest else column.number
    query = select(tables.notices).order_by(order)
    if target is not None:
        query = query.where(column.target == to_text(target))
    if waiting is not None:
        query = query.where(column.waiting == waiting)
    return query.limit(_within(limit))


def nodes_between(since: Seconds, until: Seconds) -> Query:
    """The columns of a node, in no order: to be asked for one, SQLite would rather read the whole
    table."""
    column = tables.nodes.c
    inside = (column.charged_until > since) & (column.charged_from < until)
    return select(column.id, column.record).where(inside)


def holds_between(since: Seconds, until: Seconds, number: int | None) -> Query:
    """In no order; of columns that are all in one index."""
    column = tables.holds.c
    columns = (one for one in column if one.name != tables.CHECKSUM)
    query = select(*columns).where((column.until > since) & (column.since < until))
    if number is not None:
        query = query.where(column.job == number)
    return query


def held_between(since: Seconds, until: Seconds, packed: Seconds) -> Query:
    """Holds that are in no page, in the order of their columns, as `packed` says how far pages go;
    all in one index."""
    column = tables.holds.c
    columns = (column[name] for name in COLUMNS)
    begins = since if since > packed else packed
    return select(*columns).where((column.until > begins) & (column.since < until))


def held_pages(since: Seconds, until: Seconds) -> Query:
    """Pages that may have holds of that time."""
    column = tables.held_pages.c
    return select(tables.held_pages).where((column.until > since) & (column.since < until))


def nodes(ids: Sequence[NodeId]) -> Query:
    return select(tables.nodes).where(tables.nodes.c.id.in_(ids))


def samples_between(since: Seconds, until: Seconds) -> Query:
    at = tables.samples.c.at
    return select(tables.samples).where((at >= since) & (at <= until)).order_by(at)


def points(number: int) -> Query:
    column = tables.points.c
    return select(tables.points).where(column.job == number).order_by(column.at)


def last_points() -> Query:
    """The last point of every job that has not ended."""
    job, point, other = tables.jobs.c, tables.points.c, tables.points.alias()
    newest = select(func.max(other.c.at)).where(other.c.job == job.number).scalar_subquery()
    here = (point.job == job.number) & (point.at == newest)
    query = select(tables.points).join_from(tables.jobs, tables.points, here)
    return query.where(job.ended == False)  # noqa: E712


def active_jobs() -> Query:
    column = tables.jobs.c
    return select(tables.jobs).where(column.ended == False).order_by(column.number)  # noqa: E712


def nodes_not_gone() -> Query:
    column = tables.nodes.c
    return select(tables.nodes).where(column.gone == False).order_by(column.id)  # noqa: E712


def open_holds() -> Query:
    column = tables.holds.c
    query = select(tables.holds).where(column.until == math.inf)
    return query.order_by(column.since, column.job, column.node)


def _within(number: int) -> int:
    return max(0, min(number, LARGEST))
