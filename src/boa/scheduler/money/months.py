"""Months: dollars that the budget has allowed in each, kept for good. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from boa.model.calendar import Calendar
from boa.scheduler.money.costs import month_of
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour


class Allowed(NamedTuple):
    """A month's, of a budget."""

    since: Seconds
    """When the service was there in it for the first time."""
    usd: Usd


Months: TypeAlias = Mapping[str, Allowed]
"""By their names, UTC, such as 2026-11."""


def month_name(moment: Seconds) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m")


def counted(
    months: Months, budget: UsdPerHour, calendar: Calendar | None, since: Seconds, now: Seconds
) -> Months:
    """With what was allowed between two moments."""
    found = dict(months)
    while since < now:
        end, name = min(month_of(since)[1], now), month_name(since)
        usd = budget * (end - since) / SECONDS_PER_HOUR
        if calendar is not None:
            usd = calendar.allowed(since, end)
        had = found.get(name, Allowed(since, 0.0))
        found[name] = Allowed(had.since, had.usd + usd)
        since = end
    return found


def as_document(months: Months) -> dict[str, Any]:
    return {name: list(allowed) for name, allowed in months.items()}


def from_document(document: Mapping[str, Any]) -> Months:
    return {name: Allowed(*allowed) for name, allowed in document.items()}
