"""Policies that decide job by job: asked of single jobs, as soon as something is due."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from boa.model.cluster import Allocation, Decision, JobId, Node, Share
from boa.model.events import Cause, Shortage
from boa.model.job import JobRecord
from boa.placement.fitting import Fitted, Room, fit
from boa.placement.pool import Pool
from boa.scheduler.decide.decider import Decider, current_allocations, rent, schedulable
from boa.scheduler.decide.part_caps import Allowance, kept_within, narrowed, shortage_of
from boa.scheduler.decide.preemption import Holder, upheld
from boa.scheduler.decide.protection import is_modest
from boa.scheduler.decide.reservation import Reservations
from boa.scheduler.decide.room import is_capped, left_to_rent
from boa.scheduler.state import Draft
from boa.scheduler.words.of_keeping import WAITS, waits_for_cap
from boa.units import Seconds


@dataclass(slots=True, kw_only=True)
class ByJob(Decider):
    postponed: frozenset[JobId] = frozenset()
    """Jobs to be looked at again at the next round: they wait for their turn, or for GPUs that a
    running job has just given up."""

    def decide(self, draft: Draft, room: Room) -> None:
        self.causes.clear()
        self.due_again(draft)
        asked = [job for job in draft.paying if self._needs_a_decision(job, draft.now)]
        if asked:
            self._ask(draft, asked)
        if asked or draft.replan or (self.postponed and draft.now >= self.next_round):
            self._fit(draft, room)
        self.fresh_plan = False
        self.asked_again.clear()

    def wakes_at(self, job: JobRecord) -> Seconds:
        if job.retry_at is not None:
            return job.retry_at
        if job.id in self.postponed:
            return self.next_round
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
            job for job in draft.paying if job.share is not None and schedulable(job, draft.now)
        ]
        usable = draft.usable_nodes()
        free = left_to_rent(room, [record.node for record in usable])
        full = not any(free.has(kind, 1) for kind in self.gpu_types.values())
        wished = {job.id: job.share for job in placed if job.share}
        allowed = self.allowed(draft, placed, wished, full=full)
        in_line = self.reserved(draft, placed, allowed) if full else Reservations()
        self.held_up, self.next_round = in_line.held_up, draft.now + self.round_s
        self.postponed = frozenset(self.held_up)
        placed = [job for job in placed if job.id not in in_line.held_up]
        shares = self._narrowed(placed, {job.id: wished[job.id] for job in placed}, allowed)
        placed = [job for job in placed if job.id in shares]
        calm = self.calm_now(draft, full=full)
        holders = [
            one._replace(settling=self._settles(draft, one, shares))
            for one in self.holders(placed, draft.now, calm, allowed, in_line.first)
        ]
        preemption = self.preemption(draft, holders)
        current = current_allocations(draft.paying)
        kept = {
            one.id: one.held for one in holders if one.held is not None and one.is_fixed(preemption)
        }
        shares = {**shares, **{job: Share(a.gpu, a.width) for job, a in kept.items()}}
        wants = self.wants(placed, shares, draft.now)
        for job, held in kept.items():
            wants[job] = wants[job]._replace(min=held.width, max=held.width, types=(held.gpu,))
        nodes = [record.node for record in usable]
        room = self.emptied(draft, room, current, nodes)
        shy = [job for job in placed if full and is_modest(job, draft.now)]
        for one in shy:
            del wants[one.id]
        fitted = fit(wants, current, nodes, self.gpu_types, draft.state.next_node, room)
        if shy:
            fitted = self._on_free_gpus(draft, shy, shares, fitted, nodes)
        if allowed:
            fitted = self._capped(fitted, wished, allowed)
        there = [node for node in (*nodes, *fitted.new_nodes) if node.id not in fitted.give_back]
        given = upheld(fitted.allocations, holders, there, preemption)
        if given is not fitted.allocations:
            used = {node for held in given.values() for node, _ in held.nodes}
            new = tuple(node for node in fitted.new_nodes if node.id in used)
            short = _as_given(fitted.short, given)
            fitted = replace(fitted, allocations=given, new_nodes=new, short=short)
        self.taken = preemption.victims
        gone = set(fitted.give_back)
        self.over_cap = frozenset(
            {job for job, most in allowed.items() if not most.most}
            | {job for job, held in current.items() if any(n in gone for n, _ in held.nodes)}
        )
        rent(draft, fitted.new_nodes, self.gpu_types, coming=self.coming)
        self._apply(draft, fitted)
        if full:
            self._say_waits(draft, placed, fitted, room)
        if self.next_turn(draft):
            self._fit(draft, room)

    def _on_free_gpus(
        self,
        draft: Draft,
        jobs: Sequence[JobRecord],
        shares: Mapping[JobId, Share],
        fitted: Fitted,
        nodes: Sequence[Node],
    ) -> Fitted:
        """Return the decision with retries on GPUs that were free before it and still are; other
        retries wait, so that none takes what a running job gives up."""
        found, idle = dict(fitted.allocations), self._free(draft)
        for job in jobs:
            gpu, width = shares[job.id].gpu, shares[job.id].width
            there = (node.id for node in nodes if node.gpu == gpu)
            pool = Pool(gpu, self.gpu_types[gpu].gpus_per_node, there)
            pool.pin({job: held for job, held in found.items() if held.gpu == gpu})
            if job.allocation is not None and pool.fits(job.allocation):
                found[job.id] = job.allocation  # it is booked already, also on a node that boots
                continue
            least, left = job.spec.gpus.min, pool.gpus_free
            width = min(width, left, idle[gpu])
            given = pool.take(width, spread=True) if width >= least else None
            if given is not None:
                found[job.id] = given
                idle[gpu] -= width
                continue
            if left >= least:
                self.postponed |= {job.id}
            if job.reason != WAITS["modest"]:
                draft.put_job(replace(job, reason=WAITS["modest"]))
        return replace(fitted, allocations=found)

    def _say_waits(
        self, draft: Draft, jobs: Sequence[JobRecord], fitted: Fitted, room: Room
    ) -> None:
        """Say of jobs that wait, and that nothing else is said of, that the cluster is full."""
        capped = is_capped(room, self.nodes(draft), self.gpu_types)
        said = waits_for_cap(room.cap) if capped else WAITS["no_room"]
        for job in (draft.jobs[one.id] for one in jobs):
            untold = job.reason not in (WAITS["modest"], said)
            if job.allocation is None and job.run is None and job.id not in fitted.short and untold:
                draft.put_job(replace(job, reason=said))

    def _may_start(self, job: JobRecord, now: Seconds) -> bool:
        return job.share is not None

    def _settles(self, draft: Draft, job: Holder, shares: Mapping[JobId, Share]) -> bool:
        """Return whether a job keeps its GPUs for now. What its plan has for an epoch that begins
        has been weighed against the rescaling."""
        if self._would_lose(draft, job, shares):
            return True
        return job.settling and self.causes.get(job.id) != "epoch"

    def _would_lose(self, draft: Draft, job: Holder, shares: Mapping[JobId, Share]) -> bool:
        """Return whether another width would lose more work now than it saves: the job gets it
        once it has written its next checkpoint."""
        wish, held = shares.get(job.id), job.held
        if not job.runs or wish is None or held is None or wish.width == held.width:
            return False
        record = draft.jobs[job.id]
        cost = self.stop_cost(record, draft.now)
        stay_s, go_s = (
            self.expected_s(record, gpu, width)
            for gpu, width in ((held.gpu, held.width), (wish.gpu, wish.width))
        )
        saves_s = stay_s - go_s if math.isfinite(stay_s) else 0.0
        return cost.lost_s > max(saves_s - cost.rescale_s, cost.rescale_s)

    def _narrowed(
        self,
        jobs: Sequence[JobRecord],
        wished: Mapping[JobId, Share],
        allowed: Mapping[JobId, Allowance],
    ) -> Mapping[JobId, Share]:
        """Shares within what caps allow; those left out wait."""
        if not allowed:
            return wished
        found = dict(wished)
        for job in jobs:
            if (most := allowed.get(job.id)) is not None:
                share = narrowed(job, found.pop(job.id), self.usable(job), most, self.gpu_types)
                found |= {} if share is None else {job.id: share}
        return found

    def _capped(
        self,
        fitted: Fitted,
        wished: Mapping[JobId, Share],
        allowed: Mapping[JobId, Allowance],
    ) -> Fitted:
        """With the reasons of those whom a cap has narrowed, or lets wait."""
        given, short = kept_within(fitted.allocations, allowed, self.gpu_types), dict(fitted.short)
        for job, most in allowed.items():
            wish, has = wished[job], given.get(job)
            less = has is None or (has.gpu, has.width) != (wish.gpu, wish.width)
            if less and job not in short:
                short[job] = shortage_of(wish, has, most)
        return replace(fitted, allocations=given, short=short)

    def _apply(self, draft: Draft, fitted: Fitted) -> None:
        self.unwanted = frozenset(fitted.give_back)
        for job in draft.paying:
            if not job.stop_requested:
                given = fitted.allocations.get(job.id)
                self.give(draft, job, given, fitted.short.get(job.id))
        self.short = fitted.short


def _as_given(
    short: Mapping[JobId, Shortage], given: Mapping[JobId, Allocation]
) -> dict[JobId, Shortage]:
    """Return what is short once jobs keep what is theirs."""
    found = dict[JobId, Shortage]()
    for job, why in short.items():
        has = given.get(job)
        if has is None or (has.gpu, has.width) != (why.gpu_type, why.width):
            found[job] = replace(why, given=None if has is None else (has.gpu, has.width))
    return found


def _due(job: JobRecord) -> bool:
    """Whether an epoch has begun that its share does not reach into."""
    share = job.share
    return share is not None and share.until is not None and job.epoch >= share.until
