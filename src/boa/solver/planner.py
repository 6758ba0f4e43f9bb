"""From a workload and a budget to a plan: the door to every solver."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from boa.errors import BoaError, BudgetTooSmall, InputError, NoSinglePlan, UsageError
from boa.model.budgets import Budget
from boa.model.plan import Plan
from boa.model.workload import BILLINGS, Billing, Workload
from boa.solver.assemble import plan_of
from boa.solver.lagrangian import Optimum, cheapest, known_walk, solve_budget, solve_jct
from boa.solver.objective import Outcome, Routing, Rules
from boa.solver.objective import evaluate as evaluate_under
from boa.solver.pricing import Pricing
from boa.solver.shared import BudgetOutcome, SharedOptimum, solve_shared
from boa.solver.solution import Frugal, Solution
from boa.solver.tables import Tables
from boa.solver.walk import Stop
from boa.units import Seconds, UsdPerHour

if TYPE_CHECKING:
    from boa.solver.frontier import Frontier, Progress

SOLVERS = ("exact", "glue", "milp")
ROUTINGS = ("class", "epoch", "migrate")
_PROVEN = 1e-6
"""The gap, relative, up to which arithmetic alone may keep a plan from its bound."""
_OVERSPENT = 1e-6
"""No plan leaves this module that spends so much more than its budget."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A solver's answer: a plan, a bound on its objective, and whether nothing can beat it."""

    plan: Plan
    lower_bound: Seconds
    proven: bool


@dataclass(frozen=True, slots=True)
class _Task:
    """A solver's task: the problem, its bound, and how hard to try."""

    pricing: Pricing
    budget: UsdPerHour
    bound: Optimum
    deterministic: bool
    gap: float | None
    seed: int
    time_limit_s: Seconds | None


def plan(
    workload: Workload,
    budget: UsdPerHour,
    *,
    solver: str = "exact",
    deterministic: bool = False,
    rescaling: bool = True,
    routing: Routing = "class",
    billing: Billing = "gpu",
    gap: float | None = None,
    seed: int = 0,
    time_limit_s: Seconds | None = None,
) -> Solution:
    """The plan of least (weighted) average JCT that spends at most `budget` per hour.

    `solver` is "exact" (default), "glue" (the paper's Algorithm 1) or "milp" (HiGHS, a check).
    By default a class may split its jobs between two width sequences; `deterministic` gives each
    class one. `gap` is the relative gap to the bound at which a search may stop.
    """
    rules = rules_of(rescaling=rescaling, routing=routing, billing=billing)
    _check(budget, solver, gap)
    began = time.perf_counter()
    pricing = Pricing.of(workload, rules)
    bound = solve_budget(pricing, budget)
    task = _Task(pricing, budget, bound, deterministic, gap, seed, time_limit_s)
    answer = _SOLVERS[solver](task)
    return _solution(pricing, budget, bound, answer, solver, time.perf_counter() - began)


def plan_shared(
    workload: Workload,
    budget: Budget,
    *,
    solver: str = "exact",
    rescaling: bool = True,
    routing: Routing = "class",
    billing: Billing = "gpu",
) -> Solution:
    """The plan of least (weighted) average JCT within a budget that teams share.

    Every part of the budget gets what it has by right, as far as it wants it, and never more than
    its ceiling. The plan says what each spends, and what a dollar would buy it.
    """
    if solver not in ("exact", "milp"):
        raise InputError("solver", solver, "exact or milp, where a budget is shared")
    _check(budget.per_hour, solver, None)
    began = time.perf_counter()
    pricing = Pricing.of(workload, rules_of(rescaling=rescaling, routing=routing, billing=billing))
    found = solve_shared(pricing, budget)
    answer = Answer(plan_of(pricing.tables, found.points), found.lower_bound, True)
    if solver == "milp":
        answer = _milp_shared(pricing, budget, found)
    bound = replace(_as_optimum(pricing, found), lower_bound=answer.lower_bound)
    took = time.perf_counter() - began
    solution = _solution(pricing, budget.per_hour, bound, answer, solver, took)
    budgets = tuple(replace(b, alone_jct=_alone(pricing.tables, b)) for b in found.budgets)
    return replace(solution, budgets=budgets, multipliers=found.multipliers)


def budget_for(
    workload: Workload,
    jct: Seconds,
    *,
    rescaling: bool = True,
    routing: Routing = "class",
    billing: Billing = "gpu",
) -> Solution:
    """The plan of least spend whose average JCT is at most `jct`.

    An average over jobs, as asked: the classes' weights play no part in it.
    """
    if not (math.isfinite(jct) and jct > 0):
        raise InputError("jct", jct, "a finite number of seconds > 0")
    began = time.perf_counter()
    plain = replace(workload, classes=tuple(replace(c, weight=1.0) for c in workload.classes))
    pricing = Pricing.of(plain, rules_of(rescaling=rescaling, routing=routing, billing=billing))
    found = solve_jct(pricing, jct)
    answer = Answer(plan_of(pricing.tables, found.stop.points), found.lower_bound, True)
    spent = found.totals.spend
    return _solution(pricing, spent, found, answer, "exact", time.perf_counter() - began)


