"""Policies that decide job by job: asked of single jobs, as soon as something is due."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from boa.model.cluster import Decision
from boa.model.events import Cause
from boa.model.job import JobRecord
from boa.placement.fitting import Fitted, Room, fit
from boa.scheduler.decide.decider import Decider, current_allocations, rent, schedulable
from boa.scheduler.state import Draft
from boa.units import Seconds


@dataclass(slots=True, kw_only=True)
class ByJob(Decider):
    def decide(self, draft: Draft, room: Room) -> None:
        self.causes.clear()
        self.due_again(draft)
        asked = [job for job in draft.jobs.values() if self._needs_a_decision(job, draft.now)]
        if asked:
            self._ask(draft, asked)
        if asked or draft.replan:
            self._fit(draft, room)
        self.fresh_plan = False
        self.asked_again.clear()

    def wakes_at(self, job: JobRecord) -> Seconds:
        if job.retry_at is not None:
            return job.retry_at
        return job.submitted_at + self.unplanned_s if job.share is None else math.inf

    def _needs_a_decision(self, job: JobRecord, now: Seconds) -> bool:
        if not schedulable(job, now):
            return False
        return self.fresh_plan or job.share is None or job.id in self.asked_again or _due(job)

    def _ask(self, draft: Draft, jobs: Sequence[JobRecord]) -> None:
        waits = self.follows_plan and not self.memory
        decision = Decision() if waits else self.policy.decide(self.view(draft, jobs))
        for job in jobs:
            share = decision.shares.get(job.id)
            if share is None and draft.now - job.submitted_at >= self.unplanned_s:
                share = job.share or self.least(job)
            share = share and self.within(share, job, draft.now)
            if share is not None and share != job.share:
                other: Cause = "plan" if self.follows_plan else "round"
                self.causes[job.id] = "epoch" if _due(job) else other
                draft.put_job(replace(job, share=share))
                draft.replan = True

    def _fit(self, draft: Draft, room: Room) -> None:
        """Shares → allocations as there is room; a job that waits for a retry holds nothing."""
        placed = [
            job
            for job in draft.jobs.values()
            if job.share is not None and schedulable(job, draft.now)
        ]
        wants = self.wants(placed, {job.id: job.share for job in placed if job.share}, draft.now)
        usable = draft.usable_nodes()
        fitted = fit(
            wants,
            current_allocations(draft.jobs.values()),
            [record.node for record in usable],
            self.gpu_types,
            draft.state.next_node,
            room,
        )
        rent(draft, fitted.new_nodes, self.gpu_types)
        self._apply(draft, fitted)

    def _apply(self, draft: Draft, fitted: Fitted) -> None:
        self.unwanted = frozenset(fitted.give_back)
        for job in list(draft.jobs.values()):
            if not job.stop_requested:
                given = fitted.allocations.get(job.id)
                self.give(draft, job, given, fitted.short.get(job.id))
        self.short = fitted.short


def _due(job: JobRecord) -> bool:
    """Whether an epoch has begun that its share does not reach into."""
    share = job.share
    return share is not None and share.until is not None and job.epoch >= share.until
