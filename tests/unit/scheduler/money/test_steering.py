"""What to plan with so that the bill averages to the budget, worked out by hand."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.scheduler.money.luck import Luck
from boa.scheduler.money.purse import Purse
from boa.scheduler.money.steering import (
    LONGEST_WAIT_S,
    UNSURE,
    Commitments,
    Steered,
    cost,
    demand,
    effective,
    forgiven,
    gain,
    looked,
    overhead,
    patience_s,
)
from boa.scheduler.state import State

H = 3600.0
HORIZON_H = 24.0
BUDGET = 10.0
WHOLE = HORIZON_H * BUDGET
NEW = Steered(at=0.0, billed=0.0)


def owing(part: float) -> Steered:
    """So much of a horizon's budget is owed; negative: left over."""
    return Steered(at=0.0, billed=0.0, left=-part * WHOLE)


def share(part: float) -> float:
    """What is planned with where that is owed, over what is where nothing is."""
    return effective(owing(part), BUDGET, HORIZON_H) / effective(NEW, BUDGET, HORIZON_H)


def seen(steered: Steered = NEW, hours: float = 1.0, **said: Any) -> Steered:
    promised = said.pop("promised", BUDGET)
    came = said.pop("came", promised * hours)
    counted = {"jobs": said.pop("jobs", 3), "per_hour": said.pop("per_hour", 2.0)}
    found = Commitments(
        said.pop("to_go", 0.0), promised, said.pop("variance", 0.0), came, **counted
    )
    fields = {"billed": BUDGET * hours, "found": found, "horizon_h": HORIZON_H}
    return looked(steered, BUDGET, steered.at + hours * H, **{**fields, **said})


def watched(days: float, per_hour: float, each: float, *, times: float = 1.0) -> Steered:
    """After days of jobs that come one by one: so many per hour as are promised, and times as many
    as that really. All cost what was promised, and are billed at once."""
    random, steered, billed = np.random.default_rng(3), NEW, 0.0
    for _ in range(round(24 * days)):
        came = each * random.poisson(times * per_hour)
        billed += came
        found = Commitments(0.0, per_hour * each, per_hour * each**2, came)
        now = steered.at + H
        steered = looked(steered, BUDGET, now, billed=billed, found=found, horizon_h=HORIZON_H)
    return steered


def burst(steered: Steered, usd: float, variance: float) -> Steered:
    """Jobs of so many dollars come within a minute."""
    found = Commitments(usd, BUDGET, variance, usd)
    return looked(
        steered, BUDGET, steered.at + 60, billed=steered.billed, found=found, horizon_h=8760.0
    )


# What is left over or owed


@pytest.mark.parametrize("part", [0.01, 0.05, 0.1, 0.5])
def test_what_is_owed_or_left_over_is_made_good_over_a_horizon(part: float) -> None:
    assert share(part) == pytest.approx(1 - part)
    assert share(-part) == pytest.approx(1 + part)


@given(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(1.0, 9e3))
def test_less_is_planned_with_the_more_is_owed_and_always_something(
    one: float, other: float, horizon_h: float
) -> None:
    low, high = (
        effective(owing(part), BUDGET, horizon_h) for part in sorted((one, other), reverse=True)
    )
    assert low <= high
    usual = effective(NEW, BUDGET, horizon_h)
    assert 0.25 * usual <= low <= high <= 2 * usual


def test_nobody_waits_unless_deep_in_debt_and_then_half_an_hour_at_most() -> None:
    parts = (-0.5, 0.0, 0.1, 0.25, 0.375, 0.5)
    waits = [patience_s(owing(part), BUDGET, HORIZON_H) for part in parts]
    assert waits == pytest.approx([0, 0, 0, 0, 900, LONGEST_WAIT_S])


def test_only_what_was_billed_is_owed() -> None:
    assert seen(to_go=1e6).left == 0.0
    assert seen(billed=15.0).left == -5.0


def test_there_is_no_budget_after_the_end() -> None:
    assert seen(hours=3.0, billed=0.0, ends_at=2 * H).left == pytest.approx(2 * BUDGET)


def test_no_more_than_half_a_horizon_is_saved_up_or_owed() -> None:
    assert seen(hours=7 * 24.0, billed=0.0).left == WHOLE / 2
    assert seen(billed=1e6).left == -WHOLE / 2


# What is learned of plans


def test_before_anything_was_seen_nodes_are_expected_to_boot_and_idle() -> None:
    assert gain(NEW, BUDGET) == demand(NEW, BUDGET) * cost(NEW, BUDGET) == 1.1


