"""Many runs side by side: every rival against BOA at the same average spend, or the same bill.

Where the budget counts GPUs, points are held against each other at the same spend of jobs; where it
counts whole nodes, at the same bill. What a policy leaves empty or boots in vain costs it nothing
by the first measure, and what it costs by the second.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boa.errors import BoaError
from boa.model.workload import Billing
from boa.sim.bound import bound_jct
from boa.sim.equal_money import AtMoney, value_at
from boa.sim.run import World
from boa.sim.sweep import PointOutcome
from boa.units import Seconds, UsdPerHour


class NoPoint(BoaError):
    """Not one point could be simulated: the reason of the first."""

    def __init__(self, left_out: Sequence[PointOutcome]) -> None:
        self.exit_code = left_out[0].exit_code
        super().__init__(left_out[0].problem)


def compared(
    world: World, outcomes: Sequence[PointOutcome], billing: Billing = "gpu"
) -> tuple[dict[str, Any], list[PointOutcome]]:
    """The JSON document of `boa compare`, and the points that came to nothing."""
    points = [outcome.document for outcome in outcomes if outcome.document]
    left_out = [outcome for outcome in outcomes if not outcome.document]
    if not points:
        raise NoPoint(left_out)
    return {
        "points": points,
        "billing": billing,
        "comparisons": comparisons(
            points,
            counts_gpus=counts_gpus(world),
            billing=billing,
            bound=lambda money: bound_jct(world, money),
        ),
        "left_out": [{**o.point.document(), "why": o.problem} for o in left_out],
    }, left_out


def counts_gpus(world: World) -> bool:
    """Whether every GPU costs 1, so that money is a number of GPUs."""
    return all(gpu.price == 1.0 for gpu in world.gpu_types.values())


def money_key(billing: Billing) -> str:
    """Figure of a point at which it is held against others."""
    return "bill_per_hour" if billing == "node" else "spend_per_hour"


def comparisons(
    points: Sequence[Mapping[str, Any]],
    *,
    counts_gpus: bool,
    billing: Billing = "gpu",
    bound: Callable[[UsdPerHour], Seconds | None] = lambda money: None,
) -> list[dict[str, Any]]:
    """Every rival's JCTs over BOA's for the same money, where BOA has been that far.

    `bound`: the least average JCT for any money, along which BOA's points are joined.
    """
    key = money_key(billing)
    boa = [(point, bound(point[key])) for point in points if point["policy"] == "boa"]
    found = []
    for rival in points:
        if rival["policy"] == "boa":
            continue
        at, least = rival[key], bound(rival[key])
        jct, p95 = (
            value_at((AtMoney(p[key], p[figure], b) for p, b in boa), at, least)
            for figure in ("average_jct_s", "p95_jct_s")
        )
        if jct is None or p95 is None:
            continue
        found.append(
            {
                **{name: rival[name] for name in ("policy", "knob", "value")},
                "at_gpus" if counts_gpus else "at_spend_per_hour": at,
                "jct_ratio": rival["average_jct_s"] / jct,
                "p95_ratio": rival["p95_jct_s"] / p95,
                "boa_jct_s": jct,
                "boa_p95_jct_s": p95,
            }
        )
    return found
