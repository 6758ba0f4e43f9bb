"""Widths and batch sizes that a user would ask for, because they use the GPUs reasonably.

The rule is that of the Pollux and Sia artifacts. A user tries some widths, each with the validated
batch size that is done first, and asks for one that is 50 to 80 % as efficient as one GPU and done
within half a day; where there is none, for one GPU.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from boa.catalogue.calibration import RIGID_BATCH
from boa.catalogue.measured_profiles import AdaptiveProfile
from boa.catalogue.rates import typical_shape
from boa.goodput.tuning import Limits
from boa.units import GpuName, Seconds

WIDTHS = (2, 4, 6, 8, 12, 16, 24, 32, 48)
"""Widths that are tried beside a single GPU, as in the Pollux artifact."""
LEAST_EFFICIENT, MOST_EFFICIENT = 0.5, 0.8
"""Bounds of T(1) / (k · T(k)), themselves excluded."""
LONGEST_S: Seconds = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class AskedSize:
    """A width and a total batch size that a user asks for."""

    gpus: int
    batch_size: int


@dataclass(frozen=True, slots=True)
class _Run:
    """The batch size that is done first at a width, and when it is done."""

    seconds: Seconds
    batch_size: int


def asked_sizes(
    application: str, profile: AdaptiveProfile, gpu: GpuName, gpus_per_node: int
) -> tuple[AskedSize, ...]:
    """All that users might ask for on this GPU type, by rising width; at least one."""
    if application in RIGID_BATCH:
        return (AskedSize(1, RIGID_BATCH[application]),)
    alone = _fastest(profile, gpu, 1, gpus_per_node)
    found = []
    for width in _possible_widths(profile, gpu):
        run = _fastest(profile, gpu, width, gpus_per_node)
        efficiency = alone.seconds / (width * run.seconds)
        if run.seconds < LONGEST_S and LEAST_EFFICIENT < efficiency < MOST_EFFICIENT:
            found.append(AskedSize(width, run.batch_size))
    return tuple(found) or (AskedSize(1, alone.batch_size),)


def _possible_widths(profile: AdaptiveProfile, gpu: GpuName) -> Iterator[int]:
    widest = min(profile.measured_to[gpu], profile.limits[gpu].max_gpus)
    return (width for width in WIDTHS if width <= widest)


def _fastest(profile: AdaptiveProfile, gpu: GpuName, width: int, gpus_per_node: int) -> _Run:
    """The run that is done first, over the validated batch sizes that a width can share out."""
    limits = profile.limits[gpu]
    sizes = [b for b in profile.convergence.batch_sizes if _per_gpu(b, width) >= limits.min_local]
    runs = (_Run(_run_time(profile, gpu, width, b, gpus_per_node), b) for b in sizes)
    return min(runs, key=lambda run: run.seconds)


def _run_time(
    profile: AdaptiveProfile, gpu: GpuName, width: int, batch_size: int, gpus_per_node: int
) -> Seconds:
    """A whole training at one width and batch size, on the fewest nodes."""
    passes, local_batch = _passes(profile.limits[gpu], _per_gpu(batch_size, width))
    shape = typical_shape(width, gpus_per_node, across=False)
    step_s, accumulation_s = profile.timings[gpu].times(shape, local_batch)
    iterations = float(profile.convergence.iterations(batch_size).sum())
    return iterations * (step_s + (passes - 1) * accumulation_s)


def _per_gpu(batch_size: int, width: int) -> int:
    return math.ceil(batch_size / width)


def _passes(limits: Limits, per_gpu: int) -> tuple[int, int]:
    """(passes, samples in each): as few passes as a GPU's memory allows."""
    passes = math.ceil(per_gpu / limits.max_local)
    return passes, math.ceil(per_gpu / passes)
