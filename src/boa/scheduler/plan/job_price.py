"""The price of a job's terms, before it is submitted: by the plan in force. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from boa.model.job_spec import JobSpec
from boa.policy.boa import Planned
from boa.policy.market.urgency import Position, Way, in_time
from boa.scheduler.plan.priority_costs import PriorityCost, asked_in_words
from boa.scheduler.words.amounts import dollars, seconds
from boa.units import Seconds, Usd


class Priced(NamedTuple):
    """How a job goes without its deadline, and with it."""

    usual: Way | None
    """None: nothing is known of its class."""
    way: Way | None = None
    """None: it has no deadline."""
    kept: bool = True

    @property
    def foreseen(self) -> Way | None:
        return self.usual if self.way is None else self.way


def priced(
    planned: Planned | None,
    spec: JobSpec,
    stream: str,
    boot_s: Seconds,
    estimated: tuple[Seconds, Usd] | None = None,
) -> Priced:
    """`boot_s`: seconds until a node that is rented for it is ready; `estimated`: what the job
    takes and costs as usual, where it may be of another length than its class in the plan."""
    if planned is None:
        return Priced(None)
    price = planned.price
    usual = next(planned.urgent.ways(stream, price, spec.gpus, Position()), None)
    if usual is None:
        return Priced(None)
    longer, dearer = _ratios(usual, estimated)

    def its_own(way: Way) -> Way:
        return way._replace(seconds=way.seconds * longer + boot_s, usd=way.usd * dearer)

    if spec.deadline_s is None:
        return Priced(its_own(usual))
    ways = planned.urgent.ways(stream, price, spec.gpus, Position())
    way, kept = in_time(ways, (spec.deadline_s - boot_s) / longer)
    return Priced(its_own(usual), None if way is None else its_own(way), kept)


def _ratios(usual: Way, estimated: tuple[Seconds, Usd] | None) -> tuple[float, float]:
    """By how much the job is longer and dearer than its class in the plan."""
    if estimated is None or min(usual.seconds, usual.usd, *estimated) <= 0:
        return 1.0, 1.0
    return estimated[0] / usual.seconds, estimated[1] / usual.usd


def in_words(found: Priced, spec: JobSpec, priorities: Sequence[PriorityCost] = ()) -> list[str]:
    """For whoever is about to submit it. `priorities`: what each would cost, if that is known."""
    usual, way = found.usual, found.foreseen
    if usual is None or way is None:
        return [f"nothing is known of class {spec.job_class} yet: no time and no cost can be told"]
    takes = f"takes {seconds(usual.seconds)} and {dollars(usual.usd)} if its GPUs are there"
    asked = asked_in_words(spec.priority, priorities)
    said = [asked, f"as a normal job it {takes}"] if asked else [takes]
    if spec.deadline_s is not None and found.way is not None:
        said.append(_deadline_words(found.way, usual, spec.deadline_s, found.kept))
    if spec.max_cost is not None:
        most = dollars(spec.max_cost)
        said.append(_limit_words("max_cost", dollars(way.usd), most, way.usd <= spec.max_cost))
    if spec.max_time_s is not None:
        most, enough = seconds(spec.max_time_s), way.seconds <= spec.max_time_s
        said.append(_limit_words("max_time_s", seconds(way.seconds), most, enough))
    return said


def _deadline_words(way: Way, usual: Way, deadline_s: Seconds, kept: bool) -> str:
    extra = max(way.usd - usual.usd, 0.0)
    if not kept:
        return (
            f"its deadline in {seconds(deadline_s)} cannot be kept: the soonest is "
            f"{seconds(way.seconds)}, for {dollars(way.usd)}"
        )
    if way.urgency <= 1.0:
        return f"its deadline in {seconds(deadline_s)} is kept at no extra cost"
    return (
        f"its deadline in {seconds(deadline_s)} is kept for {dollars(extra)} more: "
        f"{seconds(way.seconds)}, {dollars(way.usd)}"
    )


def _limit_words(name: str, needs: str, most: str, enough: bool) -> str:
    if enough:
        return f"{name} {most} is enough"
    return f"{name} {most} is too little for {needs}: it will be stopped, with a checkpoint"
