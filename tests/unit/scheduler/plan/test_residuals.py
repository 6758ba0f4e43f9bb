"""Intervals of estimates: four of five further jobs lie within them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.scheduler.plan.residuals import MANY, spread_of

SEEDS = 2000


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 11, MANY, 20, 40])
@pytest.mark.parametrize("deviation", [0.15, 0.2, 0.25])
def test_four_of_five_further_jobs_lie_within(count: int, deviation: float) -> None:
    random = np.random.default_rng(count)
    draws = random.normal(0.3, deviation, (SEEDS, count + 1))
    inside = 0
    for *known, further in draws.tolist():
        found = spread_of(known)
        inside += found.low <= np.exp(further) <= found.high
    assert 0.72 <= inside / SEEDS <= 0.95


@pytest.mark.parametrize("count", [MANY, 25])
def test_whatever_their_distribution_four_of_five_do_once_there_are_many(count: int) -> None:
    random = np.random.default_rng(count)
    draws = np.log(1.0 + random.pareto(0.7, (SEEDS, count + 1)))
    found = [spread_of(known) for *known, _ in draws.tolist()]
    inside = [one.low <= np.exp(x) <= one.high for one, x in zip(found, draws[:, -1], strict=True)]
    assert 0.76 <= np.mean(inside) <= 0.84


@given(st.lists(st.floats(-5, 5), max_size=50), st.floats(0.01, 2.0))
def test_the_centre_lies_within_and_all_is_positive(residuals: list[float], usual: float) -> None:
    found = spread_of(residuals, usual)
    assert 0 < found.low <= found.centre <= found.high
