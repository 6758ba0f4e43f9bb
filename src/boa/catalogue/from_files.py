"""A workload from a trace in a file, and profiles in a folder or the catalogue's own figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from boa.catalogue.calibration import Slowdown
from boa.catalogue.class_profiles import class_profiles, workload_from_profiles
from boa.catalogue.estimate import workload_from_trace
from boa.catalogue.figures import known_figures
from boa.catalogue.formats import RUBICK_GPU, read_profiles
from boa.catalogue.notes import notes_for
from boa.catalogue.reading import WHOLE, Reading
from boa.catalogue.traces import read_trace
from boa.errors import InputError
from boa.model.workload import Workload
from boa.units import GpuName, Seconds, UsdPerHour


def workload_from_files(
    trace: str | Path,
    profiles: str | Path | None,
    gpus: Sequence[GpuName],
    *,
    slowdown: Slowdown | None = None,
    rescale: Seconds | None = None,
    prices: Mapping[GpuName, UsdPerHour] | None = None,
    reading: Reading = WHOLE,
) -> Workload:
    """The workload of `boa workload from-trace`. Without profiles the catalogue's figures serve."""
    arrived = read_trace(trace, reading)
    if profiles is not None and (own := class_profiles(profiles)):
        if slowdown is not None:
            raise InputError("slowdown", slowdown, "none: profiles of classes are true as they are")
        return workload_from_profiles(arrived, own, gpus, rescale=rescale, prices=prices)
    if profiles is None:
        learned = known_figures("rubick" if set(gpus) == {RUBICK_GPU} else "sia")
    else:
        learned = read_profiles(profiles, applications=arrived.counts(), gpus=gpus)
    workload = workload_from_trace(
        arrived, learned, gpus, slowdown=slowdown, rescale=rescale, prices=prices
    )
    notes = notes_for(
        arrived,
        learned,
        workload,
        trace=Path(trace),
        profiles=None if profiles is None else Path(profiles),
        slowdown=slowdown,
        rescale=rescale,
        prices=prices,
        reading=reading,
    )
    return Workload(gpu_types=workload.gpu_types, classes=workload.classes, notes=notes)
