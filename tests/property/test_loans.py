"""Loans among those who share a budget: what is lent comes back; no right is beyond the money."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.budgets import Budget
from boa.model.records import Hold
from boa.scheduler.money import loans, tally
from boa.scheduler.money.loans import MOST_RIGHT, Loans

TREE = Budget(
    name="lab",
    per_hour=10.0,
    parts=(
        Budget(name="a", per_hour=4.0, classes=("x",), parts=(Budget(name="u", per_hour=1.0),)),
        Budget(name="b", per_hour=5.0, max_per_hour=8.0, classes=("y",)),
        Budget(name="c", classes=("z",)),
    ),
)
amounts = st.floats(-1e4, 1e4)
debts = st.fixed_dictionaries(dict.fromkeys(("a", "u", "b"), amounts))


def hold(job_class: str, gpus: int) -> Hold:
    return Hold(job="1", stream=job_class, node=1, gpus=gpus, price=0.5, since=0.0)


def after(hours: float, shares: dict[str, float], bill: float = 10.0) -> Loans:
    found = Loans()
    for _ in range(int(hours * 60)):
        found = loans.looked(
            found, TREE, hours=1 / 60, billed=bill / 60, shares=shares, horizon_h=24.0
        )
    return found


@given(lent=debts, over=amounts, horizon_h=st.floats(1.0, 48.0))
def test_rights_are_never_more_than_there_is(
    lent: dict[str, float], over: float, horizon_h: float
) -> None:
    tree = loans.effective(Loans(lent=lent, under={"b": over}), TREE, horizon_h)
    assert sum(part.per_hour for part in tree.parts) <= TREE.per_hour * (1 + 1e-9)
    for budget, usual in zip(tree.every, TREE.every, strict=True):
        assert 0.0 <= budget.per_hour <= max(MOST_RIGHT * usual.per_hour, usual.per_hour)
        assert budget.max_per_hour is None or budget.per_hour <= budget.max_per_hour * (1 + 1e-9)


def test_who_spends_its_share_neither_lends_nor_borrows() -> None:
    found = after(6, {"lab": 1.0, "a": 0.4, "u": 0.1, "b": 0.5, "c": 0.1})
    assert found.lent == pytest.approx({"a": 0.0, "u": 0.0, "b": 0.0}, abs=1e-9)
    assert loans.effective(found, TREE, 24.0).parts[0].per_hour == pytest.approx(4.0)


def test_what_was_lent_is_had_by_right_later_and_what_was_borrowed_is_not() -> None:
    found = after(6, {"lab": 1.0, "b": 0.9, "c": 0.1})
    assert found.lent["a"] == pytest.approx(6 * 4.0)
    assert found.lent["b"] == pytest.approx(-6 * 4.0)
    lender, borrower, _ = loans.effective(found, TREE, 24.0).parts
    assert lender.per_hour == pytest.approx(4.0 + 24.0 / 24.0)
    assert borrower.per_hour == pytest.approx(5.0 - 24.0 / 24.0)


def test_a_ceiling_that_was_crossed_is_lower_until_its_average_is_kept() -> None:
    found = after(6, {"lab": 1.0, "b": 1.0})
    assert found.under["b"] == pytest.approx(-6 * 2.0)
    ceiling = loans.effective(found, TREE, 24.0).parts[1].max_per_hour
    assert ceiling == pytest.approx(8.0 - 12.0 / 24.0)


def test_old_loans_are_forgiven_beyond_two_horizons_of_money() -> None:
    found = after(100, {"lab": 1.0, "c": 1.0})
    assert found.lent["a"] == pytest.approx(2.0 * 24.0 * 4.0)


def test_a_team_that_works_by_day_has_back_what_it_lends_by_night() -> None:
    """Most of its right every night: two of them in a row are not forgiven."""
    found = after(24, {"lab": 1.0, "b": 0.5, "c": 0.5})
    assert found.lent["a"] == pytest.approx(24 * 4.0)
    assert loans.effective(found, TREE, 24.0).parts[0].per_hour > 1.5 * 4.0


def test_what_nobody_holds_is_shared_out_as_what_jobs_hold() -> None:
    held = [hold("x", 2), hold("y", 5), hold("unknown", 1)]
    shares = loans.shares_of(TREE, tally.rates(held, 0.0))
    assert shares == pytest.approx({"lab": 1.0, "a": 0.25, "u": 0.0, "b": 0.625, "c": 0.0})
    assert loans.shares_of(TREE, {}) == {}


def test_loans_survive_being_written_down() -> None:
    found = after(6, {"lab": 1.0, "b": 1.0})
    assert Loans.from_document(found.as_document()) == found


def test_no_part_is_charged_more_than_the_part_above_it() -> None:
    inner = Budget(name="thesis", classes=("x",))
    capped = Budget(name="vision", per_hour=2.0, max_spend=2.0, parts=(inner,))
    tree = Budget(name="lab", per_hour=20.0, parts=(capped,))
    shares = loans.shares_of(tree, {"x": 2.0}, 20.0)
    assert shares == pytest.approx({"lab": 1.0, "vision": 0.1, "thesis": 0.1})
    beside = replace(capped, parts=(inner, Budget(name="eve", classes=("y",))))
    shares = loans.shares_of(replace(tree, parts=(beside,)), {"x": 1.0, "y": 3.0}, 20.0)
    assert shares == pytest.approx({"lab": 1.0, "vision": 0.2, "thesis": 0.05, "eve": 0.15})
