"""Jobs that wait for hours in which money buys more. Pure but for what it remembers.

What a dollar is worth in every period of the calendar, ρ, comes from the plan for a week
(`solver/by_period.py`), in which whoever gains by it waits: it is made with every plan, of the same
workload. What is planned for the hours that hold now would not do: it knows nothing of the jobs
that will not run in them, and money looks too dear by day for as long as anybody waits.

A job is put off only before its first start, for as long as was allowed from its submission on, and
goes as soon as it no longer gains by it.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from boa.model.calendar import MOST_AHEAD_S, Calendar
from boa.model.job import JobRecord
from boa.model.job_spec import GpuLimits
from boa.policy.boa import MARGIN
from boa.policy.market.hours import Run, Start, beginnings, starts, whole_run
from boa.policy.market.worth import Worths
from boa.scheduler.decide.decider import Decider
from boa.scheduler.money.prices_in_force import PricesInForce
from boa.scheduler.money.purse import Purse
from boa.scheduler.plan.calculator import Week
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.plan.planning import Planner
from boa.scheduler.state import Draft
from boa.scheduler.words.of_terms import NO_WEEK, put_off
from boa.units import Seconds


class _Told(NamedTuple):
    """Words for what jobs wait for, and the runs that they tell of."""

    now: Run
    then: Run
    words: str


class Hours:
    def __init__(self, decider: Decider, purse: Purse, prices: PricesInForce) -> None:
        self._decider, self._purse, self._prices = decider, purse, prices
        self._plan: PlanState | None = None
        self._worths: dict[int, Worths] = {}
        """By the number of the period …"""
        self._runs: dict[tuple[int, str, GpuLimits, float], Run | None] = {}
        """… both by the plan that was last looked at."""
        self._begin: list[Seconds] = []
        """When periods begin in the coming week, …"""
        self._best: dict[tuple[int, str, GpuLimits, float], tuple[Start | None, Start | None]] = {}
        """… and what jobs that are alike come to, by how many of these they may wait for: at once,
        and at best later. Both at the moment of the last look: thousands may wait."""
        self._thinking = False
        """Whether a plan is on its way."""
        self._told: dict[tuple[Seconds, str, GpuLimits, float], _Told] = {}
        """By when jobs are to begin, and what they are alike in."""
        self._freed = False
        """Whether nobody waits any more, where there is no calendar or no plan."""

    def week(self, draft: Draft) -> Week | None:
        """The week that a plan is to be made of; None: nobody would wait whatever it says."""
        calendar = self._purse.calendar
        if calendar is None:
            return None
        if not calendar.may_wait and not any(job.spec.may_wait_s for job in draft.jobs.values()):
            return None
        return Week(calendar, self._prices.usual)

    def look(self, draft: Draft, planner: Planner | None) -> None:
        """Put off whoever gains by it, and let go whoever does no longer. None: nobody plans, as
        the policy follows no plan or the budget has ended."""
        calendar = self._purse.calendar
        if calendar is None or planner is None:
            self._free(draft)
            return
        plan, self._freed = planner.plan, False
        if plan is not self._plan:
            self._plan, self._worths, self._runs = plan, {}, {}
            self._told = {kind: told for kind, told in self._told.items() if kind[0] > draft.now}
        self._thinking = planner.thinking
        self._begin, self._best = beginnings(calendar, draft.now, math.inf), {}
        for job in list(draft.jobs.values()):
            new = job.share is None and not job.attempts and not job.background
            if new or job.waits_until is not None:
                self._look_at(draft, calendar, job)

    def _free(self, draft: Draft) -> None:
        """Let all go: nothing is left that they wait by, and nobody is put off until there is."""
        if not self._freed:
            self._freed = True
            for job in list(draft.jobs.values()):
                _let_go(draft, job)

    def _look_at(self, draft: Draft, calendar: Calendar, job: JobRecord) -> None:
        most = calendar.may_wait if job.spec.may_wait_s is None else job.spec.may_wait_s
        until, plan = job.submitted_at + most, self._plan
        if job.paused or job.parked or job.awaits or job.stop_requested:
            if job.waits_until is not None:  # weighed anew, and told anew, once it goes on
                draft.put_job(replace(job, waits_until=None))
            return
        if until <= draft.now or job.deadline is not None or job.background:
            _let_go(draft, job)
        elif plan is None or plan.prices is None:
            self._wait_for_plan(draft, job)
        else:
            self._weigh(draft, calendar, job, until, plan)

    def _wait_for_plan(self, draft: Draft, job: JobRecord) -> None:
        """For a moment, where the plan in force is of no week, or none has come since a restart."""
        soon = job.submitted_at + self._decider.unplanned_s
        if job.waits_until is None and draft.now < soon:
            draft.put_job(replace(job, waits_until=soon, reason=NO_WEEK))
        elif job.waits_until is not None and job.waits_until <= draft.now and not self._thinking:
            _let_go(draft, job)

    def _weigh(
        self, draft: Draft, calendar: Calendar, job: JobRecord, until: Seconds, plan: PlanState
    ) -> None:
        def run_in(period: int) -> Run | None:
            key = (period, job.stream, job.spec.gpus, job.urgency)
            if key not in self._runs:
                worths = self._worths_in(calendar, period, draft.now, plan)
                price = (plan.prices or {}).get(calendar.periods[period].name)
                self._runs[key] = (
                    None
                    if price is None
                    else whole_run(worths, job.stream, price, job.spec.gpus, job.urgency)
                )
            return self._runs[key]

        alike = (bisect_right(self._begin, until), job.stream, job.spec.gpus, job.urgency)
        if alike not in self._best:
            self._best[alike] = _best(starts(calendar, draft.now, until, run_in))
        at_once, best = self._best[alike]
        gains = 0.0 if job.waits_until in self._begin else MARGIN
        if at_once is None or best is None or best.value >= (1.0 - gains) * at_once.value:
            _let_go(draft, job)
        else:
            told = self._told_of(calendar, job, at_once.run, best)
            if best.at != job.waits_until or job.reason != told.words:
                draft.put_job(replace(job, waits_until=best.at, reason=told.words))

    def _told_of(self, calendar: Calendar, job: JobRecord, now: Run, best: Start) -> _Told:
        """Words of before while they are about right: every plan differs a little, and thousands
        of records would be written for it."""
        kind = (best.at, job.stream, job.spec.gpus, job.urgency)
        told = self._told.get(kind)
        if told is None or _moved(told.now, now) or _moved(told.then, best.run):
            words = put_off(calendar, best.at, now, best.run)
            told = self._told[kind] = _Told(now, best.run, words)
        return told

    def _worths_in(self, calendar: Calendar, period: int, now: Seconds, plan: PlanState) -> Worths:
        """Worths at what GPUs will cost when it begins."""
        if period not in self._worths:
            coming = calendar.stretches(now, now + MOST_AHEAD_S)
            begins = next(begin for begin, _, found in coming if found == period)
            priced = self._prices.then(plan.workload.gpu_types, begins)
            self._worths[period] = Worths(replace(plan.workload, gpu_types=priced))
        return self._worths[period]


def _best(found: Sequence[Start]) -> tuple[Start | None, Start | None]:
    """The start at once, and the best of those later."""
    at_once = found[0] if found else None
    return at_once, min(found[1:], key=lambda start: start.value, default=None)


def _moved(told: Run, found: Run) -> bool:
    """Whether what was said of it is no longer about right."""
    return any(
        abs(said - now) > MARGIN * abs(said) for said, now in zip(told[1:], found[1:], strict=True)
    )


def _let_go(draft: Draft, job: JobRecord) -> None:
    if job.waits_until is not None:
        draft.put_job(replace(job, waits_until=None, reason="new"))
        draft.replan = True
