"""Profiles as they were measured, for the simulator: no fit comes between."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from boa.catalogue.figures import AdaptiveFigures, Figures, PlanFigures, System
from boa.catalogue.formats import (
    RUBICK_GPU,
    devices_in,
    find_profiles,
    read_convergence,
    read_step_times,
    system_of,
)
from boa.catalogue.offers import OFFERS
from boa.catalogue.plan_times import read_plan_times
from boa.goodput.efficiency import Convergence
from boa.goodput.measured import FittedTimes, MeasuredTimes
from boa.goodput.plans import PlanTimes
from boa.goodput.timing import Timing
from boa.goodput.tuning import Limits
from boa.units import GpuName


@dataclass(frozen=True, kw_only=True)
class AdaptiveProfile:
    """A data-parallel model: how it converges, and how long its steps take."""

    convergence: Convergence
    timings: Mapping[GpuName, Timing]
    limits: Mapping[GpuName, Limits]
    measured_to: Mapping[GpuName, int]


@dataclass(frozen=True, kw_only=True)
class PlanProfile:
    """A model of fixed batch size under many execution plans."""

    plans: Mapping[GpuName, PlanTimes]


Profile: TypeAlias = AdaptiveProfile | PlanProfile


@dataclass(frozen=True, kw_only=True)
class Profiles:
    system: System
    applications: Mapping[str, Profile]
    available: tuple[str, ...]
    gpus_per_node: Mapping[GpuName, int]
    gpu_names: tuple[GpuName, ...]


def read_truth(folder: str | Path, applications: Collection[str]) -> Profiles:
    """Everything measured of these applications, on every GPU type."""
    found = find_profiles(folder)
    if isinstance(found, Path):
        return _rubick(found, applications)
    system = system_of(found)
    profiles: dict[str, AdaptiveProfile] = {}
    widest: dict[GpuName, int] = {}
    for path in found:
        if path.name in applications:
            profiles[path.name] = _adaptive(path, widest, everywhere=system == "pollux")
    names = dict.fromkeys(gpu for path in found for gpu in devices_in(path))
    return Profiles(
        system=system,
        applications=profiles,
        available=tuple(path.name for path in found),
        gpus_per_node={
            gpu: OFFERS[gpu].gpus_per_node if gpu in OFFERS else widest.get(gpu, 1) for gpu in names
        },
        gpu_names=tuple(names),
    )


def _adaptive(folder: Path, widest: dict[GpuName, int], *, everywhere: bool) -> AdaptiveProfile:
    """One application. `everywhere`: as Pollux, take no local batch size that was not measured on
    the widest placements too (YOLOv3: 8, though single nodes were measured up to 16)."""
    convergence = read_convergence(folder)
    timings: dict[GpuName, MeasuredTimes] = {}
    limits, measured_to = {}, {}
    for gpu, suffix in devices_in(folder).items():
        times = timings[gpu] = read_step_times(folder, suffix)
        curves = [curve for by_gpus in times.counts.values() for curve in by_gpus.values()]
        limits[gpu] = Limits(
            base_batch=convergence.base_batch,
            max_batch=convergence.max_batch,
            min_local=int(min(curve.local_batch[0] for curve in curves)),
            max_local=_largest_batch(times, everywhere),
        )
        measured_to[gpu] = max(max(by_gpus) for by_gpus in times.counts.values())
        widest[gpu] = max(widest.get(gpu, 1), max(times.counts.get(1, {1: None})))
    return AdaptiveProfile(
        convergence=convergence, timings=timings, limits=limits, measured_to=measured_to
    )


def _largest_batch(times: MeasuredTimes, everywhere: bool) -> int:
    of_placements = max(curve.local_batch[-1] for curve in times.placements.values())
    others = [
        curve.local_batch[-1]
        for nodes, by_gpus in times.counts.items()
        for curve in by_gpus.values()
        if all(len(shape) != nodes for shape in times.placements)
    ]
    if not others:
        return int(of_placements)
    return int((min if everywhere else max)(of_placements, max(others)))


def _rubick(folder: Path, applications: Collection[str]) -> Profiles:
    files = sorted(folder.glob("*.csv"))
    return Profiles(
        system="rubick",
        applications={
            path.stem: PlanProfile(plans={RUBICK_GPU: read_plan_times(path)})
            for path in files
            if path.stem in applications
        },
        available=tuple(path.stem for path in files),
        gpus_per_node={RUBICK_GPU: OFFERS[RUBICK_GPU].gpus_per_node},
        gpu_names=(RUBICK_GPU,),
    )


def fitted_truth(figures: Figures) -> Profiles:
    """The catalogue's figures taken for the truth, where no profiles are at hand."""
    return Profiles(
        system=figures.system,
        applications={name: _known(model) for name, model in figures.applications.items()},
        available=figures.available,
        gpus_per_node=figures.gpus_per_node,
        gpu_names=figures.gpu_names,
    )


def _known(model: AdaptiveFigures | PlanFigures) -> Profile:
    if isinstance(model, PlanFigures):
        rows = {
            gpu: [(t.plan, tuple(map(int, t.placement)), t.iteration_s) for t in times]
            for gpu, times in model.devices.items()
        }
        return PlanProfile(plans={gpu: PlanTimes.of(rows[gpu]) for gpu in rows})
    convergence = model.convergence
    return AdaptiveProfile(
        convergence=convergence,
        timings={gpu: FittedTimes(device.throughput) for gpu, device in model.devices.items()},
        limits={
            gpu: Limits(
                base_batch=convergence.base_batch,
                max_batch=convergence.max_batch,
                min_local=device.min_local_batch,
                max_local=device.max_local_batch,
            )
            for gpu, device in model.devices.items()
        },
        measured_to={gpu: device.max_gpus for gpu, device in model.devices.items()},
    )
