"""Worlds to simulate in, read from a trace and profiles; errors in the words of the options."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boa.cli.console import note, working
from boa.cli.simulate.trace_reading import note_drawn
from boa.errors import InputError
from boa.units import GpuName, Seconds, UsdPerHour

if TYPE_CHECKING:
    from boa.model.trace import Trace
    from boa.sim.run import World


def world(
    trace: Path,
    profiles: Path | None,
    gpus: Sequence[GpuName] | None,
    nodes: Mapping[GpuName, int] | None = None,
    *,
    slowdown: Any = None,
    rescale: Seconds | None = None,
    prices: Mapping[GpuName, UsdPerHour] | None = None,
) -> "World":
    """Trace and profiles, on the GPU types of the cluster if one is given."""
    from boa.catalogue.reading import Reading
    from boa.catalogue.traces import read_trace
    from boa.sim.run import world_of

    for gpu in nodes or ():
        if gpus is not None and gpu not in gpus:
            raise InputError("--nodes", gpu, f"a GPU type of --gpus: {', '.join(gpus)}")
    with working("reading trace and profiles"), naming_flags(trace, "--nodes" if nodes else ""):
        chosen = gpus if nodes is None else list(nodes)
        read = read_trace(trace, Reading(profiles=profiles))
        found = world_of(read, profiles, chosen, slowdown=slowdown, rescale=rescale, prices=prices)
    note_drawn(read)
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
