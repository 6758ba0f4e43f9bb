"""`boa simulate`: replay a trace under a policy."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from boa.atomic_file import drafted
from boa.cli import options, parsers, shell
from boa.cli.console import check_outputs, emit_json, note_written, working, write_file
from boa.cli.options import Json
from boa.cli.simulate import shared_options
from boa.cli.simulate.physics_words import physics_line
from boa.cli.simulate.shared_options import KnowledgeOptions, Physics, Renting, TracePath
from boa.cli.simulate.worlds import naming_flags
from boa.errors import BoaError, FileError, UsageError
from boa.model.policies import POLICIES, knob_meanings, policies_with
from boa.units import GpuName, UsdPerHour

if TYPE_CHECKING:
    from boa.model.calendar import Calendar
    from boa.policy.registry import Knobs
    from boa.sim.recording import Listener
    from boa.sim.report import SimulationReport
    from boa.sim.run import World
    from boa.sim.sweep import Asked

LEARNINGS = ("class", "job", "service")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyKnobs:
    """A policy, and the knobs of all of them."""

    policy: Annotated[
        str,
        shell.Option(
            "--policy",
            metavar="P",
            parser=parsers.one_of("--policy", tuple(POLICIES)),
            help=f"One of {', '.join(POLICIES)}.",
        ),
    ]
    budget: Annotated[
        UsdPerHour | None,
        options.dollars(
            "--budget",
            "Of boa: average spend per hour, or bill (--billing node). With one GPU type it counts "
            "GPUs.",
        ),
    ] = None
    target_efficiency: Annotated[
        float | None,
        shell.Option(
            "--target-efficiency",
            metavar="C",
            parser=shared_options.target("--target-efficiency"),
            help="Of the autoscaled rivals: the efficiency that the cluster is held near.",
        ),
    ] = None
    nodes: Annotated[
        Mapping[GpuName, int] | None,
        shared_options.cluster(
            "--nodes",
            "T4=16,...",
            f"Of {', '.join(policies_with('nodes'))} (and reservation): the fixed cluster, in "
            "nodes.",
        ),
    ] = None
    width: Annotated[
        int | None,
        options.count(
            "--width", "K", 1, "Of fixed: GPUs of every job, on as many nodes as that takes."
        ),
    ] = None

    knob: Annotated[
        float | None,
        shell.Option(
            "--knob",
            metavar="X",
            parser=shared_options.own_knob("--knob"),
            help=f"A number that only its policy understands. Of {knob_meanings()}.",
        ),
    ] = None

    symmetric: Annotated[
        bool,
        shell.Option(
            "--symmetric",
            help="Of the gavel policies and themis: treat equal jobs equally, as in published "
            "runs. By default they end one after the other, which is faster on average.",
        ),
    ] = False

    def turned(self, seed: int, calendar: "Calendar | None" = None) -> "Knobs":
        """The knobs, once it is known that the policy has its own: before a trace is read. A
        calendar says a budget too."""
        from boa.policy.registry import Knobs, choose

        budget = self.budget
        if budget is None and calendar is not None and POLICIES[self.policy].knob == "budget":
            budget = calendar.average
        knobs = Knobs(
            budget=budget,
            target=self.target_efficiency,
            nodes=self.nodes,
            width=self.width,
            knob=self.knob,
            symmetric=self.symmetric,
            seed=seed,
        )
        choose(self.policy, knobs)
        return knobs


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedKnowledge(KnowledgeOptions):
    """Knowledge that a policy has of jobs, or how it learns."""

    learning: Annotated[
        str | None,
        options.choice(
            "--learning",
            LEARNINGS,
            "class: jobs of a class share what they learn. job: each learns alone. service: "
            "the profiler of boa serve learns from what jobs report, from nothing. By default as "
            "the policy's system does.",
        ),
    ] = None

    def asked(self) -> dict[str, Any]:
        found = KnowledgeOptions.asked(self)  # super() knows no class with slots
        if self.learning is None:
            return found
        if found["learning"] is not None:
            other = "--perfect" if self.perfect else "--noise"
            raise UsageError(f"{other} leaves nothing to learn: leave out --learning")
        return {**found, "learning": self.learning}


class RunOptions(NamedTuple):
    """A policy with its knobs, in the world that was asked for."""

    policy: str
    knobs: "Knobs"
    asked: "Asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Files to write, beside what is printed."""

    events: Annotated[
        Path | None,
        shell.Option("--events", metavar="FILE", help="Write every event, one JSON per line."),
    ] = None
    jcts: Annotated[
        Path | None,
        shell.Option("--jcts", metavar="FILE", help="Write every job's JCT, as CSV."),
    ] = None
    plot: Annotated[
        Path | None,
        options.plot("Draw GPUs, jobs and efficiency over time (.png, .svg, .pdf, .html)."),
    ] = None


