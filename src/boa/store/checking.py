"""Looking through a store: whether its pages, its rows and what they say of each other are whole.

Nothing is changed, so a service may be at work on it meanwhile.
"""

import math
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, get_args

import numpy as np
from sqlalchemy import Connection, Engine, Table, func, inspect, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from boa.model.job import JobRecord, State
from boa.model.prices import paid
from boa.plain_file import kind_of
from boa.store import codec, tables
from boa.store.base import StoreTrouble
from boa.store.codec import Row
from boa.store.faults import Found, listed
from boa.store.migrations import MIGRATIONS, NewerDatabase, version_of
from boa.store.pages import column_of, packed_of, packed_until
from boa.store.raw_rows import READERS, is_whole, raw_rows
from boa.store.sqlite import REASONS, parts_of
from boa.units import SECONDS_PER_HOUR, Seconds

Reason: TypeAlias = Callable[[Any], str]
NEEDED = ("cluster", "serials", "clock")
"""Keys of `meta` without which jobs cannot go on."""
KEPT = {
    "began": "when the service began",
    "money": "budget in force, debts and loans",
    "tally": "cost of each class since the last look",
    "totals": "dollars spent so far",
    "plan": "plan in force",
}
"""Further keys of `meta`, with what is lost where one is missing."""
PASSING = (REASONS["SQLITE_BUSY"], REASONS["SQLITE_FULL"])
"""Trouble that says nothing of the store itself."""
PLANNED = '"kind":"planned"'
"""In the record of an event that a plan is in force."""
MOST_NAMED = 20
"""Rows of a table that are named one by one."""
SLACK = 1e-6
"""Part of a sum of dollars that may be rounding."""
_DOUBTFUL = dict.fromkeys(("samples", "points"), "WHERE NOT json_valid(record)")
"""Rows of which there are millions, and no checksums: SQLite picks those that are read here. It
takes a NaN for no JSON."""
_STATES = frozenset(get_args(State))


def check(engine: Engine, path: Path | None, reason: Reason) -> Found:
    """`path`: the file, of SQLite. `reason`: a driver's error in plain words."""
    found = Found()
    if path is not None and not _is_file(path, found):
        return found
    try:
        with engine.connect() as connection:
            if path is None:
                connection.execution_options(isolation_level="REPEATABLE READ")
            if path is not None:
                _check_pages(connection, found)
            found.version = version_of(connection)
            if found.version == 0:
                found.there = bool(_has_tables(connection))
                if found.there:
                    found.tell("schema", "it has tables, but none of boa's version")
            elif found.version == len(MIGRATIONS):
                _check_tables(connection, found)
                _check_rows(connection, found, reason)
            elif found.version > len(MIGRATIONS):
                raise NewerDatabase(found.version, len(MIGRATIONS))
            else:  # older ones are looked through once they are brought up to date
                _read_writer(connection, found)
                _read_numbers(connection, found)
    except SQLAlchemyError as error:
        why = _why(error, reason)
        if why in PASSING:
            raise StoreTrouble(f"{engine.url.database}: {why}") from error
        found.tell("file", why)
    return found


def _why(error: SQLAlchemyError, reason: Reason) -> str:
    return reason(error) if isinstance(error, DBAPIError) else str(error)


def _is_file(path: Path, found: Found) -> bool:
    try:
        status = path.stat()
    except FileNotFoundError:
        found.there = path.is_symlink()
        if found.there:
            found.tell("file", f"{path} is a link to nothing")
        return False
    except OSError as trouble:
        found.tell("file", f"{path} cannot be looked at: {trouble.strerror}")
        return False
    if not stat.S_ISREG(status.st_mode):
        found.tell("file", f"{path} is {kind_of(path)}, not a file")
        return False
    odd = [part for part in parts_of(path)[1:] if os.path.lexists(part) and not part.is_file()]
    if odd:
        found.tell("file", f"{odd[0]} is {kind_of(odd[0])}, not a file")
        return False
    found.there = status.st_size > 0
    return found.there


def _has_tables(connection: Connection) -> bool:
    if connection.dialect.name != "sqlite":
        return False  # others may have tables there too
    count = connection.exec_driver_sql("SELECT COUNT(*) FROM sqlite_master").scalar()
    return bool(count)


def _check_pages(connection: Connection, found: Found) -> None:
    said = [row[0] for row in connection.exec_driver_sql("PRAGMA integrity_check(5)")]
    if said != ["ok"]:
        first = str(said[0]).strip().splitlines() if said else []
        detail = first[-1].removeprefix("*** ").strip() if first else "no answer"
        found.tell("pages", f"the file is damaged ({detail})")


def _check_tables(connection: Connection, found: Found) -> None:
    there = set(inspect(connection).get_table_names())
    missing = [name for name in tables.metadata.tables if name not in there]
    if missing:
        found.tell("schema", f"tables are missing: {', '.join(missing)}")


# Rows


