"""`boa workload`: make a workload file from a trace, or see what is in one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.amounts import dollars, duration
from boa.cli import options, parsers, shell
from boa.cli.console import check_writable, console, emit_json, note, working, write_file
from boa.cli.options import Json, Profiles, WorkloadPath
from boa.cli.simulate.trace_reading import ReadingOptions, naming_reading_flags
from boa.errors import InputError, UsageError
from boa.units import GpuName, Seconds, UsdPerHour

if TYPE_CHECKING:
    from boa.catalogue.reading import Reading
    from boa.model.workload import JobClass, Workload

app = shell.Group("workload", "Make a workload file from a trace, or see what is in one.")


def _names(text: str) -> list[GpuName]:
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) != len(names):
        raise InputError("--gpus", text, "GPU types, each once, such as T4,V100,A100")
    return names


def _prices(text: str) -> dict[GpuName, UsdPerHour]:
    read = parsers.money("--prices")
    prices = {}
    for part in text.split(","):
        name, equals, price = part.partition("=")
        if not equals or not name.strip():
            raise InputError("--prices", text, "a price per GPU type, such as T4=1.09,A100=3.4")
        prices[name.strip()] = read(price)
    return prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimating:
    """GPU types, profiles and figures that a workload is estimated from."""

    gpus: Annotated[
        str,
        shell.Option(
            "--gpus",
            metavar="T4,V100,...",
            help="GPU types that can be rented. One alone costs 1 per GPU-hour: a budget then "
            "counts GPUs.",
        ),
    ]
    profiles: Profiles = None
    prices: Annotated[
        str | None,
        shell.Option(
            "--prices",
            metavar="T4=USD,...",
            help="USD per GPU-hour, instead of list prices.",
        ),
    ] = None
    rescale_s: Annotated[
        Seconds | None,
        shell.Option(
            "--rescale-s",
            metavar="S",
            parser=parsers.number("--rescale-s", "a finite number of seconds >= 0", zero=True),
            help="Rescaling time of every class, instead of each model's own.",
        ),
    ] = None
    slowdown: Annotated[
        str | None,
        options.choice("--slowdown", options.SLOWDOWNS, "Per-model calibration: Sia's, or none."),
    ] = None
    measured: Annotated[
        bool,
        shell.Option(
            "--measured",
            help="Speeds from the measured step times themselves, as the simulator runs them, "
            "instead of from the model fitted to them.",
        ),
    ] = False

    def workload(self, trace: Path, reading: "Reading") -> "Workload":
        from boa.catalogue import workload_from_files

        names = _names(self.gpus)
        given: Any = {
            "slowdown": self.slowdown,
            "rescale": self.rescale_s,
            "prices": None if self.prices is None else _prices(self.prices),
        }
        try:
            if self.measured:
                return _measured(trace, reading, names, given)
            with working("fitting the profiles"):
                return workload_from_files(trace, self.profiles, names, **given, reading=reading)
        except InputError as wrong:
            if wrong.field.partition(",")[0] == "trace":
                raise wrong.inside(str(trace)) from None
            raise


@app.add("from-trace")
def from_trace(
    trace: Annotated[
        Path,
        shell.Argument(
            metavar="TRACE",
            help="CSV of jobs: ours (name, arrival_s, application), Sia's, Pollux's, Rubick's, or "
            "the log of a cluster of Microsoft's ITP.",
        ),
    ],
    estimating: Estimating,
    reading: ReadingOptions,
    output: Annotated[
        Path | None,
        shell.Option("-o", "--output", metavar="FILE", help="Write the workload file here."),
    ] = None,
    json: Json = False,
) -> None:
    """Estimate a workload file from a trace and profiles.

    Arrival rates and the mix of classes follow the trace; speedups per epoch
    and width are fitted to the measured profiles. The file (YAML) goes to
    stdout, or to -o FILE.

    [bold]Examples[/bold]
    [dim]$[/dim] boa workload from-trace sia.csv --profiles traces --gpus T4,V100
    [dim]$[/dim] boa workload from-trace mine.csv --gpus T4,A100 -o jobs.yaml
    [dim]$[/dim] boa workload from-trace mine.csv --profiles p --gpus T4 --measured
    [dim]$[/dim] boa workload from-trace cluster04.csv --gpus T4 --hours 168
    """
    from boa.formats.workload import dump_workload

    check_writable(output, "--output")
    with naming_reading_flags():
        made = estimating.workload(trace, reading.reading(estimating.profiles))
    text = dump_workload(made)
    if output is not None:
        write_file(output, text, "--output")
        note(f"workload written to {output}: {len(made.classes)} classes")
    if json:
        emit_json(_as_json(text))
    elif output is None:
        print(text, end="")


def _measured(
    trace: Path, reading: "Reading", gpus: list[GpuName], given: Mapping[str, Any]
) -> "Workload":
    """The workload that the simulator would plan for if it knew every job's true speed."""
    from boa.catalogue.traces import read_trace
    from boa.sim.knowledge import ExpectedArrivals, Knowledge
    from boa.sim.run import world_of
    from boa.sim.settings import Settings

    if reading.profiles is None:
        raise UsageError("--measured needs --profiles: the catalogue keeps no measurements")
    with working("reading the profiles"):
        world = world_of(read_trace(trace, reading), reading.profiles, gpus, **given)
        known = Knowledge(
            world.truths,
            world.gpu_types,
            ExpectedArrivals.of(world.trace),
            Settings(learning="perfect"),
        )
        return replace(known.workload(), notes=("Speeds as measured, not fitted.",))


