"""Placements that a job is kept off: those that failed for its class, and for itself. Pure.

Bars that would leave a job nothing are none: it then fails, or not, on its own account.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from boa.model.cluster import Prediction
from boa.model.job import JobRecord
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.trials import tries
from boa.scheduler.falling_back import allows, least_of
from boa.scheduler.learn.bars import MOST_GPUS, Bars, Mask
from boa.units import GpuName, Seconds

Masks = Mapping[GpuName, Mask]
GpuTypes = Mapping[GpuName, GpuType]


@dataclass(frozen=True, slots=True, eq=False)
class Barred:
    """Placements that one job is kept off."""

    masks: Masks = field(default_factory=dict)
    states: frozenset[tuple[GpuName, int]] = frozenset()
    """GPU types and widths, on the fewest nodes."""


NOTHING = Barred()


def barred_for(job: JobRecord, bars: Bars, gpu_types: GpuTypes, now: Seconds) -> Barred:
    """`bars`: its class's."""
    if not bars and not job.unfit:  # nearly always
        return NOTHING
    if any(found.stands(now) for found in job.unfit):
        return _with_its_own(job, bars, gpu_types)
    key = (job.spec.gpus, tries(job.serial))
    found = bars.kept.get(key)
    if not isinstance(found, Barred):
        found = bars.kept[key] = _made(job, [bars.of(key[1])], gpu_types) or NOTHING
    return found


def _with_its_own(job: JobRecord, bars: Bars, gpu_types: GpuTypes) -> Barred:
    """A job that has failed for where it was is only to be where it or others went well; if that is
    nowhere, on the least that it asks for."""
    others = bars.of(tries(job.serial))
    unfit = {found.place for found in job.unfit}
    well = [
        place
        for place in {*job.worked, *bars.worked}
        if place not in unfit and allows(job, place) and not _is_in(others, place)
    ]
    if not well:
        well = [place for gpu in {place.gpu for place in unfit} for place in least_of(job, gpu)]
    own = {gpu: _all_but([k for g, k, _ in well if g == gpu], job) for gpu in gpu_types}
    found = _made(job, [others, own], gpu_types) if well else None
    return found or _made(job, [others], gpu_types) or NOTHING


def _all_but(widths: Sequence[int], job: JobRecord) -> Mask:
    found = np.ones((2, min(job.spec.gpus.max, MOST_GPUS) + 1), dtype=bool)
    found[:, [width for width in widths if width < found.shape[1]]] = False
    return found


def _is_in(masks: Masks, place: tuple[GpuName, int, bool]) -> bool:
    gpu, width, across = place
    mask = masks.get(gpu)
    return mask is not None and bool(mask[int(across), min(width, mask.shape[1] - 1)])


def _made(job: JobRecord, parts: list[Masks], gpu_types: GpuTypes) -> Barred | None:
    """All of these together; None: they leave the job nothing."""
    limits = job.spec.gpus
    masks = {gpu: _either(parts, gpu) for gpu in {gpu for part in parts for gpu in part}}
    types = [gpu for gpu in limits.types or gpu_types if gpu in gpu_types]
    states = [(gpu, k) for gpu in types for k in range(limits.min, limits.max + 1)]
    shut = {
        (gpu, width)
        for gpu, width in states
        if _is_in(masks, (gpu, width, width > gpu_types[gpu].gpus_per_node))
    }
    return Barred(masks, frozenset(shut)) if len(shut) < len(states) else None


def _either(parts: list[Masks], gpu: GpuName) -> Mask:
    """Where any of them bars; beyond its last width a mask goes on as it is there."""
    masks = [part[gpu] for part in parts if gpu in part]
    widest = max(mask.shape[1] for mask in masks)
    found = np.zeros((2, widest), dtype=bool)
    for mask in masks:
        found |= np.pad(mask, ((0, 0), (0, widest - mask.shape[1])), mode="edge")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A prediction for a job that makes no progress where it is not to be."""

    prediction: Prediction
    masks: Masks

    def rates(self, gpu: GpuName, epoch: int) -> Floats | None:
        found, mask = self.prediction.rates(gpu, epoch), self.masks.get(gpu)
        if mask is None:
            return found
        if found is None:
            return None if not mask.all() else np.zeros(mask.shape)
        wide = found.shape[-1] - mask.shape[1]
        shut = np.pad(mask, ((0, 0), (0, max(wide, 0))), mode="edge")[:, : found.shape[-1]]
        return np.where(shut, 0.0, found)


def kept_off(prediction: Prediction, barred: Barred) -> Prediction:
    return Kept(prediction, barred.masks) if barred.masks else prediction
