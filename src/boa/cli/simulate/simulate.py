"""`boa simulate`: replay a trace under a policy."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.atomic_file import drafted
from boa.cli import parsers, shell
from boa.cli.console import check_outputs, emit_json, note, working, write_file
from boa.cli.options import Json
from boa.cli.simulate import simulating
from boa.cli.simulate.trace import TracePath
from boa.errors import BoaError, FileError
from boa.model.policies import POLICIES, policies_with

if TYPE_CHECKING:
    from boa.policy.registry import Knobs
    from boa.sim.recording import Listener
    from boa.sim.report import Report
    from boa.sim.run import World
    from boa.sim.sweep import Asked

LEARNINGS = ("class", "job", "service")


def simulate(
    trace: TracePath,
    policy: Annotated[
        str,
        shell.Option(
            "--policy",
            metavar="P",
            parser=parsers.one_of("--policy", tuple(POLICIES)),
            help=f"One of {', '.join(POLICIES)}.",
        ),
    ],
    budget: Annotated[
        float | None,
        shell.Option(
            "--budget",
            metavar="USD",
            parser=parsers.money("--budget"),
            help="Of boa: average spend per hour. With one GPU type it counts GPUs.",
        ),
    ] = None,
    target_efficiency: Annotated[
        float | None,
        shell.Option(
            "--target-efficiency",
            metavar="C",
            parser=simulating.target("--target-efficiency"),
            help="Of the autoscaled rivals: the efficiency that the cluster is held near.",
        ),
    ] = None,
    nodes: Annotated[
        Any,
        shell.Option(
            "--nodes",
            metavar="T4=16,...",
            parser=parsers.by_type("--nodes", simulating.node_count("--nodes"), simulating.CLUSTER),
            help=f"Of {', '.join(policies_with('nodes'))} (and reservation): the fixed cluster, "
            "in nodes.",
        ),
    ] = None,
    width: Annotated[
        int | None,
        shell.Option(
            "--width",
            metavar="K",
            parser=parsers.whole("--width", 1),
            help="Of fixed: GPUs of every job, on as many nodes as that takes.",
        ),
    ] = None,
    gpus: simulating.Gpus = None,
    profiles: simulating.Profiles = None,
    prices: simulating.Prices = None,
    seed: simulating.Seed = 0,
    perfect: simulating.Perfect = False,
    noise: simulating.Noise = None,
    learning: Annotated[
        str | None,
        shell.Option(
            "--learning",
            metavar="|".join(LEARNINGS),
            parser=parsers.one_of("--learning", LEARNINGS),
            help="class: jobs of a class share what they learn. job: each learns alone. service: "
            "the profiler of boa serve learns from what jobs report, from nothing. By default as "
            "the policy's system does.",
        ),
    ] = None,
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
    events: Annotated[
        Path | None,
        shell.Option("--events", metavar="FILE", help="Write every event, one JSON per line."),
    ] = None,
    jcts: Annotated[
        Path | None,
        shell.Option("--jcts", metavar="FILE", help="Write every job's JCT, as CSV."),
    ] = None,
    plot: Annotated[
        Path | None,
        shell.Option(
            "--plot",
            metavar="FILE",
            parser=parsers.picture("--plot"),
            help="Draw GPUs, jobs and efficiency over time (.png, .svg, .pdf, .html).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Replay a trace under a policy, on measured speeds. Rents nothing.

    Every policy needs its own knob: boa a --budget, the autoscaled rivals a
    --target-efficiency, those on a fixed cluster --nodes, fixed a --width.
    Spend is what jobs held, over the time in which jobs arrived; a plan's
    budget means the same.

    [bold]Examples[/bold]
    [dim]$[/dim] boa simulate sia.csv --policy boa --budget 140
    [dim]$[/dim] boa simulate sia.csv --policy pollux-autoscale --target-efficiency 0.5
    [dim]$[/dim] boa simulate sia.csv --policy sia --nodes T4=16,A100=2 --json
    [dim]$[/dim] boa simulate sia.csv --policy fixed --width 8 --plot fixed.png
    [dim]$[/dim] boa simulate sia.csv --policy boa --budget 140 --max-spend 200 --pacing-h 24
    """
    from boa.policy.registry import Knobs
    from boa.sim.sweep import Asked

    check_outputs([trace], ((events, "--events"), (jcts, "--jcts"), (plot, "--plot")))
    asked = Asked(
        **simulating.knowing(perfect, noise, learning),
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
    knobs = Knobs(budget=budget, target=target_efficiency, nodes=nodes, width=width, seed=seed)
    _check_knobs(policy, knobs)
    world = simulating.world(
        trace, profiles, gpus, nodes, slowdown=slowdown, rescale=rescale_s, prices=prices
    )
    with simulating.naming_flags(trace):
        report = _run(world, policy, knobs, asked, events, keep_jcts=jcts is not None)
    _write(report, world, policy, knobs, jcts, plot)
    _print(report, world, policy, knobs, asked, json)
    for kind, written in (("events", events), ("JCTs", jcts), ("picture", plot)):
        if written is not None:
            note(f"{kind} written to {written}")
    _check_all_ended(report, policy)


def _check_knobs(policy: str, knobs: "Knobs") -> None:
    """A knob that is missing is said before a large trace is read."""
    from boa.policy.registry import choose

    choose(policy, knobs)


def _run(
    world: "World",
    policy: str,
    knobs: "Knobs",
    asked: "Asked",
    events: Path | None,
    *,
    keep_jcts: bool,
) -> "Report":
    from boa.sim.sweep import run_one

    total = len(world.trace.jobs)
    with working(f"simulating {policy}") as line, streamed(events) as listener:
        line(0, total)
        return run_one(
            world,
            policy,
            knobs,
            asked,
            progress=lambda ended, _: line(ended, total),
            listener=listener,
            keep_jcts=keep_jcts,
        )


@contextmanager
def streamed(path: Path | None) -> "Iterator[Listener | None]":
    """Events go to a file as they happen, under another name until all are there."""
    from json import JSONEncoder

    if path is None:
        yield None
        return
    encode = JSONEncoder(allow_nan=False).encode
    try:
        with drafted(path) as draft, draft.open("w", encoding="utf-8") as file:
            yield lambda event: print(encode(event), file=file)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise FileError(f"--events {path}", reason, "a file that can be written") from None


def _write(
    report: "Report",
    world: "World",
    policy: str,
    knobs: "Knobs",
    jcts: Path | None,
    plot: Path | None,
) -> None:
    if jcts is not None:
        write_file(jcts, jct_table(report, world), "--jcts")
    if plot is not None:
        from boa.cli.simulate.simulate_table import knob_words
        from boa.plots.simulation import simulation_picture

        with working("drawing"):
            said = knob_words(world, knobs)
            picture = simulation_picture(report, f"{policy} {said}".strip(), plot.suffix)
        write_file(plot, picture, "--plot")


def jct_table(report: "Report", world: "World") -> str:
    """Every job that ended, in order of arrival, as CSV."""
    import csv
    import io

    named: Mapping[str, float] = report.tally.named or {}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("name", "class", "arrival_s", "jct_s"))
    for job in world.trace.jobs:
        if job.name in named:
            job_class = world.truths[job.application].name
            writer.writerow((job.name, job_class, job.arrival_s, named[job.name]))
    return out.getvalue()


def _print(
    report: "Report", world: "World", policy: str, knobs: "Knobs", asked: "Asked", json: bool
) -> None:
    if json:
        from boa.sim.sweep import document_of

        emit_json(document_of(report, policy, world))
        return
    from boa.cli.simulate.simulate_table import print_report

    physics = simulating.physics(asked, world.slowdown, world.rescale, policy)
    print_report(report, world, policy, knobs, physics)


def _check_all_ended(report: "Report", policy: str) -> None:
    left = report.jobs - len(report.tally.jcts)
    if left:
        raise BoaError(
            f"{left:,} of {report.jobs:,} jobs never ended: {policy} gave them no GPUs that they "
            "can run on, and nothing was left to wait for. Give it more nodes, another target or "
            "other GPU types."
        )
