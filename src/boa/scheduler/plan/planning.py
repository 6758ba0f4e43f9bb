"""The plan in force: asked for in the background, taken over when it comes."""

from collections.abc import Mapping
from typing import Any

from boa.backoff import doubled
from boa.model.workload import Workload
from boa.policy.boa import planned_of
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.plan.calculator import QUIET_S, Calculator, PlanAnswer, PlanQuestion, due
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.state import Draft
from boa.solver.solution import as_document
from boa.units import Seconds, UsdPerHour

NO_VERSION = -1
"""Of a workload: none that there ever was."""


class Planner:
    """Keeps a plan up to date for policies that follow one."""

    def __init__(self, calculator: Calculator, profiler: Profiler, replan_s: Seconds) -> None:
        self._calculator, self._profiler, self._replan_s = calculator, profiler, replan_s
        self.plan: PlanState | None = None
        self.memory: Any = None
        """The plan as the policy remembers it."""
        self._asked: tuple[int, Seconds, int, UsdPerHour, Workload | None] = (
            0,
            0.0,
            NO_VERSION,
            0.0,
            None,
        )
        self._units: Mapping[str, tuple[float, ...]] = {}
        """Of every epoch, by class, as they were when it was asked."""
        self._failures = 0
        """Answers since the last plan, all of them errors."""

    def close(self) -> None:
        self._calculator.close()

    @property
    def thinking(self) -> bool:
        """Whether a plan is on its way."""
        return self._calculator.busy

    def hurry(self) -> None:
        """Plan anew as soon as may be: somebody has set the budget."""
        number, at, _, budget, workload = self._asked
        self._asked = (number, at, NO_VERSION, budget, workload)

    def step(self, draft: Draft, budget: UsdPerHour) -> bool:
        """Whether a new plan is in force."""
        answer = self._calculator.poll()
        fresh = answer is not None and self._take(draft, answer)
        if not self._calculator.busy:
            self._ask(draft, budget)
        return fresh

    def _ask(self, draft: Draft, budget: UsdPerHour) -> None:
        number, at, version, before, _ = self._asked
        last = at if number else None
        failed = self._failures
        again_s = doubled(QUIET_S, failed, self._replan_s) if failed else self._replan_s
        why = due(draft.now, last, version, self._profiler.version, before, budget, again_s)
        if not why and not (self._profiler.version != version and self._newcomers(draft)):
            return
        active = {job.job_class for job in draft.jobs.values()}
        workload = self._profiler.workload(draft.now, active)
        if workload is None:
            return
        self._asked = (number + 1, draft.now, self._profiler.version, budget, workload)
        self._units = {found.name: self._profiler.units(found.name) for found in workload.classes}
        self._calculator.request(PlanQuestion(workload, budget, number + 1))

    def _newcomers(self, draft: Draft) -> bool:
        """Whether a job waits for a plan that knows its class: that cannot wait any longer."""
        planned = {} if self.memory is None else self.memory.by_class
        jobs = draft.jobs.values()
        return any(job.share is None and job.job_class not in planned for job in jobs)

    def _take(self, draft: Draft, answer: PlanAnswer) -> bool:
        number, _, version, _, workload = self._asked
        if answer.solution is None or workload is None:
            draft.tell("trouble", f"no plan could be made: {answer.error}")
            self._failed(draft.now)
            return False
        self._failures, solution = 0, answer.solution
        self.plan = PlanState(
            number=number,
            at=draft.now,
            solution=solution,
            workload=workload,
            wall_s=answer.wall_s,
            too_small=answer.too_small,
            units=self._units,
        )
        self.memory = planned_of(solution, version, draft.now, number)
        draft.count(plans=1)
        draft.put_meta("plan", {"at": draft.now, "number": number, **as_document(solution)})
        draft.tell("planned", self._said(), number=number, gap=solution.gap)
        return True

    def _failed(self, now: Seconds) -> None:
        """What was wrong may pass, so ask again soon; if it does not, ever more seldom."""
        self._failures += 1
        number, _, version, budget, workload = self._asked
        self._asked = (number, now, version, budget, workload)

    def _said(self) -> str:
        plan = self.plan
        assert plan is not None
        found = plan.solution
        best = "proven best" if found.gap < 1e-4 else f"at most {found.gap:.2%} above the best"
        text = (
            f"plan {plan.number}: jobs take {found.average_jct:,.0f} s on average, for "
            f"${found.spend:.4g}/h ({best}; solved in {plan.wall_s * 1000:.0f} ms)"
        )
        if plan.too_small is None:
            return text
        return f"{text}; the budget cannot keep up: the cheapest plan needs ${plan.too_small:.4g}/h"
