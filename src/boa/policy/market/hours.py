"""When a job is best begun, where money is worth more at some hours than at others. Pure.

A job that runs comes to V = w·seconds + ρ·dollars, in seconds of its own (w = 1), along the widths
that are best at ρ, the price of money, and at what GPUs cost then. By a calendar both change: a
job that begins at s and takes T meets every period for as long as it runs into it, so it comes to

    W(s) = s − now + (1/T) · ∫ from s to s + T of V[period at t] dt,

and is put off to the beginning of a period if that is less than W(now). Of V[period at s] alone a
job of three days would wait six hours for a night that is over long before it is.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from boa.model.calendar import Calendar
from boa.model.job_spec import GpuLimits
from boa.policy.market.urgency import Position, to_go, within
from boa.policy.market.worth import Worths, at_weight
from boa.units import DAY_S, Seconds, Usd

WEEK_S: Seconds = 7 * DAY_S
"""As much is looked at of a longer run: all weeks are alike."""


class Run(NamedTuple):
    """A whole run at what money is worth in one period."""

    value: Seconds
    """Seconds, and what its dollars are worth in seconds of the job."""
    seconds: Seconds
    usd: Usd


RunIn: TypeAlias = Callable[[int], Run | None]
"""By the number of a period; None: what money is worth in it is not known."""


class Start(NamedTuple):
    at: Seconds
    value: Seconds
    """Its W."""
    run: Run


def whole_run(
    worths: Worths, name: str, price: float, limits: GpuLimits, urgency: float
) -> Run | None:
    """None: nothing is known of the class within these limits, or its mean JCT is bounded, so that
    none of its jobs waits."""
    usual = worths(price).get(name)
    if usual is None or usual.course.cap_s is not None:
        return None
    course = within(usual.course, limits)
    if course is None:
        return None
    weight = usual.weight * urgency
    seconds, usd = to_go(at_weight(course, price, weight), Position())
    return Run(seconds + price * usd / weight, seconds, usd)


def starts(calendar: Calendar, now: Seconds, until: Seconds, run_in: RunIn) -> list[Start]:
    """At once, and at the beginnings of periods until then that are known; empty: nothing is known
    of now."""
    at_once = _start(calendar, now, now, run_in)
    if at_once is None:
        return []
    later = (_start(calendar, now, at, run_in) for at in beginnings(calendar, now, until))
    return [at_once, *(start for start in later if start is not None)]


def beginnings(calendar: Calendar, now: Seconds, until: Seconds) -> list[Seconds]:
    """When periods begin, until then and for a week at most: what comes later is the same again,
    after a longer wait."""
    found: list[Seconds] = []
    moment, last = calendar.next_change(now), min(until, now + WEEK_S)
    while moment <= last and moment < calendar.ends:
        found.append(moment)
        moment = calendar.next_change(moment)
    return found


def _start(calendar: Calendar, now: Seconds, at: Seconds, run_in: RunIn) -> Start | None:
    run = run_in(calendar.at(at))
    if run is None:
        return None
    lasts = min(run.seconds, WEEK_S)
    met = (
        (end - begin) * (run_in(period) or run).value
        for begin, end, period in calendar.stretches(at, at + lasts)
    )
    return Start(at, at - now + (sum(met) / lasts if lasts > 0 else run.value), run)
