"""A measured table: printed for a person, kept as JSON for a comparison."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from rich.console import Console

Cell: TypeAlias = str | float | int | None


@dataclass
class Measured:
    """Rows of named figures. A figure that could not be measured is text that says why."""

    title: str
    rows: list[dict[str, Cell]] = field(default_factory=list)
    note: str = ""

    def add(self, **figures: Cell) -> None:
        self.rows.append(figures)


def machine() -> dict[str, str | int]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def show(table: Measured, console: "Console") -> None:
    from rich.table import Table as RichTable  # not on machines that only lend their GPU

    shown = RichTable(title=table.title, title_justify="left", caption=table.note or None)
    columns = list(dict.fromkeys(name for row in table.rows for name in row))
    for name in columns:
        is_text = all(isinstance(row.get(name), str) for row in table.rows)
        shown.add_column(name.replace("_", " "), justify="left" if is_text else "right")
    for row in table.rows:
        shown.add_row(*(_text(name, row.get(name)) for name in columns))
    console.print(shown)
    console.print(f"[dim]{_where(machine())}[/dim]\n")


def show_plainly(table: Measured) -> None:
    """The same with nothing but `print`."""
    columns = list(dict.fromkeys(name for row in table.rows for name in row))
    lines = [columns, *([_text(name, row.get(name)) for name in columns] for row in table.rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
    print(f"\n{table.title}")
    for line in lines:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))
    print(f"{table.note}\n{_where(machine())}\n", flush=True)


def _where(of: dict[str, str | int]) -> str:
    return f"{of['date']}, {of['processor']}, {of['cores']} cores, Python {of['python']}"


def _text(name: str, value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if name.endswith(("gap", "loss", "above")):
        return f"{round(value, 6) + 0.0:.2%}"  # never −0.00 %
    return f"{value:,d}" if isinstance(value, int) else f"{value:,.4g}"


def write(path: Path, tables: Sequence[Measured], **more: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = {
        "machine": {**machine(), **more},
        "tables": [{"title": t.title, "note": t.note, "rows": t.rows} for t in tables],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