def test_jobs_that_cost_more_than_was_promised_are_planned_for_within_hours() -> None:
    """However many they are: what a job costs is no luck of arrivals."""
    steered = seen(variance=1.0, came=5.0, to_go=10.0, billed=2.5)
    assert cost(steered, BUDGET) == pytest.approx((12.5 + 1.1 * 10) / (5.0 + 10))
    assert demand(steered, BUDGET, unsure=0.0) == 1.0
    assert effective(steered, BUDGET, 1e9, unsure=0.0) == pytest.approx(
        BUDGET / cost(steered, BUDGET)
    )


@pytest.mark.parametrize(("times", "days"), [(2.0, 1.0), (0.5, 1.0), (3.0, 7.0)])
def test_rates_that_stay_wrong_are_learned_on_a_dense_stream(times: float, days: float) -> None:
    found = demand(watched(days, per_hour=20.0, each=0.5, times=times), BUDGET)
    assert found == pytest.approx(times, rel=0.15)


def test_a_day_of_few_large_jobs_says_little_and_a_month_much() -> None:
    """One in two hours, of two hours' budget: twice as many come."""
    day, month = (
        demand(watched(days, per_hour=0.5, each=20.0, times=2.0), BUDGET) for days in (1.0, 30.0)
    )
    assert 1.0 < day < 1.7
    assert month == pytest.approx(2.0, rel=0.2)


@given(st.floats(120.0, 300.0), st.floats(0.25, 5.0))
def test_a_burst_of_many_days_at_once_moves_what_is_planned_with_by_less_than_a_quarter(
    hours: float, days: float
) -> None:
    variance = 20.0 * 0.5**2
    before = watched(days, per_hour=20.0, each=0.5)
    after = burst(before, hours * BUDGET, variance)
    moved = demand(after, BUDGET) - demand(before, BUDGET)
    assert -0.1 < moved < 0.25


def test_numbers_of_jobs_say_what_their_dollars_cannot_yet() -> None:
    """One job in forty costs as much as all others, $50. In a day of twice as many jobs none of
    those has come, so that dollars are as promised."""
    found = Commitments(0.0, BUDGET, variance=256.0, came=BUDGET, jobs=8, per_hour=4.0)
    by_dollars = Commitments(0.0, BUDGET, variance=256.0, came=BUDGET)
    counted, blind = NEW, NEW
    for n in range(1, 25):
        fields: dict[str, Any] = {"billed": n * BUDGET, "horizon_h": HORIZON_H}
        counted = looked(counted, BUDGET, n * H, found=found, **fields)
        blind = looked(blind, BUDGET, n * H, found=by_dollars, **fields)
    assert demand(blind, BUDGET) == 1.0
    assert demand(counted, BUDGET) > 1.1


@pytest.mark.parametrize("times", [0.5, 2.0])
def test_what_plans_have_learned_of_rates_is_not_learned_twice(times: float) -> None:
    """Plans believe what has come, after a day in which it was other than they believed."""
    steered = NEW
    for n in range(1, 25):
        found = Commitments(0.0, BUDGET, 5.0, times * BUDGET, jobs=int(20 * times), per_hour=20.0)
        steered = looked(
            steered, BUDGET, n * H, billed=n * BUDGET, found=found, horizon_h=HORIZON_H
        )
    assert demand(steered, BUDGET) == pytest.approx(times, rel=0.15)
    found = found._replace(came=BUDGET, jobs=int(20 * times), per_hour=20.0 * times)
    steered = looked(steered, BUDGET, 25 * H, billed=25 * BUDGET, found=found, horizon_h=HORIZON_H)
    assert demand(steered, BUDGET) == pytest.approx(1.0, abs=0.05)


@given(st.floats(0.1, 300.0))
def test_where_rates_are_known_no_burst_moves_anything(hours: float) -> None:
    before = watched(2.0, per_hour=20.0, each=0.5)
    after = burst(before, hours * BUDGET, 5.0)
    assert demand(after, BUDGET, unsure=0.0) == demand(before, BUDGET, unsure=0.0) == 1.0


@given(
    st.floats(0.0, 1e4),
    st.floats(1e-3, 1e4),
    st.floats(0.0, 1e4),
    st.floats(0.0, 1e5),
    st.booleans(),
)
def test_the_gain_is_within_bounds_and_rises_with_what_is_committed(
    came: float, promised: float, committed: float, expected: float, known: bool
) -> None:
    fields: dict[str, Any] = {"at": 0.0, "billed": 0.0, "promised": promised, "came": came}
    luck, unsure = Luck(expected=expected), 0.0 if known else UNSURE
    less, more = (
        gain(Steered(**fields, committed=usd, luck=luck), BUDGET, unsure=unsure)
        for usd in (committed, committed + 1.0)
    )
    assert 0.2 <= less <= more <= 5.0


