"""CSV that a stranger wrote: columns by header, every number checked, one error each."""

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from boa.errors import FileError, InputError
from boa.formats.files import read_text

MAX_BYTES = 256 * 1024**2
Required: TypeAlias = Sequence[str] | Callable[[tuple[str, ...]], Sequence[str]]
"""Columns that a table must have, or those that one with these columns must have."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; it knows where it stands, for its errors to say."""

    path: str
    line: int
    cells: dict[str, str]

    def at(self, column: str) -> str:
        return f"{self.path}, line {self.line}, column {column}"

    def text(self, column: str) -> str:
        value = self.cells[column].strip()
        if not value:
            raise InputError(self.at(column), value, "a non-empty text")
        return value

    def number(
        self,
        column: str,
        *,
        above: float | None = None,
        least: float = 0.0,
        most: float = math.inf,
    ) -> float:
        """A finite number of at least `least`, or over `above`, and at most `most`."""
        raw = self.cells[column].strip()
        bound = f">= {least:g}" if above is None else f"> {above:g}"
        bound += f" and <= {most:g}" if most < math.inf else ""
        try:
            value = float(raw)
        except ValueError:
            raise InputError(self.at(column), raw, f"a number {bound}") from None
        too_small = value < least if above is None else value <= above
        if not math.isfinite(value) or too_small or value > most:
            raise InputError(self.at(column), raw, f"a finite number {bound}")
        return value

    def whole(self, column: str, *, least: int = 1, most: float = math.inf) -> int:
        value = self.number(column, least=least, most=most)
        if value != int(value):
            raise InputError(self.at(column), self.cells[column], f"a whole number >= {least}")
        return int(value)

    def has(self, column: str) -> bool:
        return bool(self.cells.get(column, "").strip())


@dataclass(frozen=True, slots=True)
class CsvTable:
    path: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def read_csv(path: Path, required: Required = ()) -> CsvTable:
    """All rows of a CSV file with a header. Blank lines are skipped; an empty table is an error."""
    return parse_csv(str(path), read_text(path, MAX_BYTES), required)


def parse_csv(name: str, text: str, required: Required = ()) -> CsvTable:
    """The same of text that is there already; `name`: what errors call it."""
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""))
    try:
        columns = tuple(cell.strip() for cell in next(reader, []))
        _check_header(name, columns, required)
        rows = tuple(_rows(name, columns, reader))
    except csv.Error as broken:
        raise FileError(name, f"not CSV ({broken}, line {reader.line_num})", "CSV") from None
    if not rows:
        raise FileError(name, "no rows under the header", "at least one row")
    return CsvTable(name, columns, rows)


def _check_header(name: str, columns: tuple[str, ...], required: Required) -> None:
    if not any(columns):
        raise FileError(name, "an empty file", "CSV with a header line")
    check_columns(name, columns, required)


def check_columns(name: str, columns: tuple[str, ...], required: Required) -> None:
    for column in required(columns) if callable(required) else required:
        if column not in columns:
            found = ", ".join(columns)[:80]
            raise FileError(name, f"no column '{column}' (has {found})", f"column '{column}'")
    for column in columns:
        if columns.count(column) > 1:
            raise FileError(name, f"column '{column}' twice", "every column once")


def _rows(name: str, columns: tuple[str, ...], reader: Iterator[list[str]]) -> Iterator[Row]:
    line_of = reader
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        line = line_of.line_num  # type: ignore[attr-defined]
        if len(cells) != len(columns):
            raise InputError(
                f"{name}, line {line}", f"{len(cells)} cells", f"{len(columns)}, as in the header"
            )
        yield Row(name, line, dict(zip(columns, cells, strict=True)))
