"""Calendar files: periods as they are written, and every mistake named at its place."""

import copy
import re
from datetime import UTC, date, datetime
from typing import Any

import pytest

from boa.errors import InputError
from boa.formats.calendar import parse_calendar
from boa.formats.plain_yaml import load_yaml
from boa.model.calendar import DAYS
from documents import CALENDAR


def changed(number: int, **fields: Any) -> dict[str, Any]:
    document = copy.deepcopy(CALENDAR)
    document["periods"][number] |= fields
    return document


def test_periods_are_read_as_they_are_written() -> None:
    day, night, other = parse_calendar(CALENDAR).periods
    assert (day.days, day.begins, day.ends) == (DAYS[:5], 480, 1200)
    assert (day.price("T4", 1.0), day.price("A100", 3.0)) == (1.5, 3.0)
    assert (night.begins, night.ends, night.price("T4", 1.0)) == (1200, 360, 0.7)
    assert (other.days, other.budget) == (DAYS, 20.0)


def test_a_day_at_which_the_budget_ends_is_meant_whole() -> None:
    def until(said: Any) -> float | None:
        return parse_calendar({**CALENDAR, "until": said}).until

    assert until("2026-12-31") == datetime(2026, 12, 31, 23, tzinfo=UTC).timestamp()
    assert until("2026-12-31T18:00") == datetime(2026, 12, 31, 17, tzinfo=UTC).timestamp()
    assert until("2026-12-31T18:00:00Z") == datetime(2026, 12, 31, 18, tzinfo=UTC).timestamp()
    assert until(load_yaml("2026-12-31")) == until("2026-12-31"), "as YAML reads it"
    assert until(None) is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"time_zone": "Berlin"}, "time_zone: got 'Berlin'; expected a time zone such as"),
        ({"time_zone": "../etc"}, "time_zone: got '../etc'"),
        ({"until": "tomorrow"}, "until: got 'tomorrow'; expected a day or time of the years"),
        ({"until": "2026-02-30"}, "until: got 2026-02-30, which is on no calendar; expected"),
        ({"until": date(9999, 12, 31)}, "until: got '9999-12-31'; expected a day or time of the"),
        ({"until": "9999-12-31T18:00"}, "until: got '9999-12-31T18:00'"),
        ({"until": "0001-01-01"}, "until: got '0001-01-01'"),
        ({"may_wait_s": -1}, "may_wait_s: got -1; expected"),
        ({"may_wait_s": 8 * 86_400}, "may_wait_s: got 691200; expected"),
    ],
)
def test_zones_and_ends_that_do_not_exist_are_named(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        parse_calendar({**CALENDAR, **fields})


@pytest.mark.parametrize(
    "fields",
    [{"hours": "08:00-20:00"}, {"days": ["sat"]}, {"days": ["sat"], "hours": "20:00-06:00"}],
)
def test_the_last_period_may_not_leave_hours_to_nobody(fields: dict[str, Any]) -> None:
    said = "periods[2]: leaves mon 06:00 to nobody; expected a last period without days and hours"
    with pytest.raises(InputError, match=re.escape(said)):
        parse_calendar(changed(2, **fields))


def test_the_last_period_may_name_the_hours_that_are_left() -> None:
    day = {"name": "day", "hours": "08:00-20:00", "budget_per_hour": 1}
    night = {"name": "night", "hours": "20:00-08:00", "budget_per_hour": 2}
    assert parse_calendar({"periods": [day, night]}).share(1) == 0.5


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "x" * 101])
def test_names_of_periods_are_short_and_printable(name: str) -> None:
    with pytest.raises(InputError, match=r"name: .*expected 1 to 100 printable characters"):
        parse_calendar(changed(0, name=name))


@pytest.mark.parametrize(
    ("number", "fields", "said"),
    [
        (0, {"hours": "8-20"}, "periods[0].hours: got '8-20'; expected hours such as 08:00-20:00"),
        (0, {"hours": "24:00-08:00"}, "periods[0].hours: got '24:00-08:00'"),
        (0, {"hours": "08:00-08:00"}, "periods[0].hours: got '08:00-08:00'"),
        (0, {"days": ["monday"]}, "periods[0].days[0]: got 'monday'; expected one of mon"),
        (0, {"budget_per_hour": 0}, "periods[0].budget_per_hour: got 0"),
        (0, {"price_factor": 2}, "periods[0].prices: got 'both'; expected price_factor or prices"),
        (1, {"name": "day"}, "periods[1].name: got 'day'; expected a name that no other"),
        (
            0,
            {"days": list(DAYS), "hours": "00:00-24:00"},
            "periods[1]: got 'night'; expected hours",
        ),
    ],
)
def test_a_mistake_is_named_at_its_place(number: int, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        parse_calendar(changed(number, **fields))
