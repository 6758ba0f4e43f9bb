"""A purse that follows a calendar: periods, scaling, restarts, and an end."""

import math
from dataclasses import replace
from typing import Any

import pytest

from boa.model.calendar import DAYS, Calendar, Period
from boa.scheduler.money.purse import Purse
from boa.scheduler.state import Draft, State

HOUR = 3600.0
DAY = Period(name="day", budget=12.0, days=DAYS[:6], begins=480, ends=1200)
CALENDAR = Calendar(periods=(DAY, Period(name="night", budget=30.0))).begun_on_a_monday()
STATE = State(next_node=1)


def purse_of(calendar: Calendar = CALENDAR, **changes: Any) -> Purse:
    settings: dict[str, Any] = {"billing": "node", **changes}
    return Purse(calendar.average, None, 72.0, 0.0, calendar=calendar, **settings)


def steered(purse: Purse, at: float) -> tuple[Draft, bool]:
    draft = Draft(STATE, at)
    return draft, purse.steer(draft, None)


def test_the_budget_in_force_is_the_periods_and_a_change_of_it_is_planned_for_at_once() -> None:
    purse = purse_of()
    assert purse.budget == 30.0, "Monday begins at night"
    assert purse.week == pytest.approx(CALENDAR.average)
    _, began = steered(purse, 8 * HOUR - 10.0)
    assert not began
    assert purse.looks_at == 8 * HOUR, "not only after a minute"
    draft, began = steered(purse, 8 * HOUR)
    assert began
    assert purse.budget == 12.0
    (event,) = draft.changes.events
    assert (event.kind, event.data) == ("period", {"budget": 12.0, "period": "day"})
    assert purse.looks_at == 8 * HOUR + 60.0


def test_what_a_period_leaves_is_its_own_and_nothing_is_forgiven_at_a_change() -> None:
    purse = purse_of()
    before = purse.effective
    steered(purse, 7 * HOUR)
    assert purse.effective > before, "the night has spent nothing so far"
    steered(purse, 8 * HOUR)
    by_day = purse.effective
    steered(purse, 20 * HOUR)
    assert purse.budget == 30.0
    assert purse.effective > before, "it still has it when it comes again"
    assert by_day < 12.0, "and the day had nothing over at its beginning"


def test_a_budget_that_is_set_scales_all_periods_and_says_so() -> None:
    purse = purse_of()
    draft = Draft(STATE, 0.0)
    money = purse.set(draft, 2 * CALENDAR.average, None)
    assert money.budget == 60.0
    assert purse.week == pytest.approx(2 * CALENDAR.average)
    assert purse.budget_set is not None
    assert purse.budget_set.configured == pytest.approx(CALENDAR.average)
    again = purse_of()
    again.load(purse.document(), STATE, HOUR)
    assert again.week == pytest.approx(2 * CALENDAR.average), "it outlives a restart"
    other = purse_of(CALENDAR.scaled(3.0))
    other.load(purse.document(), STATE, HOUR)
    assert other.week == pytest.approx(3 * CALENDAR.average), "but not another configuration"
    purse.set(draft, CALENDAR.average, None)
    assert purse.budget_set is None, "and is undone by the configured one"


def test_a_step_that_is_not_stored_leaves_the_accounts_as_they_were() -> None:
    purse = purse_of()
    remembered, before = purse.remembered(), purse.document()
    steered(purse, 9 * HOUR)
    assert purse.document() != before
    purse.restore(remembered)
    assert purse.document() == before


def test_a_purse_of_an_older_version_learns_of_its_first_calendar() -> None:
    older = Purse(20.0, None, 24.0, 0.0, "node").document()
    purse = purse_of()
    purse.load(older, STATE, HOUR)
    assert purse.budget == 30.0
    assert purse.week == pytest.approx(CALENDAR.average)


def test_after_its_end_there_is_no_budget_and_nothing_is_planned_with() -> None:
    ended = replace(CALENDAR, until=CALENDAR.origin + 9 * HOUR)
    purse = purse_of(ended)
    steered(purse, 9 * HOUR - 1.0)
    assert purse.ended is None
    draft, changed = steered(purse, 9 * HOUR)
    assert changed
    assert (purse.budget, purse.effective) == (0.0, 0.0)
    assert purse.ended is ended
    assert draft.changes.events[-1].data == {"budget": 0.0, "period": None}
    state = purse.state(STATE, 9 * HOUR)
    assert state.calendar is not None
    assert (state.calendar.period, state.calendar.next_at) == (None, None)
    assert not math.isnan(state.average)


@pytest.mark.parametrize("billing", ["node", "gpu"])
def test_what_is_told_of_the_calendar(billing: str) -> None:
    purse = purse_of(billing=billing)
    steered(purse, 10 * HOUR)
    money = purse.state(STATE, 10 * HOUR)
    told = money.calendar
    assert told is not None
    assert (told.period, told.next_at, told.next_period) == ("day", 20 * HOUR, "night")
    assert (told.next_budget, told.averages) == (30.0, {"day": 0.0, "night": 0.0})
    assert money.allowed == pytest.approx((8 * 30.0 + 2 * 12.0) / 10)
    monday = [(one.period, one.budget, one.begins, one.ends) for one in told.hours[:2]]
    assert monday == [("night", 30.0, 0, 8 * 60), ("day", 12.0, 8 * 60, 20 * 60)]
    assert [one.ends for one in told.hours] == [*(one.begins for one in told.hours[1:]), 7 * 1440]
