"""Traces in files: our own, those of the Sia, Pollux and Rubick artifacts, Microsoft's logs.

Our own has the columns `name, arrival_s, application` and, where known, `gpus, batch_size,
steps, plan, guaranteed, duration_s, priority`. A cell left empty says that it is not known, and
that a priority is normal. It is CSV, or Parquet with the same columns, which takes the optional
package pyarrow.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from boa.atomic_file import drafted
from boa.catalogue import cluster_logs
from boa.catalogue.elastic_jobs import elastic_trace
from boa.catalogue.reading import WHOLE, Reading
from boa.catalogue.tables import CsvTable, Row, check_columns, parse_csv, read_csv
from boa.errors import FileError, InputError
from boa.model.priorities import PRIORITIES, Priority
from boa.model.trace import Trace, TraceJob

OWN_COLUMNS = (
    "name",
    "arrival_s",
    "application",
    "gpus",
    "batch_size",
    "steps",
    "plan",
    "guaranteed",
    "duration_s",
    "priority",
)
REQUIRED = ("name", "application")
CSV, PARQUET = ".csv", ".parquet"
SUFFIXES = (CSV, PARQUET)
"""Suffixes that our own format can be written with; the file's says which."""
BATCH = 1 << 16
"""Rows written to, or read from, a Parquet file at a time."""
MAX_ROWS = 20_000_000
"""A few bytes of Parquet can stand for any number of rows: what is more is refused."""

LATEST_S = 1e11
"""Three thousand years: seconds since 1970 are read, and no more."""
MOST_COUNTED = 1e15
"""Steps of a job, GPUs, samples of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """Which column of a file holds what; a column it does not have is None."""

    name: str
    arrival: str
    gpus: str
    batch_size: str | None = None
    steps: str | None = None
    plan: str | None = None
    guaranteed: str | None = None
    duration: str | None = None
    priority: str | None = None


SIA = TraceFormat(name="sia", arrival="time", gpus="num_replicas", batch_size="batch_size")
"""Pollux and Sia write the same columns."""
RUBICK = TraceFormat(
    name="rubick",
    arrival="submission_time",
    gpus="num_gpus",
    steps="steps",
    plan="exec_plan",
    guaranteed="is_sla",
    duration="duration",
)
OWN = TraceFormat(
    name="boa",
    arrival="arrival_s",
    gpus="gpus",
    batch_size="batch_size",
    steps="steps",
    plan="plan",
    guaranteed="guaranteed",
    duration="duration_s",
    priority="priority",
)
FORMATS = (OWN, RUBICK, SIA)


def read_trace(path: str | Path, reading: Reading = WHOLE) -> Trace:
    """A trace, or a part of it, from a CSV or Parquet file; its format is told by its columns."""
    file = Path(path)
    if file.suffix.lower() == PARQUET:
        return reading.part_of(_trace(_read_parquet(file), reading, "row"))
    return reading.part_of(_trace(read_csv(file, _required), reading))


def parse_trace(name: str, text: str) -> Trace:
    """A trace from the text of a CSV file; `name`: what errors call it."""
    return _trace(parse_csv(name, text, _required), WHOLE)


def _required(columns: tuple[str, ...]) -> tuple[str, ...]:
    return cluster_logs.COLUMNS if cluster_logs.is_log(columns) else REQUIRED


def _trace(table: CsvTable, reading: Reading, counted: str = "line") -> Trace:
    """The whole trace; `counted`: what the file has of its jobs."""
    if cluster_logs.is_log(table.columns):
        logged = cluster_logs.logged_jobs(table)
        _check_names(table, cluster_logs.NAME, counted)
        return elastic_trace(table.path, logged, reading.recipe, reading.seed, reading.profiles)
    layout = detect_format(table)
    jobs = [_job(row, layout) for row in table.rows]
    _check_names(table, "name", counted)
    return Trace(tuple(sorted(jobs, key=lambda job: job.arrival_s)))


def _check_names(table: CsvTable, column: str, counted: str) -> None:
    seen: dict[str, int] = {}
    for row in table.rows:
        name = row.text(column)
        if name in seen:
            other = f"{counted} {seen[name]}"
            raise InputError(row.at(column), name, f"a name of its own ({other} has it too)")
        seen[name] = row.line


def detect_format(table: CsvTable) -> TraceFormat:
    for layout in FORMATS:
        if layout.arrival in table.columns:
            return layout
    raise FileError(
        table.path,
        f"no column of arrival times (has {', '.join(table.columns)[:80]})",
        "a column 'arrival_s' (ours), 'time' (Sia, Pollux) or 'submission_time' (Rubick, ITP)",
    )


def dump_trace(trace: Trace) -> str:
    """The trace in our own format, as CSV; `read_trace` gives the same trace back."""
    out = io.StringIO()
    write_csv(trace.jobs, out)
    return out.getvalue()


def write_csv(jobs: Iterable[TraceJob], out: TextIO) -> int:
    """Write jobs as they come, and say how many there were."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(OWN_COLUMNS)
    count = 0
    for count, job in enumerate(jobs, start=1):  # noqa: B007
        writer.writerow(_cells(job))
    return count


def write_trace(jobs: Iterable[TraceJob], path: str | Path) -> int:
    """Write jobs in our own format, whole or not at all, and say how many there were.

    They are written as they come, so that a trace may be longer than memory.
    """
    file = Path(path)
    if file.suffix.lower() == PARQUET:
        _pyarrow(file)  # before anything is written
    elif file.suffix.lower() != CSV:
        raise InputError("trace", file.name, f"a file ending in {' or '.join(SUFFIXES)}")
    try:
        with drafted(file) as draft:
            return _write(jobs, draft, file)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise FileError(str(file), reason, "a file that can be written") from None


