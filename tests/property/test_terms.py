"""Money on terms: months of 28 to 31 days, quarters and projects, each spent within its own."""

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.budgets import Budget
from boa.model.terms import Each, Terms
from boa.scheduler.money import stretches
from boa.scheduler.money.grants import Grants
from boa.scheduler.money.stretches import Account, Spell
from boa.units import SECONDS_PER_HOUR, Seconds

STEP_S = 1800.0
"""Seconds between two looks: far less often than the service looks."""
demands = st.lists(st.floats(0.0, 6.0), min_size=5, max_size=40)
"""What jobs would spend, in times of the even pace, day after day."""


def moment(year: int, month: int, day: int = 1, hour: int = 0) -> Seconds:
    return datetime(year, month, day, hour, tzinfo=UTC).timestamp()


@dataclass
class Spent:
    """A service that spends what is wanted, as far as it is told that it may."""

    tree: Budget
    name: str
    now: Seconds
    of: dict[str, float] = field(default_factory=dict)
    """By stretch …"""
    rolled: dict[str, float] = field(default_factory=dict)
    """… and what the one before had left of it."""
    takes: float = 1.0
    """Part of what it may that it comes to: plans promise, jobs come as they do."""
    rate: float = 0.0
    most: float = 0.0
    """The most that it ever spent by the hour."""

    def run(self, until: Seconds, demand: list[float], even: float) -> None:
        grants = Grants.of(self.tree.per_hour, self.tree, None, UTC, self.now)
        while self.now < until:
            day = int(self.now // 86400)
            wanted = demand[day % len(demand)] * even
            tree = grants.tree(self.tree.per_hour)
            assert tree is not None
            part = next(one for one in tree.every if one.name == self.name)
            gone = any(cap.name == self.name and cap.most == 0.0 for cap in grants.caps())
            self.rate = 0.0 if gone or grants.used_up else min(wanted, self.takes * part.per_hour)
            billed, account = self.rate * STEP_S / SECONDS_PER_HOUR, grants.accounts[self.name]
            end = self.now + STEP_S
            self.of[account.stretch] = self.of.get(account.stretch, 0.0) + billed
            self.rolled[account.stretch] = account.rolled
            self.most = max(self.most, self.rate)
            grants = grants.looked(Spell(self.now, end, billed, {self.name: 1.0}, self.rate))
            self.now = end


def vision(terms: Terms, **more: object) -> Budget:
    part = Budget(name="vision", terms=terms, borrows=False, classes=("a",))
    return Budget(name="lab", per_hour=100.0, parts=(part,))


@settings(max_examples=8)
@given(demand=demands, rolls=st.booleans(), each=st.sampled_from(("month", "quarter")))
def test_no_month_and_no_quarter_spends_more_than_it_has(
    demand: list[float], rolls: bool, each: Each
) -> None:
    terms = Terms(usd=720.0, each=each, rolls_over=rolls)
    found = Spent(vision(terms), "vision", moment(2027, 1))
    found.run(moment(2027, 7, 1), demand, terms.per_hour)
    assert len(found.of) == (6 if each == "month" else 2)
    for stretch, spent in found.of.items():
        assert spent <= terms.usd + found.rolled[stretch] + 0.01 * terms.usd
        assert rolls or found.rolled[stretch] == 0.0


@settings(max_examples=8)
@given(late=st.integers(0, 20))
def test_who_wants_it_all_spends_it_all_whatever_the_month_is_long(late: int) -> None:
    terms = Terms(usd=720.0, each="month")
    demand = [0.0] * late + [50.0] * (31 - late)
    found = Spent(vision(terms), "vision", moment(2027, 1))
    found.run(moment(2027, 5), [50.0], terms.per_hour)
    assert list(found.of) == ["2027-01", "2027-02", "2027-03", "2027-04"]
    assert list(found.of.values()) == pytest.approx([720.0] * 4, rel=0.01)
    after = Spent(vision(terms), "vision", moment(2027, 1))
    after.run(moment(2027, 2), demand, terms.per_hour)
    assert after.of["2027-01"] <= 720.0 * 1.001


def test_what_was_not_spent_early_is_spent_later_and_never_in_a_spree() -> None:
    terms = Terms(usd=744.0, each="month")
    found = Spent(vision(terms), "vision", moment(2027, 1))
    found.run(moment(2027, 1, 16), [0.0], 1.0)
    found.run(moment(2027, 1, 16), [0.0], 1.0)
    grants = Grants.of(100.0, vision(terms), None, UTC, moment(2027, 1))
    idle = grants.looked(Spell(moment(2027, 1), moment(2027, 1, 16), 0.0, {}, 0.0))
    assert rights(idle)["vision"] == pytest.approx(744.0 / (16 * 24) + 0.5)
    last = grants.looked(Spell(moment(2027, 1), moment(2027, 1, 31, 12), 0.0, {}, 0.0))
    assert rights(last)["vision"] == pytest.approx(stretches.SPREE * 1.0)


def test_who_never_quite_spends_what_it_may_does_not_come_to_the_end_with_too_much() -> None:
    """Spread over the hours that are left alone, what its jobs could not use at the end was 6 %."""
    terms = Terms(usd=744.0, each="month")
    found = Spent(vision(terms), "vision", moment(2027, 1), takes=0.8)
    found.run(moment(2027, 2), [1.1], 1.0)
    assert found.of["2027-01"] == pytest.approx(744.0, rel=0.01)


def rights(grants: Grants) -> dict[str, float]:
    tree = grants.tree(100.0)
    assert tree is not None
    return {one.name: one.per_hour for one in tree.every}


@settings(max_examples=8)
@given(demand=demands, days=st.integers(3, 200))
def test_a_project_spends_no_more_than_its_total_and_nothing_after_its_last_day(
    demand: list[float], days: int
) -> None:
    last = date(2027, 1, 1) + timedelta(days=days - 1)
    terms = Terms(usd=1000.0, each="once", until=last)
    found = Spent(vision(terms), "vision", moment(2027, 1))
    even = terms.usd / (24.0 * days)
    ends = moment(2027, 1) + 86400.0 * days
    found.run(ends, demand, even)
    spent = sum(found.of.values())
    assert spent <= terms.usd * 1.01
    found.run(ends + 86400.0 * 2, [9.0], even)
    assert sum(found.of.values()) <= terms.usd * 1.01


def test_after_its_last_day_a_project_has_nothing_by_right_and_its_jobs_wait() -> None:
    terms = Terms(usd=1000.0, each="once", until=date(2027, 3, 31))
    tree = vision(terms)
    grants = Grants.of(100.0, tree, None, UTC, moment(2027, 1))
    over = grants.looked(Spell(moment(2027, 1), moment(2027, 4), 10.0, {"vision": 1.0}, 1.0))
    assert rights(over)["vision"] == 0.0
    (cap,) = over.caps()
    said = "vision's money ($1,000 in total until 2027-03-31) was until 2027-03-31"
    assert (cap.most, cap.used_up) == (0.0, said)
    lent = replace(tree, parts=(replace(tree.parts[0], borrows=True),))
    assert Grants.of(100.0, lent, None, UTC, moment(2027, 4)).caps() == ()


def test_a_month_that_is_begun_in_its_middle_has_what_is_left_of_it() -> None:
    terms = Terms(usd=300.0, each="month")
    found = Grants.of(1.0, None, terms, UTC, moment(2026, 11, 16))
    assert found.accounts["all"].allowed(terms) == pytest.approx(150.0)
    assert found.whole == pytest.approx(300.0 / (30 * 24))


def test_what_is_billed_over_the_end_of_a_month_counts_in_both() -> None:
    terms = Terms(usd=300.0, each="month", rolls_over=True)
    grants = Grants.of(1.0, None, terms, UTC, moment(2026, 11))
    after = grants.looked(Spell(moment(2026, 11), moment(2026, 12, 2), 310.0, {}, 1.0))
    account = after.accounts["all"]
    assert account.stretch == "2026-12"
    assert account.spent == pytest.approx(10.0)
    assert account.rolled == pytest.approx(300.0 - 300.0)


def test_money_that_is_used_up_is_so_until_the_next_month_begins() -> None:
    terms = Terms(usd=300.0, each="month")
    grants = Grants.of(1.0, None, terms, UTC, moment(2026, 11))
    begins = moment(2026, 11)
    spent = grants.looked(Spell(begins, begins + 3600, 299.99, {}, 2.0))
    assert spent.used_up == "the budget of $300 a month, which is used up,"
    assert [who for who, _, _ in spent.ended(grants)] == [""]
    stopped = spent.looked(Spell(begins + 3600, begins + 7200, 0.0, {}, 0.0))
    assert stopped.used_up
    assert not stopped.ended(spent)
    december = moment(2026, 12)
    assert not stopped.looked(Spell(begins + 7200, december + 60, 0.0, {}, 0.0)).used_up


def test_months_are_by_the_clocks_of_the_time_zone() -> None:
    terms = Terms(usd=300.0, each="month")
    late = moment(2026, 10, 31, 23)  # UTC: in Berlin November has begun
    assert terms.span(late).name == "2026-10"
    assert terms.span(late, ZoneInfo("Europe/Berlin")).name == "2026-11"
    hours = terms.span(moment(2027, 3, 15), ZoneInfo("Europe/Berlin"))
    assert (hours.ends - hours.begins) / 3600 == 31 * 24 - 1  # summer time begins


def test_accounts_are_stored_and_go_on_with_other_amounts() -> None:
    terms = Terms(usd=300.0, each="month")
    grants = Grants.of(1.0, None, terms, UTC, moment(2026, 11))
    spent = grants.looked(Spell(moment(2026, 11), moment(2026, 11, 2), 40.0, {}, 1.0))
    more = Grants.of(1.0, None, replace(terms, usd=600.0), UTC, moment(2026, 11, 2))
    after = more.loaded(spent.as_document(), moment(2026, 11, 2), same=False)
    account: Account = after.accounts["all"]
    assert account.left(replace(terms, usd=600.0)) == pytest.approx(560.0)
    assert grants.loaded({}, moment(2026, 11), same=True).accounts == grants.accounts


def test_whoever_changes_month_to_quarter_gets_what_is_left_of_the_quarter_alone() -> None:
    month, quarter = Terms(usd=300.0, each="month"), Terms(usd=920.0, each="quarter")
    grants = Grants.of(1.0, None, month, UTC, moment(2026, 10))
    half = moment(2026, 11, 16)
    spent = grants.looked(Spell(moment(2026, 10), half, 450.0))
    changed = Grants.of(1.0, None, quarter, UTC, half).loaded(spent.as_document(), half, same=False)
    assert changed.accounts["all"].allowed(quarter) == pytest.approx(460.0)


def test_debts_outlive_a_change_of_the_time_zone_at_a_month_s_end() -> None:
    terms = Terms(usd=300.0, each="month", rolls_over=True)
    begins, late = moment(2026, 10), moment(2026, 10, 31, 22)
    grants = Grants.of(1.0, None, terms, UTC, begins)
    owing = grants.looked(Spell(begins, late, 400.0)).as_document()
    later = moment(2026, 10, 31, 23) + 1800.0  # in Berlin November has begun, in UTC it has not
    berlin = Grants.of(1.0, None, terms, ZoneInfo("Europe/Berlin"), later)
    assert berlin.loaded(owing, later, same=True).accounts["all"].rolled == pytest.approx(-100.0)


def test_who_owes_more_than_a_month_s_money_pays_it_in_those_that_follow() -> None:
    terms = Terms(usd=300.0, each="month", rolls_over=True)
    begins = moment(2026, 10)
    grants = Grants.of(1.0, None, terms, UTC, begins)
    november = grants.looked(Spell(begins, moment(2026, 11) - 1.0, 1000.0)).looked(
        Spell(moment(2026, 11) - 1.0, moment(2026, 11, 2))
    )
    assert november.accounts["all"].rolled == pytest.approx(-700.0)
    assert november.used_up
    assert (november.whole or 0.0) > 0.0, "plans need a little"
    december = november.looked(Spell(moment(2026, 11, 2), moment(2026, 12, 2)))
    assert december.accounts["all"].rolled == pytest.approx(-400.0)
    assert december.used_up
    january = december.looked(Spell(moment(2026, 12, 2), moment(2027, 1, 2)))
    assert january.accounts["all"].allowed(terms) == pytest.approx(200.0)
    assert not january.used_up


def test_a_part_that_was_taken_out_and_comes_back_has_spent_what_it_had() -> None:
    terms = Terms(usd=300.0, each="month")
    tree, begins, later = vision(terms), moment(2026, 11), moment(2026, 11, 10)
    spent = Grants.of(100.0, tree, None, UTC, begins).looked(
        Spell(begins, later, 200.0, {"vision": 1.0})
    )
    without = Grants.of(100.0, replace(tree, parts=()), None, UTC, later)
    meanwhile = without.loaded(spent.as_document(), later, same=True)
    assert not meanwhile.any
    back = Grants.of(100.0, tree, None, UTC, later).loaded(
        meanwhile.as_document(), later, same=True
    )
    assert back.accounts["vision"].spent == pytest.approx(200.0)


def test_money_that_comes_back_is_there_to_be_spent() -> None:
    terms = Terms(usd=300.0, each="month")
    begins = moment(2026, 11)
    grants = Grants.of(1.0, None, terms, UTC, begins)
    gone = grants.looked(Spell(begins, begins + 3600.0, 400.0))
    assert gone.used_up
    back = gone.looked(Spell(begins + 3600.0, begins + 7200.0, -250.0))
    assert not back.used_up
    assert back.accounts["all"].left(terms) == pytest.approx(150.0)


def test_money_found_used_up_at_a_start_is_told_at_the_first_look() -> None:
    much, little = Terms(usd=300.0, each="month"), Terms(usd=50.0, each="month")
    begins = moment(2026, 11)
    spent = Grants.of(1.0, None, much, UTC, begins).looked(Spell(begins, begins + 3600.0, 100.0))
    started = Grants.of(1.0, None, little, UTC, begins + 3600.0).loaded(
        spent.as_document(), begins + 3600.0, same=False
    )
    looked = started.looked(Spell(begins + 3600.0, begins + 3660.0))
    assert [who for who, _, _ in looked.ended(started)] == [""]


def test_another_time_zone_in_a_month_s_first_hours_forgives_nothing() -> None:
    terms = Terms(usd=300.0, each="month", rolls_over=True)
    november, early = moment(2026, 11), moment(2026, 11, 1, 2)  # in Los Angeles it is October
    grants = Grants.of(1.0, None, terms, UTC, moment(2026, 10))
    owing = grants.looked(Spell(moment(2026, 10), early, 700.0)).as_document()
    west = Grants.of(1.0, None, terms, ZoneInfo("America/Los_Angeles"), early)
    found = west.loaded(owing, early, same=True)
    assert found.accounts["all"].left(terms) < 0
    later = found.looked(Spell(early, november + 86400.0))
    assert later.accounts["all"].stretch == "2026-11"
    assert later.accounts["all"].left(terms) < 0
