"""How much a budget is: by the hour, the month, the quarter, or in total until a date."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from boa.formats.parts import YEARS
from boa.formats.shapes import FLAG, BeyondSchema, Field, Shape, Wrong, number
from boa.model.terms import Each, Terms
from boa.units import UsdPerHour

AMOUNTS: Mapping[str, Each] = {
    "budget_per_month": "month",
    "budget_per_quarter": "quarter",
    "budget_total": "once",
}
"""Fields that say it otherwise than by the hour."""
WAYS = ("budget_per_hour", *AMOUNTS)
_DAY = r"^\d{4}-\d{2}-\d{2}$"
_EXPECTED = f"a day of the years {YEARS[0]} to {YEARS[-1]}, such as 2027-03-31"
NO_DAY = "which is on no calendar"


def _day(value: Any) -> date:
    said = value.isoformat()[:10] if isinstance(value, date) else value  # as YAML reads it
    if not isinstance(said, str) or not re.fullmatch(_DAY[1:-1], said, re.ASCII):
        raise Wrong(value, _EXPECTED)
    try:
        day = date.fromisoformat(said)
    except ValueError:
        raise BeyondSchema(value, _EXPECTED, f"got {said}, {NO_DAY}") from None
    if day.year not in YEARS:
        raise BeyondSchema(said, _EXPECTED)
    return day


_UNTIL: Shape[date] = Shape(_day, {"type": "string", "pattern": _DAY}, "day, such as `2027-03-31`")

TERMS = (
    Field(
        "budget_per_month",
        number(above=0, of="USD"),
        "Or what it has by the calendar month, whose hours are counted: what is left of it is "
        "spread over those that are left.",
        otherwise="by the hour",
    ),
    Field(
        "budget_per_quarter",
        number(above=0, of="USD"),
        "Or by the quarter.",
        otherwise="by the hour",
    ),
    Field(
        "budget_total",
        number(above=0, of="USD"),
        "Or in total, for a project, until a date. After it there is nothing by right.",
        otherwise="by the hour",
    ),
    Field("until", _UNTIL, "The last day of `budget_total`.", otherwise="it has no end"),
    Field(
        "rolls_over",
        FLAG,
        "Whether what a month or a quarter leaves, or owes, goes into the next.",
        otherwise="`false`",
    ),
)
"""One way to say each: two are an error that names both."""


def terms_of(values: dict[str, Any], at: str = "") -> Terms | None:
    """Takes them out of the values of a budget; None: it is by the hour, or not said."""
    said = [name for name in WAYS if _said(values, name)]
    if len(said) > 1:
        expected = f"one of them: {', '.join(WAYS)}"
        raise BeyondSchema(f"{said[0]} and {said[1]}", expected, at=f"{at}.{said[1]}")
    way = said[0] if said else ""
    until, rolls = values.pop("until", None), values.pop("rolls_over", None)
    if (until is not None) != (way == "budget_total"):
        field = "until" if until is not None else "budget_total"
        raise BeyondSchema(
            str(until or values[way]), "budget_total and until together", at=f"{at}.{field}"
        )
    each = AMOUNTS.get(way)
    if rolls is not None and each in (None, "once"):
        expected = "budget_per_month or budget_per_quarter with it"
        raise BeyondSchema(rolls, expected, at=f"{at}.rolls_over")
    if each is None:
        return None
    return Terms(usd=values.pop(way), each=each, until=until, rolls_over=bool(rolls))


def _said(values: Mapping[str, Any], name: str) -> bool:
    """By the hour it is called `per_hour` once it is read; in `boa.yaml`, `budget`."""
    names = ("per_hour", "budget") if name == "budget_per_hour" else (name,)
    return any(name in values for name in names)


def average(terms: Terms | None, per_hour: UsdPerHour | None) -> UsdPerHour:
    """By the hour: as it was said, or what terms come to."""
    return terms.per_hour if terms is not None else per_hour or 0.0
