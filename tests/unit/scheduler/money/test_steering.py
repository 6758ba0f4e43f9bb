"""What to plan with so that the bill averages to the budget, worked out by hand."""

import json
import math
from typing import Any

import pytest

from boa.scheduler.money.purse import Purse
from boa.scheduler.money.steering import (
    LONGEST_WAIT_S,
    Commitments,
    Steered,
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


def share(part: float, node: float = 0.0) -> float:
    """What is planned with where that is owed, over what is where nothing is."""
    return effective(owing(part), BUDGET, HORIZON_H, node) / effective(NEW, BUDGET, HORIZON_H)


def seen(steered: Steered = NEW, hours: float = 1.0, **said: Any) -> Steered:
    found = Commitments(said.pop("to_go", 0.0), said.pop("promised", BUDGET))
    fields = {"billed": BUDGET * hours, "found": found, "horizon_h": HORIZON_H}
    return looked(steered, BUDGET, steered.at + hours * H, **{**fields, **said})


def test_little_that_is_owed_moves_the_budget_little_and_much_moves_it_fast() -> None:
    assert share(0.01) == pytest.approx(1 - 0.005 * (1 + 1 / 36))
    assert share(0.12) == pytest.approx(1 - 0.06 * (1 + 4))
    assert (1 - share(0.12)) / 0.12 > 4 * (1 - share(0.01)) / 0.01, "per dollar that is owed"


@pytest.mark.parametrize("part", [0.01, 0.05, 0.1])
def test_what_is_left_over_is_paid_out_as_fast_as_a_debt_is_made_good(part: float) -> None:
    assert share(-part) - 1 == pytest.approx(1 - share(part))


def test_something_is_always_spent_and_never_more_than_twice_the_budget() -> None:
    assert share(0.5) == pytest.approx(0.25)
    assert share(-0.5) == pytest.approx(2.0)


def test_few_nodes_come_and_go_by_chance_and_that_moves_the_budget_less() -> None:
    assert share(0.12, node=8.0) > share(0.12, node=0.1) == share(0.12)


def test_nobody_waits_unless_deep_in_debt_and_then_half_an_hour_at_most() -> None:
    parts = (-0.5, 0.0, 0.1, 0.25, 0.375, 0.5)
    waits = [patience_s(owing(part), BUDGET, HORIZON_H) for part in parts]
    assert waits == pytest.approx([0, 0, 0, 0, 900, LONGEST_WAIT_S])


def test_a_third_of_what_jobs_will_still_cost_counts_when_they_come() -> None:
    assert seen(to_go=6.0).left == pytest.approx(-0.33 * 6.0)


def test_what_was_counted_before_it_was_paid_for_is_not_counted_twice() -> None:
    came = seen(to_go=6.0)
    paid = seen(came, billed=2 * BUDGET + 6.0)
    assert paid.left == pytest.approx(-6.0)
    assert paid.committed == pytest.approx(
        math.exp(-1 / HORIZON_H) * (BUDGET + 0.33 * 6.0) + BUDGET + 0.67 * 6.0
    )


def test_what_jobs_of_days_cost_counts_for_no_more_than_a_twentieth_of_a_horizon() -> None:
    assert seen(to_go=1e6).left == pytest.approx(-WHOLE / 20)
    assert seen(to_go=1e6, horizon_h=math.inf).left == pytest.approx(-360.0), "of a month"


def test_towards_the_end_of_a_budget_all_counts() -> None:
    ends = [seen(to_go=50.0, ends_at=H * (1 + hours)).left for hours in (1e6, 12.0, 1.0, 0.0)]
    assert ends == sorted(ends, reverse=True)
    assert ends[0] == pytest.approx(-12.0), "a twentieth"
    assert ends[1] == pytest.approx(-24.0), "a tenth, half a horizon before"
    assert ends[-1] == pytest.approx(-50.0)


def test_there_is_no_budget_after_the_end() -> None:
    assert seen(hours=3.0, billed=0.0, ends_at=2 * H).left == pytest.approx(2 * BUDGET)


def test_no_more_than_half_a_horizon_is_saved_up_or_owed() -> None:
    assert seen(hours=7 * 24.0, billed=0.0).left == WHOLE / 2
    assert seen(billed=1e6).left == -WHOLE / 2


def test_what_plans_come_to_is_learned_and_the_next_is_divided_by_it() -> None:
    steered = NEW
    assert gain(steered, BUDGET, HORIZON_H) == pytest.approx(1.1), "nodes boot and idle"
    for n in range(1, 24 * 30):
        steered = seen(steered, billed=2 * BUDGET * n)
    found = gain(steered, BUDGET, HORIZON_H)
    assert found == pytest.approx(1.554, abs=0.001), "what was believed counts for a day"
    even = Steered(at=0.0, billed=0.0, committed=steered.committed, promised=steered.promised)
    planned_with = effective(even, BUDGET, HORIZON_H)
    assert planned_with == pytest.approx(BUDGET / found)


@pytest.mark.parametrize(("committed", "believed"), [(1e9, 5.0), (-1e9, 0.2)])
def test_the_gain_is_believed_within_bounds(committed: float, believed: float) -> None:
    assert gain(Steered(at=0.0, billed=0.0, committed=committed), BUDGET, HORIZON_H) == believed


def test_a_second_look_at_the_same_moment_changes_nothing() -> None:
    once = seen(to_go=6.0)
    assert seen(once, hours=0.0, billed=1e6, to_go=1e6) == once


def test_a_document_tells_all_of_it() -> None:
    steered = seen(seen(to_go=6.0), billed=17.0, to_go=3.0)
    assert all(getattr(steered, name) for name in steered.as_document())
    assert Steered.from_document(json.loads(json.dumps(steered.as_document()))) == steered


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
    """How much of that counts depends on the budget: the difference is neither saved nor spent."""
    began = Steered(at=0.0, billed=0.0)
    found = Commitments(to_go=1e3, promised=before)
    steered = looked(began, before, 60.0, billed=0.0, found=found, horizon_h=24.0)
    steered = forgiven(steered)
    found = Commitments(to_go=1e3, promised=after)
    steered = looked(steered, after, 120.0, billed=after / 60, found=found, horizon_h=24.0)
    assert effective(steered, after, 24.0) == pytest.approx(after / 1.1, rel=0.01)


def test_a_budget_that_the_configuration_changed_does_not_make_running_jobs_new_debts() -> None:
    before = Purse(BUDGET, None, HORIZON_H, 0.0, "node")
    counted = Steered(at=0.0, billed=0.0, to_go=1e3, left=-50.0, committed=3.0, promised=4.0)
    saved = {**before.document(), "steered": counted.as_document()}
    after = Purse(2 * BUDGET, None, HORIZON_H, 0.0, "node")
    after.load(saved, State(), 60.0)
    assert Steered.from_document(after.document()["steered"]) == forgiven(counted)
    assert forgiven(counted) == Steered(at=0.0, billed=0.0, to_go=1e3)
