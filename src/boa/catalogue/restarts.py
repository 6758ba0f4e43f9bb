"""Seconds that a rescaling takes, by the bytes of a training's state: measured by us, on one H200.

For planning with what a restart takes here instead of what the authors of a trace assume: a class's
`rescale_s` in a workload file. A service measures its own classes.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

from boa.errors import InputError
from boa.units import Seconds

Way: TypeAlias = Literal["memory", "disk"]
"""The way of the state from one run to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRestart:
    """One model's, from the call of stop to the end of the next run's first step."""

    model: str
    state_bytes: float
    parts: Mapping[str, Seconds]
    """Seconds by part; `stop` and `load` grow with the state."""
    seconds: Seconds


def measured_restarts(way: Way) -> tuple[MeasuredRestart, ...]:
    """By rising bytes of state."""
    return tuple(
        MeasuredRestart(
            model=row["model"],
            state_bytes=row["gigabytes"] * 1e9,
            parts=row["parts"],
            seconds=row["all"],
        )
        for row in _document()["through"][way]
    )


def restart_s(state_bytes: float, way: Way) -> Seconds:
    """Seconds of a rescaling with so many bytes of state on a GPU.

    Straight lines between what was measured. A smaller state is taken for the smallest (2 GB); a
    larger one goes on at the pace of the last two.
    """
    if not (math.isfinite(state_bytes) and state_bytes >= 0):
        raise InputError("state_bytes", state_bytes, "a finite number >= 0")
    if way not in get_args(Way):
        raise InputError("way", way, f"one of {', '.join(get_args(Way))}")
    found = measured_restarts(way)
    size = max(state_bytes, found[0].state_bytes)
    steps = list(pairwise(found))
    low, high = next((step for step in steps if size <= step[1].state_bytes), steps[-1])
    pace = (high.seconds - low.seconds) / (high.state_bytes - low.state_bytes)
    return low.seconds + (size - low.state_bytes) * pace


def rubick_state_bytes(application: str, gpus: int = 1) -> float:
    """Bytes of the state (weights, and moments as they were measured with: 16 bytes to a parameter)
    of a model of Rubick's on each of the GPUs that it is spread over."""
    document = _document()
    parameters = document["parameters"]["models"]
    if application not in parameters:
        raise InputError("application", application, f"one of {', '.join(parameters)}")
    return float(parameters[application] * document["bytes_per_parameter"] / gpus)


@cache
def _document() -> dict[str, Any]:
    text = resources.files("boa.catalogue").joinpath("restarts.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
