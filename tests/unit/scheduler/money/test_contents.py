"""A purse's contents: what a change of the budget takes along, and what a restart goes on with."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from boa.model.calendar import DAYS, Calendar, Period
from boa.model.terms import Terms
from boa.scheduler.money import pacing, steering
from boa.scheduler.money.accounts import PeriodAccounts
from boa.scheduler.money.charging import LastCharge
from boa.scheduler.money.contents import Configured, Contents
from boa.scheduler.money.grants import Grants
from boa.scheduler.money.ledger import Bill
from boa.scheduler.money.loans import Loans
from boa.scheduler.money.months import Allowed

HOUR = 3600.0
DAY = Period(name="day", budget=12.0, days=DAYS[:6], begins=480, ends=1200)
CALENDAR = Calendar(periods=(DAY, Period(name="night", budget=30.0))).begun_on_a_monday()
MONTH = Terms(usd=7305.0, each="month")
PLAIN = Configured(
    budget=10.0,
    max_spend=40.0,
    horizon_h=24.0,
    billing="node",
    node=2.0,
    lost_s=0.0,
    calendar=None,
)
BY_HOURS = replace(PLAIN, budget=CALENDAR.average, calendar=CALENDAR)
ON_TERMS = replace(PLAIN, budget=MONTH.per_hour, terms=MONTH)
BILL = Bill(total=70.0, jobs=60.0, idle=10.0, provisioning=0.0)
OWED = steering.Steered(at=HOUR, billed=50.0, left=-9.0, committed=5.0, promised=4.0)
OWN = PeriodAccounts(left={"day": -3.0}, common=-1.0, spent={"day": 8.0}, hours={"day": 1.0})


def fresh(configured: Configured, now: float = 0.0) -> Contents:
    grants = Grants.of(configured.budget, None, configured.terms, UTC, now)
    return Contents.begun(configured, grants, now)


def used(configured: Configured) -> Contents:
    """After some hours: everything is another than at the beginning."""
    begun = fresh(configured)
    return replace(
        begun,
        pace=replace(begun.pace, at=HOUR, total=50.0, jobs=45.0, credit=-4.0),
        max_spend=33.0,
        steered=OWED,
        charged=LastCharge(0.5 * HOUR, 20.0, 3.0),
        accounts=OWN if configured.calendar else begun.accounts,
        loans=Loans(lent={"vision": 2.0}, under={"vision": 1.0}),
        set_at={"max_spend": 7.0},
        months={"1970-01": Allowed(0.0, 10.0)},
    )


def saved(contents: Contents, configured: Configured) -> dict[str, Any]:
    return {**configured.as_document(), **contents.as_document()}


@pytest.mark.parametrize("configured", [PLAIN, BY_HOURS, ON_TERMS])
def test_a_restart_goes_on_with_everything(configured: Configured) -> None:
    before = used(configured)
    later = fresh(configured, 2 * HOUR)
    found = later.loaded(saved(before, configured), configured, BILL, 2 * HOUR)
    at_look = replace(before.grants, at=HOUR)
    assert found == replace(before, grants=at_look)


def test_a_week_that_was_scaled_at_run_time_is_so_after_a_restart() -> None:
    scaled = used(BY_HOURS).with_budget(2 * CALENDAR.average, BILL, 2 * HOUR)
    later = fresh(BY_HOURS, 3 * HOUR)
    found = later.loaded(saved(scaled, BY_HOURS), BY_HOURS, BILL, 3 * HOUR)
    assert found.calendar is not None
    assert found.calendar.average == pytest.approx(2 * CALENDAR.average)
    assert found.grants.by_hand


def test_another_calendar_takes_nothing_over_of_the_old_ones_periods() -> None:
    other = replace(BY_HOURS, budget=3 * CALENDAR.average, calendar=CALENDAR.scaled(3.0))
    found = fresh(other).loaded(saved(used(BY_HOURS), BY_HOURS), other, BILL, 2 * HOUR)
    assert (found.calendar, found.accounts) == (other.calendar, PeriodAccounts())


def test_a_budget_by_hand_is_not_for_terms_that_were_edited() -> None:
    by_hand = used(ON_TERMS).with_budget(5.0, BILL, 2 * HOUR)
    document = saved(by_hand, ON_TERMS)
    again = fresh(ON_TERMS).loaded(document, ON_TERMS, BILL, 3 * HOUR)
    assert again.grants.whole is None, "it outlives a restart"
    edited = replace(ON_TERMS, budget=2 * MONTH.per_hour, terms=replace(MONTH, usd=2 * MONTH.usd))
    found = fresh(edited).loaded(document, edited, BILL, 3 * HOUR)
    assert found.grants.whole is not None


def test_a_cap_that_is_configured_anew_takes_the_place_of_the_stored_one() -> None:
    document = saved(used(PLAIN), PLAIN)
    assert fresh(PLAIN).loaded(document, PLAIN, BILL, HOUR).max_spend == 33.0
    other = replace(PLAIN, max_spend=50.0)
    assert fresh(other).loaded(document, other, BILL, HOUR).max_spend == 50.0


def test_what_older_versions_did_not_store_begins_where_they_left_off() -> None:
    document = saved(used(PLAIN), PLAIN)
    for name in ("steered", "loans", "charged", "set_at", "months"):
        del document[name]
    found = fresh(PLAIN).loaded(document, PLAIN, BILL, 2 * HOUR)
    assert found.steered == steering.Steered(at=2 * HOUR, billed=BILL.total)
    assert found.charged == LastCharge(HOUR, 50.0), "what was billed since is charged"
    assert (found.loans, found.set_at, found.months) == (Loans(), {}, {})


@pytest.mark.parametrize("configured", [PLAIN, BY_HOURS, ON_TERMS])
@pytest.mark.parametrize("back", [False, True])
def test_another_budget_forgives_what_was_owed_and_keeps_what_was_allowed(
    configured: Configured, back: bool
) -> None:
    before = used(configured)
    if back:
        before = replace(before, grants=replace(before.grants, by_hand=True))
        found = before.as_configured(configured, BILL, 2 * HOUR)
    else:
        found = before.with_budget(5.0, BILL, 2 * HOUR)
    assert found.steered == steering.forgiven(OWED)
    assert found.accounts == PeriodAccounts()
    assert (found.pace.credit, found.pace.since, found.pace.at) == (0.0, 2 * HOUR, 2 * HOUR)
    hour = CALENDAR.allowed(HOUR, 2 * HOUR) if configured.calendar else before.pace.budget
    assert found.months["1970-01"] == pytest.approx((0.0, 10.0 + hour))
    assert found.grants.by_hand is not back
    assert found.loans == before.loans, "others still have what they had of each other"


def test_a_budget_by_hand_says_when_it_was_set_until_somebody_goes_back() -> None:
    by_hand = used(PLAIN).with_budget(5.0, BILL, 2 * HOUR)
    assert by_hand.set_at == {"max_spend": 7.0, "budget": 2 * HOUR}
    assert by_hand.as_configured(PLAIN, BILL, 3 * HOUR).set_at == {"max_spend": 7.0}
    assert by_hand.with_cap(3.0, 4 * HOUR).set_at == {"max_spend": 4 * HOUR, "budget": 2 * HOUR}
    assert by_hand.with_cap(math.inf, 4 * HOUR).max_spend is None


def test_a_budget_by_hand_scales_the_calendar_and_going_back_is_to_the_configured_one() -> None:
    by_hand = used(BY_HOURS).with_budget(2 * CALENDAR.average, BILL, 2 * HOUR)
    assert by_hand.pace.budget == pytest.approx(60.0), "a night's"
    assert by_hand.calendar is not None
    assert by_hand.calendar.average == pytest.approx(2 * CALENDAR.average)
    back = by_hand.as_configured(BY_HOURS, BILL, 9 * HOUR)
    assert (back.calendar, back.pace.budget) == (CALENDAR, 12.0)


def test_going_back_to_terms_is_to_what_is_left_of_them() -> None:
    by_hand = used(ON_TERMS).with_budget(5.0, BILL, 2 * HOUR)
    back = by_hand.as_configured(ON_TERMS, BILL, 3 * HOUR)
    assert back.pace.budget == back.grants.whole != MONTH.per_hour


def test_money_is_scheduled_from_the_last_look_on_and_up_to_the_end() -> None:
    contents = used(BY_HOURS)
    assert contents.scheduled(9 * HOUR, math.inf) == pacing.Schedule(
        7 * 30.0 + 12.0, 12.0, CALENDAR.average
    )
    ending = contents.scheduled(9 * HOUR, 8.5 * HOUR)
    assert ending is not None
    assert ending.allowed == pytest.approx(7 * 30.0 + 6.0), "nothing after the end"
    over = contents.scheduled(9 * HOUR, 0.5 * HOUR)
    assert over is not None
    assert over.allowed == 0.0, "and nothing is taken back that came before it"
    assert used(PLAIN).scheduled(9 * HOUR, math.inf) is None


def test_what_a_month_has_allowed_is_counted_from_the_last_look_on_by_the_hours_that_held() -> None:
    found = used(BY_HOURS).months_until(9 * HOUR)["1970-01"]
    assert found == pytest.approx((0.0, 10.0 + 7 * 30.0 + 12.0))
    plain = used(PLAIN)
    end = datetime(1970, 2, 1, tzinfo=UTC).timestamp()
    months = plain.months_until(end + HOUR)
    assert months["1970-01"] == pytest.approx((0.0, 10.0 + 10.0 * (end - HOUR) / HOUR))
    assert months["1970-02"] == pytest.approx((end, 10.0))
