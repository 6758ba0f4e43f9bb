"""The service's purse: the budget, what was spent, and what to plan with so that they meet."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import cache
from typing import Any, TypeAlias

from boa.model.budgets import Budget
from boa.model.calendar import Calendar
from boa.model.job import JobRecord
from boa.model.terms import Terms
from boa.model.workload import Billing
from boa.scheduler.money import accounts, loans, luck, pacing, steering
from boa.scheduler.money.grants import Grants, PartCap
from boa.scheduler.money.ledger import NOTHING, Bill
from boa.scheduler.money.look import Look
from boa.scheduler.money.money_state import MoneyState, SetAtRunTime
from boa.scheduler.money.paid_for import paid_for, paying_holds, rate
from boa.scheduler.money.stretches import Spell
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.state import Draft, State
from boa.scheduler.words.of_limits import named_cap
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

LOOK_S: Seconds = 60.0
"""How often the effective budget is worked out anew."""
BACK = 1e-4
"""Whoever sets a budget so near to what its terms come to on average goes back to them."""


Times: TypeAlias = Mapping[str, Seconds]
"""When budget (`budget`) and cap (`max_spend`) were set at run time, as far as was noted down."""
Remembered: TypeAlias = tuple[
    pacing.Pace,
    UsdPerHour | None,
    steering.Steered,
    Times,
    loans.Loans,
    Calendar | None,
    accounts.Accounts,
    Grants,
]


class Purse:
    """The budget in force: what was spent is the ledger's to say; what follows from it, pacing's
    or, where nodes are billed, steering's."""

    def __init__(
        self,
        budget: UsdPerHour,
        max_spend: UsdPerHour | None,
        horizon_h: float | None,
        now: Seconds,
        billing: Billing = "gpu",
        ends_at: Seconds = math.inf,
        node: UsdPerHour = 0.0,
        lost_s: Seconds = 0.0,
        sharing: Budget | None = None,
        calendar: Calendar | None = None,
        terms: Terms | None = None,
        zone: tzinfo = UTC,
    ) -> None:
        """`horizon_h`: in which dollars are made good; None: a day, or where nodes are billed as
        long as luck asks for. `ends_at`: the budget is for the time until then; `node`: what the
        cheapest costs, and `lost_s` what it takes to boot and to be reclaimed. `sharing`: those who
        share it, if somebody does. `calendar`: where the budget changes by the hour; `budget` is
        then that of a week on average. `terms`: of a budget for months, or until a date, by the
        clocks of `zone`."""
        self.ends_at, self._node, self._lost_s = ends_at, node, lost_s
        self.max_spend, self._given_h, self._billing = max_spend, horizon_h, billing
        self._configured = [budget, max_spend]
        self._set_at: Times = {}
        self._calendar, self._accounts = calendar, accounts.Accounts()
        self._as_configured = calendar
        self._grants = Grants.of(budget, sharing, terms, zone, now)
        now_per_hour = self._grants.whole or self._budget_at(now, budget)
        self._pace = pacing.begun(now_per_hour, NOTHING, now)
        self._steered = steering.Steered(at=now, billed=0.0)
        self._loans = loans.Loans()

    def load(self, saved: Mapping[str, Any], state: State, now: Seconds) -> None:
        """Go on with what was in force; a budget that the configuration has changed counts now."""
        bill = paid_for(state, now)
        pace = pacing.Pace.from_document(saved["pace"], bill)
        budget, max_spend = saved["configured"]
        self._set_at = saved.get("set_at", {})
        if max_spend == self._configured[1]:
            self.max_spend = saved["max_spend"]
        same = budget == self._configured[0] and saved.get("calendar") == self._calendar_words
        self._grants = self._grants.loaded(saved, pace.at, same=same)
        if same:
            self._pace = pace
            if self._calendar is not None:
                self._calendar = self._calendar.scaled(saved["week"] / self._calendar.average)
                self._accounts = accounts.Accounts.from_document(saved["accounts"])
        else:
            self._pace = pacing.with_budget(pace, self._pace.budget, bill, now)
        if "steered" not in saved:
            self._steered = steering.Steered(at=now, billed=bill.total)
            return
        steered = steering.Steered.from_document(saved["steered"])
        self._steered = steered if same else steering.forgiven(steered)
        if "loans" in saved:
            self._loans = loans.Loans.from_document(saved["loans"])

    def remembered(self) -> Remembered:
        """Everything that a step may change, to be restored if it is not stored."""
        return (
            self._pace,
            self.max_spend,
            self._steered,
            self._set_at,
            self._loans,
            self._calendar,
            self._accounts,
            self._grants,
        )

    def restore(self, remembered: Remembered) -> None:
        self._pace, self.max_spend, self._steered, self._set_at = remembered[:4]
        self._loans, self._calendar, self._accounts, self._grants = remembered[4:]

    def document(self) -> dict[str, Any]:
        calendar = self._calendar
        changing = (
            {}
            if calendar is None
            else {
                "calendar": self._calendar_words,
                "week": calendar.average,
                "accounts": self._accounts.as_document(),
            }
        )
        return {
            **changing,
            "configured": self._configured,
            "max_spend": self.max_spend,
            "set_at": dict(self._set_at),
            "pace": self._pace.as_document(),
            "steered": self._steered.as_document(),
            "loans": self._loans.as_document(),
            **self._grants.as_document(),
        }

    @property
    def _calendar_words(self) -> str | None:
        """The configured calendar, to be compared."""
        return None if self._as_configured is None else repr(self._as_configured)

    def _budget_at(self, now: Seconds, otherwise: UsdPerHour) -> UsdPerHour:
        return otherwise if self._calendar is None else self._calendar.budget_at(now)

    @property
    def budget(self) -> UsdPerHour:
        """The one in force now; 0: it has ended."""
        return self._pace.budget

    @property
    def week(self) -> UsdPerHour:
        """The budget of a week on average."""
        return self.budget if self._calendar is None else self._calendar.average

    @property
    def calendar(self) -> Calendar | None:
        """In force, as scaled at run time."""
        return self._calendar

    @property
    def accounts(self) -> accounts.Accounts:
        return self._accounts

    @property
    def ended(self) -> Calendar | None:
        """The calendar whose budget has ended; None: it goes on."""
        return None if self.budget else self._calendar

    @property
    def budget_set(self) -> SetAtRunTime | None:
        """Where the budget comes from; None: it is the configured one. Likewise the cap."""
        if self._grants.whole is not None:  # it is as its terms say
            return None
        return self._changed("budget", self.week, self._configured[0] or None)

    @property
    def max_spend_set(self) -> SetAtRunTime | None:
        return self._changed("max_spend", self.max_spend, self._configured[1])

    def _changed(
        self, name: str, now: UsdPerHour | None, configured: UsdPerHour | None
    ) -> SetAtRunTime | None:
        alike = None not in (now, configured) and math.isclose(now or 0.0, configured or 0.0)
        if now == configured or alike:
            return None
        return SetAtRunTime(configured=configured, at=self._set_at.get(name))

    @property
    def horizon_h(self) -> float:
        """Hours over which what is owed or left over is made good."""
        if self._given_h is not None:
            return self._given_h
        if self._billing == "gpu":
            return pacing.HORIZON_H
        return luck.horizon_h(self._steered.luck, self.week)

    @property
    def looks_at(self) -> Seconds:
        """When the effective budget is next worked out, or another one begins; never, where nothing
        is made good and nothing changes."""
        paced = self._billing == "node" or not math.isinf(self.horizon_h) or self._grants.any
        change = math.inf if self._calendar is None else self._calendar.next_change(self._pace.at)
        return min(self._pace.at + LOOK_S, change) if paced else change

    @property
    def effective(self) -> UsdPerHour:
        """USD per hour to plan with: more than the cap allows would only be planned in vain."""
        if not self.budget:
            return 0.0
        if self._billing == "node":
            nodes = self.budget / self._node if self._node else 0.0
            expected = steering.overhead(nodes, self._lost_s)
            effective = steering.effective(
                self._steered_now, self.budget, self.horizon_h, self._node, expected
            )
        else:
            credit = None if self._calendar is None else self._left(self._calendar)
            effective = pacing.effective(self._pace, self.horizon_h, credit)
        return effective if self.max_spend is None else min(effective, self.max_spend)

    @property
    def _steered_now(self) -> steering.Steered:
        """With what is left over in the period that holds."""
        calendar = self._calendar
        if calendar is None:
            return self._steered
        counted = steering.counted_now(self._steered, self.week, self.horizon_h, self.ends_at)
        return replace(self._steered, left=self._left(calendar) - counted)

    def _left(self, calendar: Calendar) -> Usd:
        return accounts.left_at(self._accounts, calendar, self._pace.at, self.horizon_h)

    @property
    def hard_cap(self) -> tuple[UsdPerHour | None, str]:
        """The most to spend at this moment, and that in words: nothing, once the money of a month
        or a project is used up."""
        if used_up := self._grants.used_up:
            return 0.0, used_up
        if self.max_spend is None:
            return None, ""
        return self.max_spend, named_cap(self.max_spend, self.max_spend_set)

    @property
    def sharing(self) -> Budget | None:
        """Those who share the budget, with what each has by right now that loans are paid back."""
        tree = self._tree_now
        return None if tree is None else loans.effective(self._loans, tree, self._loan_h)

    @property
    def _tree_now(self) -> Budget | None:
        """As configured, of the budget in force."""
        return self._grants.tree(self.budget) if self.budget else None

    @property
    def caps(self) -> tuple[PartCap, ...]:
        """Hard caps of those who share it."""
        return self._grants.caps()

    def payer_of(self, job_class: str, user: str, team: str) -> str:
        """The part that pays for a new job because of who submits it; empty: its class says."""
        return self._grants.root.payer_by_people(job_class, user, team)

    @property
    def _loan_h(self) -> float:
        return min(self.horizon_h, loans.HORIZON_H)

    @property
    def patience_s(self) -> Seconds:
        """Seconds that a job may wait for GPUs that it is not worth."""
        if not self.budget:
            return 0.0
        return steering.patience_s(self._steered_now, self.budget, self.horizon_h)

    def set(
        self, draft: Draft, budget: UsdPerHour | None, max_spend: UsdPerHour | None
    ) -> MoneyState:
        """A new budget counts from now: what was over or under before is forgiven. Where it changes
        by the hour it is what a week comes to. None: as it is; likewise the cap, which infinity
        takes away."""
        before, before_cap = self.week, self.max_spend
        told: dict[str, Any] = {}
        if budget is not None:
            bill = paid_for(draft.state, draft.now)
            back = math.isclose(budget, self._configured[0] or 0.0, rel_tol=BACK)
            self._grants = replace(self._grants, by_hand=not back)
            if self._calendar is not None:
                self._calendar = self._calendar.scaled(budget / self._calendar.average)
                self._accounts = accounts.Accounts()
                budget = self._calendar.budget_at(draft.now)
            self._pace = pacing.with_budget(self._pace, budget, bill, draft.now)
            self._steered = steering.forgiven(self._steered)
            self._set_at = {**self._set_at, "budget": draft.now}
            told["before"] = before
        if max_spend is not None:
            self.max_spend = None if math.isinf(max_spend) else max_spend
            self._set_at = {**self._set_at, "max_spend": draft.now}
        if before_cap != self.max_spend:
            told["max_spend"] = self.max_spend
        draft.replan = True
        draft.put_meta("money", self.document())
        if told:
            draft.tell("budget", budget=self.week, **told)
        return self.state(draft.state, draft.now)

    def steer(
        self,
        draft: Draft,
        plan: PlanState | None,
        commitments: Callable[[Draft, Seconds], steering.Commitments | None] = lambda *_: None,
    ) -> bool:
        """Look at the ledger now and then; whether another period of a calendar has begun."""
        if draft.now < min(self._pace.at + LOOK_S, self.looks_at):
            return False
        planned = plan.solution.spend if plan is not None else 0.0
        if _anyone_short(draft.paying):
            planned = 0.0  # what is not to be had says nothing of what plans come to
        bill = paid_for(draft.state, draft.now)
        paced_h = pacing.HORIZON_H if self._given_h is None else self._given_h
        schedule, before = self._scheduled(draft.now), self._pace.at
        if (tree := self._tree_now) is not None:
            self._lend(draft, tree, bill)
        if self._calendar is not None:
            self._account(self._calendar, bill, draft.now)
        self._grant(draft, bill)
        self._pace = pacing.advanced(self._pace, bill, planned, draft.now, paced_h, schedule)
        if (whole := self._grants.whole) is not None:  # it makes good what was over or under
            self._pace = replace(self._pace, budget=whole, credit=0.0)
        if self._billing == "node" and (found := commitments(draft, self._steered.at)) is not None:
            self._steered = steering.looked(
                self._steered,
                self.week,
                draft.now,
                billed=bill.total,
                found=found,
                horizon_h=self.horizon_h,
                ends_at=self.ends_at,
                allowed=None if schedule is None else schedule.allowed,
            )
        calendar = self._calendar
        changed = calendar is not None and self._tell_of_change(draft, calendar, before)
        draft.put_meta("money", self.document())
        return changed

    def _scheduled(self, now: Seconds) -> pacing.Schedule | None:
        """Money that a calendar has allowed since the last look."""
        calendar = self._calendar
        if calendar is None:
            return None
        allowed = calendar.allowed(self._pace.at, max(min(now, self.ends_at), self._pace.at))
        return pacing.Schedule(allowed, calendar.budget_at(now), calendar.average)

    def _account(self, calendar: Calendar, bill: Bill, now: Seconds) -> None:
        self._accounts = accounts.looked(
            self._accounts,
            calendar,
            self._pace.at,
            now,
            billed=bill.total - self._pace.total,
            horizon_h=self.horizon_h,
            bound=pacing.BOUND if self._billing == "gpu" else steering.MOST_HORIZONS,
        )

    def _tell_of_change(self, draft: Draft, calendar: Calendar, before: Seconds) -> bool:
        """Whether another period has begun, or the budget has ended: all is planned anew."""
        if calendar.next_change(before) > draft.now:
            return False
        draft.replan = True
        number = calendar.at(draft.now)
        ended = self.ended is not None
        draft.tell(
            "period",
            budget=self.budget,
            period=None if ended else calendar.periods[number].name,
        )
        return True

    def _lend(self, draft: Draft, tree: Budget, bill: Bill) -> None:
        per_hour = rate(draft.state, draft.now)
        self._loans = loans.looked(
            self._loans,
            tree,
            hours=(draft.now - self._pace.at) / SECONDS_PER_HOUR,
            billed=bill.total - self._pace.total,
            shares=loans.shares_of(tree, paying_holds(draft.state), draft.now, per_hour),
            horizon_h=self._loan_h,
            usual=tree.per_hour if self._calendar is None else self.week,
        )

    def _grant(self, draft: Draft, bill: Bill) -> None:
        """Charge money on terms, and say whose is used up; what waited for a new month may go."""
        before = self._grants
        if not before.any:
            return
        billed, per_hour = bill.total - self._pace.total, rate(draft.state, draft.now)
        shares = loans.shares_of(before.root, paying_holds(draft.state), draft.now, per_hour)
        after = before.looked(Spell(self._pace.at, draft.now, billed, shares, per_hour))
        self._grants = after
        for whose, terms, account in after.ended(before):
            told: dict[str, Any] = {"part": whose} if whose else {}
            told |= {"usd": account.spent, "last_day": account.last_day(after.zone)}
            draft.tell("used_up", each=terms.each, **told)
        if after.used_up != before.used_up or after.caps() != before.caps():
            draft.replan = True

    def state(self, state: State, now: Seconds) -> MoneyState:
        return self.state_of(state, now)()

    def state_of(self, state: State, now: Seconds) -> Callable[[], MoneyState]:
        """The same for whoever may look later, from any thread; `state` does not change."""
        look = Look(
            pace=self._pace,
            max_spend=self.max_spend,
            effective=self.effective,
            billing=self._billing,
            budget_set=self.budget_set,
            max_spend_set=self.max_spend_set,
            loans=self._loans,
            tree=self._tree_now,
            sharing=self.sharing,
            grants=self._grants,
            calendar=self._calendar,
            accounts=self._accounts,
        )
        return cache(lambda: look.state(state, now))


def _anyone_short(jobs: Iterable[JobRecord]) -> bool:
    return any(
        given is None or given.width < wanted.width
        for wanted, given in [(job.share, job.allocation) for job in jobs]
        if wanted is not None
    )
