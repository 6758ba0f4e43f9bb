"""How the database comes to its present form: numbered steps, forward only, never edited.

Statements are such as SQLite and PostgreSQL both take; {id} is each one's 64-bit integer key,
{bytes} its type for those. What no such statement can say, as inside the JSON of a record, is a
function.
"""

import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

from sqlalchemy import Connection, func, insert, inspect, select
from sqlalchemy import text as sql

from boa.errors import BoaError
from boa.store.tables import schema_version

Migration: TypeAlias = tuple[str | Callable[[Connection], None], ...]
_AT_ONCE = 1000
"""Records that are held in memory while they are changed."""


def _rescalings_without_the_first_start(connection: Connection) -> None:
    """Jobs used to count their first start as a rescaling, where they had one."""
    some = "SELECT number, record FROM jobs WHERE number > {after} ORDER BY number LIMIT {most}"
    after = -1
    while rows := connection.exec_driver_sql(some.format(after=after, most=_AT_ONCE)).all():
        after = rows[-1][0]
        changed = []
        for number, text in rows:
            record = json.loads(text)
            if record["attempts"] > 0:
                record["rescalings"] = max(record["rescalings"] - 1, 0)
                changed.append({"of": number, "new": json.dumps(record, separators=(",", ":"))})
        if changed:
            connection.execute(sql("UPDATE jobs SET record = :new WHERE number = :of"), changed)


MIGRATIONS: tuple[Migration, ...] = (
    (
        """CREATE TABLE jobs (
            number {id} PRIMARY KEY,
            job_class TEXT NOT NULL,
            serial BIGINT NOT NULL,
            submitted_at DOUBLE PRECISION NOT NULL,
            spec TEXT NOT NULL,
            ended BOOLEAN NOT NULL,
            record TEXT NOT NULL
        )""",
        "CREATE INDEX jobs_by_end ON jobs (ended, number)",
        "CREATE INDEX jobs_by_class ON jobs (job_class, number)",
        "CREATE INDEX jobs_by_time ON jobs (submitted_at)",
        """CREATE TABLE nodes (
            id {id} PRIMARY KEY,
            gone BOOLEAN NOT NULL,
            charged_from DOUBLE PRECISION NOT NULL,
            charged_until DOUBLE PRECISION NOT NULL,
            record TEXT NOT NULL
        )""",
        "CREATE INDEX nodes_by_end ON nodes (gone, id)",
        "CREATE INDEX nodes_by_time ON nodes (charged_until, charged_from)",
        """CREATE TABLE holds (
            job BIGINT NOT NULL,
            node BIGINT NOT NULL,
            since DOUBLE PRECISION NOT NULL,
            until DOUBLE PRECISION NOT NULL,
            job_class TEXT NOT NULL,
            gpus BIGINT NOT NULL,
            price DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (job, node, since)
        )""",
        "CREATE INDEX holds_by_time ON holds (until, since)",
        """CREATE TABLE cells (
            job_class TEXT NOT NULL,
            gpu TEXT NOT NULL,
            across BOOLEAN NOT NULL,
            width BIGINT NOT NULL,
            epoch BIGINT NOT NULL,
            seconds DOUBLE PRECISION NOT NULL,
            units DOUBLE PRECISION NOT NULL,
            reports BIGINT NOT NULL,
            PRIMARY KEY (job_class, gpu, across, width, epoch)
        )""",
        "CREATE TABLE classes (name TEXT PRIMARY KEY, document TEXT NOT NULL)",
        "CREATE TABLE events (number {id} PRIMARY KEY, job BIGINT, record TEXT NOT NULL)",
        "CREATE INDEX events_by_job ON events (job, number)",
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE writer (opened BIGINT NOT NULL, commits BIGINT NOT NULL)",
        "INSERT INTO writer VALUES (0, 0)",
    ),
    (
        "CREATE TABLE samples (at DOUBLE PRECISION PRIMARY KEY, record TEXT NOT NULL)",
        """CREATE TABLE points (
            job BIGINT NOT NULL,
            at DOUBLE PRECISION NOT NULL,
            record TEXT NOT NULL,
            PRIMARY KEY (job, at)
        )""",
        # With all columns, so that hundreds of thousands of them are read in one go.
        "DROP INDEX holds_by_time",
        """CREATE INDEX holds_by_time
            ON holds (until, since, job, node, gpus, job_class, price)""",
    ),
    (_rescalings_without_the_first_start,),
    (
        """CREATE TABLE openings (
            opened {id} PRIMARY KEY,
            nonce TEXT NOT NULL,
            commits BIGINT NOT NULL
        )""",
        *(
            f"ALTER TABLE {table} ADD COLUMN checksum BIGINT"
            for table in ("jobs", "nodes", "holds", "cells", "classes", "events", "meta")
        ),
        "ALTER TABLE jobs ADD COLUMN constant_checksum BIGINT",
    ),
    (
        "CREATE TABLE tokens (name TEXT PRIMARY KEY, record TEXT NOT NULL)",
        """CREATE TABLE audit (
            number {id} PRIMARY KEY,
            at DOUBLE PRECISION NOT NULL,
            who TEXT NOT NULL,
            record TEXT NOT NULL
        )""",
        "CREATE INDEX audit_by_who ON audit (who, number)",
    ),
    tuple(f"ALTER TABLE {table} ADD COLUMN checksum BIGINT" for table in ("tokens", "audit")),
    (
        """CREATE TABLE notices (
            number {id} PRIMARY KEY,
            target TEXT NOT NULL,
            waiting BOOLEAN NOT NULL,
            record TEXT NOT NULL,
            checksum BIGINT
        )""",
        "CREATE INDEX notices_by_target ON notices (target, waiting, number)",
    ),
    (
        # Filled when a service opens the database, page by page (`pages`).
        """CREATE TABLE held_pages (
            number {id} PRIMARY KEY,
            since DOUBLE PRECISION NOT NULL,
            until DOUBLE PRECISION NOT NULL,
            holds BIGINT NOT NULL,
            classes TEXT NOT NULL,
            columns {bytes} NOT NULL,
            checksum BIGINT
        )""",
    ),
)
"""One that changes what stands in rows sets their checksums to null, or writes them anew."""


class NewerDatabase(BoaError):
    def __init__(self, found: int, known: int) -> None:
        self.found, self.known = found, known
        super().__init__(
            f"the database was written by a newer boa (its schema is version {found}, this one "
            f"knows up to {known}). Upgrade boa-constrictor, or name another database with --db"
        )


def version_of(connection: Connection) -> int:
    """0: nothing of ours is there yet."""
    if not inspect(connection).has_table(schema_version.name):
        return 0
    return connection.execute(select(func.max(schema_version.c.version))).scalar() or 0


def migrate(connection: Connection, migrations: Sequence[Migration]) -> None:
    """Bring the database up to the last of these; whoever calls has it for himself."""
    with connection.begin():
        version = version_of(connection)
    if version > len(migrations):
        raise NewerDatabase(version, len(migrations))
    for number, statements in enumerate(migrations[version:], start=version + 1):
        with connection.begin():
            _apply(connection, number, statements)


def _apply(connection: Connection, number: int, statements: Migration) -> None:
    is_file = connection.dialect.name == "sqlite"
    types = {"id": "INTEGER", "bytes": "BLOB"} if is_file else {"id": "BIGINT", "bytes": "BYTEA"}
    schema_version.create(connection, checkfirst=True)
    for statement in statements:
        if callable(statement):
            statement(connection)
        else:
            connection.exec_driver_sql(statement.format(**types))
    connection.execute(insert(schema_version), {"version": number})
