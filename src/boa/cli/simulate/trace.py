"""`boa trace`: make traces, see what is in one, and turn any into our own format."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from boa.cli import parsers, shell
from boa.cli.console import check_writable, console, emit_json, note, working, write_file
from boa.cli.options import Json
from boa.errors import InputError, UsageError
from boa.plots.words import duration, percent, significant
from boa.units import SECONDS_PER_HOUR, GpuName

if TYPE_CHECKING:
    from boa.catalogue.arrivals import TraceSpec
    from boa.model.trace import Trace, TraceJob

NEWTRACE_JOBS = 960
WINDOWS = {60.0: "a minute", 600.0: "10 minutes", 3600.0: "an hour", 86400.0: "a day"}
"""The stretches (in seconds) of which the busiest is shown."""

app = shell.Group("trace", "Make a trace, see what is in one, or turn one into our own format.")
TracePath: TypeAlias = Annotated[
    Path,
    shell.Argument(
        metavar="TRACE",
        help="Jobs in CSV: ours (name, arrival_s, application), Sia's, Pollux's or Rubick's; or "
        "any of these in Parquet.",
    ),
]


def _output(meaning: str) -> Any:
    return shell.Option("-o", "--output", metavar="FILE", parser=_trace_file, help=meaning)


def _mix(text: Any) -> dict[str, float]:
    read = parsers.number("--mix", "a share > 0 per application, such as cifar10=0.7,bert=0.3")
    mix: dict[str, float] = {}
    for part in str(text).split(","):
        name, equals, share = part.partition("=")
        if not equals or not name.strip() or name.strip() in mix:
            raise InputError("--mix", text, "each application once, such as cifar10=0.7,bert=0.3")
        mix[name.strip()] = read(share)
    return mix


def _rate(text: Any) -> float:
    from boa.catalogue.arrivals import RATE_EXPECTED, check_rate

    return check_rate(parsers.number("--rate", RATE_EXPECTED)(text), "--rate")


def _cv2(text: Any) -> float:
    from boa.catalogue.arrivals import CV2_EXPECTED, check_cv2

    return check_cv2(parsers.number("--cv2", CV2_EXPECTED)(text), "--cv2")


def _trace_file(text: Any) -> Path:
    """A file whose suffix says which kind of trace it is to be."""
    from boa.catalogue.traces import SUFFIXES

    path = Path(text)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError("--output", str(text), f"a file ending in {' or '.join(SUFFIXES)}")
    return path


@app.add("generate")
def generate(
    like: Annotated[
        Path | None,
        shell.Option(
            "--like",
            metavar="TRACE",
            help="Draw whole jobs from this trace; its rate and number of jobs, unless given.",
        ),
    ] = None,
    mix: Annotated[
        Any,
        shell.Option(
            "--mix",
            metavar="APP=SHARE,...",
            parser=_mix,
            help="Applications and their shares, in any unit. Without it those of newTrace.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        shell.Option("--rate", metavar="JOBS/H", parser=_rate, help="Jobs per hour; 20."),
    ] = None,
    jobs: Annotated[
        int | None,
        shell.Option(
            "--jobs", metavar="N", parser=parsers.whole("--jobs", 1), help="How many jobs; 960."
        ),
    ] = None,
    hours: Annotated[
        float | None,
        shell.Option(
            "--hours",
            metavar="H",
            parser=parsers.number("--hours", "a finite number of hours > 0, such as 48"),
            help="All jobs of so many hours, instead of a number of jobs.",
        ),
    ] = None,
    cv2: Annotated[
        float,
        shell.Option(
            "--cv2",
            metavar="C2",
            parser=_cv2,
            help="Squared coefficient of variation of the times between arrivals. 1: Poisson. "
            "More: bursts, shorter and more intense as it grows (newTrace has 2.4 to 2.8).",
        ),
    ] = 1.0,
    seed: Annotated[
        int,
        shell.Option(
            "--seed",
            metavar="N",
            parser=parsers.whole("--seed", 0),
            help="The same, the same jobs.",
        ),
    ] = 0,
    output: Annotated[
        Path | None,
        _output("Write the trace here (.csv, .parquet); without it, CSV to stdout."),
    ] = None,
    json: Json = False,
) -> None:
    """Draw a synthetic trace: a mix of jobs that arrive evenly or in bursts.

    The long-run rate is as asked whatever the burstiness. Jobs are written
    as they are drawn, so a trace may have any length.

    [bold]Examples[/bold]
    [dim]$[/dim] boa trace generate --cv2 2.65 -o bursty.csv
    [dim]$[/dim] boa trace generate --mix cifar10=0.7,bert=0.3 --rate 40 --hours 24
    [dim]$[/dim] boa trace generate --like sia.csv --jobs 1000000 -o long.parquet --json
    """
    if like is not None and mix is not None:
        raise UsageError("--like and --mix both say which jobs arrive: give one of them")
    if jobs is not None and hours is not None:
        raise UsageError("--jobs and --hours both say how long the trace is: give one of them")
    if json and output is None:
        raise UsageError("--json needs -o FILE: without it the trace itself goes to stdout")
    check_writable(output, "--output")
    spec = _spec(like, mix, {"jobs": jobs, "hours": hours, "cv2": cv2}, rate)
    _generate(spec, seed, output, json)


def _spec(
    like: Path | None, mix: Mapping[str, float] | None, given: Any, rate: float | None
) -> "TraceSpec":
    from boa.catalogue.arrivals import spec_like, spec_of_mix

    if like is not None:
        from boa.catalogue.traces import read_trace

        with working("reading the trace"):
            read = read_trace(like)
        try:
            return spec_like(read, arrivals_per_hour=rate, **given)
        except InputError as wrong:
            raise wrong.inside(str(like)) from None
    if given["jobs"] is None and given["hours"] is None:
        given["jobs"] = NEWTRACE_JOBS
    chosen: Any = {} if mix is None else {"mix": mix}
    chosen |= {} if rate is None else {"arrivals_per_hour": rate}
    return spec_of_mix(**chosen, **given)


class _Tally:
    """Jobs on their way to a file: how many, and when the last arrived."""

    def __init__(self, jobs: "Iterable[TraceJob]") -> None:
        self._jobs = jobs
        self.count, self.span_s = 0, 0.0

    def __iter__(self) -> "Iterator[TraceJob]":
        for job in self._jobs:
            self.count += 1
            self.span_s = job.arrival_s
            yield job


def _generate(spec: "TraceSpec", seed: int, output: Path | None, json: bool) -> None:
    from boa.catalogue.arrivals import synthetic_jobs
    from boa.catalogue.traces import write_csv, write_trace

    if next(synthetic_jobs(spec, seed), None) is None:
        rate = f"at {spec.arrivals_per_hour:g} jobs per hour none arrives with this seed"
        raise InputError("--hours", spec.hours, f"more hours; {rate}")
    jobs = _Tally(synthetic_jobs(spec, seed))
    if output is None:
        write_csv(jobs, sys.stdout)
        return
    with working("drawing jobs"):
        write_trace(jobs, output)
    _wrote(output, jobs.count, jobs.span_s, json)


def _wrote(output: Path, count: int, span_s: float, json: bool) -> None:
    if json:
        emit_json({"file": str(output), "jobs": count, "span_s": span_s})
    note(f"trace written to {output}: {count:,} jobs in {duration(span_s)}")


@app.add("convert")
def convert(
    trace: TracePath,
    output: Annotated[Path, _output("Write our own format here (.csv, .parquet).")],
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
    _wrote(output, count, read.span_s, json)


@app.add("describe")
def describe(
    trace: TracePath,
    plot: Annotated[
        Path | None,
        shell.Option(
            "--plot",
            metavar="FILE",
            parser=parsers.picture("--plot"),
            help="Draw arrivals over time and the mix (.png, .svg, .pdf, .html).",
        ),
    ] = None,
    profiles: Annotated[
        Path | None,
        shell.Option(
            "--profiles",
            metavar="DIR",
            help="Measurements that the load is computed from. Without them the catalogue serves.",
        ),
    ] = None,
    gpus: Annotated[
        str | None,
        shell.Option(
            "--gpus",
            metavar="T4,V100,...",
            help="GPU types that the load is counted in; T4, or A800 for Rubick's models.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show what is in a trace: rate, mix, bursts, and the GPUs it keeps busy.

    C² is the squared coefficient of variation of the times between arrivals:
    1 for a Poisson process, more for bursts. The load is the average number
    of GPUs in use when every job runs in its cheapest way; no plan uses fewer.

    [bold]Examples[/bold]
    [dim]$[/dim] boa trace describe sia.csv
    [dim]$[/dim] boa trace describe sia.csv --gpus A100 --plot sia.png --json
    """
    from boa.catalogue.traces import read_trace

    check_writable(plot, "--plot")
    with working("reading the trace"):
        read = read_trace(trace)
    with working("computing the load"):
        load = least_gpus(read, profiles, None if gpus is None else _gpu_names(gpus))
    document = description(read, load)
    if plot is not None:
        from boa.plots.trace import trace_picture

        with working("drawing"):
            write_file(plot, trace_picture(read, plot.suffix), "--plot")
    if json:
        emit_json(document)
    else:
        _print(document)
    if load.missing:
        note(f"no load: {load.missing}")
    if plot is not None:
        note(f"picture written to {plot}")


