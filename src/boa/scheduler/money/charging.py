"""Charging: what was billed since the last look, to everybody by what their jobs held. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from boa.model.budgets import Budget
from boa.scheduler.money import loans
from boa.scheduler.money.grants import Grants
from boa.scheduler.money.stretches import Spell
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour


class LastCharge(NamedTuple):
    """How far parts have been charged."""

    at: Seconds
    total: Usd
    """The ledger's, then."""
    unheld: Usd = 0.0
    """Dollars billed while no job held anything, as where nodes boot: of those who hold next."""


class Charge(NamedTuple):
    """Accounts of those who share a budget, at a moment."""

    last: LastCharge
    loans: loans.Loans
    grants: Grants


def charge(
    before: Charge,
    tree: Budget | None,
    held: Mapping[str, Usd],
    *,
    now: Seconds,
    total: Usd,
    rate: UsdPerHour,
    horizon_h: float,
    usual: UsdPerHour,
) -> Charge:
    """`tree`: those who share the budget in force; `held`: dollars by stream since the last look;
    `total`: of the ledger; `rate`: USD per hour of all nodes; `usual`: the budget on average."""
    (since, billed_then, unheld), lent, grants = before
    billed = total - billed_then
    of_parts = billed + unheld if held else 0.0
    hours = (now - since) / SECONDS_PER_HOUR
    shares = loans.shares_of(grants.root, held, of_parts, hours)
    if tree is not None:
        lent = loans.looked(
            lent,
            tree,
            hours=hours,
            billed=of_parts,
            shares=shares,
            horizon_h=min(horizon_h, loans.HORIZON_H),
            usual=usual,
        )
    if grants.any:
        grants = grants.looked(Spell(since, now, billed, shares, rate, of_parts))
    return Charge(LastCharge(now, total, 0.0 if held else unheld + billed), lent, grants)
