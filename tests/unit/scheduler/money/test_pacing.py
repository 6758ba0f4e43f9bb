"""What to plan with, worked out by hand."""

import json
from dataclasses import replace

import pytest

from boa.scheduler.money.ledger import Bill
from boa.scheduler.money.pacing import Pace, advanced, begun, effective, gain, overhead, with_budget

H = 3600.0
HORIZON_H = 24.0


def billed(total: float, idle: float = 0.0) -> Bill:
    return Bill(total=total, jobs=total - idle, idle=idle, provisioning=0.0)


def paced(
    hours: float,
    spent_per_hour: float,
    planned: float = 10.0,
    steps: int = 1,
    idle: float = 0.0,
) -> Pace:
    """From the beginning, at a budget of $10 an hour; `idle`: that part of what is spent."""
    pace = begun(10.0, billed(500.0), 1000 * H)
    for n in range(1, steps + 1):
        passed = hours * n / steps
        spent = spent_per_hour * passed
        bill = billed(500.0 + spent, idle * spent)
        pace = advanced(pace, bill, planned, (1000 + passed) * H, HORIZON_H)
    return pace


def test_at_first_plans_are_believed() -> None:
    assert effective(begun(10.0, billed(500.0), 1000 * H), HORIZON_H) == 10.0


def test_who_spends_as_planned_and_allowed_goes_on_like_that() -> None:
    assert effective(paced(100, 10.0), HORIZON_H) == pytest.approx(10.0)


def test_what_was_left_over_is_paid_out_over_the_horizon() -> None:
    pace = replace(begun(10.0, billed(0.0), 0.0), credit=24.0)
    assert effective(pace, HORIZON_H) == pytest.approx(11.0)
    assert effective(replace(pace, credit=-24.0), HORIZON_H) == pytest.approx(9.0)


def test_plans_that_cost_twice_what_they_promise_are_halved_in_the_end() -> None:
    settled = replace(paced(1000, 20.0), credit=0.0)
    assert gain(settled) == pytest.approx(2.0)
    assert effective(settled, HORIZON_H) == pytest.approx(5.0)


@pytest.mark.parametrize(("spent", "believed"), [(1000.0, 3.0), (2.6, 1 / 3)])
def test_the_gain_is_believed_within_bounds(spent: float, believed: float) -> None:
    assert gain(paced(1000, spent)) == believed


def test_without_demand_the_gain_is_left_alone_and_savings_are_bounded() -> None:
    pace = paced(7 * 24, 0.0)
    assert gain(pace) == 1.0
    assert pace.credit == 2 * HORIZON_H * 10.0
    assert effective(pace, HORIZON_H) == 20.0, "never more than one budget on top"


def test_debts_are_bounded_and_something_is_always_planned_with() -> None:
    pace = paced(7 * 24, 100.0)
    assert pace.credit == -2 * HORIZON_H * 10.0
    assert effective(pace, HORIZON_H) == 2.5


def test_an_effective_budget_is_never_beyond_four_budgets() -> None:
    pace = replace(paced(1000, 2.6), credit=2 * HORIZON_H * 10.0)
    assert effective(pace, HORIZON_H) == 40.0


def test_how_often_the_ledger_is_looked_at_makes_no_difference() -> None:
    once, often = paced(10, 13.0, idle=0.3), paced(10, 13.0, idle=0.3, steps=1000)
    assert often.credit == pytest.approx(once.credit)
    assert gain(often) == pytest.approx(gain(once))
    assert overhead(often) == pytest.approx(overhead(once))


def test_what_idle_nodes_add_is_learned_within_hours() -> None:
    """$60 count, and $5 were believed: e^(-20/60) of those are left after $20, to 28.3 % seen."""
    left, seen = 0.7165 / 12, 0.2835
    by_hand = (left + seen) / (left + 0.6 * seen)
    assert overhead(paced(2, 10.0, idle=0.4)) == pytest.approx(by_hand, rel=1e-3)
    assert overhead(paced(24, 10.0, idle=0.4)) == pytest.approx(1 / 0.6, rel=1e-2)


def test_first_nodes_that_boot_are_not_taken_for_what_is_usual() -> None:
    assert overhead(paced(0.05, 30.0, idle=1.0)) < 1.35


