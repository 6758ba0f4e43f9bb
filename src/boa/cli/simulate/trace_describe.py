"""`boa trace describe`: what is in a trace."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.amounts import duration, percent
from boa.cli import options, shell
from boa.cli.console import (
    check_writable,
    console,
    emit_json,
    note,
    note_written,
    working,
    write_file,
)
from boa.cli.options import Json
from boa.cli.simulate.shared_options import TracePath
from boa.cli.simulate.trace_load import Load, least_gpus
from boa.cli.simulate.trace_reading import ReadingOptions, note_drawn
from boa.errors import InputError
from boa.plots.words import significant
from boa.units import SECONDS_PER_HOUR, GpuName

if TYPE_CHECKING:
    from boa.model.trace import Trace

WINDOWS = {60.0: "a minute", 600.0: "10 minutes", 3600.0: "an hour", 86400.0: "a day"}
"""The stretches (in seconds) of which the busiest is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Profiles that the load is computed from, and GPU types that it is counted in."""

    profiles: Annotated[
        Path | None,
        shell.Option(
            "--profiles",
            metavar="DIR",
            help="Measurements that the load is computed from. Without them the catalogue serves.",
        ),
    ] = None
    gpus: Annotated[
        str | None,
        shell.Option(
            "--gpus",
            metavar="T4,V100,...",
            help="GPU types that the load is counted in; T4, or A800 for Rubick's models.",
        ),
    ] = None

    def load(self, trace: "Trace") -> Load:
        gpus = None if self.gpus is None else _gpu_names(self.gpus)
        with working("computing the load"):
            return least_gpus(trace, self.profiles, gpus)


def describe(
    trace: TracePath,
    *,
    plot: Annotated[
        Path | None,
        options.plot("Draw arrivals over time and the mix (.png, .svg, .pdf, .html)."),
    ] = None,
    counting: Counting,
    reading: ReadingOptions,
    json: Json = False,
) -> None:
    """Show what is in a trace: rate, mix, bursts, and the GPUs it keeps busy.

    C² is the squared coefficient of variation of the times between arrivals:
    1 for a Poisson process, more for bursts. The load is the average number
    of GPUs in use when every job runs in its cheapest way; no plan uses fewer.

    [bold]Examples[/bold]
    [dim]$[/dim] boa trace describe sia.csv
    [dim]$[/dim] boa trace describe sia.csv --gpus A100 --plot sia.png --json
    [dim]$[/dim] boa trace describe cluster04.csv --from-h 240 --hours 48
    """
    check_writable(plot, "--plot")
    read = reading.read(trace, counting.profiles)
    load = counting.load(read)
    document = description(read, load)
    if plot is not None:
        from boa.plots.trace import trace_picture

        with working("drawing"):
            write_file(plot, trace_picture(read, plot.suffix), "--plot")
    if json:
        emit_json(document)
    else:
        _print(document)
    note_drawn(read)
    if load.missing:
        note(f"no load: {load.missing}")
    note_written({"picture": plot})


def description(trace: "Trace", load: Load) -> dict[str, Any]:
    """The JSON document of `boa trace describe`."""
    span = trace.span_s
    rate = sum(trace.arrivals_per_hour().values()) if span > 0 else None
    return {
        "jobs": len(trace.jobs),
        "span_s": span,
        "arrivals_per_hour": rate,
        "cv2": trace.interarrival_cv2(),
        "peak_jobs_per_hour": trace.peak_jobs(SECONDS_PER_HOUR),
        "peaks": [{"window_s": w, "jobs": trace.peak_jobs(w)} for w in WINDOWS if w <= span],
        "load_gpus": load.gpus,
        "gpu_types": list(load.types),
        "applications": [asdict(portion) for portion in trace.mix()],
        "drawn": None if trace.drawn is None else asdict(trace.drawn),
    }


def _gpu_names(text: str) -> tuple[GpuName, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise InputError("--gpus", text, "GPU types, each once, such as T4,V100")
    return names


def _print(document: Mapping[str, Any]) -> None:
    from boa.cli.markup import escape
    from boa.cli.tables import Table

    out = console()
    for name, said in _lines(document):
        out.print(f"[bold]{name:<8}[/bold]{escape(said)}")
    out.print()
    table = Table(gap=3)
    table.add_column("application", no_wrap=True, max_width=40)
    for column in ("jobs", "of all", "GPUs asked for"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in document["applications"]:
        asked = "" if row["mean_gpus"] is None else significant(row["mean_gpus"])
        table.add_row(escape(row["name"]), f"{row['jobs']:,}", percent(row["share"]), asked)
    out.print(table)


def _lines(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    rate, cv2, load = (document[key] for key in ("arrivals_per_hour", "cv2", "load_gpus"))
    per_hour = "" if rate is None else f", {significant(rate)} per hour"
    yield "jobs", f"{document['jobs']:,} in {duration(document['span_s'])}{per_hour}"
    if cv2 is not None:
        yield "C²", f"{significant(cv2)} (of the times between arrivals; 1 is Poisson)"
    if document["peaks"]:
        most = [f"{peak['jobs']:,} in {WINDOWS[peak['window_s']]}" for peak in document["peaks"]]
        yield "busiest", ", ".join(most)
    if load is not None:
        types = ", ".join(document["gpu_types"])
        yield "load", f"{significant(load)} GPUs ({types}) at the least"
