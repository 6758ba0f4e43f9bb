"""Lemma "Operating budget of a fixed-width policy", and the definitions it rests on (Appendix A).

A fixed-width policy runs on a long random sample path whose arrivals come in bursts and whose
work is correlated between epochs: the lemma asks for nothing but averages that converge.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from boa.model.plan import ClassPlan, Plan, Variant
from boa.model.speedup import Amdahl, Floats, Power, Speedup
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.solver.objective import Rules, evaluate

JOBS = 200_000
TOLERANCE = 0.015
"""Relative. The standard error of the means below is about 0.3 %: five of them."""
WIDTHS = {"vision": (2.0, 3.5), "speech": (4.0, 1.0)}


def workload() -> Workload:
    curves: dict[str, tuple[Speedup, Speedup]] = {
        "vision": (Amdahl(0.9), Power(0.7)),
        "speech": (Power(0.5, 2.0), Amdahl(0.99)),
    }
    work = {"vision": (300.0, 900.0), "speech": (1200.0, 60.0)}
    rates = {"vision": 40.0, "speech": 10.0}
    classes = tuple(
        JobClass(
            name=name,
            arrivals_per_hour=rates[name],
            epochs=tuple(
                Epoch(work=x, speedups={"T4": curve})
                for x, curve in zip(work[name], curves[name], strict=True)
            ),
        )
        for name in curves
    )
    return Workload(gpu_types={"T4": GpuType(name="T4")}, classes=classes)


def fixed_widths() -> Plan:
    return Plan(
        tuple(
            ClassPlan(name=name, variants=(Variant(1.0, ("T4", "T4"), widths),))
            for name, widths in WIDTHS.items()
        )
    )


@dataclass(frozen=True)
class Path:
    """Arrival times of a class's jobs, and their work: jobs × epochs."""

    arrivals: Floats
    work: Floats


def sample_path(job_class: JobClass, random: np.random.Generator) -> Path:
    """Bursts of 1 to 9 jobs; a job that is long in one epoch is long in the others too."""
    bursts = random.integers(1, 10, JOBS // 5)
    gaps = random.exponential(3600 * 5 / job_class.arrivals_per_hour, len(bursts))
    arrivals = np.repeat(np.cumsum(gaps), bursts)
    size = random.gamma(2.0, 0.5, (len(arrivals), 1))
    means = np.array([epoch.work for epoch in job_class.epochs])
    return Path(arrivals, size * means)


def run(path: Path, job_class: JobClass, widths: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Begin and end of every epoch of every job: jobs × epochs. Nobody queues."""
    rates = np.array([e.speedups["T4"](k) for e, k in zip(job_class.epochs, widths, strict=True)])
    ends = path.arrivals[:, None] + np.cumsum(path.work / rates, axis=1)
    begins = np.concatenate([path.arrivals[:, None], ends[:, :-1]], axis=1)
    return begins, ends


def busy_gpu_seconds(begins: Floats, ends: Floats, widths: Floats, horizon: float) -> float:
    """∫ K(t) dt up to the horizon, event by event."""
    times = np.concatenate([begins.ravel(), ends.ravel()])
    changes = np.concatenate(
        [
            np.broadcast_to(widths, begins.shape).ravel(),
            -np.broadcast_to(widths, ends.shape).ravel(),
        ]
    )
    order = np.argsort(times)
    times, held = np.minimum(times[order], horizon), np.cumsum(changes[order])
    return float((held[:-1] * np.diff(times)).sum())


@pytest.fixture(scope="module")
def simulated() -> list[tuple[JobClass, Path, float, float, float]]:
    """Per class: its path, the horizon, ∫K and the GPU-seconds of the jobs that arrived."""
    random = np.random.default_rng(20260)
    found = []
    for job_class in workload().classes:
        path = sample_path(job_class, random)
        widths = WIDTHS[job_class.name]
        begins, ends = run(path, job_class, widths)
        horizon = float(path.arrivals[-1])
        used = busy_gpu_seconds(begins, ends, np.array(widths), horizon)
        by_job = float(((ends - begins) * np.array(widths)).sum())
        found.append((job_class, path, horizon, used, by_job))
    return found


Simulated = list[tuple[JobClass, Path, float, float, float]]


def test_the_sample_path_is_well_behaved(simulated: Simulated) -> None:
    for job_class, path, horizon, _, _ in simulated:
        rate = len(path.arrivals) / horizon * 3600
        assert rate == pytest.approx(job_class.arrivals_per_hour, rel=TOLERANCE)
        means = [epoch.work for epoch in job_class.epochs]
        assert path.work.mean(axis=0) == pytest.approx(means, rel=TOLERANCE)


def test_gpus_over_time_and_gpu_hours_per_job_have_the_same_average(simulated: Simulated) -> None:
    """Part (a); what is left at the horizon is a vanishing share."""
    for _, _, _, used, by_job in simulated:
        assert used == pytest.approx(by_job, rel=1e-3)


def test_the_time_average_of_busy_gpus_is_the_operating_budget(simulated: Simulated) -> None:
    """Part (b), by the formula written out: Σ ρ_ij k_ij / s_ij(k_ij)."""
    for job_class, _, horizon, used, _ in simulated:
        widths = WIDTHS[job_class.name]
        budget = sum(
            job_class.arrivals_per_hour / 3600 * epoch.work * k / epoch.speedups["T4"](k)
            for epoch, k in zip(job_class.epochs, widths, strict=True)
        )
        assert used / horizon == pytest.approx(budget, rel=TOLERANCE)


def test_evaluate_gives_the_average_that_was_simulated(simulated: Simulated) -> None:
    outcome = evaluate(workload(), fixed_widths(), Rules(rescaling=False))
    busy = sum(used / horizon for _, _, horizon, used, _ in simulated)
    assert outcome.spend == pytest.approx(busy, rel=TOLERANCE)


def test_the_simulated_mean_jct_is_the_one_of_the_theorem(simulated: Simulated) -> None:
    outcome = evaluate(workload(), fixed_widths(), Rules(rescaling=False))
    for (job_class, path, _, _, _), expected in zip(simulated, outcome.classes, strict=True):
        begins, ends = run(path, job_class, WIDTHS[job_class.name])
        assert (ends[:, -1] - begins[:, 0]).mean() == pytest.approx(expected.jct, rel=TOLERANCE)
