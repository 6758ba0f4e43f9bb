"""Options that `boa simulate` and `boa compare` share, each read with one clear error."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from boa.cli import parsers, shell
from boa.cli.console import note, working
from boa.errors import InputError, UsageError
from boa.model.policies import live_policies
from boa.units import GpuName, Seconds, UsdPerHour

if TYPE_CHECKING:
    from boa.model.trace import Trace
    from boa.sim.run import World
    from boa.sim.sweep import Asked

SLOWDOWNS = ("sia", "none")
LONGEST_S = 604_800.0
"""A week: what takes longer than this is a mistake in the unit."""
LONGEST_ROUND_S = 86_400.0
MOST_NODES = 10_000
LONGEST_PACING_H = 8760.0
WORST_NOISE = 3.0
CLUSTER = "nodes per GPU type, such as T4=16,A100=2"
NAMES = "GPU types, such as T4,V100,A100"

_T = TypeVar("_T")


def seconds(option: str) -> Callable[[Any], float]:
    return parsers.between(
        option, 0, LONGEST_S, f"a number of seconds from 0 to {LONGEST_S:g} (a week)"
    )


def interval(text: Any) -> float:
    expected = f"0 (act at events) or a number of seconds from 1 to {LONGEST_ROUND_S:g} (a day)"
    value = parsers.between("--interval-s", 0, LONGEST_ROUND_S, expected)(text)
    if 0 < value < 1:
        raise InputError("--interval-s", text, expected)
    return value


def target(option: str) -> Callable[[Any], float]:
    return parsers.between(
        option, 0, 1, "an efficiency above 0 and at most 1, such as 0.5", above=True
    )


def node_count(option: str) -> Callable[[Any], int]:
    def parse(text: Any) -> int:
        count = parsers.whole(option, 1)(text)
        if count > MOST_NODES:
            raise InputError(option, text, f"at most {MOST_NODES:,} nodes of a type")
        return count

    return parse


def _timed(option: str, meaning: str) -> Any:
    return shell.Option(option, metavar="S", parser=seconds(option), help=meaning)


Gpus: TypeAlias = Annotated[
    Any,
    shell.Option(
        "--gpus",
        metavar="T4,V100,...",
        parser=parsers.listed("--gpus", str, NAMES),
        help="GPU types that can be rented; by default the first of the profiles. One alone costs "
        "1 per GPU-hour: spend then counts GPUs.",
    ),
]
Profiles: TypeAlias = Annotated[
    Path | None,
    shell.Option(
        "--profiles",
        metavar="DIR",
        help="Folder of measurements (Sia, Pollux or Rubick). Without it the catalogue serves.",
    ),
]
Prices: TypeAlias = Annotated[
    Any,
    shell.Option(
        "--prices",
        metavar="T4=USD,...",
        parser=parsers.by_type(
            "--prices", parsers.money("--prices"), "a price per GPU type, such as T4=1.09,A100=3.4"
        ),
        help="USD per GPU-hour, instead of list prices.",
    ),
]
Seed: TypeAlias = Annotated[
    int,
    shell.Option(
        "--seed",
        metavar="N",
        parser=parsers.whole("--seed", 0),
        help="The same seed, the same run.",
    ),
]
Perfect: TypeAlias = Annotated[
    bool,
    shell.Option("--perfect", metavar="", help="Policies know every job's true speed."),
]
Noise: TypeAlias = Annotated[
    float | None,
    shell.Option(
        "--noise",
        metavar="X",
        parser=parsers.between("--noise", 0, WORST_NOISE, f"a number from 0 to {WORST_NOISE:g}"),
        help="They know it up to a factor: standard deviation of its logarithm.",
    ),
]
Interval: TypeAlias = Annotated[
    float | None,
    shell.Option(
        "--interval-s",
        metavar="S",
        parser=interval,
        help="Seconds between rounds; 0: act at events. By default BOA acts at events, all others "
        "every 60 s.",
    ),
]
Rescale: TypeAlias = Annotated[
    float | None,
    _timed("--rescale-s", "Rescaling time of every class, instead of each model's own."),
]
Provision: TypeAlias = Annotated[
    float, _timed("--provision-s", "From renting a node until jobs can start on it.")
]
Reclaim: TypeAlias = Annotated[
    float,
    _timed("--reclaim-s", "From releasing a node until it costs nothing; reported apart."),
]
Cold: TypeAlias = Annotated[
    float, _timed("--cold-s", "Added to a start on a node that no job has run on.")
]
Interference: TypeAlias = Annotated[
    float,
    shell.Option(
        "--interference",
        metavar="X",
        parser=parsers.between(
            "--interference", 0, 1, "a share of speed from 0 to below 1, such as 0.1", below=True
        ),
        help="Share of its speed that a job across nodes loses beside another such job.",
    ),
]
MaxSpend: TypeAlias = Annotated[
    float | None,
    shell.Option(
        "--max-spend",
        metavar="USD",
        parser=parsers.money("--max-spend"),
        help="Never rent more than this costs per hour, at any moment. This and the next three are "
        f"decided by the scheduler of boa serve, for {', '.join(live_policies())}.",
    ),
]
MaxNodes: TypeAlias = Annotated[
    Any,
    shell.Option(
        "--max-nodes",
        metavar="T4=5,...",
        parser=parsers.by_type("--max-nodes", node_count("--max-nodes"), CLUSTER),
        help="At most so many nodes of these types, at any moment.",
    ),
]
KeepWarm: TypeAlias = Annotated[
    float, _timed("--keep-warm-s", "How long an empty node is kept before it is given back.")
]
Pacing: TypeAlias = Annotated[
    float | None,
    shell.Option(
        "--pacing-h",
        metavar="H",
        parser=parsers.between(
            "--pacing-h",
            0,
            LONGEST_PACING_H,
            "hours above 0, such as 24, up to 8760 (a year)",
            above=True,
        ),
        help="Steer what is planned with so that the bill (idle nodes and all) averages to the "
        "budget: dollars over or under are made good within so many hours.",
    ),
]
Slowdown: TypeAlias = Annotated[
    str | None,
    shell.Option(
        "--slowdown",
        metavar="|".join(SLOWDOWNS),
        parser=parsers.one_of("--slowdown", SLOWDOWNS),
        help="Per-model calibration: Sia's, or none. By default Sia's; none for Rubick's models.",
    ),
]


def world(
    trace: Path,
    profiles: Path | None,
    gpus: list[GpuName] | None,
    nodes: Mapping[GpuName, int] | None = None,
    *,
    slowdown: Any = None,
    rescale: Seconds | None = None,
    prices: Mapping[GpuName, UsdPerHour] | None = None,
) -> "World":
    """Trace and profiles, on the GPU types of the cluster if one is given."""
    from boa.catalogue.traces import read_trace
    from boa.sim.run import world_of

    for gpu in nodes or ():
        if gpus is not None and gpu not in gpus:
            raise InputError("--nodes", gpu, f"a GPU type of --gpus: {', '.join(gpus)}")
    with working("reading trace and profiles"), naming_flags(trace, "--nodes" if nodes else ""):
        chosen = gpus if nodes is None else list(nodes)
        found = world_of(
            read_trace(trace), profiles, chosen, slowdown=slowdown, rescale=rescale, prices=prices
        )
    late = late_start(found.trace)
    if late:
        note(late)
    return found


def late_start(trace: "Trace") -> str | None:
    """A warning where arrival times look like dates: averages count from time 0."""
    first = trace.jobs[0].arrival_s if trace.jobs else 0.0
    if first <= max(86_400.0, trace.span_s - first):
        return None
    return (
        f"note: the first job arrives {first / 86_400:,.0f} days after time 0, from where averages "
        "are taken; subtract the trace's start from its arrival times if that is not meant"
    )


@contextmanager
def naming_flags(trace: Path, types_from: str = "") -> Iterator[None]:
    """Errors of the Python API, in the words of the command line."""
    try:
        yield
    except InputError as wrong:
        if wrong.field == "trace" or wrong.field.startswith("trace, "):
            raise wrong.inside(str(trace)) from None
        field = {"gpus": types_from or "--gpus"}.get(wrong.field)
        if wrong.field.startswith("prices."):
            field = "--prices"
        if field is None:
            raise
        raise InputError(field, wrong.value, wrong.expected) from None


def knowing(perfect: bool, noise: float | None, learning: Any = None) -> dict[str, Any]:
    """Arguments for the policies' knowledge, from options that exclude each other."""
    if perfect and noise is not None:
        raise UsageError("--perfect and --noise both say what is known: give one of them")
    if learning is not None and (perfect or noise is not None):
        other = "--perfect" if perfect else "--noise"
        raise UsageError(f"{other} leaves nothing to learn: leave out --learning")
    if perfect or noise is not None:
        return {"learning": "perfect", "noise": noise or 0.0}
    return {"learning": learning}


