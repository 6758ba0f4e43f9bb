"""Theorem on homogeneous clusters without rescaling, and its convex translation (Appendix A).

In z = 1/s(k) the cost of an epoch is convex, so a multiplier proves the optimum: what the tests
ask for is that proof, against every width of a fine grid.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boa
from boa.errors import BudgetTooSmall
from boa.model.speedup import Amdahl, Power, Speedup, Table
from boa.model.workload import Workload
from boa.solver.convex import concave_hull, efficient_hull, fractional_optimum
from boa.solver.objective import Rules, evaluate
from paper.formulas import as_workload, best_pure, combined, epoch_options, width_of_rate
from strategies import measured_tables, numbers, speedups, workloads

FREE = Rules(rescaling=False, routing="epoch")
concave_one_type = workloads(max_types=1, concave=True)
factors = st.sampled_from([1.0, 1.001, 1.1, 1.5, 3.0])


def cheapest(workload: Workload) -> float:
    return boa.frontier(workload, rescaling=False, routing="epoch").cheapest


@given(curve=speedups(1, 6, concave=True), ends=st.tuples(numbers(1, 6), numbers(1, 6)))
def test_the_cost_of_work_is_convex_in_z_for_concave_speedups(
    curve: Speedup, ends: tuple[float, float]
) -> None:
    slow, fast = (1.0 / curve(k) for k in ends)
    middle = (slow + fast) / 2
    width = width_of_rate(curve, 1.0 / middle, min(ends), max(ends))
    chord = (ends[0] * slow + ends[1] * fast) / 2
    assert middle * width <= chord * (1 + 1e-9)


@given(workload=concave_one_type, data=st.data())
def test_halfway_in_z_between_two_feasible_plans_is_feasible(
    workload: Workload, data: st.DataObject
) -> None:
    """And its JCT is halfway too: the problem is convex."""
    spends, jcts = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    for job_class in workload.classes:
        for epoch in job_class.epochs:
            curve = epoch.speedups["T4"]
            base = job_class.base_on("T4", epoch)
            assert base is not None
            widths = [data.draw(numbers(base, job_class.max_on("T4"))) for _ in range(2)]
            z = (1 / curve(widths[0]) + 1 / curve(widths[1])) / 2
            widths.append(width_of_rate(curve, 1 / z, min(widths), max(widths)))
            for n, k in enumerate(widths):
                time = job_class.arrivals_per_hour * epoch.work / curve(k)
                spends[n] += k * time
                jcts[n] += time
    assert spends[2] <= max(spends[:2]) * (1 + 1e-9)
    assert jcts[2] == pytest.approx((jcts[0] + jcts[1]) / 2, rel=1e-6)


@given(workload=workloads(), factor=factors)
def test_the_fractional_optimum_carries_its_proof(workload: Workload, factor: float) -> None:
    """Feasible; nothing on a fine grid of widths is better at its multiplier; slack only free."""
    budget = cheapest(workload) * factor
    found = fractional_optimum(workload, budget)
    again = evaluate(workload, found.plan, FREE)
    assert again.spend <= budget * (1 + 1e-9)
    assert found.objective == again.objective
    dual = -found.multiplier * budget
    total = workload.weighted_arrivals_per_hour
    for job_class in workload.classes:
        for epoch in job_class.epochs:
            least = np.inf
            for gpu, curve in epoch.speedups.items():
                base, most = job_class.base_on(gpu, epoch), job_class.max_on(gpu)
                assert base is not None
                grid = np.linspace(base, most, 200 * (most - base) + 1)
                times = epoch.work / curve.rates(grid)
                costs = workload.gpu_types[gpu].price / 3600 * grid * times
                values = job_class.weight / total * times + found.multiplier * costs
                least = min(least, float(values.min()))
            dual += job_class.arrivals_per_hour * least
    assert found.objective <= dual * (1 + 1e-9)  # the grid can only raise the bound
    assert found.objective >= dual * (1 - 1e-4)  # by as little as its mesh


@pytest.mark.parametrize(
    "curves",
    [
        (Amdahl(0.95), Amdahl(0.6)),
        (Power(0.8), Power(0.4, 3.0)),
        (Amdahl(0.9, 2.0), Power(0.5)),
        (Table.of({1: 1.0, 2: 1.8, 4: 3.0, 8: 4.0}), Table.of({1: 1.0, 8: 8.0})),
        (Table.of({2: 1.5, 4: 2.5, 8: 3.0}), Amdahl(0.99)),
    ],
)
@pytest.mark.parametrize("factor", [1.05, 1.3, 2.0])
def test_a_grid_search_over_two_widths_finds_nothing_better(
    curves: tuple[Speedup, Speedup], factor: float
) -> None:
    workload = as_workload([600.0, 1500.0], curves, most=8)
    budget = cheapest(workload) * factor
    grids = [np.linspace(max(1, curve.base), 8, 1401) for curve in curves]
    times = [x / c.rates(g) for x, c, g in zip((600.0, 1500.0), curves, grids, strict=True)]
    spend = np.add.outer(grids[0] * times[0], grids[1] * times[1]) / 3600
    jct = np.add.outer(times[0], times[1])
    on_grid = float(jct[spend <= budget].min())
    found = fractional_optimum(workload, budget).objective
    assert found <= on_grid * (1 + 1e-9)
    assert found >= on_grid * (1 - 5e-3)


@given(workload=workloads(max_types=1, max_classes=2, max_epochs=2), factor=factors)
def test_boa_is_never_worse_than_any_whole_widths(workload: Workload, factor: float) -> None:
    """Brute force over the whole integer grid."""
    options = [
        (c, [(time, cost) for _, _, time, cost in epoch_options(workload, c, e)])
        for c in workload.classes
        for e in c.epochs
    ]
    spend, objective = combined(workload, options)
    budget = float(spend.min()) * factor
    pure = best_pure(spend, objective, budget)
    assert fractional_optimum(workload, budget).objective <= pure * (1 + 1e-9)
    assert boa.plan(workload, budget, rescaling=False).objective <= pure * (1 + 1e-9)


@given(workload=workloads(max_types=1, concave=False), factor=factors)
def test_mixing_whole_widths_reaches_the_fractional_optimum_of_measured_curves(
    workload: Workload, factor: float
) -> None:
    budget = cheapest(workload) * factor
    mixed = boa.plan(workload, budget, rescaling=False, routing="epoch")
    found = fractional_optimum(workload, budget)
    assert found.objective == pytest.approx(mixed.objective, rel=1e-9)


@given(curve=measured_tables(2, 9))
def test_the_hull_is_concave_non_decreasing_and_above_the_curve(curve: Table) -> None:
    widths = np.arange(2.0, 10.0)
    rates = curve.rates(widths)
    on = concave_hull(widths, rates[None, :])[0]
    hull = np.interp(widths, widths[on], rates[on])
    assert on[0]
    assert (hull >= rates * (1 - 1e-9)).all()
    slopes = [b - a for a, b in pairwise(hull.tolist())]
    assert all(rise >= 0 for rise in slopes)
    assert all(b <= a + 1e-9 for a, b in pairwise(slopes))


@given(curve=speedups(2, 9, concave=True))
def test_a_concave_speedup_is_its_own_hull_from_the_base_up(curve: Speedup) -> None:
    widths = np.arange(2.0, 10.0)
    rates = curve.rates(widths)
    hull = concave_hull(widths, rates[None, :])[0]
    efficient = efficient_hull(widths, rates[None, :])[0]
    level = np.interp(widths, widths[hull], rates[hull])
    assert level == pytest.approx(rates, rel=1e-9)
    assert (hull | ~efficient).all()


def test_the_hull_starts_at_the_base_and_not_at_the_origin() -> None:
    """4 GPUs are the best value; through the origin, 2 would lie below the hull."""
    widths, rates = np.array([2.0, 3.0, 4.0, 5.0]), np.array([[1.0, 1.2, 4.0, 4.5]])
    assert concave_hull(widths, rates)[0].tolist() == [True, False, True, True]
    assert efficient_hull(widths, rates)[0].tolist() == [False, False, True, True]


def test_at_most_one_measured_epoch_gets_a_fractional_width() -> None:
    """The greedy order of the hulls' edges ends within one of them."""
    table = Table.of({1: 1.0, 2: 1.8, 3: 2.1})
    workload = as_workload([600.0, 900.0, 1000.0], [table] * 3, most=3)
    for factor in np.linspace(1.0, 1.5, 40).tolist():
        found = fractional_optimum(workload, cheapest(workload) * factor)
        split = [k for k in found.widths[0] if abs(k - round(k)) > 1e-9]
        assert len(split) <= 1, (factor, found.widths)


def test_a_budget_below_the_cheapest_widths_is_refused_with_their_spend() -> None:
    workload = as_workload([3600.0], [Amdahl(0.5)])
    with pytest.raises(BudgetTooSmall) as caught:
        fractional_optimum(workload, 0.99)
    assert caught.value.needed == pytest.approx(1.0)


def test_more_money_than_the_fastest_widths_cost_is_left_over() -> None:
    found = fractional_optimum(as_workload([3600.0], [Amdahl(0.5)], most=4), 100.0)
    assert (found.widths, found.multiplier) == (((4.0,),), 0.0)
    assert found.spend == pytest.approx(2.5)
