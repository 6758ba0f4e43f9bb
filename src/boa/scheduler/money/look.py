"""A look into the purse: what it holds at a moment, and what was spent. Pure."""

from dataclasses import dataclass

from boa.model.budgets import Budget
from boa.model.calendar import Calendar
from boa.model.workload import Billing
from boa.scheduler.money import accounts, loans, pacing, tally
from boa.scheduler.money.grants import Grants
from boa.scheduler.money.money_state import MoneyState, PartState, SetAtRunTime
from boa.scheduler.money.months import Months, counted
from boa.scheduler.money.paid_for import bill, paying_holds, rate
from boa.scheduler.state import State
from boa.units import Seconds, UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Contents of a purse at the moment when somebody asked."""

    pace: pacing.Pace
    max_spend: UsdPerHour | None
    effective: UsdPerHour
    billing: Billing
    budget_set: SetAtRunTime | None
    max_spend_set: SetAtRunTime | None
    loans: loans.Loans
    tree: Budget | None
    """Those who share it, as configured …"""
    rights_now: Budget | None
    """… and with what each has by right now."""
    grants: Grants
    calendar: Calendar | None
    accounts: accounts.PeriodAccounts
    months: Months
    """Up to the last look."""

    def state(self, state: State, now: Seconds) -> MoneyState:
        spent, now_per_hour = bill(state, now), rate(state, now)
        calendar, pace = self.calendar, self.pace
        return MoneyState(
            at=now,
            budget=pace.budget,
            max_spend=self.max_spend,
            effective=self.effective,
            since=pace.since,
            spent=spent.total - pace.spent_before,
            total=spent.total,
            jobs=spent.jobs,
            idle=spent.idle,
            provisioning=spent.provisioning,
            now_per_hour=now_per_hour,
            parts=self._parts(state, now, now_per_hour),
            billing=self.billing,
            budget_set=self.budget_set,
            max_spend_set=self.max_spend_set,
            stretch=self.grants.of_whole,
            months=counted(self.months, pace.budget, calendar, pace.at, now),
            gain=pacing.gain(pace),
            sharing=self.tree,
            calendar=None if calendar is None else accounts.state(self.accounts, calendar, now),
            allowed=None if calendar is None else calendar.mean(pace.since, now),
        )

    def _parts(self, state: State, now: Seconds, now_per_hour: UsdPerHour) -> tuple[PartState, ...]:
        if self.tree is None or self.rights_now is None:
            return ()
        held = tally.rates(paying_holds(state), now)
        shares = loans.shares_of(self.tree, held, now_per_hour)
        of = loans.states(self.loans, self.tree, self.rights_now, shares, now_per_hour)
        return self.grants.told(of)