def _check_rows(connection: Connection, found: Found, reason: Reason) -> None:
    found.looked_through = True
    _read_writer(connection, found)
    gathered = _Gathered()
    if inspect(connection).has_table(tables.held_pages.name):
        gathered.packed_until = packed_until(connection)
    looks: dict[Table, Callable[[Row], object]] = {
        **READERS,
        tables.meta: lambda row: found.meta.update([codec.meta_of(row)]),
        tables.nodes: lambda row: _look_at_node(row, found, gathered),
        tables.jobs: lambda row: _look_at_job(row, found, gathered),
        tables.holds: lambda row: _look_at_hold(row, gathered),
        tables.held_pages: lambda row: _look_at_page(row, gathered),
        tables.events: lambda row: _look_at_event(row, found, gathered),
        tables.audit: lambda row: _look_at_many(row, codec.audit_of),
    }
    if connection.dialect.name != "sqlite":
        del looks[tables.samples], looks[tables.points]
    for table, look in looks.items():
        _check_table(connection, table, look, found, reason)
    _check_numbers(found)
    _check_references(found, gathered)
    _check_meta(found, gathered)


@dataclass(slots=True)
class _Gathered:
    """Sums and references gathered on the way."""

    totals: dict[str, float] = field(default_factory=lambda: {"jobs_usd": 0.0, "total_usd": 0.0})
    held: set[tuple[int, int]] = field(default_factory=set)
    """Jobs and nodes of holds."""
    placed: list[tuple[int, set[int]]] = field(default_factory=list)
    """Nodes of jobs that have not ended."""
    serials: dict[str, int] = field(default_factory=dict)
    closed: bool = False
    """A hold or a node has ended."""
    planned: bool = False
    """The store has had a plan."""
    packed_until: Seconds = -math.inf
    """Holds that ended by then are in pages too, …"""
    packed: dict[str, float] = field(default_factory=lambda: {"rows": 0.0, "pages": 0.0})
    """… and come to so many dollars, by their rows and by the pages."""


def _read_writer(connection: Connection, found: Found) -> None:
    if not inspect(connection).has_table(tables.writer.name):
        return
    rows = connection.execute(tables.writer.select()).all()
    if len(rows) != 1:
        found.tell("schema", f"its table writer has {len(rows)} rows instead of one")
    for row in rows:
        found.opened, found.commits = row.opened, row.commits
    if inspect(connection).has_table(tables.openings.name):
        for row in connection.execute(tables.openings.select()):
            found.openings[row.opened] = (row.nonce, row.commits)


def _read_numbers(connection: Connection, found: Found) -> None:
    """Numbers of jobs and nodes, which all versions have alike."""
    jobs, nodes, events = tables.jobs.c.number, tables.nodes.c.id, tables.events.c.number
    found.jobs.update(connection.execute(select(jobs)).scalars())
    found.nodes.update(connection.execute(select(nodes)).scalars())
    found.job, found.node = max(found.jobs, default=0), max(found.nodes, default=0)
    found.event = connection.execute(select(func.max(events))).scalar() or 0


def _check_table(
    connection: Connection,
    table: Table,
    look: Callable[[Row], object],
    found: Found,
    reason: Reason,
) -> None:
    damaged: list[str] = []
    try:
        rows = raw_rows(connection, table, _DOUBTFUL.get(table.name, ""))
        damaged.extend(_key(table, row) for row in rows if not is_whole(table, row, look))
    except SQLAlchemyError as error:
        found.tell("pages", f"the table {table.name} cannot be read: {_why(error, reason)}")
    if damaged:
        named = ", ".join(damaged[:MOST_NAMED]) + (", …" if len(damaged) > MOST_NAMED else "")
        jobs = [int(key) for key in damaged if table is tables.jobs and key.isdigit()]
        found.job = max([found.job, *jobs])
        found.tell(
            "row", f"{len(damaged)} rows of the table {table.name} are damaged: {named}", jobs
        )


def _key(table: Table, row: Row) -> str:
    return "/".join(str(row[column.name])[:60] for column in table.primary_key)


def _look_at_node(row: Row, found: Found, gathered: _Gathered) -> None:
    node = codec.node_of(row)
    found.node = max(found.node, node.id)
    if bool(row["gone"]) != (node.state == "gone"):
        raise ValueError("gone")
    gathered.closed |= node.state == "gone"
    if node.state == "gone" and node.billed_from is not None and node.gone_at is not None:
        cost = node.gpus * paid(node.price, node.changes, node.billed_from, node.gone_at)
        gathered.totals["total_usd"] += cost / SECONDS_PER_HOUR
    found.nodes.add(node.id)


def _look_at_job(row: Row, found: Found, gathered: _Gathered) -> None:
    job = codec.job_of(row)
    number = codec.job_number(job.id)
    found.job = max(found.job, number)
    if job.state not in _STATES or bool(row["ended"]) != job.ended:
        raise ValueError("state")
    if codec.from_text(row["job_class"]) != job.job_class:
        raise ValueError("job_class")
    gathered.serials[job.job_class] = max(gathered.serials.get(job.job_class, 0), job.serial + 1)
    if not job.ended:
        found.active += 1
        gathered.placed.append((number, nodes_of(job)))
    found.jobs.add(number)


