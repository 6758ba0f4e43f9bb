"""Readers of traces: our own CSV, and the workloads of the Sia, Pollux and Rubick artifacts.

Our own has the columns `name, arrival_s, application` and, where known, `gpus, batch_size,
steps, plan, guaranteed, duration_s`. A cell left empty says that it is not known.
"""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from boa.catalogue.tables import CsvTable, Row, read_csv
from boa.errors import FileError, InputError
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
)


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
)
FORMATS = (OWN, RUBICK, SIA)


def read_trace(path: str | Path) -> Trace:
    """A trace from a CSV file; its format is told by its header."""
    table = read_csv(Path(path), required=("name", "application"))
    layout = detect_format(table)
    jobs = [_job(row, layout) for row in table.rows]
    seen: dict[str, int] = {}
    for job, row in zip(jobs, table.rows, strict=True):
        if job.name in seen:
            expected = f"a name of its own (line {seen[job.name]} has it too)"
            raise InputError(row.at("name"), job.name, expected)
        seen[job.name] = row.line
    return Trace(tuple(sorted(jobs, key=lambda job: job.arrival_s)))


def detect_format(table: CsvTable) -> TraceFormat:
    for layout in FORMATS:
        if layout.arrival in table.columns:
            return layout
    raise FileError(
        table.path,
        f"no column of arrival times (has {', '.join(table.columns)[:80]})",
        "a column 'arrival_s' (ours), 'time' (Sia, Pollux) or 'submission_time' (Rubick)",
    )


def dump_trace(trace: Trace) -> str:
    """The trace in our own format; `read_trace` gives the same trace back."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(OWN_COLUMNS)
    for job in trace.jobs:
        cells = [getattr(job, column) for column in OWN_COLUMNS]
        writer.writerow(["" if v is None else int(v) if isinstance(v, bool) else v for v in cells])
    return out.getvalue()


def _job(row: Row, layout: TraceFormat) -> TraceJob:
    return TraceJob(
        name=row.text("name"),
        arrival_s=row.number(layout.arrival),
        application=row.text("application"),
        gpus=_whole(row, layout.gpus),
        batch_size=_whole(row, layout.batch_size),
        steps=_whole(row, layout.steps),
        plan=row.text(layout.plan) if layout.plan and row.has(layout.plan) else None,
        guaranteed=_flag(row, layout.guaranteed),
        duration_s=(
            row.number(layout.duration) if layout.duration and row.has(layout.duration) else None
        ),
        line=row.line,
    )


def _whole(row: Row, column: str | None) -> int | None:
    return row.whole(column) if column and row.has(column) else None


def _flag(row: Row, column: str | None) -> bool:
    if not column or not row.has(column):
        return False
    value = row.text(column).lower()
    if value not in ("0", "1", "true", "false"):
        raise InputError(row.at(column), value, "0 or 1")
    return value in ("1", "true")
