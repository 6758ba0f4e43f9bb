"""The frontier: one sweep that agrees with every single solve."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boa
from boa.model import Workload
from strategies import workloads


@given(workload=workloads())
def test_the_frontier_is_convex_and_falls(workload: Workload) -> None:
    found = boa.frontier(workload)
    assert (np.diff(found.budgets) > 0).all()
    assert (np.diff(found.objectives) < 0).all()
    slopes = np.diff(found.objectives) / np.diff(found.budgets)
    assert (np.diff(slopes) >= -1e-6 * np.abs(slopes[:-1])).all()


@given(workload=workloads(), where=st.floats(0.0, 1.2))
def test_every_point_of_the_frontier_is_the_plan_at_its_budget(
    workload: Workload, where: float
) -> None:
    found = boa.frontier(workload)
    budget = found.cheapest + where * (found.fastest_budget - found.cheapest)
    plan = boa.plan(workload, budget)
    point = found.at(budget)
    assert point.objective == pytest.approx(plan.objective, rel=1e-7)
    assert point.average_jct == pytest.approx(plan.average_jct, rel=1e-6)


@given(workload=workloads())
def test_every_breakpoint_is_exact(workload: Workload) -> None:
    found = boa.frontier(workload)
    for point in found.breakpoints()[:: max(1, len(found.budgets) // 4)]:
        plan = boa.plan(workload, point.budget)
        assert plan.objective == pytest.approx(point.objective, rel=1e-7)


@given(workload=workloads(), factor=st.floats(1.01, 4), extra=st.floats(1, 3))
def test_a_larger_budget_never_slows_jobs(workload: Workload, factor: float, extra: float) -> None:
    budget = boa.frontier(workload).cheapest * factor
    more = boa.plan(workload, budget * extra).objective
    assert more <= boa.plan(workload, budget).objective * (1 + 1e-9)


@given(workload=workloads(), where=st.floats(0.05, 0.95))
def test_the_shadow_price_is_the_slope_of_the_frontier(workload: Workload, where: float) -> None:
    found = boa.frontier(workload)
    budget = found.cheapest + where * (found.fastest_budget - found.cheapest)
    step = 1e-4 * budget
    price = boa.plan(workload, budget).shadow_price
    gained = found.at(budget).objective - found.at(budget + step).objective
    lost = found.at(max(budget - step, found.cheapest)).objective - found.at(budget).objective
    slack = 1e-6 * found.at(budget).objective
    assert gained <= price * step + slack
    assert price * min(step, budget - found.cheapest) <= lost + slack


@given(workload=workloads(), where=st.floats(0.0, 1.0))
def test_the_budget_for_a_jct_buys_that_jct(workload: Workload, where: float) -> None:
    found = boa.frontier(workload)
    slowest = float(found.average_jcts.max())
    jct = found.fastest_jct + where * (slowest - found.fastest_jct)
    answer = boa.budget_for(workload, jct)
    assert answer.average_jct <= jct * (1 + 1e-7)
    assert answer.spend <= found.fastest_budget * (1 + 1e-9)
    plain = dataclasses.replace(
        workload,
        classes=tuple(dataclasses.replace(c, weight=1.0) for c in workload.classes),
    )
    shortest = boa.frontier(plain)
    cheaper = answer.spend - 0.01 * (answer.spend - shortest.cheapest) - 1e-9
    if cheaper > shortest.cheapest:
        assert shortest.at(cheaper).average_jct >= jct * (1 - 1e-7)


@given(workload=workloads(), factor=st.floats(0.1, 0.99))
def test_a_jct_that_no_budget_buys_is_refused(workload: Workload, factor: float) -> None:
    fastest = boa.frontier(workload).fastest_jct
    # With weights, the fastest plan is the fastest in every class: no plan has a shorter average.
    with pytest.raises(boa.errors.JctTooShort):
        boa.budget_for(workload, fastest * factor)
