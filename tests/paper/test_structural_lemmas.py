"""Lemmas "No queueing" and "Same allocation for same speedup" (Appendix A).

A schedule is what one job holds over time: stretches of (work done, GPUs held), and waits.
"""

from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from boa.model.speedup import Speedup, Table
from boa.solver.convex import fractional_optimum
from paper.formulas import as_workload
from strategies import numbers, speedups

BASE, MOST = 2, 6


@dataclass(frozen=True)
class Wait:
    """The job queues: it holds nothing and makes no progress."""

    time: float


@dataclass(frozen=True)
class Run:
    """The job does some work on a constant number of GPUs."""

    work: float
    width: float


Schedule = list[Wait | Run]


def jct(schedule: Schedule, curve: Speedup) -> float:
    return sum(s.time if isinstance(s, Wait) else s.work / curve(s.width) for s in schedule)


def gpu_seconds(schedule: Schedule, curve: Speedup) -> float:
    return sum(s.width * s.work / curve(s.width) for s in schedule if isinstance(s, Run))


def work(schedule: Schedule) -> float:
    return sum(s.work for s in schedule if isinstance(s, Run))


waits = numbers(0.0, 500.0).map(Wait)
runs = st.builds(Run, numbers(1.0, 300.0), numbers(BASE, MOST))
schedules = st.tuples(st.lists(st.one_of(waits, runs), max_size=5), runs).map(
    lambda parts: [*parts[0], parts[1]]
)
curves = speedups(BASE, MOST, concave=True)


@given(schedule=schedules, curve=speedups(BASE, MOST))
def test_removing_every_wait_keeps_the_gpu_hours_and_saves_exactly_the_waiting(
    schedule: Schedule, curve: Speedup
) -> None:
    waited = sum(s.time for s in schedule if isinstance(s, Wait))
    at_once: Schedule = [s for s in schedule if isinstance(s, Run)]
    assert gpu_seconds(at_once, curve) == gpu_seconds(schedule, curve)
    assert jct(at_once, curve) == pytest.approx(jct(schedule, curve) - waited)


@given(jobs=st.lists(st.lists(runs, min_size=1, max_size=4), min_size=1, max_size=3), curve=curves)
def test_the_time_averaged_width_is_never_slower_nor_dearer_for_concave_speedups(
    jobs: list[Schedule], curve: Speedup
) -> None:
    """Within a job and across the jobs of one class and epoch."""
    everything: Schedule = [stretch for job in jobs for stretch in job]
    width = gpu_seconds(everything, curve) / jct(everything, curve)
    evened: Schedule = [Run(work(everything), width)]
    assert jct(evened, curve) <= jct(everything, curve) * (1 + 1e-9)
    assert gpu_seconds(evened, curve) <= gpu_seconds(everything, curve) * (1 + 1e-9)


def test_a_falling_speedup_per_gpu_alone_is_not_enough_for_the_lemma() -> None:
    """The paper calls non-increasing s(k)/k concavity; this curve has it and is not concave."""
    curve = Table.of({1: 1.0, 2: 1.1, 3: 1.6})
    per_gpu = [curve(k) / k for k in (1, 2, 3)]
    assert per_gpu == sorted(per_gpu, reverse=True)
    uneven: Schedule = [Run(1.0, 1), Run(1.6, 3)]  # one second each
    evened: Schedule = [Run(2.6, 2)]
    assert gpu_seconds(uneven, curve) == 4.0
    assert jct(evened, curve) > jct(uneven, curve)


@given(jobs=st.lists(schedules, min_size=1, max_size=4), curve=speedups(BASE, MOST))
def test_no_offline_schedule_beats_the_optimal_fixed_widths(
    jobs: list[Schedule], curve: Speedup
) -> None:
    """Lemma on offline optimality, on the sample path of these jobs, one arriving an hour."""
    mean_work = sum(work(job) for job in jobs) / len(jobs)
    spend = sum(gpu_seconds(job, curve) for job in jobs) / len(jobs) / 3600
    average = sum(jct(job, curve) for job in jobs) / len(jobs)
    workload = as_workload([mean_work], [curve], base=BASE, most=MOST)
    assert fractional_optimum(workload, spend).objective <= average * (1 + 1e-9)


@given(schedule=st.lists(runs, min_size=2, max_size=4), curve=curves)
def test_a_strictly_uneven_schedule_on_a_strictly_concave_curve_is_strictly_worse(
    schedule: Schedule, curve: Speedup
) -> None:
    widths = [s.width for s in schedule if isinstance(s, Run)]
    width = gpu_seconds(schedule, curve) / jct(schedule, curve)
    middle = (min(widths) + max(widths)) / 2
    chord = (curve(min(widths)) + curve(max(widths))) / 2
    assume(max(widths) - min(widths) > 0.1 and curve(middle) > chord * 1.001)
    assert jct([Run(work(schedule), width)], curve) < jct(schedule, curve)
