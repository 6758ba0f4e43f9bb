"""Weeks in which money changes: the plan against enumeration, and what a calendar says of time."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import boa
from boa.errors import BudgetTooSmall
from boa.model import Workload
from boa.model.calendar import DAYS, MINUTES_PER_DAY, MINUTES_PER_WEEK, Calendar, Period
from boa.solver.by_period import WeekPlan, plan_week
from boa.solver.objective import Rules
from brute import outcomes
from strategies import workloads

small = workloads(max_classes=2, max_epochs=2, max_width=4)
DAY = Period(name="day", budget=1.0, days=DAYS[:5], begins=480, ends=1200)
NIGHT = Period(name="night", budget=1.0, begins=1200, ends=360)
OTHER = Period(name="other", budget=1.0)


@st.composite
def calendars(draw: st.DrawFn, cheapest: float) -> Calendar:
    factors = st.sampled_from([0.6, 1.1, 1.6, 3.0])  # a week that is just enough is rounding's
    periods = [
        dataclasses.replace(
            period,
            budget=cheapest * draw(factors),
            price_factor=draw(st.sampled_from([0.5, 1.0, 1.7])),
        )
        for period in (DAY, NIGHT, OTHER)
    ]
    return Calendar(periods=tuple(periods[draw(st.integers(0, 2)) :]))


def planned(workload: Workload, data: st.DataObject) -> tuple[Calendar, WeekPlan]:
    calendar = data.draw(calendars(boa.frontier(workload).cheapest))
    try:
        return calendar, plan_week(workload, calendar)
    except BudgetTooSmall:
        assume(False)
        raise


@settings(max_examples=20)
@given(workload=small, data=st.data())
def test_the_week_equals_enumeration(workload: Workload, data: st.DataObject) -> None:
    """Every sequence of every class, in every period that it may wait for, as a column."""
    workload = dataclasses.replace(
        workload, classes=tuple(dataclasses.replace(c, max_jct_s=None) for c in workload.classes)
    )
    calendar, found = planned(workload, data)
    count = len(calendar.periods)
    share = [calendar.share(n) for n in range(count)]
    lists = [outcomes(calendar.workload(workload, n), Rules()) for n in range(count)]
    total = workload.weighted_arrivals_per_hour
    costs, spends, groups = [], [], []
    for i, job_class in enumerate(workload.classes):
        for p in range(count):
            for q in range(count):
                waits = job_class.weight * job_class.arrivals_per_hour / total * calendar.wait(p, q)
                for objective, spend, _ in lists[q][i]:
                    costs.append(share[p] * (objective + waits))
                    row = np.zeros(count)
                    row[q] = share[p] * spend / share[q] / calendar.periods[q].budget
                    spends.append(row)
                    groups.append(i * count + p)
    every = range(count * len(workload.classes))
    whole = np.array([np.array(groups) == n for n in every], dtype=float)
    limits = np.full(count, 1 + 1e-9)
    best = linprog(costs, np.array(spends).T, limits, whole, np.ones(len(whole)))
    assert best.success
    assert found.objective == pytest.approx(best.fun, rel=1e-6)


@settings(max_examples=40)
@given(workload=workloads(), data=st.data())
def test_every_period_keeps_its_budget_and_the_bound_is_met(
    workload: Workload, data: st.DataObject
) -> None:
    calendar, found = planned(workload, data)
    assert found.gap == pytest.approx(0.0, abs=1e-6)
    for period, plan in zip(calendar.periods, found.periods, strict=True):
        assert plan.spend <= period.budget * (1 + 1e-6)
        assert plan.multiplier >= 0
    total = sum(plan.share * plan.spend for plan in found.periods)
    assert found.spend == pytest.approx(total, rel=1e-6)


@settings(max_examples=20)
@given(workload=workloads(), factor=st.sampled_from([1.05, 1.5, 3.0]))
def test_a_week_that_is_alike_throughout_is_the_plan_without_a_calendar(
    workload: Workload, factor: float
) -> None:
    budget = boa.frontier(workload).cheapest * factor
    alike = [dataclasses.replace(period, budget=budget) for period in (DAY, NIGHT, OTHER)]
    found = plan_week(workload, Calendar(periods=tuple(alike)))
    assert found.objective == pytest.approx(boa.plan(workload, budget).objective, rel=1e-6)


def test_jobs_with_a_cap_on_their_jct_do_not_wait() -> None:
    epoch = boa.model.Epoch(work=3600.0, speedups={"T4": boa.model.Amdahl(0.9)})
    job = boa.model.JobClass(name="a", arrivals_per_hour=1.0, epochs=(epoch,))
    usual = Workload(gpu_types={"T4": boa.model.GpuType(name="T4")}, classes=(job,))
    cheap = dataclasses.replace(OTHER, budget=20.0, price_factor=0.01)
    calendar = Calendar(periods=(dataclasses.replace(DAY, budget=1.001), cheap))
    long = dataclasses.replace(usual, classes=(dataclasses.replace(job, weight=1.0),))
    capped = dataclasses.replace(usual, classes=(dataclasses.replace(job, max_jct_s=36_000.0),))
    assert plan_week(long, calendar).spend <= calendar.average
    assert not plan_week(capped, calendar).waiting


def test_the_first_period_that_names_a_minute_has_it() -> None:
    calendar = Calendar(periods=(DAY, NIGHT, OTHER))
    assert calendar.share(0) == pytest.approx(60 / 168)
    assert calendar.share(1) == pytest.approx(70 / 168)
    assert sum(calendar.share(n) for n in range(3)) == pytest.approx(1.0)
    assert calendar.spans[0] == (1, 0, 360), "Monday begins with the end of Sunday's night"
    assert sum(end - begin for _, begin, end in calendar.spans) == MINUTES_PER_WEEK


def test_a_wait_is_the_mean_over_the_minutes_of_a_period() -> None:
    calendar = Calendar(periods=(DAY, dataclasses.replace(OTHER, name="rest")))
    assert calendar.wait(0, 1) == pytest.approx(6 * 3600.0, rel=1e-3)
    night, weekend = 12 * 4, 12 + 48
    mean_h = (night * 6 + weekend * weekend / 2) / (night + weekend)
    assert calendar.wait(1, 0) == pytest.approx(mean_h * 3600.0, rel=1e-3)
    assert calendar.wait(1, 1) == 0.0


def test_a_day_without_hours_is_a_whole_day() -> None:
    sunday = Period(name="sunday", budget=1.0, days=("sun",))
    assert sunday.minutes() == set(range(6 * MINUTES_PER_DAY, MINUTES_PER_WEEK))
