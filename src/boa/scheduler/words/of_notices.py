"""Sentences of notices that are about no single event."""

from boa.model.notices import MonthSpent
from boa.scheduler.words.amounts import dollars, rate
from boa.units import Usd, UsdPerHour


def budget_too_small(budget: UsdPerHour, needed: UsdPerHour) -> str:
    return f"the budget of {rate(budget)} cannot keep up: the cheapest plan needs {rate(needed)}"


def cap_reached(cap: UsdPerHour, spend: UsdPerHour, waiting: int) -> str:
    jobs = "a job waits" if waiting == 1 else f"{waiting:,} jobs wait"
    return f"the cap of {rate(cap)} is reached ({rate(spend)} now): {jobs}"


def month_spent(of: MonthSpent, percent: float, allowed: Usd) -> str:
    whose = f" of {of.part}" if of.part else ""
    spent = f"{dollars(of.spent)} of {dollars(allowed)}"
    return f"{percent:g} % of this month's budget{whose} is spent: {spent}"


def month_costs(forecast: Usd, most: Usd) -> str:
    return f"this month is going to cost {dollars(forecast)}, more than {dollars(most)}"
