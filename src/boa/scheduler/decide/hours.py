"""Jobs that wait for hours in which money buys more. Pure but for what it remembers.

What a dollar is worth in every period of the calendar comes from the plan for a week
(`plan/week.py`), and so it is known how a job is best begun (`week_runs.py`).

A job is put off only before its first start, for as long as was allowed from its submission on, and
goes as soon as it no longer gains by it.
"""

from dataclasses import replace
from typing import NamedTuple

from boa.model.calendar import Calendar
from boa.model.job import JobRecord
from boa.policy.boa import MARGIN
from boa.policy.market.hours import Run
from boa.scheduler.decide.decider import Decider
from boa.scheduler.decide.week_runs import Choice, Kind, WeekRuns, kind_of
from boa.scheduler.money.prices_in_force import PricesInForce
from boa.scheduler.money.purse import Purse
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.plan.planning import Planner
from boa.scheduler.plan.week import Week
from boa.scheduler.state import Draft
from boa.scheduler.words.of_terms import NO_WEEK, UNTOLD, put_off
from boa.units import Seconds


class _Told(NamedTuple):
    """Words for what jobs wait for, and the runs that they tell of."""

    now: Run
    then: Run
    words: str


class PutOff(NamedTuple):
    """A start that waits for other hours."""

    until: Seconds | None
    """None: there is no plan yet to tell it by."""
    why: str


class Hours:
    def __init__(self, decider: Decider, purse: Purse, prices: PricesInForce) -> None:
        self._decider, self._purse, self._prices = decider, purse, prices
        self._runs: WeekRuns | None = None
        """By the plan in force; None: it is of no week, or none has come since a restart."""
        self._thinking = False
        """Whether a plan is on its way."""
        self._told: dict[tuple[Seconds, Kind], _Told] = {}
        """By when jobs are to begin."""
        self._freed = False
        """Whether nobody waits any more, where there is no calendar or no plan."""

    def week(self, draft: Draft) -> Week | None:
        """The week that a plan is to be made of; None: nobody would wait whatever it says."""
        calendar = self._purse.calendar
        if calendar is None:
            return None
        if not calendar.may_wait and not any(job.spec.may_wait_s for job in draft.jobs.values()):
            return None
        return Week(calendar, self._prices.usual, calendar.at(draft.now))

    def look(self, draft: Draft, planner: Planner | None) -> None:
        """Put off whoever gains by it, and let go whoever does no longer. None: nobody plans, as
        the policy follows no plan or the budget has ended."""
        calendar = self._purse.calendar
        if calendar is None or planner is None:
            self._free(draft)
            return
        self._freed, self._thinking = False, planner.thinking
        self._take(draft, calendar, planner.plan)
        for job in list(draft.jobs.values()):
            new = job.share is None and not job.attempts and not job.background
            if new or job.waits_until is not None:
                self._look_at(draft, calendar, job)

    def foreseen(self, now: Seconds, job: JobRecord) -> PutOff | None:
        """Hours that a job would wait for if it were submitted now; None: none."""
        calendar = self._purse.calendar
        until = None if calendar is None or self._freed else self._until(calendar, job)
        if until is None or until <= now:
            return None
        if self._runs is None:
            return PutOff(None, UNTOLD)
        choice = self._runs.choice(job, until)
        if choice is None or not _gains(choice, MARGIN):
            return None
        now_run, then, at = choice.at_once.run, choice.later.run, choice.later.at
        return PutOff(at, put_off(self._runs.calendar, at, now_run, then))

    def _free(self, draft: Draft) -> None:
        """Let all go: nothing is left that they wait by, and nobody is put off until there is."""
        if not self._freed:
            self._freed = True
            for job in list(draft.jobs.values()):
                _let_go(draft, job)

    def _take(self, draft: Draft, calendar: Calendar, plan: PlanState | None) -> None:
        """Go by the plan in force."""
        if plan is None or plan.waited is None:
            self._runs = None
            return
        if self._runs is None or self._runs.plan is not plan or self._runs.calendar != calendar:
            self._runs = WeekRuns(calendar, plan, plan.waited.prices, self._prices)
            self._told = {at: told for at, told in self._told.items() if at[0] > draft.now}
        self._runs.look(draft.now)

    def _look_at(self, draft: Draft, calendar: Calendar, job: JobRecord) -> None:
        if job.paused or job.parked or job.awaits or job.stop_requested:
            if job.waits_until is not None:  # weighed anew, and told anew, once it goes on
                draft.put_job(replace(job, waits_until=None))
            return
        until = self._until(calendar, job)
        if until is None or until <= draft.now:
            _let_go(draft, job)
        elif self._runs is None:
            self._wait_for_plan(draft, job)
        elif (choice := self._runs.choice(job, until)) is None:
            _let_go(draft, job)
        else:
            self._choose(draft, job, choice, self._runs)

    def _until(self, calendar: Calendar, job: JobRecord) -> Seconds | None:
        """The last moment that it may wait for; None: it waits for none, whatever they are."""
        if job.spec.priority != "normal" or job.spec.deadline_s is not None:
            return None
        most = calendar.may_wait if job.spec.may_wait_s is None else job.spec.may_wait_s
        return job.submitted_at + most

    def _wait_for_plan(self, draft: Draft, job: JobRecord) -> None:
        """For a moment."""
        soon = job.submitted_at + self._decider.unplanned_s
        if job.waits_until is None and draft.now < soon:
            draft.put_job(replace(job, waits_until=soon, reason=NO_WEEK))
        elif job.waits_until is not None and job.waits_until <= draft.now and not self._thinking:
            _let_go(draft, job)

    def _choose(self, draft: Draft, job: JobRecord, choice: Choice, runs: WeekRuns) -> None:
        """Whoever waits for a period goes on doing so as long as that gains anything."""
        if not _gains(choice, 0.0 if job.waits_until in runs.begin else MARGIN):
            _let_go(draft, job)
            return
        at, words = choice.later.at, self._words(runs.calendar, job, choice)
        if (job.waits_until, job.reason) != (at, words):
            draft.put_job(replace(job, waits_until=at, reason=words))

    def _words(self, calendar: Calendar, job: JobRecord, choice: Choice) -> str:
        """Those of before while they are about right: every plan differs a little, and thousands
        of records would be written for it."""
        now, then, at = choice.at_once.run, choice.later.run, (choice.later.at, kind_of(job))
        told = self._told.get(at)
        if told is None or _moved(told.now, now) or _moved(told.then, then):
            told = self._told[at] = _Told(now, then, put_off(calendar, at[0], now, then))
        return told.words


def _gains(choice: Choice, part: float) -> bool:
    """Whether beginning later saves more than this part of what it comes to."""
    return choice.later.value < (1.0 - part) * choice.at_once.value


def _moved(told: Run, found: Run) -> bool:
    """Whether what was said of it is no longer about right."""
    return any(
        abs(said - now) > MARGIN * abs(said) for said, now in zip(told[1:], found[1:], strict=True)
    )


def _let_go(draft: Draft, job: JobRecord) -> None:
    if job.waits_until is not None:
        draft.put_job(replace(job, waits_until=None, reason="new"))
        draft.replan = True
