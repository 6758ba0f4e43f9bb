"""Value to go is what the best way through the rest of training comes to, and nothing less."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.formats.workload import load_workload
from boa.model.cluster import Allocation, JobView
from boa.model.speedup import Floats
from boa.model.workload import Workload
from boa.policy.market.commitments import to_go
from boa.policy.market.prospects import prospects
from boa.policy.market.standings import standings_of
from boa.policy.market.worth import NEVER_S, Course, Worth, course_of, fresh_job, worth_of
from boa.solver.planner import plan
from strategies import numbers, workloads


class Unknown:
    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return None


def courses(workload: Workload) -> list[Course]:
    found = (course_of(job_class, workload.gpu_types) for job_class in workload.classes)
    return [course for course in found if course is not None]


def waiting(course: Course, epoch: int = 0, left: float = 1.0) -> JobView:
    return JobView(
        id="1",
        job_class=course.name,
        arrival=0.0,
        serial=0,
        epoch=epoch,
        left=left,
        prediction=Unknown(),
    )


def holding(course: Course, state: int, epoch: int = 0, left: float = 1.0) -> JobView:
    view = waiting(course, epoch, left)
    gpu, width = course.states[state]
    return JobView(
        id="1",
        job_class=view.job_class,
        arrival=0.0,
        serial=0,
        epoch=epoch,
        left=left,
        prediction=Unknown(),
        allocation=Allocation(gpu, ((1, width),)),
    )


def value_of(worth: Worth, way: tuple[int, ...], first: int) -> float:
    """A way from the beginning of an epoch, by hand; it starts on other GPUs."""
    course, total, before = worth.course, 0.0, -1
    for epoch, state in enumerate(way, first):
        seconds = course.times[epoch, state] + (course.rescale_s if state != before else 0.0)
        total += seconds * worth.values[state]
        before = state
    return total


@given(workload=workloads(max_types=2), price=numbers(0.0, 5000.0))
def test_value_to_go_is_the_best_way_that_enumeration_finds(
    workload: Workload, price: float
) -> None:
    for course in courses(workload):
        epochs, states = course.times.shape
        if states**epochs > 3000:
            continue
        worth = worth_of(course, price)
        ways = itertools.product(range(states), repeat=epochs)
        best = min(value_of(worth, way, 0) for way in ways)
        found = worth.starts(np.array([0]), np.array([1.0]))[0]
        assert found == pytest.approx(best, rel=1e-9)


@given(workload=workloads(max_types=2), price=numbers(0.0, 5000.0))
def test_a_fresh_job_takes_the_seconds_and_dollars_that_its_value_counts(
    workload: Workload, price: float
) -> None:
    for course in courses(workload):
        if course.cap_s is not None:
            continue
        worth = worth_of(course, price)
        seconds, dollars = fresh_job(worth)
        value = worth.starts(np.array([0]), np.array([1.0]))[0]
        if value < NEVER_S:
            assert worth.weight * seconds + price * dollars == pytest.approx(value, rel=1e-6)
            assert to_go([waiting(course)], {course.name: worth}) == pytest.approx(dollars)


@given(workload=workloads(max_types=1), data=st.data())
def test_dearer_money_never_makes_a_job_spend_more_or_end_sooner(
    workload: Workload, data: st.DataObject
) -> None:
    cheap, dear = sorted(data.draw(st.tuples(numbers(1.0, 3000.0), numbers(1.0, 3000.0))))
    for course in courses(workload):
        if course.cap_s is None:
            fast, costly = fresh_job(worth_of(course, cheap))
            slow, frugal = fresh_job(worth_of(course, dear))
            assert frugal <= costly * (1 + 1e-9)
            assert slow >= fast * (1 - 1e-9)


@given(workload=workloads(max_types=1), budget=numbers(1.05, 6.0))
def test_at_a_plans_own_price_fresh_jobs_reach_the_plans_objective(
    workload: Workload, budget: float
) -> None:
    """Where every width is a state, the market values jobs as the plan's multiplier does."""
    if any(c.max_jct_s is not None for c in workload.classes):
        return
    found = plan(workload, budget * plan(workload, 1e12).cheapest)
    price = found.shadow_price * workload.weighted_arrivals_per_hour
    known = {c.name: c for c in courses(workload)}
    if len(known) < len(workload.classes) or price <= 0:
        return
    kind = next(iter(workload.gpu_types.values()))
    if kind.gpus_per_node > 1:
        return
    reached = sum(
        c.arrivals_per_hour * (c.weight * seconds + price * dollars)
        for c in workload.classes
        for seconds, dollars in [fresh_job(worth_of(known[c.name], price))]
    )
    total = workload.weighted_arrivals_per_hour
    outcome = total * found.objective + price * found.spend
    assert reached == pytest.approx(outcome, rel=1e-6)


@given(
    workload=workloads(max_types=2),
    price=numbers(0.0, 3000.0),
    left=numbers(0.001, 1.0),
    horizon=numbers(1.0, 5000.0),
    data=st.data(),
)
def test_staying_is_worth_as_much_as_the_same_elsewhere_and_the_pause(
    workload: Workload, price: float, left: float, horizon: float, data: st.DataObject
) -> None:
    for course in courses(workload):
        worth = worth_of(course, price)
        state = data.draw(st.integers(0, len(course.states) - 1))
        worths = {course.name: worth}
        here = prospects(standings_of([holding(course, state, 0, left)], worths), horizon)
        away = prospects(standings_of([waiting(course, 0, left)], worths), horizon)
        assert here.gains[0, state] >= away.gains[0, state] - 1e-6 * abs(away.gains[0, state])
        others = [n for n in range(len(course.states)) if n != state]
        assert here.gains[0, others] == pytest.approx(away.gains[0, others])


def test_a_cap_on_the_mean_jct_makes_the_class_worth_more() -> None:
    workload = load_workload("examples/newtrace-t4.yaml")
    job_class = workload.classes[0]
    free = course_of(job_class, workload.gpu_types)
    assert free is not None
    price = 3000.0
    seconds, _ = fresh_job(worth_of(free, price))
    fastest, _ = fresh_job(worth_of(free, 0.0))
    cap = (fastest + seconds) / 2
    capped = worth_of(replace(free, cap_s=cap), price)
    assert fastest < seconds
    assert fresh_job(capped)[0] <= cap
    assert capped.weight > free.weight
