"""Holds that have ended, by column, thousands to a row: a month of them is read in an instant.

A row per hold is what is written, looked up and checked; to add up a million of them, one at a
time, takes seconds. So those that have ended are copied into pages, within the transaction that
ended the last of a pageful. Law: the pages hold every hold that ended by `packed_until`, once, and
no other. A hold that is told of late, or changed afterwards, is put right with its own commit.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, func, insert, select, tuple_, update

from boa.model.held import Held
from boa.store import tables
from boa.store.checksums import sealed
from boa.store.codec import Row, from_text
from boa.units import Seconds

PAGE = 4096
"""Holds of a page: at 10,000 GPUs it is filled in about three hours."""
MOST_KEYS = 250
"""Holds that are asked for in one question."""
COLUMNS = ("job", "node", "since", "until", "gpus", "price", "job_class")
"""The columns of `holds` that pages have, in this order, eight bytes a hold each; of the last the
place of its name in `classes`."""
_REAL = ("since", "until", "price")
Packed: TypeAlias = NDArray[np.int64]
"""The columns, one below the other; real ones by their bits."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How far the pages of a store go; kept by whoever writes to it."""

    until: Seconds
    loose: int
    """Holds that have ended since, or somewhat more: what is changed twice is counted twice."""

    @classmethod
    def of(cls, connection: Connection) -> "Packing":
        with connection.begin():
            until = packed_until(connection)
            return cls(until, unpacked(connection, until))

    @property
    def due(self) -> bool:
        return self.loose >= PAGE

    def with_holds(self, connection: Connection, rows: Collection[Row]) -> "Packing":
        """Before these are written."""
        put_right(connection, rows, self.until)
        return replace(self, loose=self.loose + sum(row["until"] < math.inf for row in rows))

    def packed(self, connection: Connection) -> "Packing":
        """After they are: a page more, if there is a pageful. One at a time: nothing waits long."""
        if not self.due:
            return self
        found = pack(connection, self.until)
        if found is None:
            return replace(self, loose=unpacked(connection, self.until))
        return self._with(found)

    def packed_by(self, connection: Connection, moment: Seconds) -> "Packing":
        """With a page of holds that ended by then, if there are any; no more than a pageful."""
        found = pack(connection, self.until, moment)
        return self if found is None else self._with(found)

    def _with(self, found: tuple[Seconds, int]) -> "Packing":
        until, number = found
        return Packing(until, max(self.loose - number, 0))


def packed_until(connection: Connection) -> Seconds:
    """All that ended by then is in pages; before everything, if there are none."""
    found: float | None = connection.execute(select(func.max(tables.held_pages.c.until))).scalar()
    return -math.inf if found is None else found


def unpacked(connection: Connection, after: Seconds) -> int:
    """Holds that have ended and are in no page."""
    ended = tables.holds.c.until
    query = select(func.count()).where((ended > after) & (ended < math.inf))
    return connection.execute(query).scalar() or 0


def pack(
    connection: Connection, after: Seconds, by: Seconds | None = None
) -> tuple[Seconds, int] | None:
    """Put the next pageful into a page; gives when the last of them ended, and how many they are.
    None: there is no pageful yet. `by`: those that ended by then, though they fill no page."""
    ended = tables.holds.c.until
    later = select(ended).where((ended > after) & (ended < math.inf)).order_by(ended)
    last: float | None = connection.execute(later.offset(PAGE - 1).limit(1)).scalar()
    if by is not None and (last is None or last > by):
        until_then = select(func.max(ended)).where((ended > after) & (ended <= by))
        last = connection.execute(until_then).scalar()
    if last is None:
        return None
    cursor = connection.execute(_columns().where((ended > after) & (ended <= last))).cursor
    assert cursor is not None
    rows = cursor.fetchall()
    _add(connection, rows)
    return last, len(rows)


def put_right(connection: Connection, holds: Iterable[Row], until: Seconds) -> None:
    """Before holds are written: have the pages tell of those that are theirs as they will be."""
    rows = [row for row in holds if row["since"] <= until or row["until"] <= until]
    for first in range(0, len(rows), MOST_KEYS):
        some = {_key(row) for row in rows[first : first + MOST_KEYS]}
        column = tables.holds.c
        key = tuple_(column.job, column.node, column.since)
        known = select(key.clauses[0], key.clauses[1], key.clauses[2]).where(
            key.in_(sorted(some)) & (column.until <= until)
        )
        if changed := {tuple(row) for row in connection.execute(known)}:
            _take_out(connection, changed)
    late = [row for row in rows if row["until"] <= until]
    if late:
        _add(connection, [tuple(row[name] for name in COLUMNS) for row in late])


