"""When a job is best begun, held against a look at every minute."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.formats.workload import load_workload
from boa.model.calendar import DAYS, Calendar, Period
from boa.model.workload import Workload
from boa.policy.boa import price_of
from boa.policy.market.hours import Run, starts
from boa.scheduler.plan.week import Week, of_week
from boa.solver.planner import frontier, plan
from strategies import workloads

HOUR = 3600.0
WEEK = 168 * HOUR
PERIODS = (
    Period(name="day", budget=12.0, days=DAYS[:6], begins=480, ends=1200),
    Period(name="sunday", budget=7.0, days=DAYS[6:]),
    Period(name="night", budget=30.0),
)
CALENDAR = Calendar(periods=PERIODS, time_zone="Europe/Berlin").begun_on_a_monday()
runs = st.builds(
    lambda hours, worth: Run(HOUR * (hours + worth), HOUR * hours, worth),
    st.integers(1, 60),
    st.integers(0, 60),
)


@settings(max_examples=20)
@given(workload=workloads(max_classes=2, max_epochs=2, max_width=4), factor=st.floats(1.01, 2.0))
def test_where_nobody_gains_by_waiting_a_dollar_is_worth_what_it_is_in_any_plan(
    workload: Workload, factor: float
) -> None:
    found = frontier(workload)
    budget = factor * found.cheapest
    periods = tuple(replace(period, budget=budget) for period in PERIODS)
    waited = of_week(workload, Week(Calendar(periods=periods), workload.gpu_types, 0))
    assert waited.workload == workload, "whoever comes by day runs by day"
    assert waited.cheapest == pytest.approx(found.cheapest)
    multipliers = [
        point.shadow_price for point in (plan(workload, k * budget) for k in (1 - 1e-6, 1 + 1e-6))
    ]
    low, high = sorted(price_of(shadow, workload) for shadow in multipliers)
    for price in waited.prices.values():
        assert low * (1 - 1e-6) - 1e-9 <= price <= high * (1 + 1e-6) + 1e-9


@settings(max_examples=40, deadline=None)
@given(of=st.tuples(runs, runs, runs), hour=st.integers(0, 167), most_h=st.integers(0, 48))
def test_a_start_comes_to_its_wait_and_the_mean_of_the_minutes_that_it_runs(
    of: tuple[Run, Run, Run], hour: int, most_h: int
) -> None:
    now, until = hour * HOUR, (hour + most_h) * HOUR
    found = starts(CALENDAR, now, until, of.__getitem__)
    changes = [m * HOUR for m in range(hour + 1, hour + most_h + 1)]
    begins = [at for at in changes if CALENDAR.at(at) != CALENDAR.at(at - 1.0)]
    assert [start.at for start in found] == [now, *begins]
    for start in found:
        run = of[CALENDAR.at(start.at)]
        minutes = (start.at + 60.0 * n + 30.0 for n in range(round(run.seconds / 60.0)))
        met = [of[CALENDAR.at(minute)].value for minute in minutes]
        assert start.value == pytest.approx(start.at - now + math.fsum(met) / len(met))


@given(run=runs, hour=st.integers(0, 167))
def test_nobody_gains_by_waiting_where_all_hours_are_alike(run: Run, hour: int) -> None:
    at_once, *later = starts(CALENDAR, hour * HOUR, (hour + 48) * HOUR, lambda _: run)
    assert all(start.value > at_once.value for start in later)


@given(lasts=st.floats(1.0, 4.0), of=st.tuples(runs, runs, runs), hour=st.integers(0, 167))
def test_whole_weeks_are_not_put_off(lasts: float, of: tuple[Run, Run, Run], hour: int) -> None:
    """They meet as much of everything whenever they begin."""
    long = [run._replace(seconds=lasts * WEEK) for run in of]
    at_once, *later = starts(CALENDAR, hour * HOUR, (hour + 48) * HOUR, long.__getitem__)
    assert all(start.value > at_once.value for start in later)


def test_of_hours_that_nobody_knows_nothing_is_expected() -> None:
    run = Run(HOUR, HOUR, 1.0)
    assert starts(CALENDAR, 0.0, WEEK, lambda _: None) == []
    sundays = starts(CALENDAR, 0.0, WEEK, lambda n: run if n != 1 else None)
    assert all(CALENDAR.at(start.at) != 1 for start in sundays)


def test_nobody_is_put_off_beyond_the_end_of_the_budget() -> None:
    run = Run(HOUR, HOUR, 1.0)
    ended = Calendar(periods=PERIODS, until=30 * HOUR)
    assert [start.at / HOUR for start in starts(ended, 0.0, WEEK, lambda _: run)] == [0, 8, 20]


@settings(max_examples=20)
@given(
    workload=workloads(max_classes=2, max_epochs=2, max_width=4),
    night=st.floats(1.0, 4.0),
    factor=st.floats(1.01, 2.0),
)
def test_over_a_week_as_many_jobs_begin_as_come(
    workload: Workload, night: float, factor: float
) -> None:
    day, sunday, rest = PERIODS
    budget = factor * frontier(workload).cheapest
    periods = (replace(day, budget=budget), replace(sunday, budget=night * budget), rest)
    calendar = Calendar(periods=(*periods[:2], replace(rest, budget=night * budget)), may_wait=WEEK)
    begun = [
        of_week(workload, Week(calendar, workload.gpu_types, number)).workload
        for number in range(3)
    ]
    for n, known in enumerate(workload.classes):
        rates = [found.classes[n].arrivals_per_hour for found in begun]
        mean = sum(s * rate for s, rate in zip(calendar.shares, rates, strict=True))
        assert mean == pytest.approx(known.arrivals_per_hour, rel=2e-3), "RAREST is never left out"


def test_nobody_is_planned_to_wait_whom_the_calendar_does_not_let(examples: Path) -> None:
    day, _, night = PERIODS
    workload = load_workload(examples / "newtrace-t4.yaml")
    budget = 1.01 * frontier(workload).cheapest
    for may_wait, poor, moved in ((0.0, 1.0, False), (0.0, 0.5, False), (WEEK, 1.0, True)):
        periods = (replace(day, budget=poor * budget), replace(night, budget=20 * budget))
        calendar = Calendar(periods=periods, may_wait=may_wait)
        found = of_week(workload, Week(calendar, workload.gpu_types, 0))
        assert (found.workload != workload) == moved
        assert found.prices, "single jobs may wait all the same"


def test_nobody_looks_further_ahead_than_a_week() -> None:
    """Ten years may be allowed, and hold seven thousand nights."""
    short, long = (Run(hours * HOUR, HOUR, 1.0) for hours in (5, 9))
    in_days = {0: long, 1: long, 2: short}
    ten_years = starts(CALENDAR, 9 * HOUR, 520 * WEEK, in_days.__getitem__)
    assert ten_years == starts(CALENDAR, 9 * HOUR, 9 * HOUR + WEEK, in_days.__getitem__)
