"""The week that jobs may wait in: what a dollar is worth in its periods, and which jobs run in that
which holds. Pure.

Both come from the plan for a week (`solver/by_period.py`). Whoever may wait by the calendar is free
to in it; single jobs that may take its prices as they are. The plan in force is then of the jobs
that run in the period which holds: else those who wait for the night would have their part of the
day's money, and jobs by day be too narrow for as long as anybody waits.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from boa.errors import BoaError, BudgetTooSmall
from boa.model.calendar import Calendar
from boa.model.prices import at_prices_of
from boa.model.workload import GpuType, Workload
from boa.policy.boa import price_of
from boa.solver.by_period import WeekPlan, plan_week
from boa.units import GpuName, UsdPerHour

MOST = 400
"""Classes times periods of which a plan is made: that takes some two seconds."""
RAREST = 1e-3
"""Part of a class's jobs that is planned for where all of them are to wait: one may be in a
hurry."""


class Week(NamedTuple):
    """Hours that jobs may wait for."""

    calendar: Calendar
    types: Mapping[GpuName, GpuType]
    """GPU types at the prices that the calendar goes out from."""
    period: int
    """Number of the period that holds."""


class Waited(NamedTuple):
    """Outcome of waiting for other hours."""

    workload: Workload
    """The jobs that begin in the period which holds."""
    prices: Mapping[str, float]
    """ρ by the names of periods; empty: nobody waits."""
    cheapest: UsdPerHour | None = None
    """The least that all jobs of the week need; None: as much as those of the workload."""


def of_week(workload: Workload, week: Week) -> Waited:
    """Nobody waits where the week's budget cannot keep up, whoever does, or where it would take too
    long to find out who."""
    calendar = week.calendar
    if len(workload.classes) * len(calendar.periods) > MOST:
        return Waited(workload, {})
    usual = replace(workload, gpu_types=at_prices_of(workload.gpu_types, week.types))
    try:
        found, allowed = _planned(usual, calendar)
    except BoaError:  # the plan in force is made all the same
        return Waited(workload, {})
    prices = {
        one.name: price_of(one.multiplier / one.share, calendar.workload(usual, number))
        for number, one in enumerate(found.periods)
    }
    here = calendar.periods[week.period].name
    running = _running(workload, found, here) if allowed else workload
    return Waited(running, prices, found.cheapest)


def _planned(usual: Workload, calendar: Calendar) -> tuple[WeekPlan, bool]:
    """And whether the calendar lets everybody wait who does in it. Where a period is too poor for
    all who run in it then, what a dollar is worth is found as if all might."""
    try:
        return plan_week(usual, calendar, most_wait_s=calendar.may_wait), True
    except BudgetTooSmall:
        return plan_week(usual, calendar), False


def _running(workload: Workload, found: WeekPlan, here: str) -> Workload:
    """With every class coming as often as it begins to run in the period."""
    lasts = {period.name: period.share for period in found.periods}
    begin = {known.name: 1.0 for known in workload.classes}
    for one in found.waiting:
        if one.came == here:
            begin[one.job_class] -= one.share
        elif one.runs == here:
            begin[one.job_class] += one.share * lasts[one.came] / lasts[here]
    classes = (
        replace(known, arrivals_per_hour=known.arrivals_per_hour * max(begin[known.name], RAREST))
        for known in workload.classes
    )
    return replace(workload, classes=tuple(classes))
