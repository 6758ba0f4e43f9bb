"""Workloads of any size, made of Amdahl, power and measured curves, every one different."""

import numpy as np

from boa.model.speedup import Amdahl, Floats, Power, Speedup, Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload

NEWTRACE_EPOCHS = (100, 80, 2, 50, 90)


def synthetic(
    classes: int, epochs: int | tuple[int, ...], types: int, widths: int, seed: int = 0
) -> Workload:
    """A third of the classes each follow Amdahl's law, a power of k, and noisy measurements.

    Measured curves have points at powers of two, as a profiler would take them, and are neither
    monotone nor concave.
    """
    random = np.random.default_rng(seed)
    gpus = {
        f"gpu{h}": GpuType(name=f"gpu{h}", price=1.0 + 0.8 * h, gpus_per_node=8)
        for h in range(types)
    }
    counts = (epochs,) * classes if isinstance(epochs, int) else epochs
    made = tuple(_job_class(i, counts[i], tuple(gpus), widths, random) for i in range(classes))
    return Workload(gpu_types=gpus, classes=made)


def _job_class(
    i: int, epochs: int, gpus: tuple[str, ...], widths: int, random: np.random.Generator
) -> JobClass:
    parallel = random.uniform(0.5, 0.999, (epochs, len(gpus)))
    scales = random.uniform(0.8, 1.2, len(gpus)) * (1.0 + np.arange(len(gpus)))
    points = tuple(2**n for n in range(int(widths).bit_length()) if 2**n <= widths)
    noise = random.uniform(0.9, 1.1, (epochs, len(gpus), len(points)))
    work = random.uniform(60.0, 3600.0, epochs)
    return JobClass(
        name=f"class{i}",
        arrivals_per_hour=float(random.uniform(0.1, 10.0)),
        rescale_s=float(random.uniform(10.0, 250.0)),
        max_gpus=widths,
        epochs=tuple(
            Epoch(
                work=float(work[j]),
                speedups={
                    gpu: _curve(i % 3, float(parallel[j, h]), float(scales[h]), points, noise[j, h])
                    for h, gpu in enumerate(gpus)
                },
            )
            for j in range(epochs)
        ),
    )


def _curve(
    kind: int, parallel: float, scale: float, points: tuple[int, ...], noise: Floats
) -> Speedup:
    if kind == 0:
        return Amdahl(parallel, scale)
    if kind == 1:
        return Power(parallel, scale)
    return Table(points, np.asarray(points) ** parallel * noise, scale)


def cells(classes: int, epochs: int, types: int, widths: int) -> int:
    return classes * epochs * types * widths
