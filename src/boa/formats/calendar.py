"""The calendar file: hours of the week in which the budget, or what GPUs cost, is different."""

import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from boa.errors import InputError
from boa.formats.budget_terms import NO_DAY
from boa.formats.containers import list_of, mapping_of, object_of
from boa.formats.files import read_document
from boa.formats.parts import LABEL, NAME, VERSION_1, YEARS
from boa.formats.shapes import (
    BeyondSchema,
    Field,
    Format,
    Shape,
    Wrong,
    choice,
    needed,
    nullable,
    number,
    text,
    then,
)
from boa.model.calendar import DAYS, MINUTES_PER_DAY, Calendar, Period, zone_of
from boa.units import DAY_S, GpuName, Seconds

_HOURS = re.compile(r"([01]\d|2[0-4]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)")
_EXPECTED = "hours such as 08:00-20:00 (or 20:00-06:00, into the next day)"
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_MOMENT = (
    f"a day or time of the years {YEARS[0]} to {YEARS[-1]}, such as 2026-12-31 or 2026-12-31T18:00"
)
MOST_PERIODS = 20
_LONGEST_WAIT_S = 7 * DAY_S
"""A week: the same hours come again."""


def _hours(value: Any) -> tuple[int, int]:
    found = _HOURS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise Wrong(value, _EXPECTED)
    hour, minute, till, past = (int(part) for part in found.groups())
    begins, ends = 60 * hour + minute, 60 * till + past
    if begins >= MINUTES_PER_DAY or ends > MINUTES_PER_DAY or begins == ends:
        raise BeyondSchema(value, _EXPECTED)
    return begins, ends


_SPAN: Shape[tuple[int, int]] = Shape(
    _hours,
    {"type": "string", "pattern": f"^{_HOURS.pattern}$"},
    "hours, such as `08:00-20:00`",
)


def _period(hours: tuple[int, int] = (0, MINUTES_PER_DAY), **values: Any) -> Period:
    if "prices" in values and "price_factor" in values:
        raise BeyondSchema("both", "price_factor or prices, not both", at=".prices")
    return Period(begins=hours[0], ends=hours[1], **values)


def _zone(value: str) -> str:
    try:
        zone_of(value)
    except (ValueError, OSError, LookupError):
        raise BeyondSchema(value, "a time zone such as Europe/Berlin, or UTC") from None
    return value


def _moment(value: Any) -> datetime:
    """A day alone is meant whole. YAML reads days and times by itself where they have no quotes."""
    said = value.isoformat() if isinstance(value, date) else value
    if not isinstance(said, str) or _TIME.fullmatch(said) is None:
        raise Wrong(value, _MOMENT)
    try:
        moment = datetime.fromisoformat(said.replace("Z", "+00:00"))
    except ValueError:
        raise BeyondSchema(value, _MOMENT, f"got {said}, {NO_DAY}") from None
    if moment.year not in YEARS:
        raise BeyondSchema(said, _MOMENT)
    return moment + timedelta(days=1) if len(said) == len("2026-12-31") else moment


def _unix(said: datetime | None, time_zone: str) -> Seconds | None:
    if said is None:
        return None
    return (said if said.tzinfo else said.replace(tzinfo=zone_of(time_zone))).timestamp()


_UNTIL: Shape[datetime] = Shape(
    _moment,
    {"type": "string", "pattern": f"^{_TIME.pattern}$"},
    "day or time, such as `2026-12-31`",
)


def _calendar(
    periods: tuple[Period, ...],
    time_zone: str = "UTC",
    until: datetime | None = None,
    may_wait: Seconds = 0.0,
) -> Calendar:
    names: set[str] = set()
    for n, period in enumerate(periods):
        if period.name in names:
            expected = "a name that no other period has"
            raise BeyondSchema(period.name, expected, at=f".periods[{n}].name")
        names.add(period.name)
    ends = _unix(until, time_zone)
    found = Calendar(periods=periods, time_zone=time_zone, until=ends, may_wait=may_wait)
    for n, period in enumerate(periods):
        if not found.share(n):
            expected = "hours that no period before it has, and some that none after it needs"
            raise BeyondSchema(period.name, expected, at=f".periods[{n}]")
    _check_last(found)
    return found


def _check_last(calendar: Calendar) -> None:
    """The last period has all hours that are left: what it says of itself is to be so."""
    last, said = len(calendar.periods) - 1, calendar.periods[-1].minutes()
    more = (at for at, period in enumerate(calendar.week) if period == last and at not in said)
    if (first := next(more, None)) is not None:
        day, minute = divmod(first, MINUTES_PER_DAY)
        problem = f"leaves {DAYS[day]} {minute // 60:02}:{minute % 60:02} to nobody"
        expected = "a last period without days and hours: it has all that are left"
        raise BeyondSchema(None, expected, problem, at=f".periods[{last}]")


CALENDAR = Format(
    "BOA calendar",
    "Hours of the week in which the budget, or what GPUs cost, is different. The first period that "
    "names an hour has it; the last one has all that are left. Money is USD per hour on average.",
    object_of(
        VERSION_1,
        needed(
            "periods",
            list_of(
                object_of(
                    needed("name", LABEL, "A name that no other period has."),
                    needed(
                        "budget_per_hour",
                        number(above=0, of="USD per hour"),
                        "Average spend per hour while it lasts.",
                        to="budget",
                    ),
                    Field(
                        "days",
                        list_of(choice(DAYS), unique="each day once"),
                        "Days on which it begins. Not of the last period, which has all hours that "
                        "are left.",
                        otherwise="every day",
                    ),
                    Field("hours", _SPAN, "From when to when; likewise.", otherwise="all day"),
                    Field(
                        "price_factor",
                        number(above=0),
                        "What GPUs cost then, over the workload's prices.",
                        otherwise="1",
                    ),
                    Field(
                        "prices",
                        mapping_of(NAME, number(above=0), called="GPU"),
                        "USD per GPU and hour then, of the types whose price is another.",
                        otherwise="the workload's",
                    ),
                    make=_period,
                ),
                most=MOST_PERIODS,
            ),
            "Periods, in the order in which they are looked for.",
        ),
        Field(
            "time_zone",
            then(text("a time zone such as Europe/Berlin, or UTC", words="time zone"), _zone),
            "Where clocks show these hours.",
            default="UTC",
        ),
        Field(
            "until",
            nullable(_UNTIL),
            "When the budget ends; a day is meant whole. Plans for a week look at one before it.",
            otherwise="never",
        ),
        Field(
            "may_wait_s",
            number(least=0, most=_LONGEST_WAIT_S),
            "The most that the start of a job is put off for hours in which money buys more, where "
            "the job does not say (`may_wait_s` there). Plans for a week ask what it would bring.",
            default=0.0,
            to="may_wait",
        ),
        make=_calendar,
    ),
)


def load_calendar(path: str | Path) -> Calendar:
    """Read a calendar file (YAML or JSON)."""
    return parse_calendar(read_document(path))


def parse_calendar(document: Any, at: str = "") -> Calendar:
    """A calendar from plain mappings and lists, as YAML and JSON give them. `at`: where it
    stands, if it is no file of its own."""
    return CALENDAR.shape.read(document, at)


def check_types(
    calendar: Calendar, known: Iterable[GpuName], where: str, of: str = "this service"
) -> None:
    """Prices are of types that there are. `where`: the calendar stands."""
    names = list(known)
    for period in calendar.periods:
        for gpu in period.prices:
            if gpu not in names:
                expected = f"a GPU type of {of}: {', '.join(names)}"
                raise InputError(f"{where} {period.name}: prices", gpu, expected)
