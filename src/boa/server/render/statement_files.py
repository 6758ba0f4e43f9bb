"""A statement as a file for a spreadsheet: CSV, a row per line, in which no name is a formula."""

import csv
from io import StringIO

from boa.api.reports import Statement

HEAD = (
    *("month", "state", "payer", "team", "user", "class"),
    *("jobs", "gpu_hours", "held_usd", "idle_usd", "booting_usd", "total_usd"),
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
"""Beginnings at which a spreadsheet takes a cell for something to work out or to run."""


def as_csv(found: Statement) -> str:
    """Rows add up to the bill; there is no row with the total, which a sum would count twice."""
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow(HEAD)
    state = "complete" if found["complete"] else "in progress"
    for line in found["lines"]:
        names = (line["payer"], line["team"], line["user"], line["job_class"])
        money = (line["held_usd"], line["idle_usd"], line["booting_usd"], line["total_usd"])
        writer.writerow(
            (
                *(found["month"], state),
                *(harmless(name or "") for name in names),
                *(line["jobs"], f"{line['gpu_hours']:.4f}"),
                *(f"{amount:.2f}" for amount in money),
            )
        )
    return out.getvalue()


def harmless(name: str) -> str:
    """As text, where a spreadsheet would take it for a formula: an apostrophe before it, which
    spreadsheets do not show."""
    beginning = name.lstrip(" \u00a0\u3000")
    return f"'{name}" if beginning.startswith(_FORMULA) else name
