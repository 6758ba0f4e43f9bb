"""Checksums of rows: SQLite has none of its pages, so a flipped bit in a text would be believed.

What is written once has one of its own, as it may stand there in the words of an older version.
"""

import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from sqlalchemy import Boolean, Column, Double, LargeBinary, Table, Text

from boa.store.codec import Row
from boa.store.tables import CHECKSUM, OF_CONSTANTS

_Parts: TypeAlias = tuple[tuple[str, Callable[[Any], str]], ...]


def sealed(table: Table, rows: list[Row]) -> list[Row]:
    """The same rows with their checksums, where the table has such."""
    for name, parts in _sums(table):
        for row in rows:
            row[name] = _checksum(row, parts)
    return rows


def is_as_written(table: Table, row: Mapping[str, Any]) -> bool:
    """Whether a row is as it was written; one without checksums may be. Raises ValueError or
    TypeError where a column holds a value of another kind."""
    return all(
        row[name] is None or row[name] == _checksum(row, parts) for name, parts in _sums(table)
    )


def _checksum(row: Mapping[str, Any], parts: _Parts) -> int:
    text = "\x1f".join(word(row[name]) for name, word in parts)
    return zlib.crc32(text.encode("utf-8", "surrogateescape"))


@lru_cache(maxsize=64)
def _sums(table: Table) -> tuple[tuple[str, _Parts], ...]:
    """Columns that hold checksums, with the columns that each is of: the key is in all of them."""
    if CHECKSUM not in table.c:
        return ()
    others = [column for column in table.c if column.name not in (CHECKSUM, OF_CONSTANTS)]
    changing = [column for column in others if not column.info.get("constant")]
    found = [(CHECKSUM, _parts(changing))]
    if OF_CONSTANTS in table.c:
        fixed = [column for column in others if column.primary_key or column not in changing]
        found.append((OF_CONSTANTS, _parts(fixed)))
    return tuple(found)


def _parts(columns: list[Column[Any]]) -> _Parts:
    return tuple((column.name, _word(column)) for column in columns)


def _word(column: Column[Any]) -> Callable[[Any], str]:
    """A value as every database gives it back: an integer in a column of floats is one there."""
    if isinstance(column.type, Text):
        return _text
    if isinstance(column.type, LargeBinary):
        return lambda value: str(zlib.crc32(value))
    if isinstance(column.type, Boolean):
        return lambda value: "1" if value else "0"
    if isinstance(column.type, Double):
        return lambda value: repr(float(value) + 0.0)  # there is no -0.0 in SQLite
    return lambda value: "" if value is None else str(int(value))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where there was text")
    return value
