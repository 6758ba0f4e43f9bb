"""Options that `boa simulate`, `boa compare` and `boa replay` share, and their groups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from boa.cli import options, parsers, shell
from boa.cli.options import Profiles
from boa.cli.simulate import worlds
from boa.errors import InputError, UsageError
from boa.model.policies import live_policies
from boa.units import GpuName, Seconds, UsdPerHour

if TYPE_CHECKING:
    from boa.model.calendar import Calendar
    from boa.sim.run import World
    from boa.sim.sweep import Asked

LONGEST_S = 604_800.0
"""A week: what takes longer than this is a mistake in the unit."""
LONGEST_ROUND_S = 86_400.0
MOST_NODES = 10_000
SHORTEST_PACING_H, LONGEST_PACING_H = 0.1, 8760.0
"""Within less than some minutes no plan can make a dollar good: jobs take longer."""
WORST_NOISE = 3.0
CLUSTER = "nodes per GPU type, such as T4=16,A100=2"
NAMES = "GPU types, such as T4,V100,A100"


def _interval(text: Any) -> float:
    expected = f"0 (act at events) or a number of seconds from 1 to {LONGEST_ROUND_S:g} (a day)"
    value = parsers.between("--interval-s", 0, LONGEST_ROUND_S, expected)(text)
    if 0 < value < 1:
        raise InputError("--interval-s", text, expected)
    return value


def target(option: str) -> Callable[[Any], float]:
    expected = "an efficiency above 0 and at most 1, such as 0.5"
    return parsers.between(option, 0, 1, expected, above=True)


def own_knob(option: str) -> Callable[[Any], float]:
    return parsers.between(option, 0, 1e12, "a number above 0, at most 1e12", above=True)


def node_count(option: str) -> Callable[[Any], int]:
    def parse(text: Any) -> int:
        count = parsers.whole(option, 1)(text)
        if count > MOST_NODES:
            raise InputError(option, text, f"at most {MOST_NODES:,} nodes of a type")
        return count

    return parse


def cluster(option: str, metavar: str, help: str) -> shell.Option:
    """Nodes by GPU type."""
    parser = parsers.by_type(option, node_count(option), CLUSTER)
    return shell.Option(option, metavar=metavar, parser=parser, help=help)


def _timed(option: str, help: str) -> shell.Option:
    expected = f"a number of seconds from 0 to {LONGEST_S:g} (a week)"
    parser = parsers.between(option, 0, LONGEST_S, expected)
    return shell.Option(option, metavar="S", parser=parser, help=help)


TracePath: TypeAlias = Annotated[
    Path,
    shell.Argument(
        metavar="TRACE",
        help="Jobs in CSV: ours (name, arrival_s, application), Sia's, Pollux's, Rubick's, or the "
        "log of a cluster of Microsoft's ITP; or any of these in Parquet.",
    ),
]
Gpus: TypeAlias = Annotated[
    Sequence[GpuName] | None,
    shell.Option(
        "--gpus",
        metavar="T4,V100,...",
        parser=parsers.listed("--gpus", str, NAMES),
        help="GPU types that can be rented; by default the first of the profiles. One alone costs "
        "1 per GPU-hour: spend then counts GPUs.",
    ),
]
Rescale: TypeAlias = Annotated[
    Seconds | None,
    _timed("--rescale-s", "Rescaling time of every class, instead of each model's own."),
]
Slowdown: TypeAlias = Annotated[
    Literal["sia", "none"] | None,
    options.choice(
        "--slowdown",
        options.SLOWDOWNS,
        "Per-model calibration: Sia's, or none. By default Sia's; none for Rubick's models.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Renting:
    """GPU types that can be rented, with speeds and USD per GPU-hour."""

    gpus: Gpus = None
    profiles: Profiles = None
    prices: Annotated[
        Mapping[GpuName, UsdPerHour] | None,
        shell.Option(
            "--prices",
            metavar="T4=USD,...",
            parser=parsers.by_type(
                "--prices",
                parsers.money("--prices"),
                "a price per GPU type, such as T4=1.09,A100=3.4",
            ),
            help="USD per GPU-hour, instead of list prices.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeOptions:
    """Knowledge that policies have of jobs."""

    seed: Annotated[int, options.seed("The same seed, the same run.")] = 0
    perfect: Annotated[
        bool, shell.Option("--perfect", help="Policies know every job's true speed.")
    ] = False
    noise: Annotated[
        float | None,
        shell.Option(
            "--noise",
            metavar="X",
            parser=parsers.between(
                "--noise", 0, WORST_NOISE, f"a number from 0 to {WORST_NOISE:g}"
            ),
            help="They know it up to a factor: standard deviation of its logarithm.",
        ),
    ] = None

    def asked(self) -> dict[str, Any]:
        """Arguments of `Asked`, from options that exclude each other."""
        if self.perfect and self.noise is not None:
            raise UsageError("--perfect and --noise both say what is known: give one of them")
        known = self.perfect or self.noise is not None
        learning = "perfect" if known else None
        return {"learning": learning, "noise": self.noise or 0.0, "seed": self.seed}


@dataclass(frozen=True, slots=True, kw_only=True)
class Physics:
    """Physics of the simulated world, and the limits that its scheduler keeps to."""

    interval_s: Annotated[
        Seconds | None,
        shell.Option(
            "--interval-s",
            metavar="S",
            parser=_interval,
            help="Seconds between rounds; 0: act at events. By default BOA acts at events, all "
            "others every 60 s.",
        ),
    ] = None
    rescale_s: Rescale = None
    provision_s: Annotated[
        Seconds, _timed("--provision-s", "From renting a node until jobs can start on it.")
    ] = 0.0
    reclaim_s: Annotated[
        Seconds,
        _timed("--reclaim-s", "From releasing a node until it costs nothing; reported apart."),
    ] = 0.0
    cold_s: Annotated[
        Seconds, _timed("--cold-s", "Added to a start on a node that no job has run on.")
    ] = 0.0
    interference: Annotated[
        float,
        shell.Option(
            "--interference",
            metavar="X",
            parser=parsers.between(
                "--interference",
                0,
                1,
                "a share of speed from 0 to below 1, such as 0.1",
                below=True,
            ),
            help="Share of its speed that a job across nodes loses beside another such job.",
        ),
    ] = 0.0
    max_spend: Annotated[
        UsdPerHour | None,
        options.dollars(
            "--max-spend",
            "Never rent more than this costs per hour, at any moment. This and the next three are "
            f"decided by the scheduler of boa serve, for {', '.join(live_policies())}.",
        ),
    ] = None
    max_nodes: Annotated[
        Mapping[GpuName, int] | None,
        cluster("--max-nodes", "T4=5,...", "At most so many nodes of these types, at any moment."),
    ] = None
    keep_warm_s: Annotated[
        Seconds, _timed("--keep-warm-s", "How long an empty node is kept before it is given back.")
    ] = 0.0
    pacing_h: Annotated[
        float | None,
        shell.Option(
            "--pacing-h",
            metavar="H",
            parser=parsers.between(
                "--pacing-h",
                SHORTEST_PACING_H,
                LONGEST_PACING_H,
                "hours from 0.1, such as 24, up to 8760 (a year)",
            ),
            help="Steer what is planned with so that the bill (idle nodes and all) averages to "
            "the budget: dollars over or under are made good within so many hours.",
        ),
    ] = None
    calendar: Annotated[
        Path | None,
        shell.Option(
            "--calendar",
            metavar="FILE",
            help="Hours of the week in which the budget, or what GPUs cost, is another. Amounts "
            "are what --budget is, USD per hour or (one GPU type) GPUs, and are scaled to it; "
            "without it boa simulate takes them as they are. The trace begins on a Monday.",
        ),
    ] = None
    billing: Annotated[
        Literal["gpu", "node"],
        options.choice(
            "--billing",
            ("gpu", "node"),
            "Of boa, what its budget counts. gpu: the GPUs that jobs hold, as in the paper. node: "
            "the bill, whole nodes from request to gone, empty and booting ones too; boa then "
            "rents, fills and releases nodes by what they are worth.",
        ),
    ] = "gpu"
    slowdown: Slowdown = None

    def asked(self, known: KnowledgeOptions) -> "Asked":
        from boa.sim.sweep import Asked

        return Asked(
            **known.asked(),
            interval_s=self.interval_s,
            provision_s=self.provision_s,
            reclaim_s=self.reclaim_s,
            cold_s=self.cold_s,
            interference=self.interference,
            max_spend=self.max_spend,
            max_nodes=self.max_nodes or {},
            keep_warm_s=self.keep_warm_s,
            pacing_h=self.pacing_h,
            billing=self.billing,
            calendar=None if self.calendar is None else _calendar(self.calendar),
        )

    def world(
        self, trace: Path, renting: Renting, nodes: Mapping[GpuName, int] | None = None
    ) -> "World":
        """Trace and profiles, on the GPU types of the cluster if one is given."""
        return worlds.world(
            trace,
            renting.profiles,
            renting.gpus,
            nodes,
            slowdown=self.slowdown,
            rescale=self.rescale_s,
            prices=renting.prices,
        )


def _calendar(file: Path) -> "Calendar":
    from boa.formats.calendar import load_calendar

    return options.read(load_calendar, file).begun_on_a_monday()
