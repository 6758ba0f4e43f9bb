"""Accounts: what is left of money that is for a month, a quarter, or for a project. Pure.

What is left is spread evenly over the hours that are left: what was overspent early is made good
before the end, and what was not spent may be. Money that is used up stays so until there is more
of it, or jobs would stop and start by the minute.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple, TypeAlias

from boa.model.budgets import Budget
from boa.model.terms import Span, Terms
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

SPREE = 4.0
"""Times the even pace that the rest of a stretch is planned with at most: an idle month ends in no
spree."""
LAST_S: Seconds = 300.0
"""Seconds whose spend is kept back for GPUs to be given back."""
LEAST = 0.01
"""Part of the even pace that is planned with at least, also where there is nothing."""
ROUNDING = 1e-9
LEAST_S: Seconds = 900.0
"""Seconds over which what is left is spread, at least."""
AHEAD_H = 24.0
"""Hours over which a part makes good what it has not spent of an even pace, or spent beyond it …"""
MOST_AHEAD_H = 12.0
"""… and hours of that pace that count at most: an idle week ends in no spree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Money of one budget, in the stretch of time that is now."""

    stretch: str
    """Its name, such as 2026-11."""
    since: Seconds
    """Its beginning, or when the account was opened in it."""
    ends: Seconds
    whole: float = 1.0
    """Part of the money that it was opened with: as much as there was left of the stretch."""
    rolled: Usd = 0.0
    """Money that an earlier stretch has left; negative: owed."""
    spent: Usd = 0.0
    used_up: bool = False
    used_up_of: Usd = 0.0
    """All of the money, when it was."""

    def allowed(self, terms: Terms) -> Usd:
        return max(self._with_debts(terms), 0.0)

    def left(self, terms: Terms) -> Usd:
        """Negative: owed, also by the next stretch where money rolls over."""
        return self._with_debts(terms) - self.spent

    def _with_debts(self, terms: Terms) -> Usd:
        return terms.usd * self.whole + self.rolled

    @property
    def _hours(self) -> float:
        return max(self.ends - self.since, LEAST_S) / SECONDS_PER_HOUR

    def even(self, terms: Terms) -> UsdPerHour:
        """All of it, spread over all of the stretch."""
        return self.allowed(terms) / self._hours

    def least(self, terms: Terms) -> UsdPerHour:
        """USD per hour that is planned with also where nothing is left, or all is owed."""
        return LEAST * terms.usd * self.whole / self._hours

    def pace(self, terms: Terms, now: Seconds) -> UsdPerHour:
        """Money that is left, by the hour; none once it is used up or its time is over."""
        if self.used_up or now >= self.ends:
            return 0.0
        hours = max(self.ends - now, LEAST_S) / SECONDS_PER_HOUR
        return min(max(self.left(terms), 0.0) / hours, SPREE * self.even(terms))

    def ahead(self, terms: Terms, now: Seconds) -> Usd:
        """Dollars not spent of those that an even pace would have; negative: spent too soon."""
        length = max(self.ends - self.since, LEAST_S)
        gone = min(max((now - self.since) / length, 0.0), 1.0)
        return gone * self.allowed(terms) - self.spent

    def part_pace(self, terms: Terms, now: Seconds) -> UsdPerHour:
        """The pace of a part, which has nobody else to even out what it never quite spends: what is
        ahead is made good over a day, and not at a month's end, when jobs cannot use it all."""
        pace, even = self.pace(terms, now), self.even(terms)
        if not pace:
            return pace
        ahead = min(max(self.ahead(terms, now), -MOST_AHEAD_H * even), MOST_AHEAD_H * even)
        return min(max(pace + ahead / AHEAD_H, 0.0), SPREE * even)

    def last_day(self, zone: tzinfo) -> str:
        return f"{datetime.fromtimestamp(self.ends - 1.0, zone):%Y-%m-%d}"

    def over(self, now: Seconds) -> bool:
        """Whether there is nothing more to be had of it."""
        return self.used_up or now >= self.ends


Accounts: TypeAlias = Mapping[str, Account]
"""By the name of the budget."""


class Spell(NamedTuple):
    """Dollars that were billed since the last look."""

    begins: Seconds
    ends: Seconds
    billed: Usd = 0.0
    shares: Mapping[str, float] = {}
    """By the name of a budget: its part of what parts are charged."""
    rate: UsdPerHour = 0.0
    """USD per hour that all together spend now."""
    of_parts: Usd | None = None
    """Dollars that parts are charged, where these are not what was billed."""


def on_terms(tree: Budget) -> Iterator[tuple[Budget, Terms]]:
    for budget in tree.every:
        if budget.terms is not None:
            yield budget, budget.terms


