"""Sentences about the budget and the cap: where they come from, and whether they are enough."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo

from boa.model.calendar import zone_of
from boa.model.cluster import JobId
from boa.scheduler.money.money_state import MoneyState, SetAtRunTime
from boa.scheduler.words.amounts import rate
from boa.units import Seconds, UsdPerHour


def named_cap(cap: UsdPerHour, changed: SetAtRunTime | None) -> str:
    """The cap with where it came from, for whoever waits because of it."""
    if changed is None:
        return f"the cap of {rate(cap)} (max_spend_per_hour of the configuration)"
    says = _configured(changed.configured)
    return (
        f"the cap of {rate(cap)} (set at run time{_on(changed.at)}; the configuration says {says})"
    )


def set_at_run_time(money: MoneyState) -> list[str]:
    """A line for the budget and one for the cap, where the configuration says otherwise."""
    lines = [budget_words(money), cap_words(money)]
    return [line for line in lines if line]


def calendar_scaled(week: UsdPerHour, times: float) -> list[str]:
    """A line for a calendar that another budget stands beside, if that changes anything."""
    if math.isclose(times, 1.0, rel_tol=1e-4):
        return []
    return [
        f"budget {rate(week)} over a week: every period of the calendar has {times:.3g} times what "
        "it says, by --budget or budget_per_hour"
    ]


def budget_words(money: MoneyState) -> str:
    changed = money.budget_set
    if changed is None or (changed.configured is None and not changed.terms):
        return ""
    if changed.terms:
        return (
            f"budget {rate(money.budget)}, set at run time{_on(changed.at)}; the configuration "
            f"says {changed.terms}: `boa budget set configured` goes back"
        )
    says, calendar = _configured(changed.configured), money.calendar
    if calendar is not None:
        return (
            f"budget {rate(calendar.week)} over a week, all periods alike scaled, set at run time"
            f"{_on(changed.at)}; the configuration says {says}: `boa budget set "
            f"{changed.configured:g}` goes back"
        )
    return (
        f"budget {rate(money.budget)}, set at run time{_on(changed.at)}; the configuration says "
        f"{says}: `boa budget set {changed.configured:g}` goes back"
    )


def cap_words(money: MoneyState) -> str:
    changed = money.max_spend_set
    if changed is None:
        return ""
    now = f"cap {_configured(money.max_spend)}"
    back = "none" if changed.configured is None else f"{changed.configured:g}"
    return (
        f"{now}, set at run time{_on(changed.at)}; the configuration says "
        f"{_configured(changed.configured)}: `boa budget set --max-spend {back}` goes back"
    )


def _configured(amount: UsdPerHour | None) -> str:
    return "none" if amount is None else rate(amount)


def _on(at: Seconds | None) -> str:
    if at is None:  # by a version that did not note it down
        return ""
    return f" on {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def calendar_words(money: MoneyState) -> str:
    """The period that holds, and when the next one begins; empty where there is no calendar."""
    calendar = money.calendar
    if calendar is None:
        return ""
    zone = zone_of(calendar.time_zone)
    if calendar.period is None:
        return budget_ended(calendar.ends_at, zone)
    week = f"{rate(calendar.week)} over a week"
    if calendar.next_at is None:
        return f"period {calendar.period}; {week}"
    when = f"{datetime.fromtimestamp(calendar.next_at, zone):%a %Y-%m-%d %H:%M %Z}"
    if calendar.next_period is None:
        return f"period {calendar.period}; {week}; the budget ends {when}"
    return (
        f"period {calendar.period}; from {when} {calendar.next_period}, "
        f"{rate(calendar.next_budget)}; {week}"
    )


def budget_ended(at: Seconds | None, zone: tzinfo) -> str:
    when = "" if at is None else f" on {datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M %Z}"
    return f"the budget ended{when}"


# Too little


def budget_too_small(money: MoneyState, needed: UsdPerHour) -> str:
    """By a calendar it is the week's average that does not do; the period that holds is named."""
    waits = ", and newcomers may wait for up to half an hour" if money.billing == "node" else ""
    named, calendar = rate(money.budget), money.calendar
    if calendar is not None:
        holds = "ended" if calendar.period is None else f"{named} in {calendar.period}, now"
        named = f"{rate(calendar.week)} over a week ({holds})"
    return (
        f"the budget of {named} is less than the jobs need: the cheapest plan for them takes "
        f"{rate(needed)}. They run all the same, as cheaply as they can: about that much is "
        f"spent, more than the budget{waits}"
    )


def cap_too_small(cap: UsdPerHour, needed: UsdPerHour) -> str:
    return (
        f"the cap of {rate(cap)} is less than the jobs need: the cheapest plan for them takes "
        f"{rate(needed)}. The cap is kept: jobs wait, longer and longer"
    )


def too_large_for_cap(cap: UsdPerHour, needed: Mapping[JobId, UsdPerHour], *, others: bool) -> str:
    """`needed`: by job, each more than the cap; `others`: there are jobs that can run."""
    least = min(needed.values())
    if not others:
        return (
            f"no job that is there can run under the cap of {rate(cap)}: the smallest needs nodes "
            f"for {rate(least)}. They wait until the cap is raised"
        )
    named = list(needed)[:5]
    jobs = f"job{'s' if len(needed) > 1 else ''} {', '.join(named)}"
    more = f" and {len(needed) - len(named)} more" if len(needed) > len(named) else ""
    return (
        f"{jobs}{more} cannot run under the cap of {rate(cap)}: nodes for {rate(least)} at least "
        "are needed. Until the cap is raised, they wait"
    )
