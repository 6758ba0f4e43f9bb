"""The loop closed: budget → plan → jobs → ledger → budget, on a little plant."""

import math
import statistics

from hypothesis import given, settings
from hypothesis import strategies as st

from boa.scheduler.money.pacing import gain
from plant import BUDGET, HORIZON_H, LOOK_H, Plant

few = settings(max_examples=10)
seeds = st.integers(0, 10_000)


@few
@given(
    misjudged=st.sampled_from([0.5, 0.7, 1.0, 1.4, 2.0]),
    overhead=st.sampled_from([0.0, 0.1, 0.3]),
    duration_h=st.sampled_from([0.5, 3.0, 8.0]),
    seed=seeds,
)
def test_the_average_over_30_days_is_the_budget_whatever_was_misjudged(
    misjudged: float, overhead: float, duration_h: float, seed: int
) -> None:
    plant = Plant(misjudged, overhead, duration_h, seed=seed).run(30 * 24)
    assert abs(plant.average - 1) < 0.03
    assert all(0.25 <= planned <= 4.0 for planned in plant.planned)


@few
@given(
    misjudged=st.sampled_from([0.5, 1.0, 2.0]),
    duration_h=st.sampled_from([0.5, 3.0, 8.0]),
    seed=seeds,
)
def test_after_the_first_days_the_effective_budget_keeps_still(
    misjudged: float, duration_h: float, seed: int
) -> None:
    """With dozens of jobs at a time: within 40 % of its mean, 15 % of it on average."""
    plant = Plant(misjudged, 0.1, duration_h, expected_per_hour=40.0, seed=seed).run(20 * 24)
    later = plant.planned[round(5 * 24 / LOOK_H) :]
    mean = statistics.fmean(later)
    assert max(abs(planned - mean) for planned in later) < 0.4 * mean
    assert statistics.pstdev(later) < 0.15 * mean
    exact = 1 / (1.1 * misjudged)
    assert abs(mean - exact) < 0.1 * exact


@few
@given(overhead=st.sampled_from([0.2, 0.5, 1.0]), seed=seeds)
def test_what_idle_and_booting_nodes_add_is_made_good_on_the_first_day(
    overhead: float, seed: int
) -> None:
    """Where jobs are short and many, so that nothing else is off."""
    plant = Plant(1.0, overhead, 0.5, expected_per_hour=120.0, seed=seed).run(24)
    assert abs(plant.average - 1) < 0.09
    assert abs(plant.spend_per_hour(12, 24) - 1) < 0.14


@few
@given(seed=seeds)
def test_lulls_between_few_jobs_are_not_taken_for_nights(seed: int) -> None:
    """Two jobs at a time on average: a seventh of the time there is none."""
    plant = Plant(overhead=0.3, duration_h=1.0, expected_per_hour=2.0, seed=seed).run(30 * 24)
    assert abs(plant.average - 1) < 0.015


@few
@given(seed=seeds, to=st.sampled_from([0.5, 3.0]))
def test_a_change_of_the_budget_is_followed(seed: int, to: float) -> None:
    plant = Plant(1.5, 0.2, seed=seed).run(10 * 24)
    plant.set_budget(to * BUDGET)
    plant.run(10 * 24)
    assert abs(plant.spend_per_hour(11 * 24, 20 * 24) - 1) < 0.06, "within a day"
    plant.run(20 * 24)
    assert abs(plant.average - 1) < 0.03


@few
@given(seed=seeds)
def test_days_and_nights_average_out(seed: int) -> None:
    def tide(hour: float) -> float:
        return 1 + 0.9 * math.sin(hour / 24 * 2 * math.pi)

    assert abs(Plant(1.3, 0.1, demand=tide, seed=seed).run(30 * 24).average - 1) < 0.03


@few
@given(seed=seeds, hours=st.sampled_from([4, 8, 12]))
def test_nights_are_not_taken_for_misjudged_arrivals(seed: int, hours: int) -> None:
    """Jobs are short, so that mornings and evenings are, too."""
    plant = Plant(
        duration_h=0.1,
        expected_per_hour=300.0,
        demand=lambda hour: float(hour % 24 < hours),
        seed=seed,
    ).run(20 * 24)
    assert 0.88 < gain(plant.pace) < 1.05
    assert plant.dearest_day(5 * 24) < 1.12


@few
@given(seed=seeds)
def test_what_a_weekend_leaves_over_is_spent_in_the_week(seed: int) -> None:
    plant = Plant(1.4, 0.1, demand=lambda hour: float(hour % 168 < 120), seed=seed)
    plant.run(4 * 168 + 120)
    assert abs(plant.average - 1) < 0.03


@few
@given(seed=seeds, quiet=st.sampled_from([0.0, 0.1]))
def test_a_dead_week_ends_in_no_spree(seed: int, quiet: float) -> None:
    """Two budgets at most while savings last, where jobs are as dear as was learned before."""

    def demand(hour: float) -> float:
        return quiet if 10 * 24 <= hour < 17 * 24 else 1.0

    plant = Plant(overhead=0.1, demand=demand, seed=seed).run(30 * 24)
    assert plant.dearest_day(17 * 24) < 2.75
    assert abs(plant.spend_per_hour(23 * 24, 30 * 24) - 1) < 0.1, "a week later it is over"
    saved = 2 * HORIZON_H * BUDGET
    assert plant.totals[-1] - plant.totals[round(17 * 24 / LOOK_H)] < 13 * 24 * BUDGET + 1.2 * saved


@few
@given(seed=seeds)
def test_an_overspend_is_paid_back_and_then_over(seed: int) -> None:
    """For a week nothing cheaper than three budgets is to be had: the debt is bounded."""
    plant = Plant(cheapest=3 * BUDGET, seed=seed).run(7 * 24)
    plant.cheapest = 0.0
    plant.run(10 * 24)
    assert min(plant.planned) == 0.25
    assert abs(plant.spend_per_hour(14 * 24, 17 * 24) - 1) < 0.15, "no starving for ever"
    paid_back = 7 * 24 - plant.spend_per_hour(7 * 24, 14 * 24) * 7 * 24
    assert 0.7 * 2 * HORIZON_H < paid_back < 1.2 * 2 * HORIZON_H
