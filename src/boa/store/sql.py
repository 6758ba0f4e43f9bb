"""The store on SQLAlchemy Core: every change in one transaction, readers beside the writer.

A row (`writer`) counts who has opened the database and how often that service has written. Every
transaction moves it on from exactly where this service left it. So a service that was overtaken
by another one writes nothing, and one whose connection broke in a commit learns what came of it.
After every commit the data folder's memory (`memory`) is told how far the store is.
"""

import math
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Transaction, func, insert, make_url, select, update
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as NoneFree

from boa.errors import InputError
from boa.model.access import TokenRecord
from boa.model.changes import Changes
from boa.model.cluster import JobId, NodeId
from boa.model.held import Held, HeldOnNodes
from boa.model.job import JobRecord
from boa.model.records import Hold, NodeRecord, Point, Sample
from boa.store import codec, queries, tables
from boa.store.backend import Backend
from boa.store.base import Saved, Store, StoredAudit, StoredEvent, StoreTrouble
from boa.store.errors import InUse, Overtaken
from boa.store.memory import FolderMemory, Mark
from boa.store.migrations import MIGRATIONS, migrate
from boa.store.postgresql import Postgresql
from boa.store.queries import Query
from boa.store.sqlite import Sqlite, file_of
from boa.store.writing import PRUNE_S, prune, prune_audit, prune_history, put, rows_of
from boa.units import Seconds

_Record = TypeVar("_Record")
SETTLE_S = 5.0
"""How long a commit tries to find out what came of it, after its connection broke."""
MOST_IN = 500
"""Entries of one list in a question, at most."""
BATCH = 20_000
"""Rows that are read at a time, where there are many."""
ACCEPTED = "sqlite:///PATH (a file) or postgresql://USER:PASSWORD@HOST/DATABASE"
_BUGS = (IntegrityError, DataError, ProgrammingError)


def open_store(url: str) -> Store:
    """The database at a URL, made or brought up to date as need be, for this service alone."""
    return SqlStore(backend_of(url))


def backend_of(given: str) -> Backend:
    """The database at a URL; a file is taken for this service alone."""
    url = parsed(given)
    return Sqlite(url) if url.drivername == "sqlite" else Postgresql(url)


def file_at(url: str) -> Path | None:
    """The file that a URL names; None of one on a server."""
    found = parsed(url)
    return file_of(found) if found.drivername == "sqlite" else None


def parsed(given: str) -> URL:
    """A URL of one of the two kinds. Raises InputError."""
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise _bad(given) from None
    if url.drivername not in ("postgresql", "postgresql+psycopg") and not _is_file(url):
        raise _bad(given)
    return url


def _is_file(url: URL) -> bool:
    named = url.database not in (None, "", ":memory:") and not url.host and not url.query
    return url.drivername == "sqlite" and named


def _bad(given: str) -> InputError:
    return InputError("--db", re.sub(r"(://[^:@/]*):.*@", r"\1:***@", given), ACCEPTED)


