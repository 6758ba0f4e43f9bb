"""BOA Constrictor: the shortest average job completion time that a GPU budget can buy."""

from boa._version import __version__
from boa.errors import BoaError, BudgetTooSmall, InputError
from boa.model import Workload, dump_workload, load_workload, parse_workload
from boa.solver import Frontier, Outcome, Solution, budget_for, evaluate, frontier, plan

__all__ = [
    "BoaError",
    "BudgetTooSmall",
    "Frontier",
    "InputError",
    "Outcome",
    "Solution",
    "Workload",
    "__version__",
    "budget_for",
    "dump_workload",
    "evaluate",
    "frontier",
    "load_workload",
    "parse_workload",
    "plan",
]
