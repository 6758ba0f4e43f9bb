"""`boa trace convert`: any trace in our own format; and how traces are written at all."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from boa.amounts import duration
from boa.cli import shell
from boa.cli.console import check_writable, emit_json, note, working
from boa.cli.options import Json, Profiles
from boa.cli.simulate.shared_options import TracePath
from boa.cli.simulate.trace_reading import ReadingOptions, note_drawn
from boa.errors import InputError


def _trace_file(text: Any) -> Path:
    """A file whose suffix says which kind of trace it is to be."""
    from boa.catalogue.traces import SUFFIXES

    path = Path(text)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError("--output", str(text), f"a file ending in {' or '.join(SUFFIXES)}")
    return path


def trace_output(help: str) -> shell.Option:
    return shell.Option("-o", "--output", metavar="FILE", parser=_trace_file, help=help)


def convert(
    trace: TracePath,
    output: Annotated[Path, trace_output("Write our own format here (.csv, .parquet).")],
    reading: ReadingOptions,
    profiles: Profiles = None,
    json: Json = False,
) -> None:
    """Turn any trace that can be read, or a part of it, into our own format.

    Nothing is lost, except of a cluster's log: its jobs become elastic ones,
    whose models are drawn by the GPU-hours that the jobs took, and whose
    widths and batch sizes are those that users of these models would ask for.
    Parquet takes the package pyarrow: pip install 'boa-constrictor\\[parquet]'.

    [bold]Examples[/bold]
    [dim]$[/dim] boa trace convert rubick.csv -o mine.csv
    [dim]$[/dim] boa trace convert mine.csv -o mine.parquet
    [dim]$[/dim] boa trace convert cluster04.csv --from-h 240 --hours 48 -o itp.csv
    """
    from boa.catalogue.traces import write_trace

    check_writable(output, "--output")
    read = reading.read(trace, profiles)
    with working("converting"):
        count = write_trace(read.jobs, output)
    drawn = {"drawn": None if read.drawn is None else asdict(read.drawn)}
    tell_written(output, count, read.span_s, json, drawn)
    note_drawn(read)


def tell_written(
    output: Path, count: int, span_s: float, json: bool, more: Mapping[str, Any] | None = None
) -> None:
    if json:
        emit_json({"file": str(output), "jobs": count, "span_s": span_s, **(more or {})})
    note(f"trace written to {output}: {count:,} jobs in {duration(span_s)}")
