"""The plan in force: asked for in the background, taken over when it comes."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from boa.backoff import doubled
from boa.errors import BoaError, BudgetTooSmall
from boa.model.budgets import Budget
from boa.model.job import JobRecord
from boa.model.prices import at_prices_of
from boa.model.workload import GpuType, Workload
from boa.policy.boa import Planned, planned_of
from boa.scheduler.plan.calculator import (
    QUIET_S,
    Calculator,
    InlineCalculator,
    PlanAnswer,
    PlanQuestion,
    due,
    rights_moved,
)
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.plan.week import Week
from boa.scheduler.state import Draft
from boa.solver.solution import as_document
from boa.units import GpuName, Seconds, UsdPerHour

FEW_CLASSES = 100
CLASS_S: Seconds = 0.005
"""Between two plans for classes that are new, for every class above so many: taking a plan in takes
the longer the more classes it has."""
NO_VERSION = -1
"""A version that no forecast ever has."""
REPLAN_S: Seconds = 900.0
"""How often widths are computed anew, if predictions have changed (the paper: 15 minutes)."""


class Forecast(Protocol):
    """The jobs that are expected: by the profiler when live, by learners in simulations."""

    @property
    def version(self) -> int:
        """Changes whenever the workload does."""
        ...

    def workload(self, now: Seconds, active: Collection[str] | None = None) -> Workload | None:
        """None while no class can be planned for. `active`: streams that have jobs now."""
        ...

    def units(self, stream: str) -> tuple[float, ...]:
        """Units of progress that every epoch of its jobs is expected to take."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The last question that was put to the calculator."""

    number: int = 0
    at: Seconds | None = None
    version: int = NO_VERSION
    budget: UsdPerHour = 0.0
    workload: Workload | None = None
    sharing: Budget | None = None
    week: Week | None = None


