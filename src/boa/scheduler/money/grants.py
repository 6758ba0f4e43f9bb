"""Money on terms, of the whole and of those who share it: what each has by the hour now. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Any

from boa.model.budgets import WHOLE, Budget
from boa.model.streams import payer_in
from boa.model.terms import Terms
from boa.scheduler.money import stretches
from boa.scheduler.money.money_state import PartState, StretchState
from boa.scheduler.money.stretches import Account, Accounts, Spell
from boa.units import Seconds, UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCap:
    """The most that jobs of a part hold at any moment."""

    name: str
    most: UsdPerHour
    classes: frozenset[str]
    """Those that it pays for, also through its parts, whoever submits them."""
    payers: frozenset[str] = frozenset()
    """It and its parts, where they pay for some people's jobs."""
    used_up: str = ""
    """Words for money that is used up; else it is a cap that was configured."""

    def is_over(self, stream: str) -> bool:
        payer = payer_in(stream)
        return payer in self.payers if payer else stream in self.classes


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    root: Budget
    """The whole as configured, with those who share it."""
    shared: bool
    """Whether anybody does."""
    zone: tzinfo = UTC
    accounts: Accounts = field(default_factory=dict)
    at: Seconds = 0.0
    """When they were looked at."""
    by_hand: bool = False
    """The whole is by the hour, as somebody has set at run time, and not on its terms."""

    @classmethod
    def of(
        cls,
        budget: UsdPerHour,
        sharing: Budget | None,
        terms: Terms | None,
        zone: tzinfo,
        now: Seconds,
    ) -> "Grants":
        root = sharing or Budget(name=WHOLE, per_hour=budget, terms=terms)
        new = cls(root=root, shared=sharing is not None, zone=zone, at=now)
        return new.looked(Spell(now, now))

    def loaded(self, saved: Mapping[str, Any], at: Seconds, *, same: bool) -> "Grants":
        """Go on with what was stored; `same`: the budget is configured as it was then."""
        before = stretches.from_document(saved.get("stretches", {}))
        by_hand = same and saved.get("by_hand", False)
        loaded = replace(self, accounts=before, by_hand=by_hand).looked(Spell(at, at))
        return replace(loaded, accounts=stretches.judged_later(loaded.accounts, before))

    def as_document(self) -> dict[str, Any]:
        return {"stretches": stretches.as_document(self.accounts), "by_hand": self.by_hand}

    @property
    def any(self) -> bool:
        return any(True for _ in stretches.on_terms(self.root))

    def looked(self, spell: Spell) -> "Grants":
        found = stretches.looked(self.accounts, self.root, spell, self.zone)
        return replace(self, accounts=found, at=spell.ends)

    @property
    def whole(self) -> UsdPerHour | None:
        """Money of the whole by the hour; None: as configured or set. Plans need a little even
        where nothing is left."""
        terms, account = self.root.terms, self.accounts.get(self.root.name)
        if terms is None or account is None or self.by_hand:
            return None
        return max(account.pace(terms, self.at), account.least(terms))

    def tree(self, budget: UsdPerHour) -> Budget | None:
        """Those who share it, of the budget in force. Amounts on terms are what they are."""
        if not self.shared:
            return None
        on_terms = self.root.terms is not None and not self.by_hand
        usual = self.root.per_hour
        scaled = self.root if on_terms or not usual else self.root.scaled(budget / usual)
        found = stretches.in_force(self.accounts, scaled, self.at)
        return found.having(budget, found.max_per_hour, found.parts)

    def ended(self, before: "Grants") -> list[tuple[str, Terms, Account]]:
        """Whose money has been used up since; no name is that of the whole."""
        return [
            ("" if budget is self.root else budget.name, terms, account)
            for budget, terms in stretches.on_terms(self.root)
            if (account := self.accounts[budget.name]).used_up
            and not (self.by_hand and budget is self.root)
            and (had := before.accounts.get(budget.name)) is not None
            and not (had.used_up and had.stretch == account.stretch)
        ]

    @property
    def used_up(self) -> str:
        """Name of the money of the whole, if there is nothing left of it."""
        terms, account = self.root.terms, self.accounts.get(self.root.name)
        if self.by_hand or terms is None or account is None or not account.over(self.at):
            return ""
        return f"the budget of {terms.words}, which is used up,"

    def caps(self) -> tuple[PartCap, ...]:
        """Caps of parts, from the top down: where money is used up that a part may not go beyond,
        its jobs hold nothing."""
        found = []
        for part in self.root.every if self.shared else ():
            if part is self.root:
                continue
            account = self.accounts.get(part.name)
            if account is not None and not part.borrows and account.over(self.at):
                found.append(self._cap(part, 0.0, self._gone(part, account)))
            elif part.max_spend is not None:
                found.append(self._cap(part, part.max_spend))
        return tuple(found)

    def _cap(self, part: Budget, most: UsdPerHour, used_up: str = "") -> PartCap:
        within = frozenset(budget.name for budget in part.every)
        classes = (name for name, payer in self.root.payers.items() if payer in within)
        return PartCap(
            name=part.name, most=most, classes=frozenset(classes), payers=within, used_up=used_up
        )

    def _gone(self, part: Budget, account: Account) -> str:
        assert part.terms is not None, "only those have accounts"
        amount = f"{part.name}'s money ({part.terms.words})"
        if not account.used_up:
            return f"{amount} was until {part.terms.until}"
        more = "" if part.terms.each == "once" else f" until the next {part.terms.each} begins"
        return f"{amount} is used up{more}"

    def stretch(self, budget: Budget) -> StretchState | None:
        """Stretch of time that a budget on terms is for, with what is left of it."""
        terms, account = budget.terms, self.accounts.get(budget.name)
        if terms is None or account is None:
            return None
        return StretchState(
            name=account.stretch,
            each=terms.each,
            usd=terms.usd,
            allowed=account.allowed(terms),
            rolled=account.rolled,
            spent=account.spent,
            since=account.since,
            ends=account.ends,
            rolls_over=terms.rolls_over,
            used_up=account.used_up,
        )

    @property
    def of_whole(self) -> StretchState | None:
        return None if self.by_hand else self.stretch(self.root)

    def told(self, parts: tuple[PartState, ...]) -> tuple[PartState, ...]:
        """Those who share the budget, with what they have on terms."""
        budgets = {budget.name: budget for budget in self.root.every}

        def told(part: PartState) -> PartState:
            budget = budgets[part.name]
            terms, account = budget.terms, self.accounts.get(part.name)
            if terms is None or account is None:
                return part
            return replace(
                part,
                per_hour=account.even(terms),
                lent=account.ahead(terms, self.at),
                stretch=self.stretch(budget),
            )

        return tuple(told(part) for part in parts)
