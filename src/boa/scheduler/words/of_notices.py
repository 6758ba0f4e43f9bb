"""Sentences of notices that are about no single event."""

from boa.units import Usd, UsdPerHour


def budget_too_small(budget: UsdPerHour, needed: UsdPerHour) -> str:
    return f"the budget of ${budget:g}/h cannot keep up: the cheapest plan needs ${needed:.4g}/h"


def cap_reached(cap: UsdPerHour, spend: UsdPerHour, waiting: int) -> str:
    jobs = "a job waits" if waiting == 1 else f"{waiting:,} jobs wait"
    return f"the cap of ${cap:g}/h is reached (${spend:.4g}/h now): {jobs}"


def month_costs(forecast: Usd, most: Usd) -> str:
    return f"this month is going to cost ${forecast:,.2f}, more than ${most:,.2f}"
