"""The load of a trace: the fewest GPUs that its jobs keep busy."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boa.errors import InputError
from boa.units import GpuName

if TYPE_CHECKING:
    from boa.model.trace import Trace


@dataclass(frozen=True, slots=True)
class Load:
    """The least average number of GPUs in use, or why it is not known."""

    gpus: float | None
    types: tuple[GpuName, ...]
    missing: str = ""


def least_gpus(trace: "Trace", profiles: Path | None, gpus: tuple[GpuName, ...] | None) -> Load:
    """Σ λ_i times the fewest GPU-hours (rescaling included) that a job of class i can take.

    Every GPU counts the same, whatever its price. Applications that nobody has measured leave
    the load unknown; a GPU type that nobody has measured is an error, for it was asked for.
    """
    from boa.catalogue import known_figures, read_profiles, workload_from_trace
    from boa.catalogue.formats import RUBICK_GPU
    from boa.solver.planner import frontier

    wanted = set(trace.counts())
    if profiles is not None:
        learned = read_profiles(profiles, applications=wanted, gpus=gpus)
    else:
        sia, rubick = known_figures("sia"), known_figures("rubick")
        unsaid = gpus is None and not wanted <= set(sia.applications)
        is_rubick = gpus == (RUBICK_GPU,) or (unsaid and wanted <= set(rubick.applications))
        learned = rubick if is_rubick else sia
    names = gpus or learned.gpu_names[:1]
    for name in names:
        if name not in learned.gpu_names:
            raise InputError("--gpus", name, f"one of {', '.join(learned.gpu_names)}")
    if unknown := sorted(wanted - set(learned.applications)):
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        return Load(None, names, f"there are no profiles of {', '.join(unknown[:3])}{more}")
    try:
        workload = workload_from_trace(trace, learned, names, prices=dict.fromkeys(names, 1.0))
    except InputError as wrong:  # no steps, no rate, no measurement of a model on these types
        return Load(None, names, str(wrong))
    return Load(frontier(workload).cheapest, names)
