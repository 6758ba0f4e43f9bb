"""The service's purse: the budget, what was spent, and what to plan with so that they meet."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import cache
from typing import Any

from boa.model.budgets import Budget
from boa.model.calendar import Calendar
from boa.model.job import JobRecord
from boa.model.terms import Terms
from boa.model.workload import Billing
from boa.scheduler.money import accounts, loans, luck, pacing, steering
from boa.scheduler.money.charging import charge
from boa.scheduler.money.contents import Configured, Contents
from boa.scheduler.money.grants import Grants, PartCap
from boa.scheduler.money.ledger import Bill
from boa.scheduler.money.look import Look
from boa.scheduler.money.money_state import MoneyState, SetAtRunTime
from boa.scheduler.money.paid_for import paid_for, paying_holds, rate
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.state import Draft, State
from boa.scheduler.words.of_limits import named_cap
from boa.units import Seconds, Usd, UsdPerHour

LOOK_S: Seconds = 60.0
"""How often the effective budget is worked out anew."""
AS_CONFIGURED: UsdPerHour = math.inf
"""The budget to set that stands for the configured one."""
BACK = 1e-4
"""Whoever sets a budget so near to what its terms come to on average goes back to them."""


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
        """`ends_at`: the budget is for the time until then. `sharing`: those who share it, if
        somebody does. `terms`: of a budget for months, or until a date, by the clocks of `zone`.
        The rest is told at `Configured`."""
        self.ends_at = ends_at
        grants = Grants.of(budget, sharing, terms, zone, now)
        self._configured = Configured(
            budget=budget,
            max_spend=max_spend,
            horizon_h=horizon_h,
            billing=billing,
            node=node,
            lost_s=lost_s,
            calendar=calendar,
            terms=grants.root.terms,
        )
        self._in = Contents.begun(self._configured, grants, now)
        self._informed_at = now
        """When what happened while the service was away is known."""

    def load(self, saved: Mapping[str, Any], state: State, now: Seconds) -> None:
        """Go on with what was in force, unless another is configured now."""
        bill = paid_for(state, now)
        self._informed_at = now + LOOK_S
        self._in = self._in.loaded(saved, self._configured, bill, now)
        if not self._configured.same_budget(saved):
            self._in = self._in.as_configured(self._configured, bill, now)

    def remembered(self) -> Contents:
        """Everything that a step may change, to be restored if it is not stored."""
        return self._in

    def restore(self, remembered: Contents) -> None:
        self._in = remembered

    def document(self) -> dict[str, Any]:
        return {**self._configured.as_document(), **self._in.as_document()}

    @property
    def budget(self) -> UsdPerHour:
        """The one in force now; 0: it has ended."""
        return self._in.pace.budget

    @property
    def week(self) -> UsdPerHour:
        """The budget of a week on average."""
        return self.budget if self._in.calendar is None else self._in.calendar.average

    @property
    def max_spend(self) -> UsdPerHour | None:
        return self._in.max_spend

    @property
    def calendar(self) -> Calendar | None:
        """In force, as scaled at run time."""
        return self._in.calendar

    @property
    def accounts(self) -> accounts.PeriodAccounts:
        return self._in.accounts

    @property
    def ended(self) -> Calendar | None:
        """The calendar whose budget has ended; None: it goes on."""
        return None if self.budget else self._in.calendar

    @property
    def budget_set(self) -> SetAtRunTime | None:
        """Where the budget comes from; None: it is the configured one. Likewise the cap."""
        if self._in.grants.whole is not None:  # it is as its terms say
            return None
        if (terms := self._configured.terms) is not None:
            at = self._in.set_at.get("budget")
            return SetAtRunTime(configured=None, at=at, terms=terms.words)
        return self._changed("budget", self.week, self._configured.budget)

    @property
    def max_spend_set(self) -> SetAtRunTime | None:
        return self._changed("max_spend", self.max_spend, self._configured.max_spend)

    def _changed(
        self, name: str, now: UsdPerHour | None, configured: UsdPerHour | None
    ) -> SetAtRunTime | None:
        alike = None not in (now, configured) and math.isclose(now or 0.0, configured or 0.0)
        if now == configured or alike:
            return None
        return SetAtRunTime(configured=configured, at=self._in.set_at.get(name))

    @property
    def horizon_h(self) -> float:
        """Hours over which what is owed or left over is made good."""
        if self._configured.horizon_h is not None:
            return self._configured.horizon_h
        if self._configured.billing == "gpu":
            return pacing.HORIZON_H
        return luck.horizon_h(self._in.steered.luck, self.week)

    @property
    def looks_at(self) -> Seconds:
        """When the effective budget is next worked out, or another one begins; never, where nothing
        is made good and nothing changes."""
        paced = (
            self._configured.billing == "node"
            or not math.isinf(self.horizon_h)
            or self._in.grants.any
        )
        change = (
            math.inf
            if self._in.calendar is None
            else self._in.calendar.next_change(self._in.pace.at)
        )
        return min(self._in.pace.at + LOOK_S, change) if paced else change

    @property
    def effective(self) -> UsdPerHour:
        """USD per hour to plan with: more than the cap allows would only be planned in vain."""
        if not self.budget:
            return 0.0
        if self._configured.billing == "node":
            node = self._configured.node
            nodes = self.budget / node if node else 0.0
            expected = steering.overhead(nodes, self._configured.lost_s)
            effective = steering.effective(
                self._steered_now, self.budget, self.horizon_h, node, expected
            )
        else:
            credit = None if self._in.calendar is None else self._left(self._in.calendar)
            effective = pacing.effective(self._in.pace, self.horizon_h, credit)
        return effective if self.max_spend is None else min(effective, self.max_spend)

    @property
    def _steered_now(self) -> steering.Steered:
        """With what is left over in the period that holds."""
        calendar = self._in.calendar
        if calendar is None:
            return self._in.steered
        counted = steering.counted_now(self._in.steered, self.week, self.horizon_h, self.ends_at)
        return replace(self._in.steered, left=self._left(calendar) - counted)

    def _left(self, calendar: Calendar) -> Usd:
        return accounts.left_at(self._in.accounts, calendar, self._in.pace.at, self.horizon_h)

    @property
    def hard_cap(self) -> tuple[UsdPerHour | None, str]:
        """The most to spend at this moment, and that in words: nothing, once the money of a month
        or a project is used up."""
        if used_up := self._in.grants.used_up:
            return 0.0, used_up
        if self.max_spend is None:
            return None, ""
        return self.max_spend, named_cap(self.max_spend, self.max_spend_set)

    @property
    def rights_now(self) -> Budget | None:
        """Those who share the budget, with what each has by right now that loans are paid back."""
        tree = self._tree_now
        horizon_h = min(self.horizon_h, loans.HORIZON_H)
        return None if tree is None else loans.effective(self._in.loans, tree, horizon_h)

    @property
    def _tree_shown(self) -> tuple[Budget | None, Budget | None]:
        """Those who share it and what each has by right now: nothing, once the budget has ended."""
        if self.budget:
            return self._tree_now, self.rights_now
        tree = self._in.grants.tree(self.week)
        return tree, None if tree is None else tree.scaled(0.0)

    @property
    def _tree_now(self) -> Budget | None:
        """As configured, of the budget in force."""
        return self._in.grants.tree(self.budget) if self.budget else None

    @property
    def caps(self) -> tuple[PartCap, ...]:
        """Hard caps of those who share it."""
        return self._in.grants.caps()

    def payer_of(self, job_class: str, user: str, team: str) -> str:
        """The part that pays for a new job because of who submits it; empty: its class says."""
        return self._in.grants.root.payer_by_people(job_class, user, team)

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
            self._set_budget(draft, budget)
            told["before"] = before
        if max_spend is not None:
            self._in = self._in.with_cap(max_spend, draft.now)
        if before_cap != self.max_spend:
            told["max_spend"] = self.max_spend
        draft.replan = True
        self._put(draft)
        if told:
            draft.tell("budget", budget=self.week, **told)
        return self.state(draft.state, draft.now)

    def _set_budget(self, draft: Draft, budget: UsdPerHour) -> None:
        """Another budget from now on; all that was spent under the old one is charged before."""
        bill = paid_for(draft.state, draft.now)
        self._charge_and_tell(draft, bill)
        if math.isclose(budget, self._configured.budget, rel_tol=BACK) or budget == AS_CONFIGURED:
            self._in = self._in.as_configured(self._configured, bill, draft.now)
        else:
            self._in = self._in.with_budget(budget, bill, draft.now)

    def _put(self, draft: Draft) -> None:
        draft.put_meta("money", self.document())
        draft.put_meta("tally", draft.state.tally.as_document())

    def steer(
        self,
        draft: Draft,
        plan: PlanState | None,
        commitments: Callable[[Draft, Seconds], steering.Commitments | None] = lambda *_: None,
    ) -> bool:
        """Look at the ledger now and then; whether another period of a calendar has begun."""
        if draft.now < min(self._in.pace.at + LOOK_S, self.looks_at):
            return False
        planned = plan.solution.spend if plan is not None else 0.0
        if _anyone_short(draft.paying):
            planned = 0.0  # what is not to be had says nothing of what plans come to
        bill = paid_for(draft.state, draft.now)
        paced_h = (
            pacing.HORIZON_H if self._configured.horizon_h is None else self._configured.horizon_h
        )
        schedule, before = self._in.scheduled(draft.now, self.ends_at), self._in.pace.at
        self._charge_and_tell(draft, bill)
        bound = pacing.BOUND if self._configured.billing == "gpu" else steering.MOST_HORIZONS
        self._in = self._in.accounted(bill, draft.now, self.horizon_h, bound)
        pace = pacing.advanced(self._in.pace, bill, planned, draft.now, paced_h, schedule)
        if (whole := self._in.grants.whole) is not None:  # it makes good what was over or under
            pace = replace(pace, budget=whole, credit=0.0)
        self._in = replace(self._in, pace=pace)
        if self._configured.billing == "node":
            allowed = None if schedule is None else schedule.allowed
            self._steer_bill(commitments(draft, self._in.steered.at), bill, draft.now, allowed)
        calendar = self._in.calendar
        changed = calendar is not None and self._tell_of_change(draft, calendar, before)
        self._put(draft)
        return changed

    def _steer_bill(
        self, found: steering.Commitments | None, bill: Bill, now: Seconds, allowed: Usd | None
    ) -> None:
        """`found`: what jobs take; None: not to be known now."""
        if found is None:
            return
        looked = steering.looked(
            self._in.steered,
            self.week,
            now,
            billed=bill.total,
            found=found,
            horizon_h=self.horizon_h,
            ends_at=self.ends_at,
            allowed=allowed,
        )
        self._in = replace(self._in, steered=looked)

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

    def _charge_and_tell(self, draft: Draft, bill: Bill) -> None:
        """Say whose money is used up; what waited for a new month may go."""
        before = self._in.grants
        self._charge(draft.state, bill, draft.now)
        after = self._in.grants
        for whose, terms, account in after.ended(before):
            told: dict[str, Any] = {"part": whose} if whose else {}
            told |= {"usd": account.spent, "last_day": account.last_day(after.zone)}
            draft.tell("used_up", each=terms.each, **told)
        if after.used_up != before.used_up or after.caps() != before.caps():
            draft.replan = True

    def _charge(self, state: State, bill: Bill, now: Seconds) -> None:
        """Charge everybody for what was billed since the last look, by what their jobs held in that
        time. A clock that was set back stands still; of a time when the service was away, engine
        and cloud are given a moment to tell."""
        if now <= self._in.charged.at or now < self._informed_at:
            return
        state.tally, held = state.tally.looked(paying_holds(state), now)
        charged = charge(
            self._in.charge,
            self._tree_now,
            held,
            now=now,
            total=bill.total,
            rate=rate(state, now),
            horizon_h=self.horizon_h,
            usual=self.week,
        )
        self._in = self._in.with_charge(charged)

    def state(self, state: State, now: Seconds) -> MoneyState:
        return self.state_of(state, now)()

    def state_of(self, state: State, now: Seconds) -> Callable[[], MoneyState]:
        """The same for whoever may look later, from any thread; `state` does not change."""
        tree, rights_now = self._tree_shown
        look = Look(
            pace=self._in.pace,
            max_spend=self.max_spend,
            effective=self.effective,
            billing=self._configured.billing,
            budget_set=self.budget_set,
            max_spend_set=self.max_spend_set,
            loans=self._in.loans,
            tree=tree,
            rights_now=rights_now,
            grants=self._in.grants,
            calendar=self._in.calendar,
            accounts=self._in.accounts,
            months=self._in.months,
        )
        return cache(lambda: look.state(state, now))


def _anyone_short(jobs: Iterable[JobRecord]) -> bool:
    return any(
        given is None or given.width < wanted.width
        for wanted, given in [(job.share, job.allocation) for job in jobs]
        if wanted is not None
    )
