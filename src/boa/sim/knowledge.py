"""Everything known in a simulation: the truth of every class, and what has been learned of it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from boa.catalogue.calibration import (
    RIGID_BATCH,
    Slowdown,
    class_name,
    default_slowdown,
    rescale_s,
    slowdown_factor,
)
from boa.catalogue.estimate import job_class, packed_curves
from boa.catalogue.measured_profiles import AdaptiveProfile, Profile, Profiles
from boa.errors import InputError
from boa.model.cluster import Shape
from boa.model.trace import Trace, TraceJob
from boa.model.workload import GpuType, JobClass, Workload
from boa.sim.class_learner import ClassLearner
from boa.sim.learners import Fits, JobLearner, Learner, PerfectLearner, noise_factors
from boa.sim.physics import AdaptiveTruth, PlanTruth, TableTruth, Truth
from boa.sim.rigid_learner import RigidLearner, asked_batch
from boa.sim.settings import Settings
from boa.units import GpuName, PerHour, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedArrivals:
    """Expectations of the jobs to come: the rates and sizes of the past."""

    per_hour: Mapping[str, PerHour]
    """Arrivals per hour, by application."""
    mean_steps: Mapping[str, float]
    """Where the work is a number of steps."""

    @classmethod
    def of(cls, trace: Trace) -> "ExpectedArrivals":
        means = {app: trace.mean_steps(app) for app in trace.counts()}
        return cls(
            per_hour=trace.arrivals_per_hour() if trace.span_s > 0 else {},
            mean_steps={app: mean for app, mean in means.items() if mean is not None},
        )


def truths_of(
    profiles: Profiles,
    gpu_types: Mapping[GpuName, GpuType],
    *,
    slowdown: Slowdown | None,
    rescale: Seconds | None,
) -> dict[str, Truth]:
    """By application; only what concerns these GPU types."""
    calibration = slowdown or default_slowdown(profiles.system)
    return {
        app: _truth(
            app,
            profile,
            gpu_types,
            rescale_s(profiles.system, app) if rescale is None else rescale,
            slowdown_factor(calibration, app),
        )
        for app, profile in profiles.applications.items()
    }


def _truth(
    app: str,
    profile: Profile,
    gpu_types: Mapping[GpuName, GpuType],
    rescaling: Seconds,
    slowdown: float,
) -> Truth:
    per_node = {gpu: kind.gpus_per_node for gpu, kind in gpu_types.items()}
    if not isinstance(profile, AdaptiveProfile):
        return PlanTruth(
            name=class_name(app),
            application=app,
            rescale_s=rescaling,
            slowdown=slowdown,
            plans={gpu: plans for gpu, plans in profile.plans.items() if gpu in gpu_types},
            gpus_per_node=per_node,
        )
    return AdaptiveTruth(
        name=class_name(app),
        application=app,
        rescale_s=rescaling,
        slowdown=slowdown,
        convergence=profile.convergence,
        timings={gpu: t for gpu, t in profile.timings.items() if gpu in gpu_types},
        limits={gpu: limit for gpu, limit in profile.limits.items() if gpu in gpu_types},
        measured_to=profile.measured_to,
        gpus_per_node=per_node,
    )


class Knowledge:
    """Hands every job its learner, and forecasts the workload for those who plan."""

    def __init__(
        self,
        truths: Mapping[str, Truth],
        gpu_types: Mapping[GpuName, GpuType],
        arrivals: ExpectedArrivals,
        settings: Settings,
        *,
        like_sia: bool = False,
        own_batch: bool = False,
    ) -> None:
        """`like_sia`, `own_batch`: as in `PolicyFacts`."""
        self.gpu_types, self.arrivals, self.settings = gpu_types, arrivals, settings
        self._truths = truths
        self._fits = Fits()
        self._like_sia, self.own_batch = like_sia, own_batch
        self._rigid: dict[tuple[str, int, int], RigidLearner] = {}
        self._shared: dict[str, ClassLearner | PerfectLearner] = {}
        self._speedups: dict[tuple[str, GpuName, Shape], list[float]] = {}
        self._workload: tuple[int, Workload] | None = None
        """The last that was forecast, and the version that it is of."""

    def truth(self, asked: TraceJob) -> Truth:
        found = self._truths.get(asked.application)
        if found is None:
            expected = f"an application with profiles: {', '.join(self._truths)}"
            raise InputError(f"job {asked.name}", asked.application, expected)
        return found

    def learner(self, truth: Truth, asked: TraceJob) -> Learner:
        if self.own_batch and isinstance(truth, AdaptiveTruth):
            return self._rigid_learner(truth, asked)
        if self.settings.learning == "job" and isinstance(truth, AdaptiveTruth):
            return JobLearner(
                truth,
                self._fits,
                batch_cap=asked.batch_size if self._like_sia else None,
                rigid_batch=RIGID_BATCH.get(truth.application),
                profiled=self._like_sia,
            )
        return self._class(truth)

    def _rigid_learner(self, truth: AdaptiveTruth, asked: TraceJob) -> RigidLearner:
        key = (truth.application, asked_batch(truth, asked), asked.gpus or 1)
        known = self._rigid.get(key)
        if known is None:
            known = self._rigid[key] = RigidLearner(truth, *key[1:])
        return known

    def tried_before(self, truth: Truth) -> Mapping[GpuName, int]:
        """Widths that earlier jobs of the class have tried, for those who share what they learn."""
        if self.settings.learning == "job" and isinstance(truth, AdaptiveTruth):
            return {}
        return {gpu: truth.widest(gpu) for gpu in self.gpu_types}

    def _class(self, truth: Truth) -> ClassLearner | PerfectLearner:
        known = self._shared.get(truth.name)
        if known is None:
            known = self._shared[truth.name] = self._new(truth)
        return known

    def _new(self, truth: Truth) -> ClassLearner | PerfectLearner:
        if self.settings.learning == "class" and isinstance(truth, AdaptiveTruth):
            return ClassLearner(truth)
        noise = None
        if self.settings.noise:
            widths = {gpu: truth.widest(gpu) for gpu in self.gpu_types}
            noise = noise_factors(self.settings.noise, widths, self.settings.seed, truth.name)
        return PerfectLearner(truth, noise, self.settings.noise)

    def refresh(self) -> None:
        for learner in self._shared.values():
            learner.refresh()

    def true_speedup(self, truth: Truth, gpu: GpuName, shape: Shape, epoch: int) -> float:
        """s̃: how many times faster than at its base width a job runs on this placement."""
        key = (truth.name, gpu, shape)
        known = self._speedups.get(key)
        if known is None:
            rates = zip(truth.best_on(gpu, shape), truth.base_rates(gpu), strict=True)
            known = self._speedups[key] = [rate / base if base else 0.0 for rate, base in rates]
        return known[min(epoch, len(known) - 1)]

    # The forecast, for policies that plan

    @property
    def _extra_s(self) -> Seconds:
        """Added to a start: where nodes come with their jobs, they boot first."""
        settings = self.settings
        return settings.cold_s + (settings.provision_s if settings.billing == "gpu" else 0.0)

    @property
    def version(self) -> int:
        return sum(learner.version for learner in self._shared.values())

    def units(self, job_class: str) -> tuple[float, ...]:
        """Nothing: nobody asks a simulation how far its jobs are by the plan."""
        return ()

    def workload(self, now: Seconds = 0.0, active: Collection[str] | None = None) -> Workload:
        """All classes of the trace, at its own rates of arrival, at any time.

        A start is taken to be on a fresh node: those who plan give empty nodes back at once.
        """
        known = self._workload
        if known is None or known[0] != self.version:
            found = self._workload_now()
            known = self._workload = (self.version, found)
        return known[1]

    def _workload_now(self) -> Workload:
        rates = self.arrivals.per_hour
        if not rates:
            expected = "arrivals that spread over time: a plan is made for their rates"
            raise InputError("trace", "jobs that all arrive at time 0", expected)
        classes: list[JobClass] = []
        hopes: dict[str, JobClass] = {}
        for app in sorted(rates, key=lambda app: (-rates[app], app)):
            as_expected, as_hoped = self._forecast(app, rates[app])
            classes.append(as_expected)
            if as_hoped is not None:
                hopes[as_expected.name] = as_hoped
        return Workload(gpu_types=self.gpu_types, classes=tuple(classes), hopes=hopes)

    def _forecast(self, app: str, per_hour: PerHour) -> tuple[JobClass, JobClass | None]:
        """A class as it is expected, and as a trial may find it; None: all is known."""
        truth = self._truths[app]
        learner = self._class(truth)
        if isinstance(truth, AdaptiveTruth):
            work = truth.convergence.epoch_progress
        elif isinstance(truth, TableTruth):
            work = truth.mean_work
        else:
            work = np.array([self.arrivals.mean_steps[app]])
        tables = {
            gpu: learner.forecast(gpu, kind.gpus_per_node)
            for gpu, kind in self.gpu_types.items()
            if truth.widest(gpu)
        }

        def made(which: int) -> JobClass:
            curves = {
                gpu: packed_curves(found[which], self.gpu_types[gpu].gpus_per_node)
                for gpu, found in tables.items()
            }
            return job_class(
                truth.name,
                arrivals_per_hour=per_hour,
                rescaling=truth.rescale_s + self._extra_s,
                curves=curves,
                work=work,
                exact=True,
            )

        unsure = any(expected is not hoped for expected, hoped in tables.values())
        return made(0), made(1) if unsure else None
