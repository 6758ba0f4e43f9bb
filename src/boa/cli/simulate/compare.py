"""`boa compare`: policies against each other on one trace, each over its own knob."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.cli import parsers, shell
from boa.cli.console import check_outputs, emit_json, note, working, write_file
from boa.cli.options import Json
from boa.cli.simulate import simulating
from boa.cli.simulate.trace import TracePath
from boa.errors import InputError
from boa.model.policies import POLICIES, policies_with
from boa.units import GpuName

if TYPE_CHECKING:
    from boa.sim.run import World
    from boa.sim.sweep import Asked, Grid, PointOutcome

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
    count = simulating.node_count("--nodes-list")
    if "=" not in text:
        return count(text)
    read: Any = parsers.by_type("--nodes-list", count, CLUSTERS)
    return read(text.replace("+", ","))  # type: ignore[no-any-return]


def _list_of(option: str, metavar: str, each: Any, expected: str, meaning: str) -> Any:
    return shell.Option(
        option,
        metavar=metavar,
        parser=parsers.listed(option, each, expected),
        help=meaning,
    )


def compare(
    trace: TracePath,
    policies: Annotated[
        Any,
        shell.Option(
            "--policies",
            metavar="P,P,...",
            parser=_policies,
            help=f"Of {', '.join(POLICIES)}.",
        ),
    ],
    budgets: Annotated[
        Any,
        _list_of(
            "--budgets",
            "USD,USD,...",
            parsers.money("--budgets"),
            "budgets per hour, such as 100,140,200",
            "Of boa; fixed clusters are about as large, unless --nodes-list says otherwise.",
        ),
    ] = None,
    targets: Annotated[
        Any,
        _list_of(
            "--targets",
            "C,C,...",
            simulating.target("--targets"),
            "efficiencies, such as 0.3,0.5,0.7",
            "Target efficiencies of the autoscaled rivals; 0.2 to 0.9 in steps of 0.1.",
        ),
    ] = None,
    nodes_list: Annotated[
        Any,
        _list_of(
            "--nodes-list",
            "N,N,...",
            _cluster,
            CLUSTERS,
            f"Clusters of {', '.join(policies_with('nodes'))}, in nodes: 16,32 for one GPU type, "
            "T4=16+A100=2,T4=32+A100=4 for several.",
        ),
    ] = None,
    widths: Annotated[
        Any,
        _list_of(
            "--widths",
            "K,K,...",
            parsers.whole("--widths", 1),
            "widths, such as 1,4,16",
            "Widths of fixed; 1,2,4,8,16.",
        ),
    ] = None,
    gpus: simulating.Gpus = None,
    profiles: simulating.Profiles = None,
    prices: simulating.Prices = None,
    seed: simulating.Seed = 0,
    perfect: simulating.Perfect = False,
    noise: simulating.Noise = None,
    interval_s: simulating.Interval = None,
    rescale_s: simulating.Rescale = None,
    provision_s: simulating.Provision = 0.0,
    reclaim_s: simulating.Reclaim = 0.0,
    cold_s: simulating.Cold = 0.0,
    interference: simulating.Interference = 0.0,
    max_spend: simulating.MaxSpend = None,
    max_nodes: simulating.MaxNodes = None,
    keep_warm_s: simulating.KeepWarm = 0.0,
    pacing_h: simulating.Pacing = None,
    slowdown: simulating.Slowdown = None,
    jobs: Annotated[
        int | None,
        shell.Option(
            "--jobs",
            metavar="N",
            parser=parsers.whole("--jobs", 1),
            help="Processes to simulate in; 2, where there are two cores.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        shell.Option(
            "--plot",
            metavar="FILE",
            parser=parsers.picture("--plot"),
            help="Draw JCT against spend (.png, .svg, .pdf, .html).",
        ),
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
    against BOA's at the same spend, by straight lines between BOA's points.

    [bold]Examples[/bold]
    [dim]$[/dim] boa compare sia.csv --policies boa,pollux-autoscale --budgets 110,140,200,300
    [dim]$[/dim] boa compare sia.csv --policies boa,sia --budgets 120,200 --plot frontiers.png
    """
    from boa.sim.comparison import compared
    from boa.sim.sweep import Asked

    check_outputs([trace], ((plot, "--plot"), (csv, "--csv")))
    asked = Asked(
        **simulating.knowing(perfect, noise),
        interval_s=interval_s,
        provision_s=provision_s,
        reclaim_s=reclaim_s,
        cold_s=cold_s,
        interference=interference,
        max_spend=max_spend,
        max_nodes=max_nodes or {},
        keep_warm_s=keep_warm_s,
        pacing_h=pacing_h,
        seed=seed,
    )
    world = simulating.world(
        trace, profiles, gpus, slowdown=slowdown, rescale=rescale_s, prices=prices
    )
    grid = _grid(world, budgets, targets, nodes_list, widths)
    outcomes = _sweep(world, policies, grid, asked, jobs)
    found, left_out = compared(world, outcomes)
    _write(world, found, plot, csv)
    if json:
        emit_json(found)
    else:
        from boa.cli.simulate.simulate_table import print_comparison

        physics = simulating.physics(asked, world.slowdown, world.rescale, None)
        print_comparison(world, found, left_out, physics)
    for kind, written in (("comparison", plot), ("points", csv)):
        if written is not None:
            note(f"{kind} written to {written}")


def _grid(
    world: "World",
    budgets: list[float] | None,
    targets: list[float] | None,
    nodes_list: list[Any] | None,
    widths: list[int] | None,
) -> "Grid":
    from boa.sim.sweep import TARGETS, WIDTHS, Grid

    types = list(world.gpu_types)
    clusters = []
    for nodes in nodes_list or ():
        if isinstance(nodes, int) and len(types) > 1:
            raise InputError("--nodes-list", nodes, f"nodes per type: one of {', '.join(types)}")
        cluster = {types[0]: nodes} if isinstance(nodes, int) else nodes
        for gpu in cluster:
            if gpu not in types:
                raise InputError("--nodes-list", gpu, f"one of {', '.join(types)} (--gpus)")
        clusters.append(cluster)
    return Grid(
        budgets=budgets or (),
        targets=targets or TARGETS,
        clusters=clusters,
        widths=widths or WIDTHS,
    )


def _sweep(
    world: "World", policies: Sequence[str], grid: "Grid", asked: "Asked", jobs: int | None
) -> "list[PointOutcome]":
    from boa.sim.sweep import points_of, run_points

    points = points_of(world, policies, grid, asked.seed)
    workers = jobs or min(2, os.cpu_count() or 1)
    with working(f"simulating {len(points)} points") as progress:
        return run_points(world, points, asked, jobs=workers, progress=progress)


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
