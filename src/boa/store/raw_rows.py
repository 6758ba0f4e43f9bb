"""Rows of a store that may be damaged, as the driver gives them, and whether each is whole."""

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.exc import SQLAlchemyError

from boa.store import codec, pages, tables
from boa.store.checksums import is_as_written
from boa.store.codec import Row

BATCH = 5_000
READERS: dict[Table, Callable[[Row], Any]] = {
    tables.meta: codec.meta_of,
    tables.nodes: codec.node_of,
    tables.jobs: codec.job_of,
    tables.holds: codec.hold_of,
    tables.held_pages: pages.hold_rows,
    tables.cells: codec.cell_of,
    tables.classes: codec.class_of,
    tables.events: codec.event_of,
    tables.samples: codec.sample_of,
    tables.points: codec.point_of,
    tables.tokens: codec.token_of,
    tables.audit: codec.audit_of,
    tables.notices: codec.notice_of,
}
"""All tables of records: nodes before what is on them."""


def raw_rows(connection: Connection, table: Table, which: str = "") -> Iterator[Row]:
    """Rows as the driver gives them. `which`: a condition, or an order."""
    names = [column.name for column in table.columns]
    query = f"SELECT {', '.join(names)} FROM {table.name} {which}"
    cursor = connection.exec_driver_sql(query).cursor
    assert cursor is not None
    try:
        while batch := cursor.fetchmany(BATCH):
            for values in batch:
                yield dict(zip(names, values, strict=True))
    except Exception as error:  # the driver's own: here nobody else names it
        raise SQLAlchemyError(str(error)) from error


def is_whole(table: Table, row: Row, look: Callable[[Row], object]) -> bool:
    """Whether a row is as it was written and can be read."""
    try:
        if not is_as_written(table, row):
            return False
        look(row)
    except (ValueError, TypeError, KeyError, LookupError, AttributeError, RecursionError):
        return False
    return True
