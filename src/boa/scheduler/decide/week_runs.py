"""Runs of jobs in every period of a calendar, and when they are best begun, by one plan.

All is worked out when first asked for: jobs that are alike are weighed once, however many wait.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from boa.model.calendar import MOST_AHEAD_S, Calendar
from boa.model.job import JobRecord
from boa.model.job_spec import GpuLimits
from boa.policy.market.hours import Run, Start, beginnings, starts, whole_run
from boa.policy.market.worth import Worths
from boa.scheduler.money.prices_in_force import PricesInForce
from boa.scheduler.plan.plan_in_force import PlanState
from boa.units import Seconds


class Kind(NamedTuple):
    """Jobs that are alike: to begin one is worth what it is to begin another."""

    stream: str
    limits: GpuLimits
    urgency: float


def kind_of(job: JobRecord) -> Kind:
    return Kind(job.stream, job.spec.gpus, job.urgency)


class Choice(NamedTuple):
    """A start at once, and the best of those later."""

    at_once: Start
    later: Start


class WeekRuns:
    def __init__(
        self,
        calendar: Calendar,
        plan: PlanState,
        worth: Mapping[str, float],
        prices: PricesInForce,
    ) -> None:
        """`worth`: of a dollar, ρ, by the names of periods; `prices`: of GPUs."""
        self.calendar, self.plan, self._worth, self._prices = calendar, plan, worth, prices
        self._now: Seconds = -math.inf
        self.begin: list[Seconds] = []
        """When periods begin in the coming week."""
        self._choices: dict[tuple[int, Kind], Choice | None] = {}
        """By how many of these may be waited for; both at the moment of the last look."""
        self._worths: dict[int, Worths] = {}
        """By the number of the period."""
        self._runs: dict[tuple[int, Kind], Run | None] = {}

    def look(self, now: Seconds) -> None:
        self._now, self._choices = now, {}
        self.begin = beginnings(self.calendar, now, math.inf)

    def choice(self, job: JobRecord, until: Seconds) -> Choice | None:
        """None: nothing is known of the job, or nothing begins until then."""
        kind, reached = kind_of(job), bisect_right(self.begin, until)
        if (reached, kind) not in self._choices:
            found = starts(self.calendar, self._now, until, lambda n: self._run(n, kind))
            later = min(found[1:], key=lambda start: start.value, default=None)
            choice = None if later is None else Choice(found[0], later)
            self._choices[reached, kind] = choice
        return self._choices[reached, kind]

    def _run(self, period: int, kind: Kind) -> Run | None:
        """A whole run in that period; None: what a dollar is worth there is not known."""
        if (period, kind) not in self._runs:
            price = self._worth.get(self.calendar.periods[period].name)
            worths = self._worths_in(period)
            self._runs[period, kind] = (
                None
                if price is None
                else whole_run(worths, kind.stream, price, kind.limits, kind.urgency)
            )
        return self._runs[period, kind]

    def _worths_in(self, period: int) -> Worths:
        """Worths at what GPUs will cost when it begins."""
        if period not in self._worths:
            coming = self.calendar.stretches(self._now, self._now + MOST_AHEAD_S)
            begins = next(begin for begin, _, found in coming if found == period)
            workload = self.plan.workload
            priced = self._prices.then(workload.gpu_types, begins)
            self._worths[period] = Worths(replace(workload, gpu_types=priced))
        return self._worths[period]