def test_a_quiet_night_unlearns_no_overhead() -> None:
    day = paced(12, 10.0, idle=0.3)
    bill = Bill(total=day.total, jobs=day.jobs, idle=day.total - day.jobs, provisioning=0.0)
    night = advanced(day, bill, 10.0, day.at + 12 * H, HORIZON_H)
    assert gain(night) == gain(day) > 1.2


def test_hours_of_idle_nodes_alone_are_believed_within_bounds() -> None:
    assert overhead(paced(1e6, 10.0, idle=1.0)) == pytest.approx(3.0)


def test_a_clock_that_was_set_back_stands_still() -> None:
    pace = paced(10, 13.0)
    assert advanced(pace, billed(pace.total + 5), 10.0, pace.at - 1, HORIZON_H) == pace
    assert advanced(pace, billed(pace.total + 5), 10.0, pace.at, HORIZON_H) == pace


def test_a_plan_for_no_jobs_says_nothing_of_the_gain() -> None:
    assert gain(paced(1000, 5.0, planned=0.0)) == 1.0


def test_a_new_budget_counts_from_now_and_keeps_what_was_learned() -> None:
    before = paced(1000, 20.0)
    pace = with_budget(before, 50.0, billed(before.total), before.at)
    assert (pace.since, pace.spent_before, pace.credit) == (before.at, before.total, 0.0)
    assert gain(pace) == pytest.approx(gain(before))
    assert effective(pace, HORIZON_H) == pytest.approx(25.0)


def test_a_new_budget_keeps_what_was_learned_of_idle_nodes() -> None:
    before = paced(24, 10.0, idle=0.4)
    bill = Bill(total=before.total, jobs=before.jobs, idle=0.0, provisioning=0.0)
    pace = with_budget(before, 50.0, bill, before.at)
    assert overhead(pace) == overhead(before) > 1.5


def test_what_winds_down_after_a_cut_of_the_budget_is_not_taken_for_what_is_usual() -> None:
    """Nodes of $100 an hour go within five minutes; the budget is now $1."""
    before = replace(begun(1.0, billed(0.0), 0.0), charged=1.0, used=0.8)
    wound_down = advanced(before, billed(100 / 12, 100 / 12), 1.0, H / 12, HORIZON_H)
    assert overhead(wound_down) < 1.1 * overhead(before)


def test_one_node_that_boots_does_not_upset_a_short_horizon() -> None:
    pace = advanced(begun(10.0, billed(0.0), 0.0), billed(0.5, 0.5), 10.0, 180.0, 0.1)
    assert overhead(pace) < 1.7


def test_a_lull_counts_once_jobs_are_back_and_a_night_never() -> None:
    """An hour of work and one of nothing: half of the plan. Three hours of nothing: a night."""

    def after(quiet_h: float) -> Pace:
        pace = begun(10.0, billed(0.0), 0.0)
        for n, (hours, rate) in enumerate([(1.0, 10.0), (quiet_h, 0.0)] * 200):
            at, total = pace.at + hours * H, pace.total + rate * hours
            pace = advanced(pace, billed(total), 10.0, at, HORIZON_H)
            assert n % 2 == 0 or pace.lull_h == quiet_h
        return pace

    assert gain(after(1.0)) == pytest.approx(0.5, rel=0.03)
    assert gain(after(3.0)) == 1.0


def test_an_endless_horizon_plans_with_the_budget_itself() -> None:
    pace = advanced(begun(10.0, billed(0.0), 0.0), billed(1000.0), 10.0, 10 * H, 1e12)
    assert effective(pace, 1e12) == pytest.approx(10.0)


def test_a_pace_survives_json() -> None:
    pace = paced(10, 13.0, idle=0.2)
    document = json.loads(json.dumps(pace.as_document()))
    assert Pace.from_document(document, billed(9999.0)) == pace


def test_a_pace_of_an_older_version_keeps_its_money_and_learns_its_gain_anew() -> None:
    pace = paced(10, 13.0)
    document = {**pace.as_document(), "spent": 12.0}
    for new in ("jobs", "held", "charged", "used", "lull_h", "lull_held"):
        del document[new]
    now = billed(pace.total + 20.0, 100.0)
    found = Pace.from_document(document, now)
    assert (found.credit, found.since, found.total) == (pace.credit, pace.since, pace.total)
    later = advanced(found, now, 10.0, found.at + H, HORIZON_H)
    assert overhead(later) == 1.0, "what came while it was away is taken to have gone to jobs"
    assert gain(found) == 1.0
