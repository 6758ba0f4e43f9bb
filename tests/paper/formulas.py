"""The paper's formulas written a second time, with plain loops: what the tests enumerate with."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from boa.model.speedup import Floats, Speedup
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.units import GpuName


def widths_on(job_class: JobClass, epoch: Epoch, gpu: GpuName) -> range:
    """The whole widths on which an epoch can run."""
    base = job_class.base_on(gpu, epoch)
    return range(0) if base is None else range(base, job_class.max_on(gpu) + 1)


def epoch_options(
    workload: Workload, job_class: JobClass, epoch: Epoch
) -> list[tuple[GpuName, int, float, float]]:
    """(GPU type, width, time, cost) of every way to run one epoch, without rescaling."""
    found = []
    for gpu, curve in epoch.speedups.items():
        for k in widths_on(job_class, epoch, gpu):
            time = epoch.work / curve(k)
            found.append((gpu, k, time, workload.gpu_types[gpu].price * k * time / 3600))
    return found


def sequences(
    workload: Workload, job_class: JobClass
) -> Iterator[tuple[GpuName, tuple[int, ...], float, float]]:
    """(GPU type, widths, JCT, cost) of every width sequence on one type, rescaling included."""
    for gpu, gpu_type in workload.gpu_types.items():
        ranges = [widths_on(job_class, epoch, gpu) for epoch in job_class.epochs]
        for widths in product(*ranges):
            jct = gpu_hours = 0.0
            for j, (epoch, k) in enumerate(zip(job_class.epochs, widths, strict=True)):
                rescales = j == 0 or k != widths[j - 1]
                held = epoch.work / epoch.speedups[gpu](k) + job_class.rescale_s * rescales
                jct += held
                gpu_hours += k * held / 3600
            yield gpu, widths, jct, gpu_type.price * gpu_hours


def combined(
    workload: Workload, options: Sequence[tuple[JobClass, Sequence[tuple[float, float]]]]
) -> tuple[Floats, Floats]:
    """Spend and objective of every combination of one (time, cost) option per entry."""
    total = sum(c.weight * c.arrivals_per_hour for c in workload.classes)
    spend, objective = np.zeros(1), np.zeros(1)
    for job_class, choices in options:
        times, costs = np.array(choices).T
        rate = job_class.arrivals_per_hour
        spend = np.add.outer(spend, rate * costs).ravel()
        objective = np.add.outer(objective, job_class.weight * rate / total * times).ravel()
    return spend, objective


def best_pure(spend: Floats, objective: Floats, budget: float) -> float:
    """The least objective among the combinations that the budget can pay."""
    return float(objective[spend <= budget * (1 + 1e-12)].min())


def best_mixture(spend: Floats, objective: Floats, budget: float) -> float:
    """The least objective of any random choice among them: their lower convex hull."""
    hull: list[tuple[float, float]] = []
    for x, y in sorted(zip(spend.tolist(), objective.tolist(), strict=True)):
        if hull and y >= hull[-1][1]:
            continue
        while len(hull) > 1 and _above(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    return float(np.interp(budget, [x for x, _ in hull], [y for _, y in hull]))


def _above(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


def width_of_rate(curve: Speedup, rate: float, low: float, high: float) -> float:
    """β = s⁻¹ on [low, high], by bisection: the smallest such width, where s is flat."""
    rate *= 1 - 1e-12
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) < rate else (low, middle)
    return high


def as_workload(
    work: Sequence[float], curves: Sequence[Speedup], *, base: int = 1, most: int = 64
) -> Workload:
    """One class on one GPU type of price 1, one job an hour: a budget then counts GPU-hours."""
    epochs = tuple(
        Epoch(work=x, speedups={"T4": curve}) for x, curve in zip(work, curves, strict=True)
    )
    job_class = JobClass(
        name="only", arrivals_per_hour=1.0, epochs=epochs, min_gpus=base, max_gpus=most
    )
    return Workload(gpu_types={"T4": GpuType(name="T4")}, classes=(job_class,))
