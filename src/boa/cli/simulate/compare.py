"""`boa compare`: policies against each other on one trace, each over its own knob."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.cli import options, parsers, shell
from boa.cli.console import check_outputs, emit_json, note_written, working, write_file
from boa.cli.options import Json, Processes
from boa.cli.simulate import shared_options
from boa.cli.simulate.physics_words import physics_line
from boa.cli.simulate.shared_options import KnowledgeOptions, Physics, Renting, TracePath
from boa.errors import InputError
from boa.model.policies import POLICIES, policies_with
from boa.units import GpuName

if TYPE_CHECKING:
    from boa.sim.run import World
    from boa.sim.sweep import Asked, PointOutcome, SweepGrid

CLUSTERS = "clusters, such as 16,32 or T4=16+A100=2,T4=32+A100=4"
CSV_KEYS = (
    "jobs",
    "average_jct_s",
    "p50_jct_s",
    "p95_jct_s",
    "p99_jct_s",
    "makespan_s",
    "gpu_hours",
    "average_gpus",
    "spend_per_hour",
    "rented_gpus",
    "rented_spend_per_hour",
    "bill_per_hour",
    "idle_spend_per_hour",
    "booting_spend_per_hour",
    "bound_jct_s",
    "jct_over_bound",
    "rescalings_per_job",
    "rescaling_s_per_job",
    "average_efficiency",
    "average_queueing_s",
    "wall_s",
)


def _policies(text: Any) -> list[str]:
    one = parsers.one_of("--policies", tuple(POLICIES))
    return parsers.listed("--policies", one, "policies, such as boa,pollux-autoscale")(text)


def _cluster(text: str) -> Mapping[GpuName, int] | int:
    """T4=16+A100=2; or a number of nodes, where there is but one type."""
    count = shared_options.node_count("--nodes-list")
    if "=" not in text:
        return count(text)
    read: Any = parsers.by_type("--nodes-list", count, CLUSTERS)
    return read(text.replace("+", ","))  # type: ignore[no-any-return]


def _list_of(option: str, metavar: str, each: Any, expected: str, help: str) -> shell.Option:
    parser = parsers.listed(option, each, expected)
    return shell.Option(option, metavar=metavar, parser=parser, help=help)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeps:
    """Policies, and what each is swept over."""

    policies: Annotated[
        Sequence[str],
        shell.Option(
            "--policies",
            metavar="P,P,...",
            parser=_policies,
            help=f"Of {', '.join(POLICIES)}.",
        ),
    ]
    budgets: Annotated[
        Sequence[float] | None,
        _list_of(
            "--budgets",
            "USD,USD,...",
            parsers.money("--budgets"),
            "budgets per hour, such as 100,140,200",
            "Of boa; fixed clusters are about as large, unless --nodes-list says otherwise.",
        ),
    ] = None
    targets: Annotated[
        Sequence[float] | None,
        _list_of(
            "--targets",
            "C,C,...",
            shared_options.target("--targets"),
            "efficiencies, such as 0.3,0.5,0.7",
            "Target efficiencies of the autoscaled rivals; 0.3 to 0.9 in four steps.",
        ),
    ] = None
    nodes_list: Annotated[
        Sequence[Mapping[GpuName, int] | int] | None,
        _list_of(
            "--nodes-list",
            "N,N,...",
            _cluster,
            CLUSTERS,
            f"Clusters of {', '.join(policies_with('nodes'))}, in nodes: 16,32 for one GPU type, "
            "T4=16+A100=2,T4=32+A100=4 for several.",
        ),
    ] = None
    widths: Annotated[
        Sequence[int] | None,
        _list_of(
            "--widths",
            "K,K,...",
            parsers.whole("--widths", 1),
            "widths, such as 1,4,16",
            "Widths of fixed; 1,2,4,8,16.",
        ),
    ] = None

    knobs: Annotated[
        Sequence[float] | None,
        _list_of(
            "--knobs",
            "X,X,...",
            shared_options.own_knob("--knobs"),
            "numbers above 0, such as 0.5,1,2",
            "Of policies that need a --knob, the same for all of them; each has values of its own.",
        ),
    ] = None

    def grid(self, types: Sequence[GpuName]) -> "SweepGrid":
        """`types`: the GPU types of the world."""
        from boa.sim.sweep import TARGETS, WIDTHS, SweepGrid

        return SweepGrid(
            budgets=self.budgets or (),
            targets=self.targets or TARGETS,
            clusters=[_on(types, nodes) for nodes in self.nodes_list or ()],
            widths=self.widths or WIDTHS,
            knobs=self.knobs or (),
        )


def _on(types: Sequence[GpuName], nodes: Mapping[GpuName, int] | int) -> Mapping[GpuName, int]:
    """A cluster of types that there are."""
    if isinstance(nodes, int) and len(types) > 1:
        raise InputError("--nodes-list", nodes, f"nodes per type: one of {', '.join(types)}")
    cluster = {types[0]: nodes} if isinstance(nodes, int) else nodes
    for gpu in cluster:
        if gpu not in types:
            raise InputError("--nodes-list", gpu, f"one of {', '.join(types)} (--gpus)")
    return cluster


def compare(
    trace: TracePath,
    sweeps: Sweeps,
    renting: Renting,
    known: KnowledgeOptions,
    physics: Physics,
    jobs: Processes = None,
    plot: Annotated[
        Path | None, options.plot("Draw JCT against spend, or the bill (.png, .svg, .pdf, .html).")
    ] = None,
    csv: Annotated[
        Path | None, shell.Option("--csv", metavar="FILE", help="Write every point, as CSV.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare policies on one trace, at the same average spend.

    Every policy is swept over its own knob: boa over --budgets, autoscaled
    rivals over --targets, those on fixed clusters over --nodes-list, fixed
    over --widths; reservation is one point. A rival's JCTs are then held
    against BOA's at the same spend, read between BOA's points; with
    --billing node, at the same bill.

    [bold]Examples[/bold]
    [dim]$[/dim] boa compare sia.csv --policies boa,pollux-autoscale --budgets 110,140,200,300
    [dim]$[/dim] boa compare sia.csv --policies boa,sia --budgets 120,200 --plot frontiers.png
    [dim]$[/dim] boa compare sia.csv --policies boa,sia --budgets 140,200 --billing node
    """
    from boa.sim.comparison import compared

    check_outputs([trace], ((plot, "--plot"), (csv, "--csv")))
    asked = physics.asked(known)
    world = physics.world(trace, renting)
    found, left_out = compared(world, _sweep(world, sweeps, asked, jobs), asked.billing)
    _write(world, found, plot, csv)
    if json:
        emit_json(found)
    else:
        from boa.cli.simulate.simulate_table import print_comparison

        print_comparison(world, found, left_out, physics_line(asked, world))
    note_written({"comparison": plot, "points": csv})


def _sweep(
    world: "World", sweeps: Sweeps, asked: "Asked", jobs: int | None
) -> "list[PointOutcome]":
    from boa.sim.sweep import points_of, run_points, usual_jobs

    grid = sweeps.grid(list(world.gpu_types))
    points = points_of(world, sweeps.policies, grid, asked.seed)
    with working(f"simulating {len(points)} points") as progress:
        return run_points(world, points, asked, jobs=jobs or usual_jobs(), progress=progress)


def _write(world: "World", found: Mapping[str, Any], plot: Path | None, table: Path | None) -> None:
    if table is not None:
        write_file(table, csv_table(found["points"]), "--csv")
    if plot is not None:
        from boa.cli.simulate.simulate_table import money_of
        from boa.plots.comparison import comparison_picture

        with working("drawing"):
            picture = comparison_picture(found, money_of(world), plot.suffix)
        write_file(plot, picture, "--plot")


def csv_table(points: Sequence[Mapping[str, Any]]) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = ("policy", "knob", "value", *CSV_KEYS)
    writer.writerow(heads)
    for point in points:
        writer.writerow([point[key] for key in heads])
    return out.getvalue()
