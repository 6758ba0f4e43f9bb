"""Prices over time: what holds at a moment, and what a calendar says of it."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from boa.model.calendar import Calendar, Period
from boa.model.calendar_prices import prices_by
from boa.model.prices import (
    CONSTANT,
    average,
    changes_of,
    dearest,
    known_until,
    paid,
    pieces,
    price_at,
    until,
)

STEPS = ((100.0, 2.0), (200.0, 4.0))
BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = Period(name="night", budget=30.0, begins=20 * 60, ends=6 * 60, price_factor=0.5)
SUNDAY = Period(name="sunday", budget=30.0, days=("sun",), prices={"A100": 1.25})
DAY = Period(name="day", budget=12.0)
WEEK = Calendar(periods=(NIGHT, SUNDAY, DAY), time_zone="Europe/Berlin")


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


def test_a_price_holds_from_the_moment_of_its_change() -> None:
    found = [price_at(1.0, STEPS, moment) for moment in (0, 99.9, 100, 199.9, 200, 900)]
    assert found == [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]


def test_a_stretch_of_time_costs_each_second_at_its_price() -> None:
    stretches = [(50.0, 100.0, 1.0), (100.0, 200.0, 2.0), (200.0, 250.0, 4.0)]
    assert list(pieces(1.0, STEPS, 50.0, 250.0)) == stretches
    assert paid(1.0, STEPS, 50.0, 250.0) == 450.0
    assert average(1.0, STEPS, 50.0, 250.0) == 2.25
    assert average(1.0, STEPS, 150.0, 150.0) == 2.0
    assert paid(1.0, STEPS, 250.0, 50.0) == 0.0


def test_the_dearest_price_counts_those_that_are_coming_within_the_time_alone() -> None:
    assert dearest(1.0, STEPS, 0.0, 99.0) == 1.0
    assert dearest(1.0, STEPS, 0.0, 100.0) == 2.0
    assert dearest(5.0, STEPS, 0.0, 900.0) == 5.0
    assert until(STEPS, 150.0) == STEPS[:1]


def test_a_calendars_prices_hold_by_the_clocks_of_its_time_zone() -> None:
    prices = prices_by(WEEK)
    assert prices.price("T4", 1.0, at("2026-11-18T19:59")) == 1.0
    assert prices.price("T4", 1.0, at("2026-11-18T20:00")) == 0.5
    assert prices.price("A100", 3.0, at("2026-11-22T12:00")) == 1.25
    assert prices.next_change(at("2026-11-18T19:59")) == at("2026-11-18T20:00")
    assert changes_of(prices, "T4", 1.0, at("2026-11-18T12:00"), at("2026-11-19T12:00")) == (
        (at("2026-11-18T20:00"), 0.5),
        (at("2026-11-19T06:00"), 1.0),
    )
    assert known_until(prices, at("2026-11-18T12:00")) == at("2026-11-19T12:00")


def test_prices_go_on_though_the_budget_ends() -> None:
    ended = Calendar(periods=WEEK.periods, time_zone=WEEK.time_zone, until=at("2026-11-01T00:00"))
    assert prices_by(ended).next_change(at("2026-11-18T19:59")) == at("2026-11-18T20:00")


@pytest.mark.parametrize("calendar", [None, Calendar(periods=(DAY,))])
def test_a_calendar_that_says_nothing_of_prices_leaves_them_as_they_are(
    calendar: Calendar | None,
) -> None:
    assert prices_by(calendar) is CONSTANT


def test_types_whose_cloud_names_the_price_are_left_to_it() -> None:
    prices = prices_by(WEEK, ["A100"])
    assert prices.price("A100", 3.0, at("2026-11-22T12:00")) == 3.0
    assert prices.price("T4", 1.0, at("2026-11-18T22:00")) == 0.5
