"""Where the public traces and profiles lie, and the paper's settings made of them.

None of these files is part of the project. A setting is a trace, profiles, GPU types and the
rival whose home it is; a run may cut, thin or redraw the trace, always in the same way for every
policy.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from boa.catalogue import read_profiles, workload_from_trace
from boa.catalogue.arrivals import spec_like, synthetic_jobs, synthetic_trace
from boa.catalogue.calibration import Slowdown
from boa.catalogue.reading import WHOLE, Reading
from boa.catalogue.traces import read_trace
from boa.errors import FileError
from boa.model.trace import Trace
from boa.model.workload import Workload
from boa.paper.alike import alike
from boa.sim.run import World, world_of
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds

KEPT = 40
"""Traces and worlds that a process keeps: making one takes as long as many a run on it."""
VARIABLE = "BOA_PAPER_DATA"
BESIDE = Path("../shared/data")
NEEDED = "sia/workloads/newtrace", "sia/traces", "pollux/workloads", "rubick/workloads"
LAYOUT = (
    "a folder (--data, or $BOA_PAPER_DATA) with sia/workloads/newtrace/workload-1..5.csv and "
    "sia/traces/APP/ (Sia artifact, SOSP'23), pollux/workloads/workload-1.csv (Pollux artifact, "
    "OSDI'21), rubick/workloads/workload-base.csv and rubick/iteration_times/ (Rubick artifact, "
    "MLSys'25); studies of other traces also take sia/workloads/saturn/ and itp/cluster01..07.csv "
    "(Microsoft's elasticflow-traces)"
)
Redrawn: TypeAlias = float | Literal["own"] | None
"""C² of arrivals drawn anew; "own": the trace's; None: the arrivals of the trace itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A trace on GPU types: one of the paper's, or of our own studies."""

    trace: str
    """Where it lies; {draw} is filled in."""
    profiles: str
    gpus: tuple[GpuName, ...]
    slowdown: Slowdown
    rival: str
    readings: tuple[str, ...] = ()
    """Other readings of the rival's rule; at every spend the best counts."""
    only: tuple[str, ...] = ()
    """The applications that are kept; none: all."""
    window: Reading = WHOLE
    """The part of a log that is read."""
    times: float | None = None
    """So many times the arrivals per hour, of jobs drawn anew like those of the trace."""
    jobs: int | None = None
    """How many of those."""

    @property
    def counts_gpus(self) -> bool:
        return len(self.gpus) == 1


NEWTRACE = "sia/workloads/newtrace/workload-{draw}.csv"
SETTINGS: Mapping[str, Setting] = {
    "pollux": Setting(
        trace=NEWTRACE,
        profiles="sia/traces",
        gpus=("T4",),
        slowdown="sia",
        rival="pollux-autoscale",
    ),
    "sia": Setting(
        trace=NEWTRACE,
        profiles="sia/traces",
        gpus=("T4", "V100", "A100"),
        slowdown="sia",
        rival="sia-autoscale",
    ),
    "rubick": Setting(
        trace="rubick/workloads/workload-base.csv",
        profiles="rubick",
        gpus=("A800",),
        slowdown="none",
        rival="rubick-autoscale",
        readings=("rubick-autoscale-by-base",),
    ),
    "implementation": Setting(
        trace="pollux/workloads/workload-1.csv",
        profiles="sia/traces",
        gpus=("T4",),
        slowdown="sia",
        rival="pollux-autoscale",
        only=("cifar10", "deepspeech2", "bert"),
    ),
}


WEEKS = {1: 2, 2: 3, 3: 4, 4: 4, 5: 3, 6: 3, 7: 4}
"""Weeks of ITP's clusters, counted from 0: of 1 to 4 the one whose first three days have most jobs,
but at most a thousand."""
ITP = tuple(f"itp-{cluster}" for cluster in WEEKS)
TIMES = {10: 1_500, 100: 2_500, 1_000: 5_000}
"""Synthetic streams, with how many jobs of each are simulated."""
SYNTHETIC = tuple(f"synthetic-{times}" for times in TIMES)


def _itp(cluster: int, week: int) -> Setting:
    return replace(
        SETTINGS["pollux"],
        trace=f"itp/cluster{cluster:02}.csv",
        window=Reading(from_h=24.0 * 7 * week, hours=72.0),
    )


def _synthetic(times: float, jobs: int) -> Setting:
    return replace(SETTINGS["pollux"], times=times, jobs=jobs)


SETTINGS = {
    **SETTINGS,
    **dict(zip(ITP, (_itp(*each) for each in WEEKS.items()), strict=True)),
    **dict(zip(SYNTHETIC, (_synthetic(*each) for each in TIMES.items()), strict=True)),
    "saturn": replace(
        SETTINGS["sia"],
        trace="sia/workloads/saturn/workload-{draw}.csv",
        gpus=("T4", "A100"),
    ),
}


