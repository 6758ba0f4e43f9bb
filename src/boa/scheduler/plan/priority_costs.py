"""Costs of each priority that a job could have: to itself, and to all others. Pure.

A dollar that a job takes is one that others do not have, and at the plan's price of money it would
have saved them so many seconds. That is what the job costs them: nothing in the background, where
nothing is paid for it that is not paid anyway.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from boa.model.job import GpuLimits
from boa.model.priorities import Priorities, Priority
from boa.policy.boa import Planned
from boa.policy.market.urgency import AS_FAST, LADDER, Position, to_go, within
from boa.policy.market.worth import at_weight
from boa.scheduler.plan.displacing import Displaced
from boa.scheduler.words.amounts import dollars, seconds
from boa.units import PerHour, Seconds, Usd, UsdPerHour

PAID: tuple[Priority, ...] = ("urgent", "normal")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityCost:
    """One priority that a job could have, by the plan in force."""

    priority: Priority
    weight: float
    """Times a normal job's that a second of it counts."""
    jct_s: Seconds | None
    """If its GPUs are there; None: it takes what is empty, whenever that is."""
    usd: Usd
    """Dollars that are paid for it, and would not be without it."""
    others_s: Seconds
    """Seconds that all others end later by it, together, as long as the budget stays what it is:
    for the money that it takes, and for the stops of jobs that it would take GPUs from now."""
    class_others_s: Seconds
    """Everybody's average JCT: by how much it is longer for the class, were all of it so."""
    class_usd_per_hour: UsdPerHour
    """Dollars per hour that the class then takes; with so many more, nobody else is later."""
    note: str = ""
    """Why an urgent job takes as long as a normal one, where it does."""


def priority_costs(
    planned: Planned | None,
    stream: str,
    limits: GpuLimits,
    priorities: Priorities,
    estimated: tuple[Seconds, Usd] | None,
    wider: str = "",
    displacing: Callable[[Priority], Sequence[Displaced]] = lambda _: (),
) -> tuple[PriorityCost, ...]:
    """From the dearest on; none where nothing is known of the class within the job's limits.
    `estimated`: time and dollars of the job at its class's own weight, where they are known;
    `wider`: why its class may not have more GPUs yet; `displacing`: running jobs that a job of a
    priority would take GPUs from now."""
    if planned is None or estimated is None:
        return ()
    price = planned.price
    usual = planned.worths(price).get(stream)
    course = None if usual is None else within(usual.course, limits)
    if usual is None or course is None:
        return ()
    ways = {
        name: to_go(at_weight(course, price, usual.weight * priorities.weight(name)), Position())
        for name in PAID
    }
    normal_s, normal_usd = ways["normal"]
    if min(normal_s, normal_usd, *estimated) <= 0:
        return ()
    longer, dearer = estimated[0] / normal_s, estimated[1] / normal_usd
    per_hour, everybody = _arrivals(planned, stream)

    note = ""
    if ways["urgent"][0] * AS_FAST >= normal_s:
        most = at_weight(course, price, usual.weight * LADDER[-1])
        note = _as_long(normal_s <= AS_FAST * to_go(most, Position())[0], wider)

    def cost(name: Priority, jct_s: Seconds | None, usd: Usd) -> PriorityCost:
        return PriorityCost(
            priority=name,
            weight=priorities.weight(name),
            jct_s=jct_s,
            usd=usd,
            others_s=price * usd + _displaced_s(displacing(name), jct_s or 0.0),
            class_others_s=price * usd * per_hour / everybody if everybody else 0.0,
            class_usd_per_hour=usd * per_hour,
            note=note if name == "urgent" else "",
        )

    paid = [cost(name, ways[name][0] * longer, ways[name][1] * dearer) for name in PAID]
    return (*paid, cost("background", None, 0.0))


def _displaced_s(jobs: Sequence[Displaced], jct_s: Seconds) -> Seconds:
    """Rescaling, lost work, and the wait of those that get no GPUs until the job has ended."""
    return sum(one.seconds + (jct_s if one.preempted else 0.0) for one in jobs)


def _as_long(fastest: bool, wider: str) -> str:
    why = (
        f"no other GPUs that it may have {'now ' if wider else ''}make it faster"
        if fastest
        else "what more GPUs would save is not worth their price even so"
    )
    said = f"urgent takes as long as normal: {why}; where GPUs are short it still counts more"
    return f"{said}. {wider}" if wider and fastest else said


def asked_in_words(asked: Priority, found: Sequence[PriorityCost]) -> str:
    """How a job of this priority goes; empty of a normal one, and where nothing is known."""
    if asked == "background":
        return (
            "in the background it runs on GPUs that are paid for and empty, whenever there are "
            "any, and nothing is paid for it"
        )
    one = next((one for one in found if one.priority == asked), None)
    if asked == "normal" or one is None or one.jct_s is None:
        return ""
    return f"{asked}, it takes {seconds(one.jct_s)} and {dollars(one.usd)} if its GPUs are there"


def _arrivals(planned: Planned, stream: str) -> tuple[PerHour, PerHour]:
    """Jobs per hour of the stream, and of all."""
    workload = planned.solution.workload
    mine = (c.arrivals_per_hour for c in workload.classes if c.name == stream)
    return next(mine, 0.0), workload.arrivals_per_hour
