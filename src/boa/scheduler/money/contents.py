"""Contents of the purse: all about money that a step may change, as one value. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from boa.model.calendar import Calendar
from boa.model.terms import Terms
from boa.model.workload import Billing
from boa.scheduler.money import accounts, months, pacing, steering
from boa.scheduler.money.accounts import PeriodAccounts
from boa.scheduler.money.charging import Charge, LastCharge
from boa.scheduler.money.grants import Grants
from boa.scheduler.money.ledger import NOTHING, Bill
from boa.scheduler.money.loans import Loans
from boa.scheduler.money.months import Months
from boa.units import Seconds, UsdPerHour

Times: TypeAlias = Mapping[str, Seconds]
"""When budget (`budget`) and cap (`max_spend`) were set at run time, as far as was noted down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """Money as the configuration has it: what is set at run time is compared with this."""

    budget: UsdPerHour
    """Where it changes by the hour, that of a week on average."""
    max_spend: UsdPerHour | None
    horizon_h: float | None
    """Hours in which dollars are made good; None: a day, or where nodes are billed as long as luck
    asks for."""
    billing: Billing
    node: UsdPerHour
    """USD per hour of the cheapest."""
    lost_s: Seconds
    """Seconds that a node takes to boot and to be reclaimed."""
    calendar: Calendar | None
    """None: the budget is the same at all hours."""
    terms: Terms | None = None
    """Those of the whole; None: it is by the hour."""

    def as_document(self) -> dict[str, Any]:
        """For later starts to compare."""
        document: dict[str, Any] = {"configured": [self.budget, self.max_spend], "terms": None}
        if self.calendar is not None:
            document["calendar"] = repr(self.calendar)
        if self.terms is not None:
            document["terms"] = repr(self.terms)
        return document

    def same_budget(self, saved: Mapping[str, Any]) -> bool:
        """Older documents do not say what the terms were."""
        now = self.as_document()
        terms = now["terms"]
        return (saved["configured"][0], saved.get("calendar"), saved.get("terms", terms)) == (
            self.budget,
            now.get("calendar"),
            terms,
        )

    def at(self, now: Seconds) -> UsdPerHour:
        """The budget then, where it is not on terms."""
        return self.budget if self.calendar is None else self.calendar.budget_at(now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    pace: pacing.Pace
    max_spend: UsdPerHour | None
    steered: steering.Steered
    calendar: Calendar | None
    """As scaled at run time."""
    grants: Grants
    charged: LastCharge
    accounts: PeriodAccounts = field(default_factory=PeriodAccounts)
    """Those of the calendar's periods."""
    loans: Loans = field(default_factory=Loans)
    set_at: Times = field(default_factory=dict)
    months: Months = field(default_factory=dict)
    """Dollars that the budget has allowed, up to the last look."""

    @classmethod
    def begun(cls, configured: Configured, grants: Grants, now: Seconds) -> "Contents":
        """At the first start."""
        return cls(
            pace=pacing.begun(grants.whole or configured.at(now), NOTHING, now),
            max_spend=configured.max_spend,
            steered=steering.Steered(at=now, billed=0.0),
            calendar=configured.calendar,
            grants=grants,
            charged=LastCharge(now, NOTHING.total),
        )

    def as_document(self) -> dict[str, Any]:
        calendar = self.calendar
        changing = (
            {}
            if calendar is None
            else {"week": calendar.average, "accounts": self.accounts.as_document()}
        )
        return {
            **changing,
            "max_spend": self.max_spend,
            "set_at": dict(self.set_at),
            "pace": self.pace.as_document(),
            "steered": self.steered.as_document(),
            "loans": self.loans.as_document(),
            "charged": list(self.charged),
            "months": months.as_document(self.months),
            **self.grants.as_document(),
        }

    def with_budget(self, budget: UsdPerHour, bill: Bill, now: Seconds) -> "Contents":
        """Another counts from now on, whatever the configuration says: what was over or under
        before is forgiven. Where it changes by the hour it is what a week comes to."""
        calendar = self.calendar
        if calendar is not None:
            calendar = calendar.scaled(budget / calendar.average)
            budget = calendar.budget_at(now)
        return replace(
            self,
            months=self.months_until(now),
            pace=pacing.with_budget(self.pace, budget, bill, now),
            steered=steering.forgiven(self.steered),
            calendar=calendar,
            grants=replace(self.grants, by_hand=True),
            accounts=PeriodAccounts(),
            set_at={**self.set_at, "budget": now},
        )

    def as_configured(self, configured: Configured, bill: Bill, now: Seconds) -> "Contents":
        """The configured budget counts from now on."""
        grants = replace(self.grants, by_hand=False)
        budget = grants.whole or configured.at(now)
        return replace(
            self,
            months=self.months_until(now),
            pace=pacing.with_budget(self.pace, budget, bill, now),
            steered=steering.forgiven(self.steered),
            calendar=configured.calendar,
            grants=grants,
            accounts=PeriodAccounts(),
            set_at={name: at for name, at in self.set_at.items() if name != "budget"},
        )

    def scheduled(self, now: Seconds, ends_at: Seconds) -> pacing.Schedule | None:
        """Money that a calendar has allowed since the last look."""
        calendar, at = self.calendar, self.pace.at
        if calendar is None:
            return None
        allowed = calendar.allowed(at, max(min(now, ends_at), at))
        return pacing.Schedule(allowed, calendar.budget_at(now), calendar.average)

    def months_until(self, now: Seconds) -> Months:
        """With what was allowed since the last look."""
        return months.counted(self.months, self.pace.budget, self.calendar, self.pace.at, now)

    def accounted(self, bill: Bill, now: Seconds, horizon_h: float, bound: float) -> "Contents":
        """After a look: every period has spent what was billed while it held."""
        counted = replace(self, months=self.months_until(now))
        if self.calendar is None:
            return counted
        looked = accounts.looked(
            self.accounts,
            self.calendar,
            self.pace.at,
            now,
            billed=bill.total - self.pace.total,
            horizon_h=horizon_h,
            bound=bound,
        )
        return replace(counted, accounts=looked)

    @property
    def charge(self) -> Charge:
        return Charge(self.charged, self.loans, self.grants)

    def with_charge(self, charge: Charge) -> "Contents":
        charged, loans, grants = charge
        return replace(self, charged=charged, loans=loans, grants=grants)

    def with_cap(self, max_spend: UsdPerHour, now: Seconds) -> "Contents":
        """Infinity: none."""
        cap = None if math.isinf(max_spend) else max_spend
        return replace(self, max_spend=cap, set_at={**self.set_at, "max_spend": now})

    def loaded(
        self, saved: Mapping[str, Any], configured: Configured, bill: Bill, now: Seconds
    ) -> "Contents":
        """Go on from what was stored, also where the configuration has changed since."""
        same = configured.same_budget(saved)
        pace = pacing.Pace.from_document(saved["pace"], bill)
        unchanged_cap = saved["configured"][1] == configured.max_spend
        found = replace(
            self,
            pace=pace,
            max_spend=saved["max_spend"] if unchanged_cap else self.max_spend,
            steered=_steered(saved, bill, now),
            grants=self.grants.loaded(saved, pace.at, same=same),
            loans=Loans.from_document(saved["loans"]) if "loans" in saved else self.loans,
            charged=LastCharge(*saved.get("charged", (pace.at, pace.total))),
            set_at=saved.get("set_at", {}),
            months=months.from_document(saved.get("months", {})),
        )
        if not same or self.calendar is None:
            return found
        return replace(
            found,
            calendar=self.calendar.scaled(saved["week"] / self.calendar.average),
            accounts=PeriodAccounts.from_document(saved["accounts"]),
        )


def _steered(saved: Mapping[str, Any], bill: Bill, now: Seconds) -> steering.Steered:
    """Older documents have none: it begins now."""
    if "steered" not in saved:
        return steering.Steered(at=now, billed=bill.total)
    return steering.Steered.from_document(saved["steered"])
