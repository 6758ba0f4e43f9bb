"""From a trace and measured speeds to replay jobs: class profiles, files, and what to submit."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from boa.atomic_file import replace_file
from boa.catalogue.rounding import rounded
from boa.formats.parts import VERSION
from boa.formats.profile import profile_document
from boa.formats.service_fields import PRIOR_WEIGHTS
from boa.model.job import JobSpec
from boa.model.profile import ClassProfile
from boa.model.trace import Trace, TraceJob
from boa.model.workload import GpuType
from boa.sim.physics import Truth, gpu_limits
from boa.sim.run import World
from boa.train import replay
from boa.units import GpuName, Seconds

DIGITS = 12
"""Digits of rates in files: what has more than 15 takes a process three times as long to read."""
GRACE_S = 10.0
"""Far more than a replay job takes to save a few bytes, however busy the machine."""


def profile_of(truth: Truth, asked: TraceJob, gpu_types: Mapping[GpuName, GpuType]) -> ClassProfile:
    """How fast a job really runs, on every type that it can run on."""
    return ClassProfile(
        name=truth.name,
        work=tuple(float(work) for work in truth.work(asked)),
        rates={gpu: truth.rates(gpu) for gpu in gpu_types if truth.widest(gpu)},
        rescale_s=truth.rescale_s,
    )


def profiles_of(world: World) -> dict[str, ClassProfile]:
    """By application. Where jobs differ in their work, that of the mean job."""
    return {
        app: profile_of(world.truths[app], _mean_job(world.trace, app), world.gpu_types)
        for app in world.trace.counts()
    }


def _mean_job(trace: Trace, application: str) -> TraceJob:
    like = next(job for job in trace.jobs if job.application == application)
    mean = trace.mean_steps(application)
    return like if mean is None else replace(like, steps=round(mean))


def write_profiles(profiles: Mapping[str, ClassProfile], folder: Path) -> dict[str, Path]:
    """One file per class, each whole or not at all: running jobs may read them again any time."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, Path] = {}
    for app, exact in profiles.items():
        rates = {gpu: rounded(table, DIGITS) for gpu, table in exact.rates.items()}
        profile = replace(exact, rates=rates)
        path = written[app] = (folder / f"{profile.name}.json").resolve()
        replace_file(path, json.dumps(profile_document(profile), separators=(",", ":")))
    return written


def replay_spec(
    profile: ClassProfile, file: Path, *, name: str = "", work: float | None = None
) -> JobSpec:
    """A job that acts out the profile in this file; `work`, where it is not the profile's own."""
    total = sum(profile.work)
    scaled = () if work is None or work == total else ("--scale", repr(work / total))
    return JobSpec(
        job_class=profile.name,
        # Isolated and without site-packages: it starts in a fraction of the time.
        run=(sys.executable, "-I", "-S", os.path.abspath(replay.__file__), str(file), *scaled),
        name=name,
        gpus=gpu_limits(profile.rates),
        launcher="single",
        epochs=len(profile.work),
        total_work=total if work is None else work,
        grace_s=GRACE_S,
    )


def replay_jobs(world: World, folder: Path) -> Iterator[tuple[Seconds, JobSpec]]:
    """The trace's jobs in order of arrival, with the time of it; profiles go into the folder."""
    profiles = profiles_of(world)
    files = write_profiles(profiles, folder)
    for job in world.trace.jobs:
        truth = world.truths[job.application]
        yield (
            job.arrival_s,
            replay_spec(
                profiles[job.application],
                files[job.application],
                name=job.name,
                work=sum(truth.work(job).tolist()),
            ),
        )


def service_document(
    world: World, files: Mapping[str, Path], *, perfect: bool = False
) -> dict[str, Any]:
    """The `boa.yaml` of a service that runs the world's jobs as the simulator does.

    `perfect`: it knows every class for good; otherwise what jobs report soon overrules the files.
    """
    rates = world.trace.arrivals_per_hour() if world.trace.span_s > 0 else {}
    sure = PRIOR_WEIGHTS if perfect else {}
    return {
        "version": VERSION,
        "gpu_types": {
            gpu: {"price": kind.price, "gpus_per_node": kind.gpus_per_node}
            for gpu, kind in world.gpu_types.items()
        },
        "classes": {
            world.truths[app].name: {
                "profile": str(file),
                "arrivals_per_hour": rates.get(app),
                **sure,
            }
            for app, file in files.items()
        },
    }
