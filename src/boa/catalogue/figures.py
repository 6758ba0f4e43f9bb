"""Figures of known models: learned constants, never the measurements they came from.

A workload is always made from these figures, whether they were learned from a profile folder a
moment ago or ship with the package. They are rounded when they are learned, so both ways give
the same workload to the last digit.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeAlias

import numpy as np

from boa.catalogue.rounding import rounded
from boa.goodput.efficiency import Convergence
from boa.goodput.speedup import DeviceProfile
from boa.goodput.throughput import Throughput
from boa.units import GpuName, Seconds

System: TypeAlias = Literal["sia", "pollux", "rubick"]
"""The public artifact whose conventions (rescaling times, calibration) the figures follow."""

DIGITS = 6
OFFLOAD = "zero-offload"
"""A plan that keeps the optimiser's state in host memory."""


@dataclass(frozen=True, kw_only=True)
class AdaptiveFigures:
    """A data-parallel model whose batch size is tuned as it runs (Pollux, Sia)."""

    convergence: Convergence
    devices: Mapping[GpuName, DeviceProfile]


@dataclass(frozen=True, slots=True)
class PlanTime:
    """The fastest execution plan that was measured for a width."""

    plan: str
    placement: str
    """GPUs on each node, one digit per node."""
    iteration_s: Seconds

    @property
    def gpus(self) -> int:
        return sum(map(int, self.placement))

    @property
    def nodes(self) -> int:
        return len(self.placement)


@dataclass(frozen=True, kw_only=True)
class PlanFigures:
    """A model trained at a fixed global batch under one of many execution plans (Rubick)."""

    devices: Mapping[GpuName, tuple[PlanTime, ...]]
    """Best plan for each width, by rising width."""


ModelFigures: TypeAlias = AdaptiveFigures | PlanFigures


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Everything learned from one set of profiles, by application."""

    system: System
    source: str
    applications: Mapping[str, ModelFigures]
    gpus_per_node: Mapping[GpuName, int]
    available: tuple[str, ...]
    """Applications that there are profiles of, learned from or not."""
    gpu_names: tuple[GpuName, ...]
    """GPU types that at least one application was measured on, learned from or not."""


@cache
def known_figures(system: System = "sia") -> Figures:
    """The figures that ship with the package."""
    text = resources.files("boa.catalogue").joinpath("figures.json").read_text("utf-8")
    document = json.loads(text)
    part = document["rubick" if system == "rubick" else "sia"]
    read = _plans_from if system == "rubick" else _adaptive_from
    return Figures(
        system=system,
        source=part["source"],
        applications={name: read(value) for name, value in part["applications"].items()},
        gpus_per_node=part["gpus_per_node"],
        available=tuple(part["applications"]),
        gpu_names=tuple(part["gpus_per_node"]),
    )


def figures_document(known: Figures) -> dict[str, Any]:
    """As plain mappings and lists: what `figures.json` keeps."""
    return {
        "source": known.source,
        "gpus_per_node": dict(known.gpus_per_node),
        "applications": {name: _document(model) for name, model in known.applications.items()},
    }


def _document(model: ModelFigures) -> dict[str, Any]:
    if isinstance(model, PlanFigures):
        return {
            gpu: [[p.placement, p.plan, p.iteration_s] for p in plans]
            for gpu, plans in model.devices.items()
        }
    convergence = model.convergence
    return {
        "batch_sizes": list(convergence.batch_sizes),
        "progress": convergence.progress.tolist(),
        "grad_sqr": convergence.grad_sqr.tolist(),
        "grad_var": convergence.grad_var.tolist(),
        "devices": {
            gpu: {
                "throughput": list(device.throughput.astuple()),
                "local_batch": [device.min_local_batch, device.max_local_batch],
                "max_gpus": device.max_gpus,
            }
            for gpu, device in model.devices.items()
        },
    }


def _plans_from(value: Mapping[str, Any]) -> PlanFigures:
    return PlanFigures(
        devices={
            gpu: tuple(PlanTime(plan, placement, seconds) for placement, plan, seconds in plans)
            for gpu, plans in value.items()
        }
    )


def _adaptive_from(value: Mapping[str, Any]) -> AdaptiveFigures:
    return AdaptiveFigures(
        convergence=Convergence(
            tuple(value["batch_sizes"]),
            np.array(value["progress"]),
            np.array(value["grad_sqr"]),
            np.array(value["grad_var"]),
        ),
        devices={
            gpu: DeviceProfile(
                throughput=Throughput.of(device["throughput"]),
                min_local_batch=device["local_batch"][0],
                max_local_batch=device["local_batch"][1],
                max_gpus=device["max_gpus"],
            )
            for gpu, device in value["devices"].items()
        },
    )


def rounded_throughput(model: Throughput) -> Throughput:
    return Throughput.of(rounded(np.array(model.astuple()), DIGITS))