def _key(row: Mapping[str, Any]) -> tuple[int, int, float]:
    return row["job"], row["node"], row["since"]


def _columns() -> Select[Any]:
    return select(*(tables.holds.c[name] for name in COLUMNS))


def _add(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    row = page_row(rows)
    number = connection.execute(select(func.max(tables.held_pages.c.number))).scalar() or 0
    connection.execute(
        insert(tables.held_pages), sealed(tables.held_pages, [{"number": number + 1, **row}])
    )


def _take_out(connection: Connection, keys: set[tuple[Any, ...]]) -> None:
    """Out of the pages that have them. A page keeps its times, even where nothing is left of it:
    by them it is known how far pages go."""
    for found in connection.execute(select(tables.held_pages)).all():
        row = found._asdict()
        packed = packed_of(row)
        job, node, since = (column_of(packed, name).tolist() for name in COLUMNS[:3])
        stays = np.array([key not in keys for key in zip(job, node, since, strict=True)], bool)
        if not stays.all():
            left = np.ascontiguousarray(packed[:, stays])
            row |= {"holds": left.shape[1], "columns": left.astype("<i8").tobytes()}
            page = tables.held_pages
            sealed(page, [row])
            connection.execute(update(page).where(page.c.number == row["number"]).values(row))


def page_row(rows: Sequence[tuple[Any, ...]]) -> Row:
    """`rows`: columns of `holds` in the order of `COLUMNS`; there is at least one."""
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    classes = {name: place for place, name in enumerate(dict.fromkeys(columns["job_class"]))}
    columns["job_class"] = tuple(classes[name] for name in columns["job_class"])
    packed = np.array([_bits(name, values) for name, values in columns.items()])
    return {
        "since": min(columns["since"]),
        "until": max(columns["until"]),
        "holds": len(rows),
        "classes": json.dumps(list(classes)),
        "columns": packed.astype("<i8").tobytes(),
    }


def _bits(name: str, values: Sequence[Any]) -> Packed:
    if name in _REAL:
        return np.array(values, dtype=np.float64).view(np.int64)
    return np.array(values, dtype=np.int64)


def packed_of(row: Mapping[str, Any]) -> Packed:
    """The columns of a page. Raises ValueError where they are not all there."""
    found: Packed = np.frombuffer(row["columns"], dtype="<i8").reshape(len(COLUMNS), row["holds"])
    return found


def column_of(packed: Packed, name: str) -> NDArray[Any]:
    found: NDArray[Any] = packed[COLUMNS.index(name)]
    return found.view(np.float64) if name in _REAL else found


def classes_of(row: Mapping[str, Any]) -> list[str]:
    """Names, as they stand in columns of texts."""
    names: list[str] = json.loads(row["classes"])
    return names


def hold_rows(row: Mapping[str, Any]) -> list[Row]:
    """Rows of `holds` that a page is of. Raises ValueError or LookupError where it is damaged."""
    packed, names = packed_of(row), classes_of(row)
    columns = [column_of(packed, name).tolist() for name in COLUMNS]
    columns[-1] = [names[place] for place in columns[-1]]
    return [dict(zip(COLUMNS, values, strict=True)) for values in zip(*columns, strict=True)]


def held_of(
    pages: Iterable[Mapping[str, Any]],
    batches: Iterable[Sequence[tuple[Any, ...]]],
    since: Seconds,
    until: Seconds,
) -> Held:
    """Holds that overlap. `batches`: rows that are in no page, in the order of `COLUMNS`."""
    names: dict[str, int] = {}
    parts: list[Packed] = [np.empty((len(COLUMNS), 0), dtype=np.int64)]

    def known(row: Mapping[str, Any]) -> Packed:
        packed = packed_of(row)
        begin, end = column_of(packed, "since"), column_of(packed, "until")
        here = (end > since) & (begin < until)
        found: Packed = packed.copy() if here.all() else packed[:, here]
        places = np.array([names.setdefault(n, len(names)) for n in classes_of(row)], np.int64)
        found[-1] = places[found[-1]]
        return found

    parts += (known(row) for row in pages if row["holds"])
    parts += (known(page_row(rows)) for rows in batches)
    packed = np.concatenate(parts, axis=1)
    column: Callable[[str], NDArray[Any]] = lambda name: column_of(packed, name)  # noqa: E731
    return Held(
        streams=[from_text(name) for name in names],
        which=column("job_class"),
        job=column("job"),
        node=column("node"),
        gpus=column("gpus").astype(np.float64),
        since=column("since"),
        until=column("until"),
    )
