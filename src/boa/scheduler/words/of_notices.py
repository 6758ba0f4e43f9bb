"""Sentences of notices that are about no single event."""

from boa.model.notices import MonthSpent
from boa.units import Usd, UsdPerHour


def budget_too_small(budget: UsdPerHour, needed: UsdPerHour) -> str:
    return f"the budget of ${budget:g}/h cannot keep up: the cheapest plan needs ${needed:.4g}/h"


def cap_reached(cap: UsdPerHour, spend: UsdPerHour, waiting: int) -> str:
    jobs = "a job waits" if waiting == 1 else f"{waiting:,} jobs wait"
    return f"the cap of ${cap:g}/h is reached (${spend:.4g}/h now): {jobs}"


def month_spent(of: MonthSpent, percent: float, allowed: Usd) -> str:
    whose = f" of {of.part}" if of.part else ""
    return (
        f"{percent:g} % of this month's budget{whose} is spent: ${of.spent:,.2f} of ${allowed:,.2f}"
    )


def month_costs(forecast: Usd, most: Usd) -> str:
    return f"this month is going to cost ${forecast:,.2f}, more than ${most:,.2f}"
