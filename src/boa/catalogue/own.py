"""Models that we measured ourselves (`bench/gpu.py`), at one batch size on one GPU.

What was not measured is not here: nothing about more than one GPU, where a class starts with what
one is measured at and learns the rest, and no work, which every job's own spec says.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from boa.model.profile import ClassProfile
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds

WORK = 1000.0
"""Iterations of a job whose spec does not say how many it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFigures:
    """Figures of one model on one GPU type."""

    batch: int
    step_s: Mapping[int, Seconds]
    """Seconds of an iteration, by batch size."""
    rescale_s: Seconds
    """Seconds from the stop of one run to the first step of the next, forked from a warm parent."""


@cache
def own_figures() -> Mapping[str, Mapping[GpuName, OwnFigures]]:
    """By model and GPU type."""
    text = resources.files("boa.catalogue").joinpath("own.json").read_text("utf-8")
    return {
        name: {
            gpu: OwnFigures(
                batch=found["batch"],
                step_s={int(batch): step for batch, step in found["step_s"].items()},
                rescale_s=found["rescale_s"],
            )
            for gpu, found in devices.items()
        }
        for name, devices in json.loads(text)["models"].items()
    }


def own_profile(name: str, gpu_types: Mapping[GpuName, GpuType]) -> ClassProfile | None:
    """Iterations at the model's batch size, on those of these types that it was measured on."""
    devices = own_figures().get(name, {})
    measured = {gpu: devices[gpu] for gpu in gpu_types if gpu in devices}
    if not measured:
        return None
    return ClassProfile(
        name=name,
        work=(WORK,),
        rates={
            gpu: np.array([[[0.0, 1.0 / figures.step_s[figures.batch]]] * 2])
            for gpu, figures in measured.items()
        },
        rescale_s=max(figures.rescale_s for figures in measured.values()),
    )
