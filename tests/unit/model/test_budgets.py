"""Budgets as trees."""

from dataclasses import MISSING, fields, replace

from boa.model.budgets import Budget
from boa.model.terms import Terms

TEAM = Budget(
    name="vision",
    per_hour=3.0,
    terms=Terms(usd=720.0, each="month"),
    max_per_hour=4.0,
    max_spend=9.0,
    lends=False,
    borrows=False,
    parts=(Budget(name="ana", per_hour=1.0, classes=("bert",)),),
    classes=("resnet",),
    users=("ben",),
    teams=("vision",),
)


def test_a_budget_that_has_other_money_is_the_same_in_all_else() -> None:
    usual = {field.name: field.default for field in fields(Budget) if field.default is not MISSING}
    assert all(getattr(TEAM, name) != value for name, value in usual.items()), (
        "nothing is forgotten"
    )
    assert TEAM.having(1.5, None, ()) == replace(TEAM, per_hour=1.5, max_per_hour=None, parts=())


def test_a_tree_that_is_scaled_by_one_is_the_same_tree() -> None:
    assert TEAM.scaled(1.0) == TEAM
    assert TEAM.scaled(2.0).parts[0].per_hour == 2.0