def test_what_was_learned_is_forgotten_over_weeks() -> None:
    doubled = watched(7.0, per_hour=20.0, each=0.5, times=2.0)
    calm, billed = doubled, doubled.billed
    for _ in range(24 * 14):
        billed += BUDGET
        found = Commitments(0.0, BUDGET, 5.0, BUDGET)
        calm = looked(calm, BUDGET, calm.at + H, billed=billed, found=found, horizon_h=HORIZON_H)
    assert demand(doubled, BUDGET) > 1.8
    assert demand(calm, BUDGET) == pytest.approx(1.0, abs=0.05)


@given(st.floats(0.4, 2.5), st.floats(48.0, 720.0))
def test_a_budget_until_a_date_spends_what_is_left_exactly(wrong: float, hours: float) -> None:
    """Its budget by the hour is what is left over the time that is left, as `stretches` has it: so
    a surprise moves it by its share of that, and plans that are wrong leave nothing over."""
    total = BUDGET * hours
    steered, billed = NEW, 0.0
    while (left_h := hours - steered.at / H) > 1e-6:
        now_h = min(1.0, left_h)
        budget = (total - billed) / left_h
        spent = wrong * effective(steered, budget, 1e9, expected=1.0, unsure=0.0) * now_h
        billed += spent
        found = Commitments(0.0, budget, 0.1 * budget**2, spent / wrong)
        steered = looked(
            steered, budget, steered.at + now_h * H, billed=billed, found=found, horizon_h=1e9
        )
        steered = Steered.from_document({**steered.as_document(), "left": 0.0})
    assert billed == pytest.approx(total, rel=0.02)


def test_a_second_look_at_the_same_moment_changes_nothing() -> None:
    once = seen(to_go=6.0)
    assert seen(once, hours=0.0, billed=1e6, to_go=1e6) == once


# What is stored


def test_a_document_tells_all_of_it() -> None:
    steered = seen(seen(to_go=6.0), billed=17.0, to_go=3.0)
    assert all(getattr(steered, name) for name in steered.as_document())
    assert Steered.from_document(json.loads(json.dumps(steered.as_document()))) == steered


def test_a_document_from_before_arrivals_were_counted_is_read() -> None:
    """Its jobs have come as promised, and cost what they did."""
    steered = seen(seen(to_go=6.0), billed=17.0, to_go=3.0)
    new = ("came", "jobs", "believed", "per_hour", "counts")
    before = {name: value for name, value in steered.as_document().items() if name not in new}
    found = Steered.from_document(before)
    assert demand(found, BUDGET) == 1.0
    assert found.committed == steered.committed


def test_nodes_that_take_long_to_come_and_go_are_planned_for_before_any_was_seen() -> None:
    assert [overhead(1, s) for s in (0.0, 120.0, 480.0)] == pytest.approx([1.1, 1.1, 1.2])
    slow = Purse(BUDGET, None, HORIZON_H, 0.0, "node", lost_s=480.0)
    assert slow.effective == pytest.approx(BUDGET / 1.2)


def test_large_clusters_are_expected_to_be_fuller() -> None:
    assert [overhead(n, 0.0) for n in (0, 10, 40, math.inf)] == pytest.approx(
        [1.1, 1.1, 1.07, 1.04]
    )
    large = Purse(40 * 4.0, None, HORIZON_H, 0.0, "node", node=4.0)
    assert large.effective == pytest.approx(160.0 / 1.07)


@pytest.mark.parametrize(("before", "after"), [(300.0, 8.0), (8.0, 300.0)])
def test_a_budget_that_is_set_is_planned_with_whatever_jobs_still_cost(
    before: float, after: float
) -> None:
    began = Steered(at=0.0, billed=0.0)
    found = Commitments(to_go=1e3, promised=before)
    steered = looked(began, before, 60.0, billed=0.0, found=found, horizon_h=24.0)
    steered = forgiven(steered)
    found = Commitments(to_go=1e3, promised=after)
    steered = looked(steered, after, 120.0, billed=after / 60, found=found, horizon_h=24.0)
    assert effective(steered, after, 24.0) == pytest.approx(after / 1.1, rel=0.02)


def test_a_budget_that_the_configuration_changed_does_not_make_running_jobs_new_debts() -> None:
    before = Purse(BUDGET, None, HORIZON_H, 0.0, "node")
    counted = Steered(at=0.0, billed=0.0, to_go=1e3, left=-50.0, committed=3.0, promised=4.0)
    saved = {**before.document(), "steered": counted.as_document()}
    after = Purse(2 * BUDGET, None, HORIZON_H, 0.0, "node")
    after.load(saved, State(), 60.0)
    assert Steered.from_document(after.document()["steered"]) == forgiven(counted)
    assert forgiven(counted) == Steered(at=0.0, billed=0.0, to_go=1e3)
