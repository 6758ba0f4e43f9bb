"""How long a horizon has to be for luck to be small in it, worked out by hand."""

import json
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.scheduler.money.luck import (
    BELIEVED_H,
    BURSTS,
    LONGEST_H,
    SHORTEST_H,
    SMALL,
    Luck,
    horizon_h,
    variance,
    watched,
)
from boa.scheduler.money.purse import Purse
from boa.scheduler.money.steering import Commitments, Steered, effective, looked
from boa.scheduler.state import State

BUDGET = 10.0
LOOK_H = 1 / 60
COST = 5.0
PER_HOUR = 2.0
PROMISED, POISSON = PER_HOUR * COST, PER_HOUR * COST**2


def arrivals(hours: float, at_once: int = 1, times: float = 1.0) -> Iterator[float]:
    """Dollars of jobs that come in every minute: Poisson, so many at once."""
    random = np.random.default_rng(7)
    rate = times * PER_HOUR * LOOK_H / at_once
    for _ in range(round(hours / LOOK_H)):
        yield COST * at_once * random.poisson(rate)


def after(hours: float, at_once: int = 1, times: float = 1.0) -> Luck:
    luck = Luck()
    for came in arrivals(hours, at_once, times):
        luck = watched(luck, LOOK_H, came=came, promised=PROMISED, expected=POISSON)
    return luck


def test_before_anything_was_seen_luck_is_the_plans_and_a_little_more() -> None:
    assert variance(Luck(expected=POISSON)) == BURSTS * POISSON
    assert horizon_h(Luck(expected=90.0), BUDGET) == pytest.approx(2 * 90 / 1.5**2)


def test_many_small_jobs_have_a_day_and_few_large_ones_longer() -> None:
    small, large = (Luck(expected=BUDGET * cost) for cost in (1.0, 50.0))
    assert horizon_h(small, BUDGET) == SHORTEST_H
    assert horizon_h(large, BUDGET) > 10 * SHORTEST_H


@pytest.mark.parametrize("at_once", [1, 10])
def test_jobs_that_come_in_bursts_are_seen_to(at_once: int) -> None:
    """A month; the week that counts has few bursts in it, so it is only about right."""
    assert variance(after(720.0, at_once)) == pytest.approx(at_once * POISSON, rel=0.5)


def test_a_single_burst_is_learned_from_while_it_lasts() -> None:
    before = after(24.0)
    burst = watched(before, 1.0, came=100 * COST, promised=PROMISED, expected=POISSON)
    assert horizon_h(burst, BUDGET) > 2 * horizon_h(before, BUDGET)


def test_more_jobs_than_were_promised_day_by_day_are_no_luck() -> None:
    luck = Luck()
    for _ in range(24 * 60):
        luck = watched(luck, 1.0, came=2 * PROMISED, promised=PROMISED, expected=POISSON)
    assert horizon_h(luck, BUDGET) < 2 * SHORTEST_H


def test_it_is_forgotten() -> None:
    luck = watched(Luck(), 1.0, came=1e4, promised=PROMISED, expected=POISSON)
    assert horizon_h(luck, BUDGET) == LONGEST_H
    for _ in range(24 * 90):
        luck = watched(luck, 1.0, came=PROMISED, promised=PROMISED, expected=POISSON)
    assert horizon_h(luck, BUDGET) == SHORTEST_H


def test_how_often_one_looks_does_not_matter() -> None:
    def looking(times: int) -> Luck:
        luck = Luck()
        for _ in range(times):
            luck = watched(luck, 12 / times, came=1200 / times, promised=5.0, expected=POISSON)
        return luck

    often, seldom = looking(7200), looking(720)
    assert seldom.surprise == pytest.approx(often.surprise)
    assert variance(seldom) == pytest.approx(variance(often), rel=0.01)


looks = st.lists(st.tuples(st.floats(1e-3, 100.0), st.floats(0.0, 1e4)), max_size=20)


@given(looks, st.floats(0.0, 1e4), st.floats(0.1, 1e4))
def test_luck_is_small_in_a_horizon_that_is_neither_the_shortest_nor_the_longest(
    seen: list[tuple[float, float]], expected: float, budget: float
) -> None:
    luck = Luck(expected=expected)
    for hours, came in seen:
        luck = watched(luck, hours, came=came, promised=PROMISED, expected=expected)
    found = horizon_h(luck, budget)
    assert SHORTEST_H <= found <= LONGEST_H
    share = math.sqrt(variance(luck) * found) / (found * budget)
    assert share <= SMALL * (1 + 1e-9) or found == LONGEST_H
    assert share >= SMALL * (1 - 1e-9) or found == SHORTEST_H
    assert horizon_h(luck, 2 * budget) <= found


# The purse's


def bursty(purse_h: float | None) -> Purse:
    """A purse that has seen jobs for two days' budget come at once."""
    found = Commitments(to_go=48 * BUDGET, promised=BUDGET, variance=1e3, came=48 * BUDGET)
    steered = looked(
        Steered(at=0.0, billed=0.0), BUDGET, 3600.0, billed=0.0, found=found, horizon_h=24.0
    )
    purse = Purse(BUDGET, None, purse_h, 0.0, "node")
    purse.load({**purse.document(), "steered": steered.as_document()}, State(), 3600.0)
    return purse


def test_a_horizon_that_a_user_has_set_is_kept_whatever_luck_there_is() -> None:
    assert bursty(24.0).horizon_h == 24.0
    assert bursty(None).horizon_h > 240.0


def test_without_one_it_is_a_day_until_a_plan_says_what_jobs_cost() -> None:
    assert Purse(BUDGET, None, None, 0.0, "node").horizon_h == 24.0
    assert Purse(BUDGET, None, None, 0.0, "gpu").horizon_h == 24.0


def test_a_burst_moves_what_is_planned_with_less_where_the_horizon_is_of_its_making() -> None:
    even = effective(Steered(at=0.0, billed=0.0), BUDGET, 24.0)
    assert even - bursty(None).effective < (even - bursty(24.0).effective) / 2


def test_what_was_seen_of_luck_outlives_a_restart() -> None:
    purse = bursty(None)
    again = Purse(BUDGET, None, None, 0.0, "node")
    again.load(json.loads(json.dumps(purse.document())), State(), 3600.0)
    assert again.horizon_h == purse.horizon_h > BELIEVED_H


def test_a_document_from_before_luck_was_seen_is_read() -> None:
    steered = Steered(at=5.0, billed=7.0, left=-3.0)
    before = {name: value for name, value in steered.as_document().items() if name != "luck"}
    assert Steered.from_document(before) == steered