def frontier(
    workload: Workload,
    *,
    rescaling: bool = True,
    routing: Routing = "class",
    billing: Billing = "gpu",
    progress: "Progress | None" = None,
) -> "Frontier":
    """The best average JCT for every budget, exact at every breakpoint."""
    from boa.solver.frontier import sweep

    rules = rules_of(rescaling=rescaling, routing=routing, billing=billing)
    return sweep(workload, rules, progress)


def evaluate(
    workload: Workload,
    plan: Plan,
    *,
    rescaling: bool = True,
    billing: Billing = "gpu",
) -> Outcome:
    """JCT and spend of any plan for this workload, by the formulas of the theorems."""
    return evaluate_under(workload, plan, Rules(rescaling=rescaling, billing=billing))


def rules_of(*, rescaling: bool, routing: Routing, billing: Billing) -> Rules:
    if routing not in ROUTINGS:
        raise InputError("routing", routing, f"one of {', '.join(ROUTINGS)}")
    if billing not in BILLINGS:
        raise InputError("billing", billing, f"one of {', '.join(BILLINGS)}")
    if routing == "epoch" and rescaling:
        raise UsageError(
            "--routing epoch routes every epoch anew and only makes sense without rescaling "
            "times: add --no-rescaling, or use --routing migrate"
        )
    return Rules(rescaling=rescaling, routing=routing, billing=billing)


def _check(budget: UsdPerHour, solver: str, gap: float | None) -> None:
    if not (math.isfinite(budget) and budget > 0):
        raise InputError("budget", budget, "a finite number of USD per hour > 0")
    if solver not in SOLVERS:
        raise InputError("solver", solver, f"one of {', '.join(SOLVERS)}")
    if gap is not None and not 0 <= gap < math.inf:
        raise InputError("gap", gap, "a finite number >= 0, such as 0.05")


def _solution(
    pricing: Pricing,
    budget: UsdPerHour,
    bound: Optimum,
    answer: Answer,
    solver: str,
    solve_time: Seconds,
) -> Solution:
    workload, rules = pricing.tables.workload, pricing.tables.rules
    outcome = evaluate_under(workload, answer.plan, rules)
    if outcome.spend > budget * (1 + _OVERSPENT):
        raise BoaError(
            f"the plan found would spend {outcome.spend:.9g} of {budget:.9g} per hour: "
            "this is a bug, please report it with the workload"
        )
    least = [chain.points()[-1] for chain in pricing.chains]
    return Solution(
        workload=workload,
        plan=answer.plan,
        rules=rules,
        solver=solver,
        budget=budget,
        outcome=outcome,
        lower_bound=min(answer.lower_bound, outcome.objective),
        shadow_price=bound.multiplier,
        proven=answer.proven,
        solve_time=solve_time,
        frugal=tuple(Frugal(jct=point.time, cost=point.cost) for point in least),
        cheapest=cheapest(pricing).spend,
    )


def _as_optimum(pricing: Pricing, found: SharedOptimum) -> Optimum:
    mu = found.budgets[0].multiplier
    return Optimum(
        Stop(found.points, mu), known_walk(pricing).totals(found.points), found.lower_bound, mu
    )


def _alone(tables: Tables, budget: BudgetOutcome) -> Seconds | None:
    """Average JCT of those whom the budget pays for, on a cluster that its share alone pays for."""
    classes = tuple(tables.workload.classes[i] for i in budget.classes)
    if not any(found.arrivals_per_hour for found in classes):
        return None
    pricing = Pricing.of(replace(tables.workload, classes=classes), tables.rules)
    try:
        return solve_budget(pricing, budget.per_hour).totals.average_jct
    except BudgetTooSmall:
        return None


def _milp_shared(pricing: Pricing, budget: Budget, found: SharedOptimum) -> Answer:
    from boa.solver.milp import SpendBound, solve_milp

    bounds = [SpendBound(part.classes, part.least, part.most) for part in found.budgets]
    checked = solve_milp(pricing.tables, budget.per_hour, bounds=bounds)
    assert checked is not None  # mixed, so that there is a plan where the exact solver found one
    return Answer(checked.plan, checked.lower_bound or found.lower_bound, checked.proven)


def _exact(task: _Task) -> Answer:
    if not task.deterministic:
        bound, reached = task.bound.lower_bound, task.bound.totals.objective
        plan = plan_of(task.pricing.tables, task.bound.stop.points)
        return Answer(plan, bound, reached <= bound * (1 + _PROVEN))
    from boa.solver.integral import solve_integral

    found = solve_integral(task.pricing, task.budget, task.bound, task.gap or 0.0)
    return Answer(found.plan, task.bound.lower_bound, found.proven)


def _glue(task: _Task) -> Answer:
    from boa.solver.glue import solve_glue

    plan = solve_glue(task.pricing.tables, task.budget, task.seed)
    return Answer(plan, task.bound.lower_bound, False)


def _milp(task: _Task) -> Answer:
    from boa.solver.integral import enough_for_one
    from boa.solver.milp import solve_milp

    found = solve_milp(
        task.pricing.tables, task.budget, task.deterministic, task.gap, task.time_limit_s
    )
    if found is None:
        raise NoSinglePlan(task.budget, enough_for_one(task.pricing))
    known = found.lower_bound > 0.0  # HiGHS may stop before it has any bound
    bound = found.lower_bound if known else task.bound.lower_bound
    return Answer(found.plan, bound, found.proven)


_SOLVERS: dict[str, Callable[[_Task], Answer]] = {"exact": _exact, "glue": _glue, "milp": _milp}
