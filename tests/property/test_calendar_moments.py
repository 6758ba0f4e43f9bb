"""What a calendar says of moments: periods, changes, and the integral of its budgets."""

import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.calendar import DAYS, MINUTES_PER_DAY, Calendar, Period

DAY = Period(name="day", budget=12.0, days=DAYS[:6], begins=480, ends=1200)
NIGHT = Period(name="night", budget=30.0)
LATE = Period(name="late", budget=7.0, days=("sat", "sun"), begins=90, ends=200)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
YEAR = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
moments = st.integers(0, 370 * 86_400).map(lambda s: YEAR + s)
calendars = st.builds(
    Calendar,
    periods=st.sampled_from([(DAY, NIGHT), (LATE, DAY, NIGHT)]),
    time_zone=st.sampled_from(ZONES),
)


def minute_of_week(moment: float, zone: str) -> int:
    local = datetime.fromtimestamp(moment, ZoneInfo(zone))
    return local.weekday() * MINUTES_PER_DAY + 60 * local.hour + local.minute


@given(calendar=calendars, moment=moments)
def test_the_period_is_the_one_of_what_clocks_show(calendar: Calendar, moment: float) -> None:
    assert calendar.at(moment) == calendar.week[minute_of_week(moment, calendar.time_zone)]


@given(calendar=calendars, moment=moments)
def test_nothing_changes_before_the_next_change_and_something_does_then(
    calendar: Calendar, moment: float
) -> None:
    change = calendar.next_change(moment)
    assert moment < change <= moment + 7 * 86_400
    here = calendar.at(moment)
    assert calendar.at(change) != here
    at = moment
    while at < change:
        assert calendar.at(at) == here
        at += 1700.0
    assert calendar.at(change - 1.0) == here


@settings(max_examples=20)
@given(calendar=calendars, since=moments, hours=st.integers(1, 200))
def test_the_integral_is_the_sum_over_all_minutes(
    calendar: Calendar, since: float, hours: int
) -> None:
    since -= since % 60
    minutes = (since + 60.0 * n for n in range(60 * hours))
    brute = math.fsum(
        calendar.periods[calendar.week[minute_of_week(at, calendar.time_zone)]].budget / 60.0
        for at in minutes
    )
    until = since + 3600.0 * hours
    assert calendar.allowed(since, until) == pytest.approx(brute, rel=1e-12)
    assert calendar.mean(since, until) == pytest.approx(brute / hours, rel=1e-12)


@given(calendar=calendars, a=moments, b=moments, c=moments)
def test_stretches_add_up(calendar: Calendar, a: float, b: float, c: float) -> None:
    a, b, c = sorted((a, b, c))
    whole = calendar.allowed(a, c)
    assert whole == pytest.approx(calendar.allowed(a, b) + calendar.allowed(b, c), abs=1e-6)


@pytest.mark.parametrize(
    ("month", "hours"), [(2, 28 * 24), (3, 31 * 24 - 1), (4, 30 * 24), (10, 31 * 24 + 1)]
)
def test_months_are_as_long_as_they_are_and_clocks_change_in_them(month: int, hours: int) -> None:
    """In Berlin clocks change in March and October of 2026, in the night of a Sunday."""
    zone = ZoneInfo("Europe/Berlin")
    first = datetime(2026, month, 1, tzinfo=zone)
    since = first.timestamp()
    until = datetime(2026, month + 1, 1, tzinfo=zone).timestamp()
    assert (until - since) / 3600.0 == hours
    days = [first + timedelta(days=n) for n in range(31)]
    by_day = 12 * sum(1 for day in days if day.month == month and day.weekday() < 6)
    calendar = Calendar(periods=(DAY, NIGHT), time_zone="Europe/Berlin")
    expected = 12.0 * by_day + 30.0 * (hours - by_day)
    assert calendar.allowed(since, until) == pytest.approx(expected, rel=1e-12)


@given(calendar=calendars, moment=moments)
def test_there_is_no_budget_after_its_end(calendar: Calendar, moment: float) -> None:
    ended = Calendar(periods=calendar.periods, time_zone=calendar.time_zone, until=moment)
    assert ended.budget_at(moment) == 0.0
    assert ended.budget_at(moment - 1.0) == calendar.budget_at(moment - 1.0) > 0
    assert ended.next_change(moment) == math.inf
    assert ended.next_change(moment - 1.0) <= moment
    more = ended.allowed(moment - 5000.0, moment + 1e6)
    assert more == pytest.approx(calendar.allowed(moment - 5000.0, moment))


def test_a_week_that_is_alike_never_changes() -> None:
    assert Calendar(periods=(NIGHT,)).next_change(YEAR) == math.inf


def test_a_clock_that_begins_at_nothing_begins_on_a_monday_of_the_zone() -> None:
    calendar = Calendar(periods=(DAY, NIGHT), time_zone="Asia/Kolkata").begun_on_a_monday()
    assert calendar.next_change(0.0) == 8 * 3600.0
    assert calendar.next_change(8 * 3600.0) == 20 * 3600.0
    assert calendar.mean(0.0, 7 * 86_400.0) == pytest.approx(calendar.average)
