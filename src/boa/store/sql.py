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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Transaction, func, insert, make_url, select, update
from sqlalchemy.exc import ArgumentError, DBAPIError

from boa.errors import InputError
from boa.model.changes import Changes
from boa.model.history_kept import HistoryKept
from boa.store import codec, pages, tables
from boa.store.backend import Backend
from boa.store.base import Saved, Store
from boa.store.cleaning import drop_jobs
from boa.store.errors import InUse, Overtaken
from boa.store.memory import FolderMemory, Mark
from boa.store.migrations import MIGRATIONS, migrate
from boa.store.postgresql import Postgresql
from boa.store.reading import SqlReader, saved_in
from boa.store.sqlite import Sqlite, file_of
from boa.store.writing import PRUNE_S, prune, prune_audit, prune_history, put, rows_of
from boa.units import Seconds

SETTLE_S = 5.0
"""How long a commit tries to find out what came of it, after its connection broke."""
ACCEPTED = "sqlite:///PATH (a file) or postgresql://USER:PASSWORD@HOST/DATABASE"


def open_store(url: str, keep: HistoryKept | None = None) -> Store:
    """The database at a URL, made or brought up to date as need be, for this service alone."""
    return SqlStore(backend_of(url), keep=keep)


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


class SqlStore(SqlReader):
    """See `base.Store`."""

    def __init__(
        self, backend: Backend, memory: FolderMemory | None = None, keep: HistoryKept | None = None
    ) -> None:
        super().__init__(backend)
        self.keep = keep or HistoryKept()
        self._memory = memory
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
        self._pages = pages.Packing.of(connection)
        while self._pages.due:  # of a store that had none yet
            with connection.begin():
                packed = self._pages.packed(connection)
            self._pages = packed

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
            self._memory.take_back(changes.tokens.values() if changes is not None else ())

    def close(self) -> None:
        self._disconnect()
        self._backend.close()
        if self._memory is not None:
            self._memory.close()

    def load(self) -> Saved:
        with self._told(), self._backend.readers.connect() as connection:
            saved = saved_in(connection)
        given_up = max((last for _, last in saved.meta.get("lost_jobs", ())), default=0)
        return replace(
            saved,
            next_job=max(saved.next_job, self._mark.job + 1, given_up + 1),
            next_node=max(saved.next_node, self._mark.node + 1),
        )

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
                packing = self._pages.with_holds(connection, dict(rows).get(tables.holds, ()))
                put(connection, rows)
                packing = packing.packed(connection)
                prune(connection, self._last_event, last, self.keep.events)
                prune_audit(connection, self._last_audit, last_audit, time.time())
                pruned_at = self._prune_history(connection, changes)
                if changes.samples:
                    packing = drop_jobs(connection, packing, self.keep, changes.samples[-1].at)
            except BaseException:
                self._undo(connection, transaction)
                raise
            self._finish(transaction)
        self._commits += 1
        self._last_event, self._last_audit, self._pruned_at = last, last_audit, pruned_at
        self._pages = packing
        self._remember(changes)
        return last

    def _prune_history(self, connection: Connection, changes: Changes) -> Seconds:
        """When that was last done: now and then, where a sample tells the time."""
        if not changes.samples or changes.samples[-1].at < self._pruned_at + PRUNE_S:
            return self._pruned_at
        prune_history(connection, changes.samples[-1].at, self.keep.samples_s)
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


def _highest(connection: Connection, column: Any, known: int) -> int:
    found: int = connection.execute(select(func.max(column))).scalar() or 0
    return max(found, known)
