"""The service's purse: the budget, what was spent, and what to plan with so that they meet."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from boa.model.job import JobRecord
from boa.scheduler.money import pacing
from boa.scheduler.money.ledger import NOTHING, Bill, spend_now
from boa.scheduler.money.ledger import at as bill_at
from boa.scheduler.money.money_state import MoneyState
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.state import Draft, State
from boa.units import Seconds, UsdPerHour

LOOK_S: Seconds = 60.0
"""How often the effective budget is worked out anew."""


Remembered: TypeAlias = tuple[pacing.Pace, UsdPerHour | None]


class Purse:
    """The budget in force: what was spent is the ledger's to say, what follows from it the
    pacing's."""

    def __init__(
        self, budget: UsdPerHour, max_spend: UsdPerHour | None, horizon_h: float, now: Seconds
    ) -> None:
        self.max_spend, self._horizon_h = max_spend, horizon_h
        self._configured = [budget, max_spend]
        self._pace = pacing.begun(budget, NOTHING, now)

    def load(self, saved: Mapping[str, Any], state: State, now: Seconds) -> None:
        """Go on with what was in force; a budget that the configuration has changed counts now."""
        bill = _bill(state, now)
        pace = pacing.Pace.from_document(saved["pace"], bill)
        budget, max_spend = saved["configured"]
        if max_spend == self._configured[1]:
            self.max_spend = saved["max_spend"]
        if budget == self._configured[0]:
            self._pace = pace
        else:
            self._pace = pacing.with_budget(pace, self._pace.budget, bill, now)

    def remembered(self) -> Remembered:
        """Everything that a step may change, to be restored if it is not stored."""
        return self._pace, self.max_spend

    def restore(self, remembered: Remembered) -> None:
        self._pace, self.max_spend = remembered

    def document(self) -> dict[str, Any]:
        return {
            "configured": self._configured,
            "max_spend": self.max_spend,
            "pace": self._pace.as_document(),
        }

    @property
    def budget(self) -> UsdPerHour:
        return self._pace.budget

    @property
    def looks_at(self) -> Seconds:
        """When the effective budget is next worked out; never, where nothing is made good."""
        return math.inf if math.isinf(self._horizon_h) else self._pace.at + LOOK_S

    @property
    def effective(self) -> UsdPerHour:
        """USD per hour to plan with: more than the cap allows would only be planned in vain."""
        effective = pacing.effective(self._pace, self._horizon_h)
        return effective if self.max_spend is None else min(effective, self.max_spend)

    def set(
        self, draft: Draft, budget: UsdPerHour | None, max_spend: UsdPerHour | None
    ) -> MoneyState:
        """A new budget counts from now: what was over or under before is forgiven. None: as it is;
        likewise the cap, which infinity takes away."""
        before, before_cap = self.budget, self.max_spend
        told: dict[str, Any] = {}
        if budget is not None:
            bill = _bill(draft.state, draft.now)
            self._pace = pacing.with_budget(self._pace, budget, bill, draft.now)
            told["before"] = before
        if max_spend is not None:
            self.max_spend = None if math.isinf(max_spend) else max_spend
        if before_cap != self.max_spend:
            told["max_spend"] = self.max_spend
        draft.replan = True
        draft.put_meta("money", self.document())
        if told:
            draft.tell("budget", budget=self.budget, **told)
        return self.state(draft.state, draft.now)

    def steer(self, draft: Draft, plan: PlanState | None) -> None:
        """Look at the ledger now and then."""
        if draft.now < self._pace.at + LOOK_S:
            return
        planned = plan.solution.spend if plan is not None else 0.0
        if any(map(_is_short, draft.jobs.values())):
            planned = 0.0  # what is not to be had says nothing of what plans come to
        bill = _bill(draft.state, draft.now)
        self._pace = pacing.advanced(self._pace, bill, planned, draft.now, self._horizon_h)
        draft.put_meta("money", self.document())

    def state(self, state: State, now: Seconds) -> MoneyState:
        return self.state_of(state, now)()

    def state_of(self, state: State, now: Seconds) -> Callable[[], MoneyState]:
        """The same for whoever may look later, from any thread; `state` does not change."""
        pace, max_spend, effective = self._pace, self.max_spend, self.effective

        @cache
        def look() -> MoneyState:
            bill = _bill(state, now)
            return MoneyState(
                budget=pace.budget,
                max_spend=max_spend,
                effective=effective,
                since=pace.since,
                spent=bill.total - pace.spent_before,
                total=bill.total,
                jobs=bill.jobs,
                idle=bill.idle,
                provisioning=bill.provisioning,
                now_per_hour=spend_now(state.nodes.values()),
                gain=pacing.gain(pace),
            )

        return look


def _is_short(job: JobRecord) -> bool:
    wanted, given = job.share, job.allocation
    return wanted is not None and (given is None or given.width < wanted.width)


def _bill(state: State, now: Seconds) -> Bill:
    return bill_at(state.totals, state.nodes.values(), state.holds.values(), now)
