"""The bound that a simulation is held against: JCT of the exact plan for the money it was billed.

By the GPU, without boots, under perfect knowledge of the trace's own workload. A cloud that bills
whole nodes from request to gone leaves nobody below it, but for the luck of a short trace.
"""

from boa.errors import BudgetTooSmall
from boa.sim.run import World
from boa.solver.planner import plan
from boa.units import Seconds, UsdPerHour


def bound_jct(world: World, bill: UsdPerHour) -> Seconds | None:
    """None below the cheapest plan, and where arrivals have no rates: all jobs come at time 0."""
    if world.trace.span_s <= 0 or bill <= 0:
        return None
    try:
        return plan(world.workload, bill).average_jct
    except BudgetTooSmall:
        return None
