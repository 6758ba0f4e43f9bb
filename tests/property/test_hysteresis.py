"""A running job moves to a newer plan only if the rest of its training gains by it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.formats.workload import load_workload
from boa.model.cluster import Allocation, ClusterView, JobView, Share
from boa.model.plan import ClassPlan, Variant
from boa.model.speedup import Floats, Speedup, Table
from boa.model.workload import JobClass, Workload
from boa.policy.boa import MARGIN, Boa, Planned, planned_of, within_reach
from boa.solver.objective import holdings
from boa.solver.planner import plan as solve
from boa.solver.solution import Solution
from strategies import numbers, workloads

SERIALS = 12


class Unknown:
    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return None


def waiting(job_class: JobClass, serial: int, epoch: int) -> JobView:
    name = f"{job_class.name}/{serial}/{epoch}"
    return JobView(
        id=name,
        job_class=job_class.name,
        arrival=0.0,
        serial=serial,
        epoch=epoch,
        prediction=Unknown(),
    )


def decide(planned: Planned, jobs: list[JobView]) -> dict[str, Share]:
    types = planned.solution.workload.gpu_types
    view = ClusterView(now=0.0, jobs=jobs, nodes=(), gpu_types=types, memory=planned)
    return dict(Boa().decide(view).shares)


def running(planned: Planned, every: int = 1) -> list[JobView]:
    """Some jobs of every class in every epoch, on what the plan gives them."""
    jobs = [
        waiting(job_class, serial, epoch)
        for job_class in planned.solution.workload.classes
        for serial in range(SERIALS)
        for epoch in range(0, len(job_class.epochs), every)
    ]
    shares = decide(planned, jobs)
    return [
        replace(
            job, note=share.note, service=1.0, allocation=Allocation(share.gpu, ((0, share.width),))
        )
        for job in jobs
        for share in [shares[job.id]]
    ]


def held(job: JobView) -> tuple[str, int]:
    assert job.allocation is not None
    return job.allocation.gpu, job.allocation.width


def moved(jobs: list[JobView], shares: dict[str, Share]) -> list[JobView]:
    return [job for job in jobs if (shares[job.id].gpu, shares[job.id].width) != held(job)]


def rest_by_the_formulas(solution: Solution, job: JobView, variant: Variant) -> float:
    """w T / Σ w λ + μ cost of a job that has just this work left and holds what it holds."""
    workload = solution.workload
    whole = next(c for c in workload.classes if c.name == job.job_class)
    current, *later = whole.epochs[job.epoch :]
    left = replace(whole, epochs=(replace(current, work=job.left * current.work), *later))
    rest = Variant(1.0, variant.gpu_types[job.epoch :], variant.widths[job.epoch :])
    parts = list(holdings(workload, left, ClassPlan(name="", variants=(rest,)), solution.rules))
    first = parts[0]
    if (first.gpu.name, first.width) == held(job):
        parts[0] = replace(first, time=first.time - whole.rescale_s)
    time = sum(part.time for part in parts)
    cost = sum(part.cost(solution.rules.billing) for part in parts)
    weight = whole.weight / workload.weighted_arrivals_per_hour
    return weight * time + solution.shadow_price * cost


def shaken(workload: Workload, seed: int, size: float = 0.02) -> Workload:
    """The same with every rate off by its own factor."""
    rng = np.random.default_rng(seed)

    def shake(curve: Speedup, most: int) -> Table:
        widths = np.arange(curve.base, max(most, curve.base) + 1)
        factors = np.exp(size * rng.standard_normal(len(widths)))
        return Table(tuple(widths.tolist()), curve.rates(widths.astype(float)) * factors)

    return replace(
        workload,
        classes=tuple(
            replace(
                c,
                epochs=tuple(
                    replace(e, speedups={g: shake(s, c.max_on(g)) for g, s in e.speedups.items()})
                    for e in c.epochs
                ),
            )
            for c in workload.classes
        ),
    )


def cheapest(workload: Workload) -> float:
    return within_reach(workload, 1e-9)[0].spend


def first_plan(workload: Workload, budget: float) -> Planned:
    return planned_of(within_reach(workload, budget)[0], version=1, at=0.0)


def next_plan(workload: Workload, budget: float) -> Planned:
    return planned_of(within_reach(workload, budget)[0], version=2, at=1.0, plans=2)


@given(
    workload=workloads(rescaling=True),
    generous=numbers(1.01, 3.0),
    change=numbers(0.4, 2.5),
    seed=st.integers(0, 2**16),
    left=numbers(0.0, 1.0),
)
def test_jobs_move_exactly_if_their_rest_gains_more_than_the_margin(
    workload: Workload, generous: float, change: float, seed: int, left: float
) -> None:
    budget = cheapest(workload) * generous
    jobs = [replace(job, left=left) for job in running(first_plan(workload, budget))]
    after = next_plan(shaken(workload, seed), budget * change)
    dealt = decide(after, [replace(j, note=None, allocation=None, service=0.0) for j in jobs])
    shares = decide(after, jobs)
    for job in jobs:
        stay = rest_by_the_formulas(after.solution, job, job.note)
        go = rest_by_the_formulas(after.solution, job, dealt[job.id].note)
        if go < (1 - MARGIN) * stay * (1 - 1e-9):
            assert shares[job.id] == dealt[job.id]
        elif go > (1 - MARGIN) * stay * (1 + 1e-9):
            assert shares[job.id].note == job.note


@given(workload=workloads(), generous=numbers(1.01, 3.0), change=numbers(0.4, 2.5))
def test_nobody_moves_whose_rescaling_would_take_longer_than_the_rest(
    workload: Workload, generous: float, change: float
) -> None:
    slow = replace(workload, classes=tuple(replace(c, rescale_s=1e6) for c in workload.classes))
    budget = cheapest(slow) * generous
    jobs = running(first_plan(slow, budget))
    assert moved(jobs, decide(next_plan(slow, budget * change), jobs)) == []


def with_seconds_left(planned: Planned, job: JobView, seconds: float) -> JobView:
    """In its last epoch, and so close to the end, by these figures, on what it holds."""
    classes = planned.solution.workload.classes
    last = next(c for c in classes if c.name == job.job_class).epochs[-1]
    gpu, width = held(job)
    takes = last.work / float(last.speedups[gpu].rates(np.array([float(width)]))[0])
    return replace(job, left=min(1.0, seconds / takes))


@given(
    workload=workloads(rescaling=True),
    generous=numbers(1.01, 6.0),
    change=numbers(0.2, 5.0),
    seed=st.integers(0, 2**16),
    part=numbers(0.0, 0.999),
)
def test_a_job_that_would_end_within_the_rescaling_moves_only_to_save_money(
    workload: Workload, generous: float, change: float, seed: int, part: float
) -> None:
    """Never to end sooner: it could not."""
    budget = cheapest(workload) * generous
    after = next_plan(shaken(workload, seed), budget * change)
    classes = {c.name: c for c in workload.classes}
    jobs = [
        with_seconds_left(after, job, part * classes[job.job_class].rescale_s)
        for job in running(first_plan(workload, budget))
        if job.epoch == len(classes[job.job_class].epochs) - 1
    ]
    shares = decide(after, jobs)
    for job in moved(jobs, shares):
        share, (gpu, width) = shares[job.id], held(job)
        types = workload.gpu_types
        assert share.width * types[share.gpu].price < width * types[gpu].price


@given(workload=workloads(), generous=numbers(1.01, 3.0))
def test_nobody_moves_for_the_same_plan_made_again(workload: Workload, generous: float) -> None:
    budget = cheapest(workload) * generous
    jobs = running(first_plan(workload, budget))
    shares = decide(next_plan(workload, budget), jobs)
    assert {job.id: job.note for job in jobs} == {name: s.note for name, s in shares.items()}


@pytest.fixture(scope="module")
def new_trace(examples: Path) -> Workload:
    return load_workload(examples / "newtrace-t4.yaml")


@pytest.mark.parametrize("budget", [110.0, 140.0, 200.0])
def test_a_plan_made_again_on_slightly_other_figures_moves_few(
    new_trace: Workload, budget: float
) -> None:
    jobs = running(first_plan(new_trace, budget), every=5)
    unlike = few = 0
    for seed in range(8):
        after = next_plan(shaken(new_trace, seed), budget)
        anew = [replace(j, note=None, allocation=None, service=0.0) for j in jobs]
        unlike += len(moved(jobs, decide(after, anew)))
        few += len(moved(jobs, decide(after, jobs)))
    assert unlike > 0.2 * 8 * len(jobs), "the plans themselves differ a lot"
    assert few < 0.02 * 8 * len(jobs)


def test_with_twice_the_budget_jobs_with_much_work_left_move(new_trace: Workload) -> None:
    jobs = running(first_plan(new_trace, 110.0))
    gone = {job.id for job in moved(jobs, decide(next_plan(new_trace, 220.0), jobs))}
    for job_class in new_trace.classes:
        mine = [job for job in jobs if job.job_class == job_class.name]
        early = [job for job in mine if job.epoch == 0]
        late = [job for job in mine if job.epoch == len(job_class.epochs) - 1]
        assert sum(j.id in gone for j in early) >= sum(j.id in gone for j in late)
    assert len(gone) > 0.3 * len(jobs)


def test_the_plan_asks_for_what_it_says(new_trace: Workload) -> None:
    """What is left at the very start is the whole job, and adds up to the objective."""
    solution = solve(new_trace, 140.0)
    value = sum(
        c.arrivals_per_hour * v.share * rest_by_the_formulas(solution, _unstarted(c), v)
        for c in new_trace.classes
        for v in solution.plan[c.name].variants
    )
    paid = solution.shadow_price * solution.spend
    assert value == pytest.approx(solution.objective + paid, rel=1e-9)


def _unstarted(job_class: JobClass) -> JobView:
    return replace(waiting(job_class, 0, 0), allocation=Allocation("none", ((0, 1),)))
