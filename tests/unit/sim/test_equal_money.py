"""A policy's figure at somebody else's money."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.sim.equal_money import AtMoney, value_at

MONEY = st.floats(1.0, 1e4)


def steep(money: float) -> float:
    return 100.0 + 5000.0 / (money - 9.0) ** 2


@given(st.floats(10.0, 40.0), st.floats(1.0, 3.0))
def test_whoever_keeps_its_distance_to_the_bound_is_found_on_its_curve(
    money: float, times: float
) -> None:
    runs = [AtMoney(at, times * steep(at), steep(at)) for at in (10.0, 20.0, 40.0)]
    assert value_at(runs, money, steep(money)) == pytest.approx(times * steep(money))


def test_a_straight_line_would_lie_above_it() -> None:
    runs = [AtMoney(at, steep(at)) for at in (10.0, 20.0)]
    found = value_at(runs, 12.0)
    assert found is not None
    assert found > 2 * steep(12.0)


@given(MONEY, MONEY, st.floats(0.0, 1.0))
def test_between_two_runs_it_is_between_their_figures(one: float, other: float, at: float) -> None:
    low, high = sorted((one, other))
    money = min(max(low + at * (high - low), low), high)
    found = value_at([AtMoney(high, 50.0), AtMoney(low, 200.0)], money)
    assert found is not None
    assert 50.0 * (1 - 1e-12) <= found <= 200.0 * (1 + 1e-12)


def test_outside_of_the_runs_there_is_none() -> None:
    runs = [AtMoney(10.0, 2.0, 1.0), AtMoney(20.0, 1.0, 1.0)]
    assert value_at(runs, 9.99, 1.0) is None
    assert value_at(runs, 20.01, 1.0) is None
    assert value_at([], 1.0) is None
    assert (value_at(runs, 10.0), value_at(runs, 20.0)) == (2.0, 1.0)


def test_without_a_bound_on_either_side_the_figures_themselves_are_joined() -> None:
    runs = [AtMoney(10.0, 400.0, None), AtMoney(40.0, 100.0, 50.0)]
    assert value_at(runs, 20.0, 60.0) == pytest.approx(math.sqrt(400.0 * 100.0))
