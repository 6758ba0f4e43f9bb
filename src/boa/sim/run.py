"""From a trace, profiles and a policy's name to a report: what `boa simulate` calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boa.catalogue.calibration import Slowdown
from boa.catalogue.estimate import check_gpus
from boa.catalogue.figures import known_figures
from boa.catalogue.formats import RUBICK_GPU
from boa.catalogue.offers import gpu_types
from boa.catalogue.truth import Profiles, fitted_truth, read_truth
from boa.errors import InputError
from boa.model.trace import Trace
from boa.model.workload import GpuType
from boa.sim.knowledge import Arrivals, Knowledge, truths_of
from boa.sim.policies import Choice
from boa.sim.report import Report
from boa.sim.settings import Settings
from boa.sim.simulator import Listener, Progress, Simulation
from boa.sim.truth import Truth
from boa.units import GpuName, Seconds, UsdPerHour


@dataclass(frozen=True, kw_only=True)
class World:
    """What does not change between runs on one trace: profiles, GPU types, prices."""

    trace: Trace
    truths: Mapping[str, Truth]
    gpu_types: Mapping[GpuName, GpuType]


def world_of(
    trace: Trace,
    profiles: str | Path | None,
    gpus: Sequence[GpuName] | None = None,
    *,
    slowdown: Slowdown | None = "sia",
    rescale: Seconds | None = None,
    prices: Mapping[GpuName, UsdPerHour] | None = None,
) -> World:
    applications = trace.counts()
    known = _profiles(trace, profiles, gpus)
    for job in trace.jobs:
        if job.application not in known.applications:
            where = f"line {job.line} ({job.name})" if job.line else f"job {job.name}"
            expected = f"an application with profiles: {', '.join(known.available)}"
            raise InputError(f"trace, {where}, column application", job.application, expected)
    chosen = tuple(gpus) if gpus else known.gpu_names[:1]
    check_gpus(chosen, known.gpu_names)
    types = gpu_types(chosen, prices, known.gpus_per_node)
    truths = truths_of(known, types, slowdown=slowdown, rescale=rescale)
    for app in applications:
        if not any(truths[app].widest(gpu) for gpu in types):
            raise InputError("gpus", ",".join(chosen), f"a GPU type that {app} was measured on")
    return World(trace=trace, truths=truths, gpu_types=types)


def _profiles(
    trace: Trace, profiles: str | Path | None, gpus: Sequence[GpuName] | None
) -> Profiles:
    if profiles is not None:
        return read_truth(profiles, trace.counts())
    if set(gpus or ()) == {RUBICK_GPU} or any(job.steps is not None for job in trace.jobs):
        return fitted_truth(known_figures("rubick"))
    return fitted_truth(known_figures("sia"))


def simulate(
    world: World,
    choice: Choice,
    settings: Settings,
    *,
    progress: Progress | None = None,
    listener: Listener | None = None,
    keep_jcts: bool = False,
) -> Report:
    """Replay the world's trace under a policy."""
    settings = replace(settings, retune=settings.learning == "job")
    knowledge = Knowledge(
        world.truths,
        world.gpu_types,
        Arrivals.of(world.trace),
        settings,
        cap_batch=choice.caps_batch,
    )
    simulation = Simulation(
        world.trace.jobs,
        knowledge,
        choice.policy,
        settings,
        span_s=world.trace.span_s,
        listener=listener,
        keep_jcts=keep_jcts,
    )
    return simulation.run(progress)