class Planner:
    """Keeps a plan up to date for policies that follow one."""

    def __init__(
        self,
        calculator: Calculator,
        forecast: Forecast,
        replan_s: Seconds,
        quiet_s: Seconds = QUIET_S,
        last: int = 0,
    ) -> None:
        """A plan is made anew after `replan_s` in any case, and never within `quiet_s`. `last`: the
        number of the last plan that was stored."""
        self._calculator, self._forecast = calculator, forecast
        self._replan_s, self._quiet_s = replan_s, quiet_s
        self.plan: PlanState | None = None
        self.memory: Planned | None = None
        """The plan as the policy remembers it."""
        self._asked = _Asked(number=last)
        self._units: Mapping[str, tuple[float, ...]] = {}
        """Units of every epoch, by class, as they were when it was asked."""
        self._types: Mapping[GpuName, GpuType] | None = None
        """GPU types at prices that changed since the forecast was made; None: none has."""
        self._failures = 0
        """Answers since the last plan, all of them errors."""

    def close(self) -> None:
        self._calculator.close()

    @property
    def thinking(self) -> bool:
        """Whether a plan is on its way."""
        return self._calculator.busy

    @property
    def due_at(self) -> Seconds:
        """When a plan is next made anew though nothing has changed."""
        return -math.inf if self._asked.at is None else self._asked.at + self._again_s

    def reprice(self, types: Mapping[GpuName, GpuType]) -> None:
        """Plan by these prices from now on, and anew at once."""
        self._types, self._asked = types, replace(self._asked, at=None)

    def hurry(self) -> None:
        """Plan anew as soon as may be: somebody has set the budget."""
        self._asked = replace(self._asked, version=NO_VERSION)

    def step(
        self,
        draft: Draft,
        budget: UsdPerHour,
        sharing: Budget | None = None,
        week: Week | None = None,
    ) -> bool:
        """Whether a new plan is in force. `sharing`: those who share the budget. `week`: where jobs
        may wait for others of its hours."""
        found = self.look(draft.now, budget, draft.paying, sharing, week)
        if isinstance(found, str):
            draft.tell("trouble", why="no_plan", detail=found)
        if not isinstance(found, PlanState):
            return False
        draft.count(plans=1)
        document = as_document(found.solution)
        draft.put_meta("plan", {"at": draft.now, "number": found.number, **document})
        unknown: dict[str, Any] = {} if any(found.units.values()) else {"unknown": True}
        draft.tell(
            "planned",
            number=found.number,
            average_jct_s=found.solution.average_jct,
            spend_per_hour=found.solution.spend,
            gap=found.solution.gap,
            wall_s=found.wall_s,
            too_small_per_hour=found.too_small,
            **unknown,
        )
        return True

    def look(
        self,
        now: Seconds,
        budget: UsdPerHour,
        jobs: Collection[JobRecord] = (),
        sharing: Budget | None = None,
        week: Week | None = None,
    ) -> PlanState | str | None:
        """A plan that has just come, or why none could be made; a new one is asked for if due."""
        answer = self._calculator.poll()
        found = None if answer is None else self._take(now, answer)
        if not self._calculator.busy:
            self._ask(now, budget, jobs, sharing, week)
        return found

    def _ask(
        self,
        now: Seconds,
        budget: UsdPerHour,
        jobs: Collection[JobRecord],
        sharing: Budget | None,
        week: Week | None,
    ) -> None:
        asked, version = self._asked, self._forecast.version
        why = due(
            now,
            asked.at,
            asked.version,
            version,
            asked.budget,
            budget,
            self._again_s,
            self._quiet_s,
        )
        if not why and self._rights_moved(now, sharing):
            why = "rights have changed"
        if not why and asked.week is None and week is not None and not self._quiet(now):
            why = "jobs may wait for other hours"
        if not why and not (version != asked.version and self._newcomers(now, jobs)):
            return
        workload = self._forecast.workload(now, {job.stream for job in jobs})
        if workload is None:
            return
        workload = self._priced(workload)
        self._asked = _Asked(
            number=asked.number + 1,
            at=now,
            version=self._forecast.version,  # a forecast may learn of classes when it is asked
            budget=budget,
            workload=workload,
            sharing=sharing,
            week=week,
        )
        self._units = {found.name: self._forecast.units(found.name) for found in workload.classes}
        shared = None if sharing is None else sharing.scaled(budget / sharing.per_hour)
        self._calculator.request(PlanQuestion(workload, budget, asked.number + 1, shared, week))

    def _priced(self, workload: Workload) -> Workload:
        if self._types is None:
            return workload
        return replace(workload, gpu_types=at_prices_of(workload.gpu_types, self._types))

    def _rights_moved(self, now: Seconds, sharing: Budget | None) -> bool:
        return not self._quiet(now) and rights_moved(self._asked.sharing, sharing)

    def _quiet(self, now: Seconds) -> bool:
        at = self._asked.at
        return at is not None and 0 <= now - at < self._quiet_s

    def _newcomers(self, now: Seconds, jobs: Collection[JobRecord]) -> bool:
        """Whether a job waits for a plan that knows its class: that cannot wait any longer, unless
        so many classes come one after the other that there would be nothing but plans."""
        planned = {} if self.memory is None else self.memory.by_class
        many = max(len(planned) - FEW_CLASSES, 0)
        if self._asked.at is not None and now < self._asked.at + many * CLASS_S:
            return False
        return any(job.share is None and job.stream not in planned for job in jobs)

    def _take(self, now: Seconds, answer: PlanAnswer) -> PlanState | str:
        asked = self._asked
        if answer.solution is None or asked.workload is None:
            self._failures += 1
            self._asked = replace(asked, at=now)
            return answer.error
        self._failures = 0
        self.plan = PlanState(
            number=asked.number,
            at=now,
            solution=answer.solution,
            workload=asked.workload,
            wall_s=answer.wall_s,
            too_small=answer.too_small,
            hopeless=answer.hopeless,
            waited=answer.waited,
            units=self._units,
        )
        self.memory = planned_of(answer.solution, asked.version, now, asked.number, answer.trials)
        return self.plan

    @property
    def _again_s(self) -> Seconds:
        """Soon after an error, as what was wrong may pass; if it does not, ever more seldom."""
        if not self._failures:
            return self._replan_s
        return doubled(QUIET_S, self._failures, self._replan_s)


def inline_planner(forecast: Forecast) -> Planner:
    """Plans on the spot, anew where predictions have changed, at most every `REPLAN_S`."""
    return Planner(InlineCalculator(), forecast, replan_s=math.inf, quiet_s=REPLAN_S)


def plan_now(planner: Planner, now: Seconds, budget: UsdPerHour) -> Planned | None:
    """The plan in force, by a planner on the spot.

    A budget that cannot keep up, whatever trials may show, is an error for the first plan; later,
    what jobs turn out to need is met by the cheapest.
    """
    found = planner.look(now, budget)
    if planner.thinking:
        found = planner.look(now, budget)
    if isinstance(found, str):
        raise BoaError(found)
    if found is not None and found.number == 1 and found.hopeless:
        assert found.too_small is not None
        raise BudgetTooSmall(budget, found.too_small)
    return planner.memory