def nodes_of(job: JobRecord) -> set[int]:
    """Nodes that it runs on, or is to."""
    given = set() if job.allocation is None else {node for node, _ in job.allocation.nodes}
    return given if job.run is None else given | set(job.run.slots)


def _look_at_hold(row: Row, gathered: _Gathered) -> None:
    hold = codec.hold_of(row)
    gathered.held.add((codec.job_number(hold.job), hold.node))
    if hold.until is not None:
        gathered.closed = True
        span = max(hold.until - hold.since, 0.0)
        usd = hold.price * hold.gpus * span / SECONDS_PER_HOUR
        if hold.until > gathered.packed_until:
            gathered.totals["jobs_usd"] += usd
        else:
            gathered.packed["rows"] += usd


def _look_at_page(row: Row, gathered: _Gathered) -> None:
    packed = packed_of(row)
    since, until, gpus, price = (
        column_of(packed, name) for name in ("since", "until", "gpus", "price")
    )
    usd = float((price * gpus) @ np.maximum(until - since, 0.0)) / SECONDS_PER_HOUR
    gathered.packed["pages"] += usd


def _look_at_event(row: Row, found: Found, gathered: _Gathered) -> None:
    _look_at_many(row, codec.event_of)
    gathered.planned |= PLANNED in row["record"]
    found.event = max(found.event, row["number"])


def _look_at_many(row: Row, read: Callable[[Row], object]) -> None:
    """One with a checksum can be read as it could be written."""
    if row[tables.CHECKSUM] is None:
        read(row)


# What rows say of each other


def _check_numbers(found: Found) -> None:
    """Numbers of jobs have no gaps: what is missing in between was there. Jobs may be dropped by
    their age, so that up to the last that was nothing is known."""
    damaged = {number for fault in found.faults for number in fault.jobs}
    missing = set(range(found.dropped + 1, found.job + 1)) - found.jobs - damaged - found.lost
    if missing:
        found.tell("missing", f"jobs are missing: {listed(missing)}", missing)


def _check_references(found: Found, gathered: _Gathered) -> None:
    known = found.jobs | found.lost | {n for fault in found.faults for n in fault.jobs}
    lost = {(job, node) for job, node in gathered.held if job not in known and job > found.dropped}
    if lost:
        jobs = {job for job, _ in lost}
        found.tell("reference", f"GPUs are held by jobs that are not there: {listed(jobs)}")
    nowhere = {job for job, node in gathered.held if node not in found.nodes}
    if nowhere:
        found.tell("reference", f"jobs held nodes that are not there: {listed(nowhere)}")
    placed = {job for job, nodes in gathered.placed if not nodes <= found.nodes}
    if placed:
        found.tell("reference", f"jobs run on nodes that are not there: {listed(placed)}", placed)


def _check_meta(found: Found, gathered: _Gathered) -> None:
    if found.jobs:
        missing = [key for key in NEEDED if key not in found.meta]
        missing += [f"{key} ({KEPT[key]})" for key in _kept(found, gathered) - found.meta.keys()]
        if missing:
            found.tell("missing", f"settings are missing: {', '.join(sorted(missing))}")
    serials = found.meta.get("serials")
    if isinstance(serials, dict):
        behind = [name for name, next in gathered.serials.items() if serials.get(name, 0) < next]
        if behind:
            found.tell("reference", f"more jobs of a class than were counted: {behind[0]!r}")
    _check_ledger(found, gathered)


def _kept(found: Found, gathered: _Gathered) -> set[str]:
    """Return the keys of `KEPT` that this store must have. A store of an earlier version, or one
    that was opened knowingly, may never have had them."""
    if 1 not in found.openings or "lost_jobs" in found.meta:
        return set()
    money = found.meta.get("money")
    kept = {"began", "money"}
    if not isinstance(money, dict) or "terms" in money:  # versions that write terms keep a tally
        kept.add("tally")
    if gathered.closed:
        kept.add("totals")
    if gathered.planned:
        kept.add("plan")
    return kept


def _check_ledger(found: Found, gathered: _Gathered) -> None:
    """Stores that were made before all of this was kept so are not asked."""
    rows, pages = gathered.packed["rows"], gathered.packed["pages"]
    if rows - pages > SLACK * max(rows, 1.0):
        found.tell("ledger", f"holds come to ${rows:.4f} by their rows, ${pages:.4f} by pages")
    gathered.totals["jobs_usd"] += max(rows, pages)  # rows of jobs long ago may have been dropped
    totals = found.meta.get("totals")
    if 1 not in found.openings or not isinstance(totals, dict) or "lost_jobs" in found.meta:
        return
    for name, what in (("jobs_usd", "held by jobs"), ("total_usd", "charged for nodes")):
        sum_usd = gathered.totals[name]
        with suppress(TypeError, ValueError):
            kept = float(totals.get(name, 0.0))
            if kept - sum_usd > SLACK * max(kept, 1.0):
                found.tell("ledger", f"${kept:.4f} were {what}, but its rows have ${sum_usd:.4f}")
