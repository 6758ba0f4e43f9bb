"""Jobs of a trace that `boa replay` acts out, and the speeds that they have."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from boa.cli import options, parsers, shell
from boa.cli.console import note, working
from boa.cli.options import Profiles
from boa.cli.simulate import worlds
from boa.cli.simulate.shared_options import Gpus, Rescale, Slowdown
from boa.cli.simulate.trace_reading import note_drawn
from boa.errors import InputError

if TYPE_CHECKING:
    from boa.model.trace import Trace
    from boa.sim.run import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Jobs of the trace, and the speeds that they are acted out with."""

    gpus: Gpus = None
    profiles: Profiles = None
    models: Annotated[
        Sequence[str] | None,
        shell.Option(
            "--models",
            metavar="A,B,...",
            parser=parsers.listed("--models", str, "applications or classes of the trace"),
            help="Only jobs of these applications or classes.",
        ),
    ] = None
    limit: Annotated[int | None, options.count("--limit", "N", 1, "Only the first N jobs.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Figures that stand in for a model's own."""

    rescale_s: Rescale = None
    slowdown: Slowdown = None


def replayed_world(trace: Path, excerpt: Excerpt, calibration: Calibration) -> "World":
    """The trace, or what is asked for of it, with the speeds that the simulator would take."""
    from boa.catalogue.reading import Reading
    from boa.catalogue.traces import read_trace
    from boa.sim.run import world_of

    with working("reading trace and profiles"), worlds.naming_flags(trace):
        read = read_trace(trace, Reading(profiles=excerpt.profiles))
        world = world_of(
            restricted(read, excerpt.models, excerpt.limit),
            excerpt.profiles,
            excerpt.gpus,
            slowdown=calibration.slowdown,
            rescale=calibration.rescale_s,
        )
    note_drawn(read)
    if late := worlds.late_start(world.trace):
        note(late)
    return world


def restricted(trace: "Trace", models: Sequence[str] | None, limit: int | None) -> "Trace":
    """Only the first jobs of these models; an application goes by its class's name too."""
    from boa.catalogue.calibration import class_name
    from boa.model.trace import Trace

    names = {app: {app, class_name(app)} for app in trace.counts()}
    for model in models or ():
        if not any(model in known for known in names.values()):
            raise InputError("--models", model, f"one of {', '.join(names)}")
    wanted = {app for app, known in names.items() if models is None or known & set(models)}
    return Trace(tuple(job for job in trace.jobs if job.application in wanted)[:limit])
