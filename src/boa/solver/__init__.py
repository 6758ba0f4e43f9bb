"""Budget-optimal plans: see README.md in this folder for the pipeline and its words."""

from boa.solver.convex import Fractional, fractional_optimum
from boa.solver.frontier import Frontier, FrontierPoint
from boa.solver.objective import ClassOutcome, Outcome, Rules
from boa.solver.planner import budget_for, evaluate, frontier, plan
from boa.solver.solution import Solution, as_document

__all__ = [
    "ClassOutcome",
    "Fractional",
    "Frontier",
    "FrontierPoint",
    "Outcome",
    "Rules",
    "Solution",
    "as_document",
    "budget_for",
    "evaluate",
    "fractional_optimum",
    "frontier",
    "plan",
]
