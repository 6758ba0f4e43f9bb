"""Which policies there are, what each needs to be told, and how each runs by default."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from boa.errors import InputError, UsageError
from boa.model.cluster import Policy
from boa.policy.boa import Boa
from boa.policy.fixed import Fixed
from boa.policy.rivals.pollux import Pollux
from boa.policy.rivals.pollux_autoscale import PolluxAutoscale
from boa.policy.rivals.reservation import Reservation
from boa.policy.rivals.rubick import Rubick
from boa.policy.rivals.rubick_autoscale import RubickAutoscale
from boa.policy.rivals.sia import Sia
from boa.policy.rivals.sia_autoscale import SiaAutoscale
from boa.policy.rivals.tiresias import Tiresias
from boa.units import GpuName, Seconds, UsdPerHour

_T = TypeVar("_T")

Learning: TypeAlias = Literal["class", "job", "perfect", "service"]
"""Jobs of a class share what they learn; each learns alone; all know the truth; the service's own
profiler learns from what they report."""
ROUND_S: Seconds = 60.0

Knob: TypeAlias = Literal["budget", "target", "nodes", "width"]
"""What has to be said beside the name: a budget, an efficiency, a cluster, a width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    budget: UsdPerHour | None = None
    target: float | None = None
    nodes: Mapping[GpuName, int] | None = None
    width: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A policy, with the habits of the system it comes from."""

    policy: Policy
    budget: UsdPerHour | None = None
    """What plans are made with, for a policy that follows one."""
    like_sia: bool = False
    """Jobs that learn alone start with one GPU of every type profiled, and predict no batch size
    above the one that their user asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One of the policies that can be asked for."""

    make: Callable[[Knobs], Policy]
    knob: Knob | None
    interval_s: Seconds | None = ROUND_S
    learning: Learning = "class"
    like_sia: bool = False
    also: tuple[Knob, ...] = ()
    """Knobs that it understands but does not need."""


POLICIES: Mapping[str, Known] = {
    "boa": Known(make=lambda k: Boa(), knob="budget", interval_s=None),
    "fixed": Known(make=lambda k: Fixed(_given(k.width)), knob="width", learning="job"),
    "pollux": Known(make=lambda k: Pollux(k.seed), knob="nodes", learning="job"),
    "pollux-autoscale": Known(
        make=lambda k: PolluxAutoscale(_given(k.target), k.seed), knob="target"
    ),
    "sia": Known(make=lambda k: Sia(), knob="nodes", learning="job", like_sia=True),
    "sia-autoscale": Known(
        make=lambda k: SiaAutoscale(_given(k.target)), knob="target", like_sia=True
    ),
    "rubick": Known(make=lambda k: Rubick(), knob="nodes"),
    "rubick-autoscale": Known(make=lambda k: RubickAutoscale(_given(k.target)), knob="target"),
    "rubick-autoscale-by-base": Known(
        make=lambda k: RubickAutoscale(_given(k.target), by_base=True), knob="target"
    ),
    "rubick-autoscale-queueing": Known(
        make=lambda k: RubickAutoscale(_given(k.target), queueing=True), knob="target"
    ),
    "reservation": Known(
        make=lambda k: Reservation(fixed=k.nodes is not None), knob=None, also=("nodes",)
    ),
    "tiresias": Known(make=lambda k: Tiresias(), knob="nodes"),
}

_FLAGS: Mapping[Knob, str] = {
    "budget": "--budget",
    "target": "--target-efficiency",
    "nodes": "--nodes",
    "width": "--width",
}


def choose(name: str, knobs: Knobs) -> Choice:
    """The policy of this name; an error names what is missing or has no place."""
    known = POLICIES.get(name)
    if known is None:
        raise InputError("--policy", name, f"one of {', '.join(POLICIES)}")
    for knob, flag in _FLAGS.items():
        value = getattr(knobs, knob)
        if knob == known.knob and value is None:
            raise UsageError(f"--policy {name} needs {flag}")
        if value is not None and knob != known.knob and knob not in known.also:
            takes = _FLAGS[known.knob] if known.knob else "neither"
            raise UsageError(f"--policy {name} does not take {flag} (it takes {takes})")
    return Choice(policy=known.make(knobs), budget=knobs.budget, like_sia=known.like_sia)


def _given(value: _T | None) -> _T:
    assert value is not None
    return value