def find_data(given: Path | None) -> Path:
    """The folder of public data, or an error that says which artifacts it is made of."""
    said = given or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    folder = said or BESIDE
    for part in NEEDED:
        if not (folder / part).is_dir():
            raise FileError(str(folder), f"there is no folder {part} in it", LAYOUT)
    return folder.resolve()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The part of a setting's trace that is replayed."""

    draw: int = 1
    """Which of the published draws; of arrivals drawn anew, their seed too."""
    redrawn: Redrawn = None
    hours: float | None = None
    """Only what arrives in the first so many hours."""
    every: int = 1
    """One job in so many, of each application alike."""


def trace_file(data: Path, setting: str, cut: Cut) -> Path:
    chosen = SETTINGS[setting]
    drawn_anew = cut.redrawn is not None or chosen.times is not None
    return data / chosen.trace.format(draw=1 if drawn_anew else cut.draw)


@lru_cache(maxsize=KEPT)
def trace_of(data: Path, setting: str, cut: Cut) -> Trace:
    chosen = SETTINGS[setting]
    path = trace_file(data, setting, cut)
    if not path.is_file():
        raise FileError(str(path), "no such file", LAYOUT)
    trace = read_trace(path, chosen.window)
    if chosen.times is not None:
        trace = _denser(trace, chosen.times, chosen.jobs, cut.draw)
    if chosen.only:
        trace = Trace(tuple(job for job in trace.jobs if job.application in chosen.only))
    if cut.every > 1:
        trace = _thinned(trace, cut.every)
    if cut.redrawn is not None:
        own = trace.interarrival_cv2() or 1.0
        trace = _redrawn(trace, max(1.0, own if cut.redrawn == "own" else cut.redrawn), cut.draw)
    if cut.hours is not None:
        end = cut.hours * SECONDS_PER_HOUR
        trace = Trace(tuple(job for job in trace.jobs if job.arrival_s < end))
    return trace


def _denser(trace: Trace, times: float, jobs: int | None, seed: int) -> Trace:
    """Jobs like the trace's, as bursty, so many times as often."""
    rate = times * sum(trace.arrivals_per_hour().values())
    cv2 = max(1.0, trace.interarrival_cv2() or 1.0)
    return synthetic_trace(spec_like(trace, jobs=jobs, arrivals_per_hour=rate, cv2=cv2), seed)


def _thinned(trace: Trace, every: int) -> Trace:
    """Every n-th job by application, the mix kept; sped up, so that the rate is kept too."""
    by_application = sorted(trace.jobs, key=lambda job: (job.application, job.arrival_s))
    kept = sorted(by_application[every // 2 :: every], key=lambda job: job.arrival_s)
    return Trace(tuple(job.again(job.name, job.arrival_s / every) for job in kept))


def _redrawn(trace: Trace, cv2: float, seed: int) -> Trace:
    """The same jobs in another order, at other times: mix, load, rate and span stay."""
    drawn = synthetic_jobs(spec_like(trace, cv2=cv2), seed)
    times = np.array([job.arrival_s for job in drawn])
    times *= trace.span_s / times[-1]
    order: Sequence[int] = np.random.default_rng([seed, 1]).permutation(len(times)).tolist()
    again = [
        trace.jobs[n].again(f"{trace.jobs[n].application}-{number}", at)
        for number, (n, at) in enumerate(zip(order, times.tolist(), strict=True))
    ]
    return Trace(tuple(again))


@lru_cache(maxsize=KEPT)
def world_for(
    data: Path, setting: str, cut: Cut, rescale: Seconds | None = None, epochs: bool = True
) -> World:
    """`epochs`: False makes all epochs of a job like its average one."""
    chosen = SETTINGS[setting]
    world = world_of(
        trace_of(data, setting, cut),
        data / chosen.profiles,
        chosen.gpus,
        slowdown=chosen.slowdown,
        rescale=rescale,
    )
    if epochs:
        return world
    return replace(world, truths={app: alike(truth) for app, truth in world.truths.items()})


@lru_cache(maxsize=4)
def workload_for(data: Path, setting: str, draw: int = 1) -> Workload:
    """The workload that `boa workload from-trace` makes of the setting: for studies without
    simulation."""
    chosen = SETTINGS[setting]
    trace = trace_of(data, setting, Cut(draw=draw))
    learned = read_profiles(
        data / chosen.profiles, applications=set(trace.counts()), gpus=chosen.gpus
    )
    return workload_from_trace(trace, learned, chosen.gpus, slowdown=chosen.slowdown)
