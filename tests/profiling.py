"""Jobs and reports for the profiler's tests."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from boa.model.cluster import Allocation
from boa.model.job import GpuLimits, JobRecord, JobSpec, Run
from boa.model.profile import ClassProfile
from boa.model.records import Report
from boa.model.service import ClassPrior
from boa.model.speedup import Floats
from boa.model.workload import GpuType, JobClass
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.learn.rescaling import TOTAL, Told
from boa.units import GpuName

T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
A100 = GpuType(name="A100", price=3.0, gpus_per_node=8)
TYPES = {"T4": T4, "A100": A100}
HOUR = 3600.0


def profiler(
    *priors: ClassPrior, types: Mapping[GpuName, GpuType] = TYPES, began: float = 0.0
) -> Profiler:
    return Profiler(types, {prior.name: prior for prior in priors}, began=began)


def job(number: int = 1, **asked: Any) -> JobRecord:
    """One of the class "net", unless asked for otherwise."""
    gpus = {key: asked.pop(key) for key in ("min", "max", "types") if key in asked}
    spec = {key: asked.pop(key) for key in ("epochs", "total_work", "weight") if key in asked}
    name = asked.pop("job_class", "net")
    return JobRecord(
        id=str(number),
        spec=JobSpec(job_class=name, run=("true",), gpus=GpuLimits(**gpus), **spec),
        serial=number - 1,
        submitted_at=0.0,
        **asked,
    )


def on(gpu: GpuName, *nodes: int, attempt: int = 1) -> Run:
    """A run on so many GPUs of each of its nodes."""
    held = tuple(enumerate(nodes))
    return Run(
        attempt=attempt,
        allocation=Allocation(gpu, held),
        slots={node: tuple(range(count)) for node, count in held},
        state="running",
        requested_at=0.0,
        decided_at=0.0,
    )


def packed(gpu: GpuType, width: int, attempt: int = 1) -> Run:
    """A run on the fewest nodes."""
    whole, rest = divmod(width, gpu.gpus_per_node)
    return on(gpu.name, *[gpu.gpus_per_node] * whole, *[rest] * (rest > 0), attempt=attempt)


def report(
    uptime_s: float, units: float, epoch: int = 0, progress: float | None = None, attempt: int = 1
) -> Report:
    return Report(
        job="1",
        attempt=attempt,
        uptime_s=uptime_s,
        epoch=epoch,
        progress=units if progress is None else progress,
        units=units,
    )


def ran(
    of: Profiler,
    run: Run,
    rate: float,
    *,
    seconds: float = 600.0,
    epoch: int = 0,
    reports: int = 1,
    **asked: Any,
) -> None:
    """A job that reports this rate, so many times."""
    told = job(run=run, **asked)
    for n in range(reports):
        start, end = n * seconds / reports, (n + 1) * seconds / reports
        before = report(start, rate * start, epoch, attempt=run.attempt)
        of.reported(told, before, report(end, rate * end, epoch, attempt=run.attempt))


def took(seconds: float) -> Told:
    """A rescaling of which only the whole is known."""
    return Told({TOTAL: seconds})


def planned_class(of: Profiler, now: float = 0.0, name: str = "net") -> JobClass:
    workload = of.workload(now)
    assert workload is not None
    return next(c for c in workload.classes if c.name == name)


def times(of: Profiler, gpu: GpuName = "T4", now: float = 0.0, epoch: int = 0) -> dict[int, float]:
    """Seconds that an epoch takes at every width that a plan is offered."""
    found = planned_class(of, now)
    stretch = found.epochs[epoch]
    curve = stretch.speedups[gpu]
    widths = range(curve.base, found.max_on(gpu) + 1)
    return {width: stretch.work / curve(width) for width in widths}


def widest_hoped(of: Profiler, gpu: GpuName = "T4", now: float = 0.0) -> int | None:
    """The widest width that a trial may try; None: there is nothing to try."""
    workload = of.workload(now)
    assert workload is not None
    hoped = workload.hopes.get("net")
    return None if hoped is None else hoped.max_on(gpu)


def profile(
    rates: Mapping[GpuName, Floats | list[float]],
    *,
    work: tuple[float, ...] = (3600.0,),
    rescale_s: float = 10.0,
    per_epoch: tuple[float, ...] | None = None,
) -> ClassProfile:
    """`rates` at widths 0 … K, the same on one node and across; times a factor per epoch."""
    factors = np.array(per_epoch or (1.0,) * len(work))[:, None, None]
    return ClassProfile(
        name="net",
        work=work,
        rates={gpu: factors * np.stack([np.asarray(r)] * 2) for gpu, r in rates.items()},
        rescale_s=rescale_s,
    )
