"""`boa trace convert`: any trace in our own format; and how traces are written at all."""

from pathlib import Path
from typing import Annotated, Any

from boa.cli import shell
from boa.cli.console import check_writable, emit_json, note, working
from boa.cli.options import Json
from boa.cli.simulate.shared_options import TracePath
from boa.errors import InputError
from boa.plots.words import duration


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
    json: Json = False,
) -> None:
    """Turn any trace that can be read into our own format. Nothing is lost.

    Parquet takes the package pyarrow: pip install 'boa-constrictor\\[parquet]'.

    [bold]Examples[/bold]
    [dim]$[/dim] boa trace convert rubick.csv -o mine.csv
    [dim]$[/dim] boa trace convert mine.csv -o mine.parquet
    """
    from boa.catalogue.traces import read_trace, write_trace

    check_writable(output, "--output")
    with working("converting"):
        read = read_trace(trace)
        count = write_trace(read.jobs, output)
    tell_written(output, count, read.span_s, json)


def tell_written(output: Path, count: int, span_s: float, json: bool) -> None:
    if json:
        emit_json({"file": str(output), "jobs": count, "span_s": span_s})
    note(f"trace written to {output}: {count:,} jobs in {duration(span_s)}")
