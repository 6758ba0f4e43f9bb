"""The service's purse: the budget, what was spent, and what to plan with so that they meet."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias

from boa.model.job import JobRecord
from boa.model.workload import Billing
from boa.scheduler.money import luck, pacing, steering
from boa.scheduler.money.ledger import NOTHING, Bill, spend_now
from boa.scheduler.money.ledger import at as bill_at
from boa.scheduler.money.money_state import MoneyState
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.state import Draft, State
from boa.units import Seconds, UsdPerHour

LOOK_S: Seconds = 60.0
"""How often the effective budget is worked out anew."""


Remembered: TypeAlias = tuple[pacing.Pace, UsdPerHour | None, steering.Steered]


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
    ) -> None:
        """`horizon_h`: in which dollars are made good; None: a day, or where nodes are billed as
        long as luck asks for. `ends_at`: the budget is for the time until then; `node`: what the
        cheapest costs, and `lost_s` what it takes to boot and to be reclaimed."""
        self.ends_at, self._node, self._lost_s = ends_at, node, lost_s
        self.max_spend, self._given_h, self._billing = max_spend, horizon_h, billing
        self._configured = [budget, max_spend]
        self._pace = pacing.begun(budget, NOTHING, now)
        self._steered = steering.Steered(at=now, billed=0.0)

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
        if "steered" not in saved:
            self._steered = steering.Steered(at=now, billed=bill.total)
            return
        steered = steering.Steered.from_document(saved["steered"])
        same = budget == self._configured[0]
        self._steered = steered if same else steering.forgiven(steered)

    def remembered(self) -> Remembered:
        """Everything that a step may change, to be restored if it is not stored."""
        return self._pace, self.max_spend, self._steered

    def restore(self, remembered: Remembered) -> None:
        self._pace, self.max_spend, self._steered = remembered

    def document(self) -> dict[str, Any]:
        return {
            "configured": self._configured,
            "max_spend": self.max_spend,
            "pace": self._pace.as_document(),
            "steered": self._steered.as_document(),
        }

    @property
    def budget(self) -> UsdPerHour:
        return self._pace.budget

    @property
    def horizon_h(self) -> float:
        """Hours over which what is owed or left over is made good."""
        if self._given_h is not None:
            return self._given_h
        if self._billing == "gpu":
            return pacing.HORIZON_H
        return luck.horizon_h(self._steered.luck, self.budget)

    @property
    def looks_at(self) -> Seconds:
        """When the effective budget is next worked out; never, where nothing is made good."""
        paced = self._billing == "node" or not math.isinf(self.horizon_h)
        return self._pace.at + LOOK_S if paced else math.inf

    @property
    def effective(self) -> UsdPerHour:
        """USD per hour to plan with: more than the cap allows would only be planned in vain."""
        if self._billing == "node":
            nodes = self.budget / self._node if self._node else 0.0
            expected = steering.overhead(nodes, self._lost_s)
            effective = steering.effective(
                self._steered, self.budget, self.horizon_h, self._node, expected
            )
        else:
            effective = pacing.effective(self._pace, self.horizon_h)
        return effective if self.max_spend is None else min(effective, self.max_spend)

    @property
    def patience_s(self) -> Seconds:
        """Seconds that a job may wait for GPUs that it is not worth."""
        return steering.patience_s(self._steered, self.budget, self.horizon_h)

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
            self._steered = steering.forgiven(self._steered)
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

    def steer(
        self,
        draft: Draft,
        plan: PlanState | None,
        commitments: Callable[[Draft, Seconds], steering.Commitments | None] = lambda *_: None,
    ) -> None:
        """Look at the ledger now and then."""
        if draft.now < self._pace.at + LOOK_S:
            return
        planned = plan.solution.spend if plan is not None else 0.0
        if _anyone_short(draft.jobs.values()):
            planned = 0.0  # what is not to be had says nothing of what plans come to
        bill = _bill(draft.state, draft.now)
        paced_h = pacing.HORIZON_H if self._given_h is None else self._given_h
        self._pace = pacing.advanced(self._pace, bill, planned, draft.now, paced_h)
        if self._billing == "node" and (found := commitments(draft, self._steered.at)) is not None:
            self._steered = steering.looked(
                self._steered,
                self.budget,
                draft.now,
                billed=bill.total,
                found=found,
                horizon_h=self.horizon_h,
                ends_at=self.ends_at,
            )
        draft.put_meta("money", self.document())

    def state(self, state: State, now: Seconds) -> MoneyState:
        return self.state_of(state, now)()

    def state_of(self, state: State, now: Seconds) -> Callable[[], MoneyState]:
        """The same for whoever may look later, from any thread; `state` does not change."""
        pace, max_spend, effective = self._pace, self.max_spend, self.effective
        billing = self._billing

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
                billing=billing,
                gain=pacing.gain(pace),
            )

        return look


def _anyone_short(jobs: Iterable[JobRecord]) -> bool:
    return any(
        given is None or given.width < wanted.width
        for wanted, given in [(job.share, job.allocation) for job in jobs]
        if wanted is not None
    )


def _bill(state: State, now: Seconds) -> Bill:
    return bill_at(state.totals, state.nodes.values(), state.holds.values(), now)
