"""A purse with money on terms: what a start waits for, and what a new stretch begins with."""

import pytest

from boa.model.budgets import Budget
from boa.model.calendar import Calendar, Period
from boa.model.records import Hold, NodeRecord
from boa.model.terms import Terms
from boa.scheduler.money import accounts
from boa.scheduler.money.purse import AS_CONFIGURED, LOOK_S, Purse
from boa.scheduler.state import Draft, State
from boa.units import Seconds

HOUR = 3600.0
DAY_S = 24 * HOUR
MONTH_S = 31 * DAY_S
MONTH = Terms(usd=744.0, each="month")
VISION = Budget(name="vision", terms=MONTH, per_hour=MONTH.per_hour, classes=("net",))
LAB = Budget(name="all", per_hour=4.0, parts=(VISION,))


def rented(since: Seconds = 0.0, price: float = 2.0) -> State:
    """A node with two GPUs, all held by a job of `vision`."""
    node = NodeRecord(
        id=1,
        token="boa-1",
        gpu="T4",
        gpus=2,
        price=price,
        state="ready",
        requested_at=since,
        billed_from=since,
        ready_at=since,
    )
    hold = Hold(job="1", stream="net", node=1, gpus=2, price=price, since=since)
    return State(nodes={1: node}, holds={("1", 1, since): hold}, next_node=2)


def purse_of(sharing: Budget | None = LAB, terms: Terms | None = None) -> Purse:
    budget = 4.0 if terms is None else terms.per_hour
    return Purse(budget, None, 24.0, 0.0, "gpu", sharing=sharing, terms=terms)


def looked(purse: Purse, state: State, at: Seconds) -> Draft:
    draft = Draft(state, at)
    purse.steer(draft, None)
    return draft


def spent(purse: Purse, state: State, at: Seconds) -> float:
    (part,) = purse.state(state, at).parts
    assert part.stretch is not None
    return part.stretch.spent


def test_after_a_start_nobody_is_charged_until_engine_and_cloud_have_had_a_moment() -> None:
    before, state = purse_of(), rented()
    state = looked(before, state, HOUR).state
    assert spent(before, state, HOUR) == pytest.approx(4.0)
    purse, start = purse_of(), 3 * HOUR
    purse.load(before.document(), state, start)
    state = looked(purse, state, start).state
    assert spent(purse, state, start) == pytest.approx(4.0), "what ran meanwhile is not known yet"
    state = looked(purse, state, start + LOOK_S).state
    owed = 4.0 * (start + LOOK_S) / HOUR
    assert spent(purse, state, start + LOOK_S) == pytest.approx(owed), "and then all at once"


def test_a_part_is_charged_once_at_a_moment_and_nothing_where_the_clock_went_back() -> None:
    purse, state = purse_of(), rented()
    state = looked(purse, state, HOUR).state
    for at in (HOUR, 0.5 * HOUR):
        draft = Draft(state, at)
        purse.set(draft, 4.0, None)
        state = draft.state
        assert spent(purse, state, HOUR) == pytest.approx(4.0)
        assert (purse.remembered().charged.at, state.tally.since) == (HOUR, HOUR)


def test_another_configuration_counts_from_the_start_on() -> None:
    before = purse_of(sharing=None)
    before.set(Draft(State(next_node=1), 0.0), 6.0, None)
    same = purse_of(sharing=None)
    same.load(before.document(), State(next_node=1), HOUR)
    assert same.budget == 6.0
    other = Purse(9.0, None, 24.0, 0.0, "gpu")
    other.load(before.document(), State(next_node=1), HOUR)
    assert (other.budget, other.budget_set) == (9.0, None)


def test_money_on_terms_makes_good_by_itself_what_was_over_and_owes_no_credit_besides() -> None:
    purse, state = purse_of(sharing=None, terms=MONTH), rented(price=20.0)
    before = purse.budget
    looked(purse, state, HOUR)
    left = (MONTH.usd - 40.0) / ((MONTH_S - HOUR) / HOUR)
    assert purse.budget < before
    assert purse.budget == pytest.approx(left)
    assert purse.remembered().pace.credit == 0.0, "or the debt would be paid twice"


def test_money_that_is_used_up_is_told_once_a_stretch_and_again_in_the_next() -> None:
    purse, state = purse_of(sharing=None, terms=MONTH), rented(price=200.0)
    kinds = []
    moments = [HOUR, 2 * HOUR, 3 * HOUR, MONTH_S + HOUR, MONTH_S + 2 * HOUR, MONTH_S + 3 * HOUR]
    for at in moments:
        draft = looked(purse, state, at)
        kinds.append([event.kind for event in draft.changes.events])
    assert kinds[:3] == [[], ["used_up"], []]
    assert sum(len(kind) for kind in kinds[3:]) == 1, kinds


def test_money_of_two_stretches_that_is_used_up_at_two_looks_in_a_row_is_told_of_both() -> None:
    purse, state = purse_of(sharing=None, terms=MONTH), rented(MONTH_S - HOUR, price=1000.0)
    first = looked(purse, state, MONTH_S - 60.0)
    second = looked(purse, state, MONTH_S + HOUR)
    told = [event.data["last_day"] for one in (first, second) for event in one.changes.events]
    assert told == ["1970-01-31", "1970-02-28"]


def test_terms_that_somebody_has_set_aside_by_hand_are_not_told_to_be_used_up() -> None:
    purse, state = purse_of(sharing=None, terms=MONTH), rented(price=200.0)
    draft = Draft(state, 60.0)
    purse.set(draft, 5.0, None)
    draft = looked(purse, draft.state, 4 * HOUR)
    assert not draft.changes.events
    assert purse.hard_cap == (None, "")
    back = Draft(draft.state, 4 * HOUR + 1.0)
    purse.set(back, AS_CONFIGURED, None)
    assert purse.hard_cap[0] == 0.0


CALENDAR = Calendar(periods=(Period(name="always", budget=10.0),))
BOUND_H = 12.0


def owed(common: float, billed: float) -> accounts.PeriodAccounts:
    before = accounts.PeriodAccounts(common=common)
    return accounts.looked(
        before, CALENDAR, 0.0, HOUR, billed=billed, horizon_h=24.0, bound=BOUND_H / 24.0
    )


def test_what_periods_owe_in_common_is_bounded_like_what_each_owes_alone() -> None:
    assert owed(0.0, 1e6).left == {"always": -BOUND_H * 10.0}
    assert owed(0.0, 1e6).common == -BOUND_H * 10.0
    assert owed(0.0, 10.0 * (1 + BOUND_H) + 7.0).common == pytest.approx(-7.0), "less is as it is"


def test_what_a_period_leaves_beyond_its_bounds_is_nobodys_money_in_common() -> None:
    rich = accounts.PeriodAccounts(left={"always": BOUND_H * 10.0})
    found = accounts.looked(
        rich, CALENDAR, 0.0, HOUR, billed=0.0, horizon_h=24.0, bound=BOUND_H / 24.0
    )
    assert (found.left, found.common) == ({"always": BOUND_H * 10.0}, 0.0)