def _as_json(text: str) -> Any:
    import yaml

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@app.add("describe")
def describe(workload: WorkloadPath, json: Json = False) -> None:
    """Show what is in a workload file: classes, rates, work, load and GPU types.

    The load is the arrival rate times the work: how many GPUs of speed 1 the
    class keeps busy.

    [bold]Example[/bold]
    [dim]$[/dim] boa workload describe jobs.yaml
    """
    read = options.read_workload(workload)
    document = description(read)
    if json:
        emit_json(document)
    else:
        _print(read, document)


def description(workload: "Workload") -> dict[str, Any]:
    return {
        "arrivals_per_hour": workload.arrivals_per_hour,
        "load": sum(_load(c) for c in workload.classes),
        "gpu_types": [
            {"name": g.name, "price": g.price, "gpus_per_node": g.gpus_per_node}
            for g in workload.gpu_types.values()
        ],
        "classes": [
            {
                "name": c.name,
                "arrivals_per_hour": c.arrivals_per_hour,
                "share": c.arrivals_per_hour / workload.arrivals_per_hour,
                "weight": c.weight,
                "epochs": len(c.epochs),
                "work_s": _work(c),
                "load": _load(c),
                "rescale_s": c.rescale_s,
                "max_jct_s": c.max_jct_s,
                "widths": _widths(workload, c),
            }
            for c in workload.classes
        ],
    }


def _work(job_class: "JobClass") -> float:
    return sum(epoch.work for epoch in job_class.epochs)


def _load(job_class: "JobClass") -> float:
    return job_class.arrivals_per_hour / 3600.0 * _work(job_class)


def _widths(workload: "Workload", job_class: "JobClass") -> dict[GpuName, list[int]]:
    """Smallest and largest width per GPU type that can run any of it."""
    found = {}
    for gpu in workload.gpu_types:
        bases = [job_class.base_on(gpu, epoch) for epoch in job_class.epochs]
        usable = [base for base in bases if base is not None]
        if usable:
            found[gpu] = [min(usable), job_class.max_on(gpu)]
    return found


def _print(workload: "Workload", document: Mapping[str, Any]) -> None:
    from boa.amounts import percent
    from boa.cli.markup import escape
    from boa.cli.tables import Table
    from boa.plots.words import Money, significant

    out, money = console(), Money.of(workload)
    for gpu in workload.gpu_types.values():
        price = "" if money.counts_gpus else f"  {dollars(gpu.price)} per GPU-hour"
        out.print(f"[bold]{escape(gpu.name):<14}[/bold]{price}  {gpu.gpus_per_node} per node")
    out.print()
    table = Table()
    table.add_column("class", no_wrap=True, max_width=40)
    for column in ("jobs/h", "of all", "epochs", "work", "load", "rescaling"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("GPUs")
    for row in document["classes"]:
        table.add_row(
            escape(row["name"]),
            significant(row["arrivals_per_hour"]),
            percent(row["share"]),
            f"{row['epochs']:,}",
            duration(row["work_s"]),
            significant(row["load"]),
            duration(row["rescale_s"]),
            ", ".join(f"{low}–{high} {escape(g)}" for g, (low, high) in row["widths"].items()),
        )
    out.print(table)
    rate = significant(document["arrivals_per_hour"])
    load = significant(document["load"])
    out.print(f"\n{rate} jobs/h keep {load} GPUs of speed 1 busy.")
