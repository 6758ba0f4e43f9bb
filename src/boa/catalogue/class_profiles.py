"""A workload from a trace and profiles of its classes, as `boa replay profiles` writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from boa.catalogue.calibration import class_name
from boa.catalogue.estimate import job_class, packed_curves
from boa.catalogue.offers import gpu_types
from boa.errors import InputError
from boa.formats import checks
from boa.formats.profile import load_profile
from boa.model.profile import ClassProfile
from boa.model.trace import Trace
from boa.model.workload import GpuType, JobClass, Workload
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, UsdPerHour


def class_profiles(folder: str | Path) -> dict[str, ClassProfile]:
    """Profiles by class; none, where the folder is of another kind, with folders in it."""
    inside = sorted(Path(folder).iterdir()) if Path(folder).is_dir() else []
    if any(path.is_dir() for path in inside):
        return {}
    read = [load_profile(path) for path in inside if path.suffix == ".json"]
    return {profile.name: profile for profile in read}


def workload_from_profiles(
    trace: Trace,
    profiles: Mapping[str, ClassProfile],
    gpus: Sequence[GpuName],
    *,
    rescale: Seconds | None = None,
    prices: Mapping[GpuName, UsdPerHour] | None = None,
) -> Workload:
    """One class per application of the trace, most frequent first; speeds are the profiles'."""
    if rescale is not None:
        checks.number(rescale, "rescale_s", least=0)
    types = gpu_types(gpus, prices)
    per_hour = trace.arrivals_per_hour()
    classes = []
    for application in sorted(per_hour, key=lambda app: (-per_hour[app], app)):
        name = class_name(application)
        if name not in profiles:
            known = ", ".join(sorted(profiles))
            raise InputError("profiles", name, f"a profile of every class of the trace; {known}")
        found = _class(profiles[name], per_hour[application], types)
        classes.append(found if rescale is None else replace(found, rescale_s=rescale))
    hours = trace.span_s / SECONDS_PER_HOUR
    notes = (
        f"Estimated from {len(trace.jobs)} jobs that arrived over {hours:.4g} h.",
        "Speeds, work and rescaling times: profiles of the classes, on the least nodes.",
    )
    return Workload(gpu_types=types, classes=tuple(classes), notes=notes)


def _class(profile: ClassProfile, per_hour: float, types: Mapping[GpuName, GpuType]) -> JobClass:
    curves = {
        gpu: packed_curves(profile.rates[gpu], types[gpu].gpus_per_node)
        for gpu in types
        if gpu in profile.rates
    }
    runnable = {gpu: found for gpu, found in curves.items() if found.widths}
    if not runnable:
        raise InputError(
            f"profile of {profile.name}",
            ", ".join(types),
            f"a GPU type that it has rates on: {', '.join(profile.rates) or 'none'}",
        )
    return job_class(
        profile.name,
        arrivals_per_hour=per_hour,
        rescaling=profile.rescale_s,
        curves=runnable,
        work=np.array(profile.work),
    )
