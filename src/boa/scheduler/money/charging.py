"""Charging: what was billed since the last look, to everybody by what their jobs held. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from boa.model.budgets import Budget
from boa.scheduler.money import accounts, loans
from boa.scheduler.money.contents import Contents
from boa.scheduler.money.stretches import Spell
from boa.units import Usd, UsdPerHour


def charged(
    contents: Contents,
    tree: Budget | None,
    spell: Spell,
    held: Mapping[str, Usd],
    *,
    rate: UsdPerHour,
    horizon_h: float,
    bound: float,
) -> Contents:
    """`tree`: those who share the budget in force; `held`: dollars by stream; `rate`: USD per hour
    of all nodes now; `bound`: as in `accounts.looked`."""
    if tree is not None:
        contents = replace(contents, loans=_lent(contents, tree, spell, held, horizon_h))
    if contents.calendar is not None:
        looked = accounts.looked(
            contents.accounts,
            contents.calendar,
            spell.begins,
            spell.ends,
            billed=spell.billed,
            horizon_h=horizon_h,
            bound=bound,
        )
        contents = replace(contents, accounts=looked)
    if not contents.grants.any:
        return contents
    return replace(contents, grants=contents.grants.charged(spell, held, rate))


def _lent(
    contents: Contents, tree: Budget, spell: Spell, held: Mapping[str, Usd], horizon_h: float
) -> loans.Loans:
    calendar = contents.calendar
    return loans.looked(
        contents.loans,
        tree,
        hours=spell.hours,
        billed=spell.billed,
        shares=loans.shares_of(tree, held, spell.billed, spell.hours),
        horizon_h=min(horizon_h, loans.HORIZON_H),
        usual=tree.per_hour if calendar is None else calendar.average,
    )