def description(trace: "Trace", load: "Load") -> dict[str, Any]:
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
    }


@dataclass(frozen=True, slots=True)
class Load:
    """The least average number of GPUs in use, or why it is not known."""

    gpus: float | None
    types: tuple[GpuName, ...]
    missing: str = ""


def least_gpus(trace: "Trace", profiles: Path | None, gpus: tuple[GpuName, ...] | None) -> Load:
    """Σ λ_i times the fewest GPU-hours (rescaling included) that a job of class i can take.

    Every GPU counts the same, whatever its price. Applications that nobody has measured leave
    the load unknown; a GPU type that nobody has measured is an error, for it was asked for.
    """
    from boa.catalogue import known_figures, read_profiles, workload_from_trace
    from boa.catalogue.formats import RUBICK_GPU
    from boa.solver.planner import frontier

    wanted = set(trace.counts())
    if profiles is not None:
        learned = read_profiles(profiles, applications=wanted, gpus=gpus)
    else:
        sia, rubick = known_figures("sia"), known_figures("rubick")
        unsaid = gpus is None and not wanted <= set(sia.applications)
        is_rubick = gpus == (RUBICK_GPU,) or (unsaid and wanted <= set(rubick.applications))
        learned = rubick if is_rubick else sia
    names = gpus or learned.gpu_names[:1]
    for name in names:
        if name not in learned.gpu_names:
            raise InputError("--gpus", name, f"one of {', '.join(learned.gpu_names)}")
    if unknown := sorted(wanted - set(learned.applications)):
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        return Load(None, names, f"there are no profiles of {', '.join(unknown[:3])}{more}")
    try:
        workload = workload_from_trace(trace, learned, names, prices=dict.fromkeys(names, 1.0))
    except InputError as wrong:  # no steps, no rate, no measurement of a model on these types
        return Load(None, names, str(wrong))
    return Load(frontier(workload).cheapest, names)


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
