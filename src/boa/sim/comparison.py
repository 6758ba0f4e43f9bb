"""Many runs side by side: every rival against BOA at the same average spend."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from boa.errors import BoaError
from boa.sim.run import World
from boa.sim.sweep import PointOutcome


class NoPoint(BoaError):
    """Not one point could be simulated: the reason of the first."""

    def __init__(self, left_out: Sequence[PointOutcome]) -> None:
        self.exit_code = left_out[0].exit_code
        super().__init__(left_out[0].problem)


def compared(
    world: World, outcomes: Sequence[PointOutcome]
) -> tuple[dict[str, Any], list[PointOutcome]]:
    """The JSON document of `boa compare`, and the points that came to nothing."""
    points = [outcome.document for outcome in outcomes if outcome.document]
    left_out = [outcome for outcome in outcomes if not outcome.document]
    if not points:
        raise NoPoint(left_out)
    return {
        "points": points,
        "comparisons": comparisons(points, counts_gpus=counts_gpus(world)),
        "left_out": [{**o.point.document(), "why": o.problem} for o in left_out],
    }, left_out


def counts_gpus(world: World) -> bool:
    """Whether every GPU costs 1, so that money is a number of GPUs."""
    return all(gpu.price == 1.0 for gpu in world.gpu_types.values())


def comparisons(points: Sequence[Mapping[str, Any]], *, counts_gpus: bool) -> list[dict[str, Any]]:
    """Every rival's JCTs over BOA's at the same average spend, where BOA has been that far."""
    boa = sorted((p for p in points if p["policy"] == "boa"), key=lambda p: p["spend_per_hour"])
    spends = [p["spend_per_hour"] for p in boa]
    found = []
    for rival in points:
        at = rival["spend_per_hour"]
        if rival["policy"] == "boa" or not spends or not spends[0] <= at <= spends[-1]:
            continue
        jct, p95 = (
            float(np.interp(at, spends, [p[key] for p in boa]))
            for key in ("average_jct_s", "p95_jct_s")
        )
        found.append(
            {
                **{key: rival[key] for key in ("policy", "knob", "value")},
                "at_gpus" if counts_gpus else "at_spend_per_hour": at,
                "jct_ratio": rival["average_jct_s"] / jct,
                "p95_ratio": rival["p95_jct_s"] / p95,
                "boa_jct_s": jct,
                "boa_p95_jct_s": p95,
            }
        )
    return found
