"""Logs of clusters: Microsoft's ITP 2021, one CSV file per cluster.

Its columns are `job_id, submission_time, duration, num_gpu`: seconds since a date that nobody
tells, seconds, GPUs.
"""

from boa.catalogue.elastic_jobs import LoggedJob
from boa.catalogue.tables import CsvTable

NAME = "job_id"
COLUMNS = (NAME, "submission_time", "duration", "num_gpu")
TELLING = ("job_id", "num_gpu")
"""Columns that no other format has: either tells a log."""


def is_log(columns: tuple[str, ...]) -> bool:
    return "application" not in columns and any(name in columns for name in TELLING)


def logged_jobs(table: CsvTable) -> list[LoggedJob]:
    """All jobs, in the file's order; they arrive at seconds since the first submission.

    Some clusters join weeks after the others: to count from the common date would thin them out.
    """
    submitted = [row.number("submission_time") for row in table.rows]
    first = min(submitted)
    return [
        LoggedJob(
            name=row.text(NAME),
            arrival_s=time - first,
            duration_s=row.number("duration"),
            gpus=row.whole("num_gpu"),
            line=row.line,
        )
        for row, time in zip(table.rows, submitted, strict=True)
    ]
