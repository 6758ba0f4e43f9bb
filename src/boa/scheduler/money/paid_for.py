"""The bill, and what of it somebody pays for: jobs in the background hold what is idle. Pure."""

from dataclasses import replace

from boa.model.records import Hold
from boa.scheduler.money.ledger import Bill, hold_cost, spend_now
from boa.scheduler.money.ledger import at as bill_at
from boa.scheduler.state import State
from boa.units import Seconds, UsdPerHour


def rate(state: State, now: Seconds) -> UsdPerHour:
    return spend_now(state.nodes.values(), now)


def bill(state: State, now: Seconds) -> Bill:
    return bill_at(state.totals, state.nodes.values(), state.holds.values(), now)


def paying_holds(state: State) -> list[Hold]:
    """Open holds that something is paid for: not those of jobs in the background."""
    jobs = state.jobs
    return [
        hold
        for hold in state.holds.values()
        if (job := jobs.get(hold.job)) is None or not job.background
    ]


def paid_for(state: State, now: Seconds) -> Bill:
    """The bill as if nobody were there in the background: what they hold is idle."""
    whole, paying = bill(state, now), {id(hold) for hold in paying_holds(state)}
    open_now = sum(hold_cost(h, now) for h in state.holds.values() if id(h) not in paying)
    used = min(max(state.totals.background + open_now, 0.0), whole.jobs)
    return replace(whole, jobs=whole.jobs - used, idle=whole.idle + used)
