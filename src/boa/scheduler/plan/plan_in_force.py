"""The plan that jobs are given GPUs by, with what it was made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from boa.model.workload import Workload
from boa.scheduler.plan.week import Waited
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
    waited: Waited | None = None
    """Outcome of waiting for other hours of a calendar; None: nobody was to."""
    units: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Units of progress of every epoch, by class, as they were known when it was asked for."""

    @property
    def cheapest(self) -> UsdPerHour:
        """The least that keeps up with the jobs, those that wait for other hours included."""
        waited = self.waited
        if waited is None or waited.cheapest is None:
            return self.solution.cheapest
        return waited.cheapest