def physics(asked: "Asked", slowdown: str, rescale: Seconds | None, policy: str | None) -> str:
    """One line on what of the world is switched on, and what is not."""
    from boa.plots.words import duration

    on = [] if policy is None else _habits(asked, policy)
    if asked.noise:
        on.append(f"knowledge off by a factor of e^±{asked.noise:g}")
    elif asked.learning == "perfect":
        on.append("perfect knowledge")
    on.append(
        "each model's rescaling time" if rescale is None else f"rescaling {duration(rescale)}"
    )
    on.append("Sia's slowdown" if slowdown == "sia" else "no slowdown")
    optional = {
        "provisioning": duration(asked.provision_s) if asked.provision_s else "",
        "cold starts": duration(asked.cold_s) if asked.cold_s else "",
        "reclaiming": duration(asked.reclaim_s) if asked.reclaim_s else "",
        "interference": f"{asked.interference:g}" if asked.interference else "",
    }
    on += _limits(asked)
    on += [f"{name} {value}" for name, value in optional.items() if value]
    off = [name for name, value in optional.items() if not value]
    without = [f"without {', '.join(off)}"] if off else []
    return "; ".join([", ".join(on), *without, f"seed {asked.seed}"])


def _limits(asked: "Asked") -> list[str]:
    from boa.plots.words import duration

    nodes = ", ".join(f"{count}×{gpu}" for gpu, count in asked.max_nodes.items())
    said = {
        f"at most {asked.max_spend or 0:g} an hour": asked.max_spend is not None,
        f"at most {nodes} nodes": bool(nodes),
        f"nodes kept warm {duration(asked.keep_warm_s)}": asked.keep_warm_s > 0,
        f"pacing over {asked.pacing_h:g} h" if asked.pacing_h else "": asked.pacing_h is not None,
    }
    return [words for words, true in said.items() if true]


def _habits(asked: "Asked", policy: str) -> list[str]:
    from boa.plots.words import duration

    settings = asked.settings(policy, None)
    every = settings.interval_s
    habits = ["at events" if every is None else f"rounds of {duration(every)}"]
    learning = {
        "class": "classes learn together",
        "job": "each job learns alone",
        "service": "the service's profiler learns",
    }
    if settings.learning in learning:  # otherwise the predictions are named beside
        habits.append(learning[settings.learning])
    return habits
