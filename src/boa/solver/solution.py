"""A plan with its proof: what it does, what bounds it, and what one more dollar would buy."""

from dataclasses import dataclass
from typing import Final

from boa.api import plans as answers
from boa.model.plan import ClassPlan, Plan, Variant
from boa.model.workload import Workload
from boa.solver.cluster import ClusterSize, cluster_sizes
from boa.solver.objective import ClassOutcome, Outcome, Rules
from boa.solver.shared import BudgetOutcome
from boa.units import GpuName, Seconds, Usd, UsdPerHour

VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Frugal:
    """The cheapest that a class could run, to hold its plan against."""

    jct: Seconds
    cost: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    workload: Workload
    plan: Plan
    rules: Rules
    solver: str
    budget: UsdPerHour
    outcome: Outcome
    lower_bound: Seconds
    """No plan of any kind under these rules and this budget has a smaller objective."""
    shadow_price: float
    """Seconds of objective that one more dollar per hour buys: −d objective / d budget."""
    proven: bool
    """Whether the plan is proven optimal among the plans that the solver may choose from."""
    solve_time: Seconds
    frugal: tuple[Frugal, ...]
    cheapest: UsdPerHour
    """The least spend that keeps up with the workload."""
    budgets: tuple[BudgetOutcome, ...] = ()
    """Where teams share the budget: all of its parts, from the top down."""
    multipliers: tuple[float, ...] = ()
    """… and by class: seconds of objective that a dollar per hour of whoever pays for it buys."""

    @property
    def objective(self) -> Seconds:
        return self.outcome.objective

    @property
    def spend(self) -> UsdPerHour:
        return self.outcome.spend

    @property
    def average_jct(self) -> Seconds:
        return self.outcome.average_jct

    @property
    def gap(self) -> float:
        return self.objective / self.lower_bound - 1.0

    @property
    def cluster(self) -> dict[GpuName, ClusterSize]:
        """GPUs in use per type, if jobs arrive as a Poisson process."""
        return cluster_sizes(self.workload, self.plan, self.rules)

    @property
    def left_over(self) -> UsdPerHour:
        """Budget that even the fastest plan has no use for."""
        return max(0.0, self.budget - self.spend)


def as_document(solution: Solution) -> answers.Plan:
    """The plan file: one JSON object."""
    outcome = solution.outcome
    document: answers.Plan = {
        "version": VERSION,
        "solver": solution.solver,
        "rescaling": solution.rules.rescaling,
        "routing": solution.rules.routing,
        "billing": solution.rules.billing,
        "budget_per_hour": solution.budget,
        "spend_per_hour": outcome.spend,
        "average_jct_s": outcome.average_jct,
        "objective_s": outcome.objective,
        "lower_bound_s": solution.lower_bound,
        "gap": solution.gap,
        "proven_optimal": solution.proven,
        "shadow_price_s": solution.shadow_price,
        "cheapest_per_hour": solution.cheapest,
        "solve_time_s": solution.solve_time,
        "cluster": {
            name: {"mean": size.mean, "std": size.std, "p95": size.p95}
            for name, size in solution.cluster.items()
        },
        "classes": [
            _class_document(plan, got, frugal, solution.rules)
            for plan, got, frugal in zip(
                solution.plan.classes, outcome.classes, solution.frugal, strict=True
            )
        ],
    }
    if solution.budgets:
        document["budgets"] = [_budget_document(budget) for budget in solution.budgets]
    return document


def _budget_document(budget: BudgetOutcome) -> answers.PlanBudget:
    return {
        "name": budget.name,
        "above": budget.above,
        "budget_per_hour": budget.per_hour,
        "max_per_hour": budget.max_per_hour,
        "spend_per_hour": budget.spend,
        "wanted_per_hour": budget.wanted,
        "average_jct_s": budget.average_jct,
        "alone_jct_s": budget.alone_jct,
        "shadow_price_s": budget.saved_by_one_more,
    }


def _class_document(
    plan: ClassPlan, got: ClassOutcome, frugal: Frugal, rules: Rules
) -> answers.PlanClass:
    document: answers.PlanClass = {
        "name": got.name,
        "average_jct_s": got.jct,
        "spend_per_hour": got.spend,
        "cost_per_job": got.cost,
        "rescalings": got.rescalings,
        "cheapest_jct_s": frugal.jct,
        "cheapest_cost_per_job": frugal.cost,
    }
    if plan.routes:
        document["epochs"] = [
            [{"share": r.share, "gpu_type": r.gpu_type, "width": r.width} for r in routes]
            for routes in plan.routes
        ]
    else:
        document["variants"] = [_variant_document(variant, rules) for variant in plan.variants]
    return document


def _variant_document(variant: Variant, rules: Rules) -> answers.PlanVariant:
    share, widths = variant.share, list(variant.widths)
    if rules.routing == "migrate":
        return {"share": share, "gpu_types": list(variant.gpu_types), "widths": widths}
    return {"share": share, "gpu_type": variant.gpu_types[0], "widths": widths}
