"""A workload from a trace and figures: λ_i and the mix from the one, s_ij(k) from the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from boa.catalogue.calibration import (
    Slowdown,
    class_name,
    default_slowdown,
    rescale_s,
    slowdown_factor,
)
from boa.catalogue.figures import OFFLOAD, AdaptiveFigures, Figures, PlanFigures
from boa.catalogue.offers import gpu_types
from boa.catalogue.rounding import rounded, rounded_one
from boa.errors import InputError
from boa.formats import checks
from boa.goodput.speedup import progress_rates
from boa.model.speedup import Floats, Table
from boa.model.trace import Trace
from boa.model.workload import DEFAULT_MAX_GPUS, Epoch, GpuType, JobClass, Workload
from boa.units import GpuName, Seconds, UsdPerHour

DIGITS = 5
"""Significant digits of every estimated number: the API and the file agree to the last one."""


@dataclass(frozen=True, slots=True)
class Curves:
    """Rates of progress of one class on one GPU type."""

    widths: tuple[int, ...]
    rates: Floats
    """Epochs × widths, per second."""


def workload_from_trace(
    trace: Trace,
    learned: Figures,
    gpus: Sequence[GpuName],
    *,
    slowdown: Slowdown | None = None,
    rescale: Seconds | None = None,
    prices: Mapping[GpuName, UsdPerHour] | None = None,
) -> Workload:
    """One class per application of the trace, most frequent first, on these GPU types.

    In every epoch s is 1 at the base width of the first type that can run the class; work_s is
    the time there. `rescale` replaces the times that the artifact assumes, `slowdown` its
    calibration.
    """
    check_applications(trace, learned)
    check_gpus(gpus, learned.gpu_names)
    if rescale is not None:
        checks.number(rescale, "rescale_s", least=0)
    types = gpu_types(gpus, prices, learned.gpus_per_node)
    rates_per_hour = trace.arrivals_per_hour()
    calibration = slowdown or default_slowdown(learned.system)
    classes = []
    for application in sorted(rates_per_hour, key=lambda app: (-rates_per_hour[app], app)):
        curves, work = _curves_and_work(application, trace, learned, types)
        factor = slowdown_factor(calibration, application)
        classes.append(
            job_class(
                class_name(application),
                arrivals_per_hour=rates_per_hour[application],
                rescaling=rescale_s(learned.system, application) if rescale is None else rescale,
                curves=curves,
                work=work * factor,
            )
        )
    return Workload(gpu_types=types, classes=tuple(classes))


def _curves_and_work(
    application: str, trace: Trace, learned: Figures, types: Mapping[GpuName, GpuType]
) -> tuple[dict[GpuName, Curves], Floats]:
    """Rates per GPU type, and the progress that each epoch takes."""
    model = learned.applications[application]
    if isinstance(model, AdaptiveFigures):
        curves = {
            gpu: _adaptive_curves(model, gpu, types[gpu].gpus_per_node)
            for gpu in types
            if gpu in model.devices
        }
        work = model.convergence.epoch_progress
    else:
        steps = trace.mean_steps(application)
        if steps is None:
            job = next(j for j in trace.jobs if j.application == application and j.steps is None)
            raise InputError(_where(job.line, job.name, "steps"), None, "a number of iterations")
        curves = {gpu: _plan_curves(model, gpu) for gpu in types if gpu in model.devices}
        work = np.array([steps])
    runnable = {gpu: found for gpu, found in curves.items() if found.widths}
    if not runnable:
        raise InputError(
            f"profiles of {application}",
            ", ".join(types),
            f"a GPU type that it was measured on: {', '.join(model.devices) or 'none'}",
        )
    return runnable, work


def _adaptive_curves(model: AdaptiveFigures, gpu: GpuName, gpus_per_node: int) -> Curves:
    device = model.devices[gpu]
    rates = progress_rates(
        model.convergence,
        device,
        gpus_per_node=gpus_per_node,
        max_gpus=min(DEFAULT_MAX_GPUS, device.max_gpus),
    )
    possible = np.flatnonzero(rates[0] > 0)
    # A gap would be read as a straight line across it: widths end before the first one.
    possible = possible[possible == np.arange(len(possible)) + possible[:1]]
    return Curves(tuple(int(k) + 1 for k in possible), rates[:, possible])


def _plan_curves(model: PlanFigures, gpu: GpuName) -> Curves:
    """Iterations per second of the best plan, at the widths that were measured.

    Plans that offload to host memory do not count: they are up to fifty times slower, and the
    paper takes a model that runs no other way not to fit (𝒦 > 1). A model that fits on one GPU
    stays inside one node, as in Rubick.
    """
    plans = [p for p in model.devices[gpu] if p.plan != OFFLOAD and p.gpus <= DEFAULT_MAX_GPUS]
    if plans and plans[0].gpus == 1:
        plans = [p for p in plans if p.nodes == 1]
    return Curves(tuple(p.gpus for p in plans), np.array([[1.0 / p.iteration_s for p in plans]]))


def packed_curves(table: Floats, gpus_per_node: int) -> Curves:
    """Rates on the fewest nodes at every width that can run; `table` is epochs × 2 × (K + 1)."""
    widths = np.arange(table.shape[-1])
    rates = np.where(widths <= gpus_per_node, table[:, 0], table[:, 1])
    possible = np.flatnonzero(rates[0] > 0)
    return Curves(tuple(int(k) for k in possible), rates[:, possible])


def job_class(
    name: str,
    *,
    arrivals_per_hour: float,
    rescaling: Seconds,
    curves: Mapping[GpuName, Curves],
    work: Floats,
    exact: bool = False,
) -> JobClass:
    """Normalise by the rate at the base of the first type; round, unless `exact` is asked for."""
    first = next(iter(curves.values()))
    unit = first.rates[:, :1]
    keep = (lambda values: values) if exact else (lambda values: rounded(values, DIGITS))
    seconds = keep(work / unit[:, 0])
    speedups = {gpu: keep(found.rates / unit) for gpu, found in curves.items()}
    return JobClass(
        name=name,
        arrivals_per_hour=rounded_one(arrivals_per_hour, DIGITS),
        rescale_s=rescaling,
        min_gpus=limit_of({gpu: found.widths[0] for gpu, found in curves.items()}),
        max_gpus=limit_of({gpu: found.widths[-1] for gpu, found in curves.items()}),
        epochs=tuple(
            Epoch(
                work=float(seconds[j]),
                speedups={gpu: Table(curves[gpu].widths, speedups[gpu][j]) for gpu in curves},
            )
            for j in range(len(seconds))
        ),
    )


def limit_of(by_type: dict[GpuName, int]) -> int | dict[GpuName, int]:
    """One number where all types agree."""
    values = set(by_type.values())
    return values.pop() if len(values) == 1 else by_type


def check_gpus(gpus: Sequence[GpuName], known: Sequence[GpuName]) -> None:
    if not gpus or len(set(gpus)) != len(gpus):
        raise InputError("gpus", ",".join(gpus), "each GPU type once, at least one")
    for gpu in gpus:
        if gpu not in known:
            expected = f"a GPU type with profiles: {', '.join(known)}"
            raise InputError("gpus", gpu, expected)


def check_applications(trace: Trace, learned: Figures) -> None:
    for job in trace.jobs:
        if job.application not in learned.applications:
            expected = f"an application with profiles: {', '.join(learned.available)}"
            raise InputError(_where(job.line, job.name, "application"), job.application, expected)


def _where(line: int | None, job: str, column: str) -> str:
    place = f"line {line} ({job})" if line is not None else f"job {job}"
    return f"trace, {place}, column {column}"
