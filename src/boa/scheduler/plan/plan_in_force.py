"""The plan that jobs are given GPUs by, with what it was made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from boa.model.workload import Workload
from boa.solver.solution import Solution
from boa.units import Seconds, UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanState:
    """The plan in force."""

    number: int
    at: Seconds
    solution: Solution
    workload: Workload
    wall_s: float
    """How long the solver took, of the wall."""
    too_small: UsdPerHour | None = None
    """Where the budget cannot keep up: the least that could."""
    hopeless: bool = False
    """Nor could the budget keep up if all that is uncertain turned out well."""
    prices: Mapping[str, float] | None = None
    """ρ in every period of the calendar, by its name; None: nobody was to wait for any."""
    units: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Units of progress of every epoch, by class, as they were known when it was asked for."""
