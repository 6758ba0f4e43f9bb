"""Policies made from their names and knobs; `boa.model.policies` has the facts of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from boa.errors import InputError, UsageError
from boa.model.cluster import Policy
from boa.model.policies import (
    KNOB_NAMES,
    POLICIES,
    ROUND_S,
    Knob,
    Learning,
    PolicyFacts,
    flag_of,
    live_policies,
)
from boa.model.workload import Billing
from boa.policy.boa import Boa
from boa.policy.fixed import Fixed
from boa.policy.market.policy import Market
from boa.policy.rivals.allox import AlloX
from boa.policy.rivals.deadlines import ByDeadline, RubberBand
from boa.policy.rivals.efficient import Efficiency
from boa.policy.rivals.gavel import Gavel
from boa.policy.rivals.hesrpt import HeSrpt
from boa.policy.rivals.optimus import Optimus
from boa.policy.rivals.pollux import Pollux
from boa.policy.rivals.pollux_autoscale import PolluxAutoscale
from boa.policy.rivals.qssf import Qssf
from boa.policy.rivals.reservation import Reservation
from boa.policy.rivals.rubick import Rubick
from boa.policy.rivals.rubick_autoscale import RubickAutoscale
from boa.policy.rivals.shockwave import Shockwave
from boa.policy.rivals.sia import Sia
from boa.policy.rivals.sia_autoscale import SiaAutoscale
from boa.policy.rivals.time_shares import fair_finish, max_min, max_sum
from boa.policy.rivals.tiresias import Tiresias
from boa.policy.rivals.weighing import optimus_price, scavenger
from boa.units import GpuName, UsdPerHour

__all__ = [
    "POLICIES",
    "ROUND_S",
    "Choice",
    "Knob",
    "Knobs",
    "Learning",
    "PolicyFacts",
    "choose",
    "live_policies",
]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    budget: UsdPerHour | None = None
    target: float | None = None
    nodes: Mapping[GpuName, int] | None = None
    width: int | None = None
    knob: float | None = None
    symmetric: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A policy, with the habits of the system it comes from."""

    policy: Policy
    budget: UsdPerHour | None = None
    """Budget that plans are made with, for a policy that follows one."""
    like_sia: bool = False
    own_batch: bool = False
    """Both as in `PolicyFacts`."""


_MAKERS: Mapping[str, Callable[[Knobs], Policy]] = {
    "boa": lambda k: Boa(),
    "fixed": lambda k: Fixed(_given(k.width)),
    "pollux": lambda k: Pollux(k.seed),
    "pollux-autoscale": lambda k: PolluxAutoscale(_given(k.target), k.seed),
    "sia": lambda k: Sia(),
    "sia-autoscale": lambda k: SiaAutoscale(_given(k.target)),
    "rubick": lambda k: Rubick(),
    "rubick-autoscale": lambda k: RubickAutoscale(_given(k.target)),
    "rubick-autoscale-by-base": lambda k: RubickAutoscale(_given(k.target), by_base=True),
    "rubick-autoscale-queueing": lambda k: RubickAutoscale(_given(k.target), queueing=True),
    "reservation": lambda k: Reservation(fixed=k.nodes is not None),
    "tiresias": lambda k: Tiresias(),
    "optimus": lambda k: Optimus(),
    "gavel": lambda k: Gavel("gavel", max_sum, k.symmetric),
    "gavel-maxmin": lambda k: Gavel("gavel-maxmin", max_min, k.symmetric),
    "themis": lambda k: Gavel("themis", fair_finish, k.symmetric),
    "optimus-goodput": lambda k: Optimus(goodput=True),
    "optimus-price": lambda k: optimus_price(_given(k.knob)),
    "efficiency": lambda k: Efficiency(_given(k.target)),
    "scavenger": lambda k: scavenger(_given(k.knob)),
    "elasticflow": lambda k: ByDeadline(_given(k.knob), "elasticflow"),
    "rubberband": lambda k: RubberBand(_given(k.knob)),
    "gavel-cost": lambda k: ByDeadline(_given(k.knob), "gavel-cost"),
    "hesrpt": lambda k: HeSrpt(),
    "qssf": lambda k: Qssf(),
    "allox": lambda k: AlloX(),
    "shockwave": lambda k: Shockwave(),
}
assert _MAKERS.keys() == POLICIES.keys(), _MAKERS.keys() ^ POLICIES.keys()


def choose(name: str, knobs: Knobs, billing: Billing = "gpu") -> Choice:
    """The policy of this name; an error names what is missing or has no place."""
    facts = POLICIES.get(name)
    if facts is None:
        raise InputError("--policy", name, f"one of {', '.join(POLICIES)}")
    for knob in KNOB_NAMES:
        value = getattr(knobs, knob)
        if knob == facts.knob and value is None:
            raise UsageError(f"--policy {name} needs {flag_of(knob)}")
        if value is not None and knob != facts.knob and knob not in facts.also:
            takes = flag_of(facts.knob) if facts.knob else "none of these"
            raise UsageError(f"--policy {name} does not take {flag_of(knob)} (it takes {takes})")
    if knobs.symmetric and not facts.takes_turns:
        names = ", ".join(name for name, known in POLICIES.items() if known.takes_turns)
        raise UsageError(f"--symmetric is for {names}, not for --policy {name}")
    if knobs.knob is not None and not 0 < knobs.knob <= facts.knob_most:
        expected = f"a number above 0, at most {facts.knob_most:g}: {facts.knob_means}"
        raise InputError("--knob", knobs.knob, expected)
    policy = Market() if name == "boa" and billing == "node" else _MAKERS[name](knobs)
    return Choice(
        policy=policy, budget=knobs.budget, like_sia=facts.like_sia, own_batch=facts.own_batch
    )


def _given(value: _T | None) -> _T:
    assert value is not None
    return value
