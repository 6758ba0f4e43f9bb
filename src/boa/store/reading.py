"""Questions to the store, from any thread, beside whoever writes."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as NoneFree

from boa.model.access import TokenRecord
from boa.model.cluster import JobId, NodeId
from boa.model.held import Held
from boa.model.job import JobRecord
from boa.model.notices import Notice
from boa.model.records import Hold, NodeRecord, Point, Sample
from boa.model.sampled import Sampled
from boa.store import codec, pages, queries, tables
from boa.store.backend import Backend
from boa.store.base import Saved, StoredAudit, StoredEvent, StoreTrouble
from boa.store.queries import Query
from boa.units import Seconds

_Record = TypeVar("_Record")
MOST_IN = 500
"""Entries of one list in a question, at most."""
BATCH = 20_000
"""Rows that are read at a time, where there are many."""
_BUGS = (IntegrityError, DataError, ProgrammingError)


class SqlReader:
    """See `base.Store`: all of it that changes nothing."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def job(self, job: JobId) -> JobRecord | None:
        number = queries.number_of(job)
        found = [] if number is None else self._read(queries.job(number), codec.job_of)
        return found[0] if found else None

    def jobs(
        self,
        *,
        ended: bool | None = None,
        job_class: str | None = None,
        since: Seconds | None = None,
        limit: int = 1000,
        before: int | None = None,
    ) -> Sequence[JobRecord]:
        return self._read(queries.jobs(ended, job_class, since, limit, before), codec.job_of)

    def events(
        self, *, after: int = 0, job: JobId | None = None, limit: int = 1000, newest: bool = False
    ) -> Sequence[StoredEvent]:
        number = None if job is None else queries.number_of(job)
        if job is not None and number is None:
            return []
        found = self._read(queries.events(after, number, limit, newest), _stored_event)
        return found[::-1] if newest else found

    def tokens(self) -> Sequence[TokenRecord]:
        return self._read(select(tables.tokens).order_by(tables.tokens.c.name), codec.token_of)

    def audit(
        self,
        *,
        since: Seconds = 0.0,
        who: str | None = None,
        before: int | None = None,
        limit: int = 1000,
    ) -> Sequence[StoredAudit]:
        whom = None if who is None else codec.to_text(who)
        return self._read(queries.audit(since, whom, before, limit), _stored_audit)

    def notices(
        self,
        *,
        target: str | None = None,
        waiting: bool | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[Notice]:
        found = self._read(queries.notices(target, waiting, limit, newest), codec.notice_of)
        return found[::-1] if newest else found

    def nodes_between(self, since: Seconds, until: Seconds) -> Sequence[NodeRecord]:
        with self._told():
            found = codec.nodes_of(self._batches(queries.nodes_between(since, until)))
        return sorted(found, key=lambda node: node.id)

    def holds_between(
        self, since: Seconds, until: Seconds, *, job: JobId | None = None
    ) -> Sequence[Hold]:
        number = None if job is None else queries.number_of(job)
        if job is not None and number is None:
            return []
        found = self._read(queries.holds_between(since, until, number), codec.hold_of)
        return sorted(found, key=lambda hold: (hold.since, int(hold.job), hold.node))

    def held_between(self, since: Seconds, until: Seconds) -> Held:
        with self._told(), self._of_one_moment() as connection:
            packed = pages.packed_until(connection)
            found = (row._asdict() for row in connection.execute(queries.held_pages(since, until)))
            others = _fetched(connection, queries.held_between(since, until, packed))
            return pages.held_of(found, others, since, until)

    def _batches(self, query: Query) -> Iterator[Sequence[Any]]:
        """Rows as the driver gives them."""
        with self._backend.readers.connect() as connection:
            yield from _fetched(connection, query)

    @contextmanager
    def _of_one_moment(self) -> Iterator[Connection]:
        """A connection by which all questions are answered as of the same commit."""
        with self._backend.readers.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN")
            else:
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    def nodes(self, ids: Collection[NodeId]) -> Sequence[NodeRecord]:
        found = list[NodeRecord]()
        for some in _parts(ids):
            found += self._read(queries.nodes(some), codec.node_of)
        return sorted(found, key=lambda node: node.id)

    def samples_between(self, since: Seconds, until: Seconds) -> Sequence[Sample]:
        return self._read(queries.samples_between(since, until), codec.sample_of)

    def sampled_between(self, since: Seconds, until: Seconds) -> Sampled:
        with self._told():
            return codec.sampled_of(self._batches(queries.samples_between(since, until)))

    def points(self, job: JobId) -> Sequence[Point]:
        number = queries.number_of(job)
        return [] if number is None else self._read(queries.points(number), codec.point_of)

    def _read(self, query: Query, decode: Callable[[Mapping[str, Any]], _Record]) -> list[_Record]:
        with self._told(), self._backend.readers.connect() as connection:
            return _all(connection, query, decode)

    @contextmanager
    def _told(self, bugs: tuple[type[DBAPIError], ...] = _BUGS) -> Iterator[None]:
        """Raise the driver's errors in plain words; but a mistake of ours stays what it is."""
        try:
            yield
        except DBAPIError as error:
            if isinstance(error, bugs):
                raise
            reason = self._backend.reason(error)
            raise StoreTrouble(f"{self._backend.where}: {reason}") from error
        except NoneFree as error:
            raise StoreTrouble(f"{self._backend.where}: too many are reading at once") from error


def _fetched(connection: Connection, query: Query) -> Iterator[Sequence[Any]]:
    """Rows as the driver gives them, many at a time."""
    cursor = connection.execute(query).cursor
    assert cursor is not None
    yield from iter(lambda: cursor.fetchmany(BATCH), [])


def _parts(ids: Collection[NodeId]) -> list[Sequence[NodeId]]:
    """No more at once than a statement takes."""
    wanted = sorted(ids)
    return [wanted[first : first + MOST_IN] for first in range(0, len(wanted), MOST_IN)]


def _stored_event(row: Mapping[str, Any]) -> StoredEvent:
    return StoredEvent(row["number"], codec.event_of(row))


def _stored_audit(row: Mapping[str, Any]) -> StoredAudit:
    return StoredAudit(row["number"], codec.audit_of(row))


def _all(
    connection: Connection, query: Query, decode: Callable[[Mapping[str, Any]], _Record]
) -> list[_Record]:
    return [decode(row._asdict()) for row in connection.execute(query)]


def saved_in(connection: Connection) -> Saved:
    """All that has not ended."""

    def after(column: Any) -> int:
        return (connection.execute(select(func.max(column))).scalar() or 0) + 1

    cells, classes = tables.cells, tables.classes
    return Saved(
        jobs=_all(connection, queries.active_jobs(), codec.job_of),
        nodes=_all(connection, queries.nodes_not_gone(), codec.node_of),
        holds=_all(connection, queries.open_holds(), codec.hold_of),
        cells=_all(connection, select(cells).order_by(*cells.primary_key), codec.cell_of),
        classes=_all(connection, select(classes).order_by(classes.c.name), codec.class_of),
        meta=dict(_all(connection, select(tables.meta), codec.meta_of)),
        next_job=after(tables.jobs.c.number),
        next_node=after(tables.nodes.c.id),
        points={p.job: p for p in _all(connection, queries.last_points(), codec.point_of)},
    )


def settings_and_nodes(engine: Engine) -> tuple[Mapping[str, Any], Sequence[NodeRecord]]:
    """Settings, and nodes that are not gone, of a database of any version."""
    meta, nodes = tables.meta.c, tables.nodes.c
    not_gone = select(nodes.id, nodes.record).where(nodes.gone == False)  # noqa: E712
    with engine.connect() as connection:
        settings = dict(_all(connection, select(meta.key, meta.value), codec.meta_of))
        return settings, _all(connection, not_gone.order_by(nodes.id), codec.node_of)
