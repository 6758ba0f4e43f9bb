"""From a trace, profiles and a policy's name to a report: what `boa simulate` calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from boa.catalogue.calibration import Slowdown
from boa.catalogue.estimate import check_gpus
from boa.catalogue.figures import known_figures
from boa.catalogue.formats import RUBICK_GPU
from boa.catalogue.measured_profiles import Profiles, fitted_truth, read_truth
from boa.catalogue.offers import gpu_types
from boa.errors import InputError
from boa.model.trace import Trace
from boa.model.workload import GpuType, Workload
from boa.policy.registry import Choice
from boa.sim.knowledge import ExpectedArrivals, Knowledge, truths_of
from boa.sim.physics import AdaptiveTruth, PlanTruth, Truth
from boa.sim.recording import Listener
from boa.sim.report import SimulationReport
from boa.sim.scheduled import ScheduledSimulation, Watch
from boa.sim.settings import Settings
from boa.sim.simulator import Progress, QuickSimulation
from boa.units import GpuName, Seconds, UsdPerHour


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything that does not change between runs on one trace: profiles, GPU types, prices."""

    trace: Trace
    truths: Mapping[str, Truth]
    gpu_types: Mapping[GpuName, GpuType]
    slowdown: Slowdown = "sia"
    rescale: Seconds | None = None
    """Seconds that replace every class's own rescaling time, if given."""

    @cached_property
    def workload(self) -> Workload:
        """The trace's own, as whoever knows everything would write it down; without boots."""
        arrivals, settings = _expected(self.trace), Settings(learning="perfect")
        return Knowledge(self.truths, self.gpu_types, arrivals, settings).workload()


def world_of(
    trace: Trace,
    profiles: str | Path | None,
    gpus: Sequence[GpuName] | None = None,
    *,
    slowdown: Slowdown | None = None,
    rescale: Seconds | None = None,
    prices: Mapping[GpuName, UsdPerHour] | None = None,
) -> World:
    """`slowdown` is Sia's unless another is named; Rubick's profiles have never had one."""
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
    calibration = slowdown or ("none" if known.system == "rubick" else "sia")
    truths = truths_of(known, types, slowdown=calibration, rescale=rescale)
    _check_steps(trace, truths)
    for app in applications:
        if not any(truths[app].widest(gpu) for gpu in types):
            raise InputError("gpus", ",".join(chosen), f"a GPU type that {app} was measured on")
    return World(trace=trace, truths=truths, gpu_types=types, slowdown=calibration, rescale=rescale)


def _check_steps(trace: Trace, truths: Mapping[str, Truth]) -> None:
    """Where the work is a number of iterations, every job has to say it."""
    for job in trace.jobs:
        if job.steps is None and isinstance(truths[job.application], PlanTruth):
            where = f"line {job.line} ({job.name})" if job.line else f"job {job.name}"
            raise InputError(f"trace, {where}, column steps", None, "a number of iterations")


def _profiles(
    trace: Trace, profiles: str | Path | None, gpus: Sequence[GpuName] | None
) -> Profiles:
    if profiles is not None:
        return read_truth(profiles, trace.counts())
    if set(gpus or ()) == {RUBICK_GPU} or any(job.steps is not None for job in trace.jobs):
        return fitted_truth(known_figures("rubick"))
    return fitted_truth(known_figures("sia"))


def _expected(trace: Trace) -> ExpectedArrivals:
    """Nobody plans for jobs in the background; how large such jobs are is known all the same."""
    expected, all_jobs = ExpectedArrivals.of(trace.paying), ExpectedArrivals.of(trace)
    return replace(expected, mean_steps=all_jobs.mean_steps)


def takes_scheduler(choice: Choice, settings: Settings) -> bool:
    """Whether it takes the service's own scheduler: for its limits, or for a market of nodes.

    Others decide the same whatever is billed: the bill is only what they are compared at.
    """
    return settings.scheduled or getattr(choice.policy, "at_events", False)


def simulate(
    world: World,
    choice: Choice,
    settings: Settings,
    *,
    progress: Progress | None = None,
    listener: Listener | None = None,
    keep_jcts: bool = False,
    watch: Watch | None = None,
) -> SimulationReport:
    """Replay the world's trace under a policy. `watch`: is told every step of the service's
    scheduler, if that is turned."""
    if not any(isinstance(world.truths[app], AdaptiveTruth) for app in world.trace.counts()):
        settings = replace(settings, learning="perfect")  # curves that are given need no learning
    settings = replace(settings, retune=settings.learning == "job")
    knowledge = Knowledge(
        world.truths,
        world.gpu_types,
        _expected(world.trace),
        settings,
        like_sia=choice.like_sia,
        own_batch=choice.own_batch,
    )
    scheduled = takes_scheduler(choice, settings) or world.trace.has_priorities
    kind = partial(ScheduledSimulation, watch=watch) if scheduled else QuickSimulation
    simulation = kind(
        world.trace.jobs,
        knowledge,
        choice.policy,
        settings,
        span_s=world.trace.span_s,
        budget=choice.budget,
        listener=listener,
        keep_jcts=keep_jcts,
    )
    return simulation.run(progress)
