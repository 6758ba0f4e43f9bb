"""A new SQLite file with all rows of a damaged one that are whole.

Tables are read from their beginning as far as that goes, and then from their end. Jobs that were to
run on nodes which are not there any more wait to be placed again.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, update
from sqlalchemy.exc import SQLAlchemyError

from boa.atomic_file import draft_of
from boa.private_files import private_file, private_folder
from boa.store import codec, tables
from boa.store.checking import nodes_of
from boa.store.checksums import sealed
from boa.store.codec import Row
from boa.store.migrations import MIGRATIONS, migrate
from boa.store.pages import hold_rows
from boa.store.raw_rows import READERS, is_whole, raw_rows
from boa.store.replacing import replace_store
from boa.store.sqlite import checkers, parts_of, writers

AT_ONCE = 1_000


def salvage(path: Path, aside: Path) -> None:
    """In the place of the file at `path`, which is kept in the folder `aside`."""
    for part in parts_of(path)[1:]:
        if os.path.lexists(part) and not part.is_file():  # SQLite opens nothing beside it
            private_folder(aside)
            shutil.move(part, aside / part.name)
    draft = draft_of(path)
    draft.unlink(missing_ok=True)
    private_file(draft)
    engine = writers(draft, alone=True)
    try:
        with engine.connect() as new:
            migrate(new, MIGRATIONS)
            if path.is_file():
                _copy_all(path, new)
    finally:
        engine.dispose()
    replace_store(path, draft, aside)


def _copy_all(path: Path, new: Connection) -> None:
    engine, nodes = checkers(path), set[int]()
    try:
        with engine.connect() as old, new.begin():
            _copy_openings(old, new)
            for table, read in READERS.items():
                if table is tables.held_pages:  # of holds, which are packed again when it is opened
                    _copy_pages(old, new, read, nodes)
                    continue
                batch: list[Row] = []
                for row in _readable(old, table):
                    kept = _mended(table, row, read, nodes)
                    if kept is not None:
                        batch.append(kept)
                    if len(batch) >= AT_ONCE:
                        _put(new, table, batch)
                        batch = []
                _put(new, table, batch)
            _count_serials(new)
    except SQLAlchemyError:
        return  # it cannot be opened, and no more of it is to be had
    finally:
        engine.dispose()


def _copy_pages(
    old: Connection, new: Connection, read: Callable[[Row], Any], nodes: set[int]
) -> None:
    """Holds of pages that are whole; where a hold has a row of its own, that stays."""
    for page in _readable(old, tables.held_pages):
        if is_whole(tables.held_pages, page, read):
            holds = [row for row in hold_rows(page) if row["node"] in nodes]
            _put(new, tables.holds, sealed(tables.holds, holds))


def _copy_openings(old: Connection, new: Connection) -> None:
    for row in _readable(old, tables.openings):
        if isinstance(row["opened"], int) and isinstance(row["nonce"], str):
            new.execute(_or_ignore(tables.openings), row)
    for row in _readable(old, tables.writer):
        if isinstance(row["opened"], int) and isinstance(row["commits"], int):
            new.execute(update(tables.writer).values(**row))


def _readable(connection: Connection, table: Table) -> Iterator[Row]:
    """Rows from both ends, up to where they cannot be read; some may come twice."""
    for order in ("NOT INDEXED ORDER BY rowid", "NOT INDEXED ORDER BY rowid DESC"):
        try:
            yield from raw_rows(connection, table, order)
        except SQLAlchemyError:
            continue
        return


def _mended(table: Table, row: Row, read: Callable[[Row], Any], nodes: set[int]) -> Row | None:
    """None of a row that is not whole, or of no use."""
    if not is_whole(table, row, read):
        return None
    if table is tables.nodes:
        nodes.add(row["id"])
    elif table is tables.holds and row["node"] not in nodes:
        return None
    elif table is tables.jobs:
        job = codec.job_of(row)
        if not job.ended and not nodes_of(job) <= nodes:
            waiting = replace(job, state="waiting", run=None, allocation=None, share=None)
            return sealed(table, [codec.job_row(waiting)])[0]
    return row


def _put(new: Connection, table: Table, rows: list[Row]) -> None:
    if rows:
        new.execute(_or_ignore(table), rows)


def _or_ignore(table: Table) -> Any:
    return insert(table).prefix_with("OR IGNORE")


def _count_serials(new: Connection) -> None:
    """How many jobs of each class there were, as far as rows tell."""
    serials: dict[str, int] = {}
    for row in raw_rows(new, tables.meta):
        key, value = codec.meta_of(row)
        if key == "serials" and isinstance(value, dict):
            serials = value
    for row in raw_rows(new, tables.jobs):
        name = codec.from_text(row["job_class"])
        serials[name] = max(serials.get(name, 0), row["serial"] + 1)
    new.execute(delete(tables.meta).where(tables.meta.c.key == "serials"))
    new.execute(insert(tables.meta), sealed(tables.meta, [codec.meta_row("serials", serials)]))
