"""The bound that a simulation is held against: JCT of the exact plan for the money it was billed.

By the GPU, without boots, under perfect knowledge of the trace's own workload. A cloud that bills
whole nodes from request to gone leaves nobody below it, but for the luck of a short trace. Where
the bill does not pay for a node at all times, some jobs find none and wait for a boot.
"""

from boa.errors import BudgetTooSmall
from boa.model.workload import cheapest_node
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


def bound_with_boots(world: World, bill: UsdPerHour, boot_s: Seconds) -> Seconds | None:
    """The bound for whoever does not know arrivals in advance, if these are Poisson.

    A bill below the price of one node leaves at least 1 - bill ÷ price of the time without any;
    jobs arrive then as at any other time, and wait for a boot (docs/concepts/bill.md).
    """
    bound = bound_jct(world, bill)
    if bound is None:
        return None
    node = cheapest_node(world.gpu_types.values())
    return bound + boot_s * max(0.0, 1.0 - bill / node)