class SqlStore:
    """See `base.Store`."""

    def __init__(self, backend: Backend, memory: FolderMemory | None = None) -> None:
        self._backend, self._memory = backend, memory
        self._writer: Connection | None = None
        try:
            backend.prepare()
            with self._told(bugs=()):
                self._open(self._connected())
        except BaseException:
            self.close()
            raise

    def _open(self, connection: Connection) -> None:
        migrate(connection, MIGRATIONS)
        known = self._memory.mark if self._memory else None
        writer, openings = tables.writer, tables.openings
        nonce = secrets.token_hex(8)
        with connection.begin():
            before = connection.execute(select(writer)).one()
            self._opened = max(before.opened, known.opened if known else 0) + 1
            connection.execute(update(writer).values(opened=self._opened, commits=0))
            ended = update(openings).where(openings.c.opened == before.opened)
            connection.execute(ended.values(commits=before.commits))
            row = {"opened": self._opened, "nonce": nonce, "commits": 0}
            connection.execute(insert(openings), row)
            job = _highest(connection, tables.jobs.c.number, known.job if known else 0)
            node = _highest(connection, tables.nodes.c.id, known.node if known else 0)
            event = _highest(connection, tables.events.c.number, known.event if known else 0)
            self._last_audit = _highest(connection, tables.audit.c.number, 0)
        self._commits, self._last_event, self._pruned_at = 0, event, -math.inf
        self._mark = Mark(
            opened=self._opened, commits=0, nonce=nonce, job=job, node=node, event=event
        )
        self._remember()

    def _remember(self, changes: Changes | None = None) -> None:
        """How far it is, before anything is done about it."""
        if changes is not None:
            jobs = (codec.job_number(job) for job in changes.jobs)
            self._mark = replace(
                self._mark,
                commits=self._commits,
                job=max(self._mark.job, *jobs, 0),
                node=max(self._mark.node, *changes.nodes, 0),
                event=self._last_event,
            )
        if self._memory is not None:
            self._memory.remember(self._mark)

    def close(self) -> None:
        self._disconnect()
        self._backend.close()
        if self._memory is not None:
            self._memory.close()

    # Writing

    def commit(self, changes: Changes) -> int:
        if not changes:
            return self._last_event
        last = self._last_event + len(changes.events)
        last_audit = self._last_audit + len(changes.audit)
        rows = rows_of(changes, self._last_event + 1, self._last_audit + 1)
        with self._told(), self._writable():
            connection = self._connected()
            transaction = connection.begin()
            try:
                self._claim(connection)
                put(connection, rows)
                prune(connection, self._last_event, last)
                prune_audit(connection, self._last_audit, last_audit, time.time())
                pruned_at = self._prune_history(connection, changes)
            except BaseException:
                self._undo(connection, transaction)
                raise
            self._finish(transaction)
        self._commits += 1
        self._last_event, self._last_audit, self._pruned_at = last, last_audit, pruned_at
        self._remember(changes)
        return last

    def _prune_history(self, connection: Connection, changes: Changes) -> Seconds:
        """When that was last done: now and then, where a sample tells the time."""
        if not changes.samples or changes.samples[-1].at < self._pruned_at + PRUNE_S:
            return self._pruned_at
        prune_history(connection, changes.samples[-1].at)
        return changes.samples[-1].at

    def _claim(self, connection: Connection) -> None:
        """Only from where this service left the database."""
        column = tables.writer.c
        here = (column.opened == self._opened) & (column.commits == self._commits)
        moved = connection.execute(
            update(tables.writer).where(here).values(commits=column.commits + 1)
        )
        if moved.rowcount != 1:
            raise Overtaken(self._backend.where)

    def _undo(self, connection: Connection, transaction: Transaction) -> None:
        transaction.rollback()
        if connection.invalidated:
            self._disconnect()

    @contextmanager
    def _writable(self) -> Iterator[None]:
        """A file that SQLite could not open for writing (the disk failed, no descriptor left) it
        has opened for reading, for good: only other connections write again. The index of the log
        is open once for all of them, so that readers have to go as well."""
        try:
            yield
        except DBAPIError as trouble:
            if getattr(trouble.orig, "sqlite_errorname", "").startswith("SQLITE_READONLY"):
                self._disconnect()
                self._backend.readers.dispose()
            raise

    def _finish(self, transaction: Transaction) -> None:
        try:
            transaction.commit()
        except DBAPIError:
            self._disconnect()
            if not self._landed():
                raise

    def _landed(self) -> bool:
        """Whether a commit that failed was stored all the same. Raises if that stays unknown."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            try:
                row = self._connected().execute(select(tables.writer)).one()
                self._connected().rollback()
            except (DBAPIError, InUse):
                self._disconnect()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return (row.opened, row.commits) == (self._opened, self._commits + 1)

    def _connected(self) -> Connection:
        if self._writer is None:
            self._writer = self._backend.connect()
        return self._writer

    def _disconnect(self) -> None:
        if self._writer is not None:
            self._writer.invalidate()  # close it, rather than try to end what it was at
            self._writer.close()
            self._writer = None

    # Reading

    def load(self) -> Saved:
        with self._told(), self._backend.readers.connect() as connection:
            saved = _saved(connection)
        given_up = max((last for _, last in saved.meta.get("lost_jobs", ())), default=0)
        return replace(
            saved,
            next_job=max(saved.next_job, self._mark.job + 1, given_up + 1),
            next_node=max(saved.next_node, self._mark.node + 1),
        )

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

    def held_between(
        self, since: Seconds, until: Seconds, *, nodes: Collection[NodeId] | None = None
    ) -> Held:
        some = [None] if nodes is None else _parts(nodes)
        asked = [queries.held_between(since, until, ids) for ids in some]
        with self._told():
            return codec.held_of(rows for query in asked for rows in self._batches(query))

    def held_by_node(self, since: Seconds, until: Seconds) -> HeldOnNodes:
        with self._told():
            return codec.held_on_nodes_of(self._batches(queries.held_by_node(since, until)))

    def _batches(self, query: Query) -> Iterator[Sequence[Any]]:
        """Rows as the driver gives them."""
        with self._backend.readers.connect() as connection:
            cursor = connection.execute(query).cursor
            assert cursor is not None
            yield from iter(lambda: cursor.fetchmany(BATCH), [])

    def nodes(self, ids: Collection[NodeId]) -> Sequence[NodeRecord]:
        found = list[NodeRecord]()
        for some in _parts(ids):
            found += self._read(queries.nodes(some), codec.node_of)
        return sorted(found, key=lambda node: node.id)

    def samples_between(self, since: Seconds, until: Seconds) -> Sequence[Sample]:
        return self._read(queries.samples_between(since, until), codec.sample_of)

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


def _parts(ids: Collection[NodeId]) -> list[Sequence[NodeId]]:
    """No more at once than a statement takes."""
    wanted = sorted(ids)
    return [wanted[first : first + MOST_IN] for first in range(0, len(wanted), MOST_IN)]


def _highest(connection: Connection, column: Any, known: int) -> int:
    found: int = connection.execute(select(func.max(column))).scalar() or 0
    return max(found, known)


def _stored_event(row: Mapping[str, Any]) -> StoredEvent:
    return StoredEvent(row["number"], codec.event_of(row))


def _stored_audit(row: Mapping[str, Any]) -> StoredAudit:
    return StoredAudit(row["number"], codec.audit_of(row))


def _all(
    connection: Connection, query: Query, decode: Callable[[Mapping[str, Any]], _Record]
) -> list[_Record]:
    return [decode(row._asdict()) for row in connection.execute(query)]


def _saved(connection: Connection) -> Saved:
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
