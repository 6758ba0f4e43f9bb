"""Jobs that ended long ago are dropped, a few at a time, where a person has said so.

A row of their holds goes only once a page has it, in the same transaction: the bill stays whole.
"""

from sqlalchemy import Connection, delete, func, select

from boa.model.history_kept import HistoryKept
from boa.store import codec, tables
from boa.store.checksums import sealed
from boa.store.faults import DROPPED
from boa.store.pages import Packing
from boa.store.writing import put
from boa.units import DAY_S, Seconds

BITE = 50
"""Jobs that are dropped with one commit, …"""
LOOKED_AT = 200
"""… of so many that were submitted long enough ago. A commit that notes a sample does so: about
once a minute, 72,000 jobs a day."""


def drop_jobs(connection: Connection, packing: Packing, keep: HistoryKept, now: Seconds) -> Packing:
    """With what they held packed. The newest job stays: numbers go on from it."""
    if keep.jobs_days is None:
        return packing
    oldest = now - keep.jobs_days * DAY_S
    numbers = _ended_before(connection, oldest)
    if not numbers:
        return packing
    packing = packing.packed_by(connection, oldest)
    job, hold = tables.jobs.c, tables.holds.c
    later = select(hold.job).where(hold.job.in_(numbers) & (hold.until > packing.until))
    numbers = sorted(set(numbers) - set(connection.execute(later).scalars()))
    for column in (tables.points.c.job, hold.job, job.number):
        connection.execute(delete(column.table).where(column.in_(numbers)))
    _remember(connection, max(numbers, default=0))
    return packing


def _ended_before(connection: Connection, oldest: Seconds) -> list[int]:
    column = tables.jobs.c
    newest = select(func.max(column.number)).scalar_subquery()
    query = (
        select(tables.jobs)
        .where((column.ended == True) & (column.submitted_at < oldest))  # noqa: E712
        .where(column.number < newest)
        .order_by(column.number)
        .limit(LOOKED_AT)
    )
    jobs = [codec.job_of(row._asdict()) for row in connection.execute(query)]
    gone = [int(job.id) for job in jobs if job.ended_at is not None and job.ended_at < oldest]
    return gone[:BITE]


def _remember(connection: Connection, last: int) -> None:
    """The highest number that was dropped: gaps below it are no loss."""
    known = connection.execute(select(tables.meta).where(tables.meta.c.key == DROPPED)).first()
    before = 0 if known is None else codec.meta_of(known._asdict())[1]
    if last > before:
        put(connection, [(tables.meta, sealed(tables.meta, [codec.meta_row(DROPPED, last)]))])