def _write(jobs: Iterable[TraceJob], draft: Path, file: Path) -> int:
    if file.suffix.lower() == PARQUET:
        return _write_parquet(jobs, draft, file)
    with draft.open("w", encoding="utf-8", newline="") as out:
        return write_csv(jobs, out)


def _cells(job: TraceJob) -> tuple[object, ...]:
    """As in `OWN_COLUMNS`; None is an empty cell, and numbers are written to the last digit."""
    return (
        job.name,
        job.arrival_s,
        job.application,
        job.gpus,
        job.batch_size,
        job.steps,
        job.plan,
        int(job.guaranteed),
        job.duration_s,
        None if job.priority == "normal" else job.priority,
    )


def _job(row: Row, layout: TraceFormat) -> TraceJob:
    return TraceJob(
        name=row.text("name"),
        arrival_s=row.number(layout.arrival, most=LATEST_S),
        application=row.text("application"),
        gpus=_whole(row, layout.gpus),
        batch_size=_whole(row, layout.batch_size),
        steps=_whole(row, layout.steps),
        plan=row.text(layout.plan) if layout.plan and row.has(layout.plan) else None,
        guaranteed=_flag(row, layout.guaranteed),
        duration_s=(
            row.number(layout.duration) if layout.duration and row.has(layout.duration) else None
        ),
        priority=_priority(row, layout.priority),
        line=row.line,
    )


def _priority(row: Row, column: str | None) -> Priority:
    if not column or not row.has(column):
        return "normal"
    said = row.text(column)
    for known in PRIORITIES:
        if said == known:
            return known
    raise InputError(row.at(column), said, f"one of {', '.join(PRIORITIES)}")


def _whole(row: Row, column: str | None) -> int | None:
    return row.whole(column, most=MOST_COUNTED) if column and row.has(column) else None


def _flag(row: Row, column: str | None) -> bool:
    if not column or not row.has(column):
        return False
    value = row.text(column).lower()
    if value not in ("0", "1", "true", "false"):
        raise InputError(row.at(column), value, "0 or 1")
    return value in ("1", "true")


class _ParquetRow(Row):
    """A row of a file that has no lines: it is counted from 1."""

    __slots__ = ()

    def at(self, column: str) -> str:
        return f"{self.path}, row {self.line}, column {column}"


def _pyarrow(path: Path) -> Any:
    """The optional package that reads and writes Parquet."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise FileError(
            str(path),
            "Parquet takes the package pyarrow, which is not installed",
            "a .csv file, or pip install 'boa-constrictor[parquet]'",
        ) from None
    return pyarrow


def _read_parquet(path: Path) -> CsvTable:
    """The table as text, so that the same checks and errors serve as for CSV."""
    arrow, name = _pyarrow(path), str(path)
    expected = "a readable Parquet file"
    try:
        with path.open("rb") as opened, arrow.parquet.ParquetFile(opened) as file:
            columns = tuple(file.schema_arrow.names)
            _check_parquet(name, columns, file.metadata.num_rows)
            known = [column for column in columns if column in _known_columns()]
            return CsvTable(name, columns, tuple(_parquet_rows(name, file, known)))
    except FileNotFoundError:
        raise FileError(name, "no such file", expected) from None
    except (arrow.ArrowException, OSError, ValueError) as broken:
        said = " ".join(str(broken).split())[:120]
        reason = getattr(broken, "strerror", None) or f"not Parquet ({said})"
        raise FileError(name, reason, expected) from None


def _check_parquet(name: str, columns: tuple[str, ...], rows: int) -> None:
    """Before any row is read: a few bytes may stand for many."""
    check_columns(name, columns, _required)
    if not 0 < rows <= MAX_ROWS:
        raise FileError(name, f"{rows:,} rows", f"from 1 to {MAX_ROWS:,} rows")


def _parquet_rows(name: str, file: Any, columns: list[str]) -> Iterator[Row]:
    line = 0
    for batch in file.iter_batches(batch_size=BATCH, columns=columns):
        cells = [["" if v is None else str(v) for v in batch[c].to_pylist()] for c in columns]
        for row in zip(*cells, strict=True):
            line += 1
            yield _ParquetRow(name, line, dict(zip(columns, row, strict=True)))


def _known_columns() -> set[str | None]:
    """Columns that some format has; others are not even read."""
    known: set[str | None] = {*REQUIRED, *cluster_logs.COLUMNS}
    for layout in FORMATS:
        known |= {layout.arrival, layout.gpus, layout.batch_size, layout.steps}
        known |= {layout.duration, layout.plan, layout.guaranteed, layout.priority}
    return known


def _write_parquet(jobs: Iterable[TraceJob], draft: Path, path: Path) -> int:
    arrow = _pyarrow(path)
    text, whole, real = arrow.string(), arrow.int64(), arrow.float64()
    kinds = (text, real, text, whole, whole, whole, text, arrow.bool_(), real, text)
    schema = arrow.schema(list(zip(OWN_COLUMNS, kinds, strict=True)))
    count, left = 0, iter(jobs)
    with arrow.parquet.ParquetWriter(draft, schema) as writer:
        while batch := [_cells(job) for job in islice(left, BATCH)]:
            columns = dict(zip(OWN_COLUMNS, zip(*batch, strict=True), strict=True))
            columns["guaranteed"] = tuple(map(bool, columns["guaranteed"]))
            try:
                writer.write_table(arrow.table(columns, schema=schema))
            except (arrow.ArrowException, OverflowError) as problem:
                reason = " ".join(str(problem).split())[:120]
                raise FileError(str(path), reason, "numbers that fit into 64 bits") from None
            count += len(batch)
    return count