def looked(
    accounts: Accounts, tree: Budget, spell: Spell, zone: tzinfo = UTC
) -> dict[str, Account]:
    """After a look at the ledger; the whole's part of everything is all of it. Whoever is on terms
    no longer keeps its account: it may be again."""
    found = dict(accounts)
    for budget, terms in on_terms(tree):
        of_parts = spell.billed if spell.of_parts is None else spell.of_parts
        share = 1.0 if budget is tree else spell.shares.get(budget.name, 0.0)
        usd = spell.billed if budget is tree else of_parts * share
        now = _current(accounts.get(budget.name), terms, spell.begins, zone)
        now = _spent(now, terms, spell, usd, zone)
        found[budget.name] = _judged(now, terms, spell.ends, spell.rate * share, back=usd < 0)
    return found


def judged_later(accounts: Accounts, before: Accounts) -> dict[str, Account]:
    """Money that was not used up when it was last looked at is not yet: who sees that it is has to
    tell it."""
    return {
        name: replace(account, used_up=had.used_up, used_up_of=had.used_up_of)
        if (had := before.get(name)) is not None and had.stretch == account.stretch
        else account
        for name, account in accounts.items()
    }


def _current(had: Account | None, terms: Terms, now: Seconds, zone: tzinfo) -> Account:
    """The account of the stretch that a moment is in."""
    span = terms.span(now, zone)
    if had is None:
        return _opened(terms, span, now)
    if had.stretch == span.name:
        return had if had.ends == span.ends else replace(had, ends=span.ends)
    if terms.each == "once":  # its end was moved: what was spent was spent
        old = had.stretch.startswith("until ")
        return replace(had, stretch=span.name, ends=span.ends) if old else _opened(terms, span, now)
    if had.stretch == terms.span(span.ends, zone).name:  # begun by the clocks of another zone
        return had
    if had.stretch != terms.span(span.begins - 1.0, zone).name:  # something else, or long ago
        return _opened(terms, span, now)
    rolled = had.left(terms) if terms.rolls_over else 0.0
    return replace(_opened(terms, span, span.begins), rolled=rolled)


def _opened(terms: Terms, span: Span, now: Seconds) -> Account:
    """Whoever begins within a month has as much as there is left of it."""
    if terms.each == "once":
        return Account(stretch=span.name, since=now, ends=span.ends)
    whole = (span.ends - now) / (span.ends - span.begins)
    return Account(stretch=span.name, since=now, ends=span.ends, whole=whole)


def _spent(account: Account, terms: Terms, spell: Spell, usd: Usd, zone: tzinfo) -> Account:
    """The account after a spell, by the stretches that its money was billed in."""
    length, begins = spell.ends - spell.begins, spell.begins
    while terms.each != "once" and account.ends <= spell.ends and length > 0:
        part = max(account.ends - begins, 0.0) / length
        account = replace(account, spent=account.spent + usd * part)
        begins = account.ends
        account = _current(account, terms, begins, zone)
    part = (spell.ends - begins) / length if length > 0 else 1.0
    return replace(account, spent=account.spent + usd * part)


def _judged(
    account: Account, terms: Terms, now: Seconds, rate: UsdPerHour, *, back: bool
) -> Account:
    """Whether it is used up, but for what it takes to give GPUs back. `back`: money came back that
    had been taken for spent."""
    allowed = account.allowed(terms)
    if account.used_up and not back and allowed <= account.used_up_of * (1 + ROUNDING):
        return account  # what was kept back is for no new start
    last_s = min(LAST_S, max(account.ends - now, 0.0))
    up = account.left(terms) <= rate * last_s / SECONDS_PER_HOUR
    used_up_of = allowed if up else 0.0
    if (up, used_up_of) == (account.used_up, account.used_up_of):
        return account
    return replace(account, used_up=up, used_up_of=used_up_of)


def in_force(accounts: Accounts, tree: Budget, now: Seconds) -> Budget:
    """The tree with what everybody on terms has by the hour now. Whoever does not borrow spends no
    more than that."""

    def resolved(budget: Budget) -> Budget:
        parts = tuple(resolved(part) for part in budget.parts)
        terms, account = budget.terms, accounts.get(budget.name)
        if terms is None or account is None:
            most = budget.max_per_hour
            return budget.having(budget.per_hour, most, parts) if parts else budget
        pace, most = account.part_pace(terms, now), budget.max_per_hour
        if not budget.borrows:
            least = max(pace, account.least(terms))
            most = least if most is None else min(most, least)
        return budget.having(pace, most, parts)

    return resolved(tree)


def as_document(accounts: Accounts) -> dict[str, Any]:
    return {name: asdict(account) for name, account in accounts.items()}


def from_document(document: Mapping[str, Any]) -> dict[str, Account]:
    return {name: Account(**account) for name, account in document.items()}