def simulate(
    trace: TracePath,
    knobs: PolicyKnobs,
    renting: Renting,
    known: LearnedKnowledge,
    physics: Physics,
    files: Files,
    json: Json = False,
) -> None:
    """Replay a trace under a policy, on measured speeds. Rents nothing.

    Every policy needs its own knob: boa a --budget, the autoscaled rivals a
    --target-efficiency, those on a fixed cluster --nodes, fixed a --width,
    and some a number of their own, --knob.
    Spend is what jobs held, over the time in which jobs arrived; a plan's
    budget means the same. The bill is for whole nodes, from request to gone;
    with --billing node it is what the budget means. The bound is the JCT of
    the exact plan for that much money: nobody can do better.

    [bold]Examples[/bold]
    [dim]$[/dim] boa simulate sia.csv --policy boa --budget 140
    [dim]$[/dim] boa simulate sia.csv --policy pollux-autoscale --target-efficiency 0.5
    [dim]$[/dim] boa simulate sia.csv --policy sia --nodes T4=16,A100=2 --json
    [dim]$[/dim] boa simulate sia.csv --policy fixed --width 8 --plot fixed.png
    [dim]$[/dim] boa simulate sia.csv --policy boa --budget 140 --max-spend 200 --pacing-h 24
    [dim]$[/dim] boa simulate sia.csv --policy boa --budget 160 --billing node --provision-s 120
    """
    check_outputs(
        [trace], ((files.events, "--events"), (files.jcts, "--jcts"), (files.plot, "--plot"))
    )
    asked = physics.asked(known)
    run = RunOptions(knobs.policy, knobs.turned(known.seed, asked.calendar), asked)
    world = physics.world(trace, renting, knobs.nodes)
    with naming_flags(trace):
        report = _run(world, run, files.events, keep_jcts=files.jcts is not None)
    _write(report, world, run, files)
    _print(report, world, run, json)
    note_written({"events": files.events, "JCTs": files.jcts, "picture": files.plot})
    _check_all_ended(report, run.policy)


def _run(
    world: "World", run: RunOptions, events: Path | None, *, keep_jcts: bool
) -> "SimulationReport":
    from boa.sim.sweep import run_one

    total = len(world.trace.jobs)
    with working(f"simulating {run.policy}") as line, streamed(events) as listener:
        line(0, total)
        return run_one(
            world,
            run.policy,
            run.knobs,
            run.asked,
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


def _write(report: "SimulationReport", world: "World", run: RunOptions, files: Files) -> None:
    if files.jcts is not None:
        write_file(files.jcts, jct_table(report, world), "--jcts")
    if files.plot is not None:
        from boa.cli.simulate.simulate_table import knob_words
        from boa.plots.simulation import simulation_picture

        with working("drawing"):
            said = knob_words(world, run.knobs)
            title = f"{run.policy} {said}".strip()
            picture = simulation_picture(report, title, files.plot.suffix)
        write_file(files.plot, picture, "--plot")


def jct_table(report: "SimulationReport", world: "World") -> str:
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


def _print(report: "SimulationReport", world: "World", run: RunOptions, json: bool) -> None:
    if json:
        from boa.sim.sweep import document_of

        emit_json(document_of(report, run.policy, world))
        return
    from boa.cli.simulate.simulate_table import print_report

    physics = physics_line(run.asked, world, run.policy)
    print_report(report, world, run.policy, run.knobs, physics)


def _check_all_ended(report: "SimulationReport", policy: str) -> None:
    left = report.jobs - len(report.tally.jcts)
    if left:
        raise BoaError(
            f"{left:,} of {report.jobs:,} jobs never ended: {policy} gave them no GPUs that they "
            "can run on, and nothing was left to wait for. Give it more nodes, another target or "
            "other GPU types."
        )
