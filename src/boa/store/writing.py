"""One step's changes as rows, and how they go into the tables."""

from collections.abc import Iterator
from functools import lru_cache

from sqlalchemy import Connection, Dialect, Table, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from boa.model.changes import Changes
from boa.store import codec, tables
from boa.store.checksums import sealed
from boa.store.codec import Row
from boa.units import Seconds

PRUNE_EVERY = 1_000
"""Old events are dropped whenever so many have been added."""
KEEP_AUDIT, KEEP_AUDIT_S = 200_000, 90 * 86_400.0
"""Lines of the audit log that are always kept, and for how long all of them are."""
KEEP_NOTICES = 20_000
"""Notices that are kept; of those before, only what still waits."""
PRUNE_S: Seconds = 3600.0
"""How often those that are older are dropped."""


def rows_of(changes: Changes, first_event: int, first_audit: int) -> list[tuple[Table, list[Row]]]:
    """Rows to write, by table; only tables that change."""
    rows = [
        (tables.jobs, [codec.job_row(job) for job in changes.jobs.values()]),
        (tables.nodes, [codec.node_row(node) for node in changes.nodes.values()]),
        (tables.holds, [codec.hold_row(hold) for hold in changes.holds.values()]),
        (tables.cells, [codec.cell_row(cell) for cell in changes.cells]),
        (tables.classes, [codec.class_row(known) for known in changes.classes]),
        (tables.events, list(_event_rows(changes, first_event))),
        (tables.meta, [codec.meta_row(key, value) for key, value in changes.meta.items()]),
        (tables.samples, [codec.sample_row(sample) for sample in changes.samples]),
        (tables.points, [codec.point_row(point) for point in changes.points.values()]),
        (tables.tokens, [codec.token_row(token) for token in changes.tokens.values()]),
        (tables.audit, [codec.audit_row(*line) for line in enumerate(changes.audit, first_audit)]),
        (tables.notices, [codec.notice_row(notice) for notice in changes.notices.values()]),
    ]
    return [(table, sealed(table, batch)) for table, batch in rows if batch]


def _event_rows(changes: Changes, first: int) -> Iterator[Row]:
    for number, event in enumerate(changes.events, start=first):
        yield codec.event_row(number, event)


def put(connection: Connection, rows: list[tuple[Table, list[Row]]]) -> None:
    """Rows are as the drivers take them, so they go past SQLAlchemy: a third of the time."""
    for table, batch in rows:
        connection.exec_driver_sql(_upsert(table, connection.dialect), batch)


@lru_cache(maxsize=64)
def _upsert(table: Table, dialect: Dialect) -> str:
    new = sqlite.insert(table) if dialect.name == "sqlite" else postgresql.insert(table)
    changing = {
        column.name: new.excluded[column.name]
        for column in table.columns
        if not column.primary_key and not column.info.get("constant")
    }
    key = list(table.primary_key)
    statement = new.on_conflict_do_update(index_elements=key, set_=changing)
    return str(statement.compile(dialect=dialect))


def prune(connection: Connection, before: int, last: int, keep: int) -> None:
    """Drop old events, now and then. Numbers have no gaps, so they tell how many there are."""
    if before // PRUNE_EVERY != last // PRUNE_EVERY:
        number = tables.events.c.number
        connection.execute(delete(tables.events).where(number <= last - keep))


def prune_audit(connection: Connection, before: int, last: int, now: Seconds) -> None:
    """Drop lines of the audit log that are old, and not among the newest so many either."""
    if before // PRUNE_EVERY != last // PRUNE_EVERY:
        line = tables.audit.c
        over = (line.number <= last - KEEP_AUDIT) & (line.at < now - KEEP_AUDIT_S)
        connection.execute(delete(tables.audit).where(over))


def prune_history(connection: Connection, now: Seconds, keep: Seconds) -> None:
    """Drop old samples, old points of jobs that are as old, and notices of long ago."""
    oldest = now - keep
    connection.execute(delete(tables.samples).where(tables.samples.c.at < oldest))
    job, point = tables.jobs.c, tables.points.c
    young = select(func.min(job.number)).where(job.submitted_at >= oldest).scalar_subquery()
    connection.execute(delete(tables.points).where((point.job < young) & (point.at < oldest)))
    notice = tables.notices.c
    last = select(func.max(notice.number) - KEEP_NOTICES).scalar_subquery()
    connection.execute(delete(tables.notices).where((notice.number <= last) & ~notice.waiting))
