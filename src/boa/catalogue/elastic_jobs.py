"""Elastic jobs from a cluster's log, which tells no more than when, how long and on how many GPUs.

The recipe is that of Pollux and Sia: what a job has cost in GPU-hours says which model it may have
been, and width and batch size are drawn from those that a user of that model would ask for.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from boa.catalogue.asked_sizes import AskedSize, asked_sizes
from boa.catalogue.figures import known_figures
from boa.catalogue.measured_profiles import AdaptiveProfile, Profiles, fitted_truth, read_truth
from boa.errors import FileError
from boa.model.trace import Drawn, Trace, TraceJob
from boa.units import SECONDS_PER_HOUR, Seconds

RecipeName: TypeAlias = Literal["sia", "pollux"]
LEAST_S: Seconds = 60.0
MOST_GPU_HOURS = 1000.0
SIZES_LEFT_OUT = f"under {LEAST_S:g} s or over {MOST_GPU_HOURS:,.0f} GPU-hours"

_LARGER = ((10.0, ("deepspeech2", "bert")), (100.0, ("yolov3",)), (math.inf, ("imagenet",)))
RECIPES: Mapping[RecipeName, Sequence[tuple[float, tuple[str, ...]]]] = {
    "sia": ((1.0, ("cifar10",)), *_LARGER),
    "pollux": ((1.0, ("cifar10", "ncf")), *_LARGER),
}
"""Below so many GPU-hours a job is one of these applications, each as likely as the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedJob:
    """One job of a cluster's log."""

    name: str
    arrival_s: Seconds
    duration_s: Seconds
    gpus: int
    line: int

    @property
    def gpu_hours(self) -> float:
        return self.gpus * self.duration_s / SECONDS_PER_HOUR

    @property
    def kept(self) -> bool:
        return self.duration_s >= LEAST_S and self.gpu_hours <= MOST_GPU_HOURS


def elastic_trace(
    path: str, logged: Sequence[LoggedJob], recipe: RecipeName, seed: int, profiles: Path | None
) -> Trace:
    """The log's jobs as elastic ones; `path`: what errors call the log.

    Every job has two numbers of its own, drawn from the seed in order of arrival: one for the
    application, one for what is asked for. So the applications do not depend on the profiles.
    """
    if not any(job.kept for job in logged):
        problem = f"{len(logged):,} jobs, all {SIZES_LEFT_OUT}"
        raise FileError(path, problem, "at least one that is neither")
    in_order = sorted(logged, key=lambda job: job.arrival_s)
    coins, picks = np.random.default_rng(seed).random((2, len(in_order)))
    asked = _all_asked(recipe, profiles)
    jobs = tuple(
        _elastic(job, _drawn(_possible(recipe, job.gpu_hours), coin), asked, pick)
        for job, coin, pick in zip(in_order, coins.tolist(), picks.tolist(), strict=True)
        if job.kept
    )
    left_out = len(in_order) - len(jobs)
    return Trace(jobs, drawn=Drawn(recipe=recipe, seed=seed, left_out=left_out))


def _possible(recipe: RecipeName, gpu_hours: float) -> tuple[str, ...]:
    return next(names for below, names in RECIPES[recipe] if gpu_hours < below)


def _elastic(
    job: LoggedJob, application: str, asked: Mapping[str, tuple[AskedSize, ...]], pick: float
) -> TraceJob:
    """Its duration is gone: it was that of another model on other GPUs."""
    sizes = asked[application]
    size = sizes[int(pick * len(sizes))]
    return TraceJob(
        name=job.name,
        arrival_s=job.arrival_s,
        application=application,
        gpus=size.gpus,
        batch_size=size.batch_size,
        line=job.line,
    )


def _drawn(applications: tuple[str, ...], coin: float) -> str:
    return applications[int(coin * len(applications))]


def _all_asked(recipe: RecipeName, profiles: Path | None) -> Mapping[str, tuple[AskedSize, ...]]:
    """By application, on the first GPU type that each was measured on."""
    applications = [name for _, names in RECIPES[recipe] for name in names]
    known = (
        fitted_truth(known_figures()) if profiles is None else read_truth(profiles, applications)
    )
    return {name: _asked(name, known, profiles) for name in applications}


def _asked(application: str, known: Profiles, profiles: Path | None) -> tuple[AskedSize, ...]:
    profile = known.applications.get(application)
    if not isinstance(profile, AdaptiveProfile):
        problem = f"no profile of {application}, which jobs of the trace become"
        raise FileError(str(profiles), problem, "profiles of Sia's and Pollux's models")
    gpu = next(iter(profile.timings))
    return asked_sizes(application, profile, gpu, known.gpus_per_node[gpu])
