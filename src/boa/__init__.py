"""BOA Constrictor: the shortest average job completion time that a GPU budget can buy.

Names are imported when they are first used: a training script that imports `boa.train` needs
nothing but the standard library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from boa._version import __version__

if TYPE_CHECKING:
    from boa.client import Client
    from boa.errors import BoaError, BudgetTooSmall, InputError
    from boa.formats.workload import dump_workload, load_workload, parse_workload
    from boa.model.workload import Workload
    from boa.solver.frontier import Frontier
    from boa.solver.objective import Outcome
    from boa.solver.planner import budget_for, evaluate, frontier, plan
    from boa.solver.solution import Solution

_HOMES = {
    "boa.client": ("Client",),
    "boa.errors": ("BoaError", "BudgetTooSmall", "InputError"),
    "boa.formats.workload": ("dump_workload", "load_workload", "parse_workload"),
    "boa.model.workload": ("Workload",),
    "boa.solver.frontier": ("Frontier",),
    "boa.solver.objective": ("Outcome",),
    "boa.solver.planner": ("budget_for", "evaluate", "frontier", "plan"),
    "boa.solver.solution": ("Solution",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BoaError",
    "BudgetTooSmall",
    "Client",
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


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'boa' has no attribute {name!r}")
    return getattr(import_module(home), name)
