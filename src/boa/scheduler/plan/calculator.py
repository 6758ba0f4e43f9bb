"""Questions to whoever solves: when to ask, what comes back, and an answer on the spot."""

import time
from dataclasses import dataclass, field, replace
from typing import Protocol

from boa.errors import BoaError
from boa.model.budgets import Budget
from boa.model.workload import Workload
from boa.policy.boa import within_reach
from boa.policy.sharing import with_shared_trials, within_shares
from boa.policy.trials import Trials, cheapest_hoped, with_trials
from boa.scheduler.plan.week import Waited, Week, of_week
from boa.solver.solution import Solution
from boa.units import Seconds, UsdPerHour

QUIET_S: Seconds = 5.0
"""No two plans are asked for within so short a time."""
BUDGET_MOVED = 0.05
"""Part by which pacing must have moved the budget for a new plan at once."""


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    workload: Workload
    budget: UsdPerHour
    number: int
    sharing: Budget | None = None
    """Those who share it, if somebody does: the same money."""
    week: Week | None = None
    """None: nobody waits for other hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAnswer:
    number: int
    solution: Solution | None
    too_small: UsdPerHour | None = None
    """The budget cannot keep up; the plan is the cheapest there is, and this is what it needs."""
    hopeless: bool = False
    """Nor could it keep up if all that is uncertain turned out well."""
    trials: Trials = field(default_factory=Trials)
    waited: Waited | None = None
    """Outcome of waiting for other hours, where a week was asked about."""
    error: str = ""
    wall_s: float = 0.0


class Calculator(Protocol):
    """Every call returns at once. Asked again before it has answered, it answers the newest."""

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        ...

    def request(self, question: PlanQuestion) -> None: ...

    def poll(self) -> PlanAnswer | None:
        """An answer that has come since the last poll."""
        ...

    def close(self) -> None: ...


def due(
    now: Seconds,
    last_at: Seconds | None,
    last_version: int,
    version: int,
    last_budget: UsdPerHour,
    budget: UsdPerHour,
    replan_s: Seconds,
    quiet_s: Seconds = QUIET_S,
) -> str:
    """Why to plan anew now; empty: no reason. The last of everything is that of the last plan asked
    for, None if none was."""
    if last_at is None:
        return "there is no plan yet"
    since = now - last_at
    if 0 <= since < quiet_s:  # a clock that was set back must not keep us waiting
        return ""
    if version != last_version:
        return "the workload has changed"
    if abs(budget - last_budget) > BUDGET_MOVED * last_budget:
        return "the budget has changed"
    if not 0 <= since < replan_s:  # rates of arrivals fade while nothing happens
        return "it is time"
    return ""


def rights_moved(before: Budget | None, now: Budget | None) -> bool:
    """Whether those who share the budget have other rights than in the last plan asked for."""
    if before is None or now is None:
        return before is not now
    least = BUDGET_MOVED * now.per_hour
    pairs = zip(before.every, now.every, strict=False)
    return any(
        abs(was.per_hour - part.per_hour) > least
        or abs((was.max_per_hour or 0.0) - (part.max_per_hour or 0.0)) > least
        for was, part in pairs
    )


def solved(question: PlanQuestion) -> PlanAnswer:
    """Every question has an answer, if only an error in words."""
    began = time.perf_counter()
    solution, needed, hopeless, trials, error = None, None, False, Trials(), ""
    waited: Waited | None = None
    try:
        if question.week is not None:
            waited = of_week(question.workload, question.week)
            question = replace(question, workload=waited.workload)
        solution, needed = _planned(question)
        if needed is None:
            solution, trials = _tried(question, solution)
        else:
            hopes = question.workload.hopes
            hopeless = not hopes or cheapest_hoped(question.workload) > question.budget
    except BoaError as problem:
        error = str(problem)
    except Exception as problem:  # a bug in the solver must not end its process
        error = bug_words(problem)
    return PlanAnswer(
        number=question.number,
        solution=solution,
        too_small=needed,
        hopeless=hopeless,
        trials=trials,
        waited=waited,
        error=error,
        wall_s=time.perf_counter() - began,
    )


def _planned(question: PlanQuestion) -> tuple[Solution, UsdPerHour | None]:
    if question.sharing is None:
        return within_reach(question.workload, question.budget)
    return within_shares(question.workload, question.sharing)


def _tried(question: PlanQuestion, solution: Solution) -> tuple[Solution, Trials]:
    if question.sharing is None:
        return with_trials(solution)
    return with_shared_trials(solution, question.workload, question.sharing)


class InlineCalculator:
    """Solves when it is asked: for tests, whose time stands still meanwhile."""

    def __init__(self) -> None:
        self._answer: PlanAnswer | None = None

    @property
    def busy(self) -> bool:
        return self._answer is not None

    def request(self, question: PlanQuestion) -> None:
        self._answer = solved(question)

    def poll(self) -> PlanAnswer | None:
        answer, self._answer = self._answer, None
        return answer

    def close(self) -> None:
        self._answer = None


def bug_words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
