"""A stream of jobs, and what each way to run it has come to: for bench/ray_autoscaler.py.

Jobs are catalogue classes acted out in compressed time (`boa.train.replay`), some shortened and one
lengthened so that a stream fits into minutes: the same work, speeds and arrivals whoever runs them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from _rays import Launched
from _table import Cell
from boa.catalogue.offers import gpu_types
from boa.catalogue.priors import catalogue_profile
from boa.model.job import JobSpec
from boa.model.profile import ClassProfile
from boa.sim.replay_jobs import replay_spec, write_profiles

GPU = "T4"
SCALES = {"resnet18": 0.4, "bert": 0.2, "deepspeech2": 0.15, "yolov3": 0.08, "neumf": 20.0}
"""Classes, and how much of a training a job is: 26 to 52 minutes each on one GPU."""
WIDTHS = (1, 2, 4)
WIDEST = 8
"""A process starts for every GPU, and this machine has few cores: more would be slow to start."""
CAREFUL = 0.8
"""Who chooses with care takes the most GPUs that are used this well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A job that is over; times of the wall."""

    submitted_at: float
    ended_at: float
    gpu_s: float
    """GPUs times how long it held them."""
    starts: int = 1


@dataclass(frozen=True, slots=True)
class Stream:
    jobs: Sequence[tuple[float, JobSpec]]
    """When each arrives (seconds of job time), and what it runs."""
    profiles: Mapping[str, ClassProfile]
    files: Mapping[str, Path]
    span_s: float
    """Arrivals come within it."""

    def per_hour(self) -> dict[str, float]:
        arrived = [spec.job_class for _, spec in self.jobs]
        return {name: arrived.count(name) / (self.span_s / 3600) for name in self.profiles}


def stream(jobs: int, span_s: float, seed: int, folder: Path) -> Stream:
    """Every class equally often, in any order, at any time within the span; the first at 0."""
    random = np.random.default_rng(seed)
    profiles = {name: _scaled(name, scale) for name, scale in SCALES.items()}
    files = write_profiles(profiles, folder)
    classes = random.permutation([list(SCALES)[n % len(SCALES)] for n in range(jobs)])
    arrivals = np.sort(random.uniform(0, span_s, jobs))
    arrivals -= arrivals[0]
    specs = [
        _capped(replay_spec(profiles[name], files[name], name=f"{name}-{n}"))
        for n, name in enumerate(map(str, classes))
    ]
    return Stream(list(zip(map(float, arrivals), specs, strict=True)), profiles, files, span_s)


def _capped(spec: JobSpec) -> JobSpec:
    return replace(spec, gpus=replace(spec.gpus, max=WIDEST))


def _scaled(name: str, scale: float) -> ClassProfile:
    found = catalogue_profile(name, gpu_types([GPU]))
    assert found is not None
    return replace(found, work=tuple(work * scale for work in found.work))


def minutes(profile: ClassProfile, width: int) -> float:
    """A whole job on so many GPUs of one node, its start left out."""
    rates = profile.rates[GPU][:, 0, width]
    assert rates.all()
    return float(np.sum(np.asarray(profile.work) / rates)) / 60


def careful(profile: ClassProfile) -> int:
    """The most GPUs, of those that anybody would ask for, that are all used well."""
    alone = minutes(profile, 1)
    return max(k for k in WIDTHS if alone / (k * minutes(profile, k)) >= CAREFUL)


def row(
    nodes: Sequence[Launched], ran: Sequence[Ran], *, speed: float, gpus: int, price: float
) -> dict[str, Cell]:
    """What was rented, as the provider has written it down, and how the jobs fared."""
    rented = [((node.terminated_at or 0) - node.asked_at) * gpus * speed / 3600 for node in nodes]
    launches = [node.up_at - node.asked_at for node in nodes]
    used = sum(job.gpu_s for job in ran) * speed / 3600
    jct = [(job.ended_at - job.submitted_at) * speed / 60 for job in ran]
    return {
        "jobs": len(ran),
        "gpu_h_rented": round(sum(rented), 2),
        "gpu_h_used": round(used, 2),
        "idle_share": round(1 - used / sum(rented), 3),
        "usd": round(sum(rented) * price, 2),
        "mean_jct_min": round(float(np.mean(jct)), 2),
        "p95_jct_min": round(float(np.percentile(jct, 95)), 2),
        "launched": len(nodes),
        "launch_min": round(float(np.median(launches)) * speed / 60, 2),
        "most_nodes": most_at_once(nodes),
        "starts_per_job": round(float(np.mean([job.starts for job in ran])), 2),
    }


def most_at_once(nodes: Sequence[Launched]) -> int:
    return max(
        sum(
            other.asked_at <= node.asked_at
            and (other.terminated_at is None or other.terminated_at > node.asked_at)
            for other in nodes
        )
        for node in nodes
    )
