"""Policies that look at all jobs at once: in rounds, or whenever anything happens."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from boa.model.cluster import Allocation, ClusterView, Decision, JobId, Node, NodeId, Share
from boa.model.events import Shortage
from boa.model.job import JobRecord
from boa.model.workload import GpuType
from boa.placement.fitting import Room, can_rent, fit, within_limits
from boa.placement.packing import allocate
from boa.policy.boa import Planned
from boa.replacing import replace
from boa.scheduler.decide.decider import Decider, current_allocations, ready_in, rent
from boa.scheduler.decide.part_caps import (
    Allowance,
    barred,
    kept_within,
    narrowed,
    shortage_of,
)
from boa.scheduler.decide.preemption import NONE, Holder, Preemption, upheld
from boa.scheduler.decide.protection import RESTLESS, Pressure, is_modest
from boa.scheduler.decide.reasons import changes
from boa.scheduler.decide.room import is_capped, left_to_rent
from boa.scheduler.decide.views import set_least
from boa.scheduler.state import Draft, is_usable
from boa.scheduler.words.of_keeping import WAITS, waits_for_cap
from boa.scheduler.words.of_terms import preempted
from boa.units import GpuName, Seconds


@dataclass(slots=True, kw_only=True)
class AtOnce(Decider):
    let_in: frozenset[JobId] = frozenset()
    """Jobs that do not wait for money: they have begun, or were out of patience once. Whoever is
    let in commits the service to more, and would be shut out again by that."""
    settled: dict[JobId, JobRecord] = field(default_factory=dict)
    """Jobs whose share is just what they hold: nothing is to be written down of one whose record is
    still the same and that is given the same."""

    def decide(self, draft: Draft, room: Room) -> None:
        self.causes.clear()
        if self.at_events:
            self.due_again(draft)
        if draft.now >= self.next_round or (self.at_events and self._stirred(draft)):
            self.next_round = draft.now + self.round_s
            self._round(draft, room)

    def wakes_at(self, job: JobRecord) -> Seconds:
        if not self.at_events:
            return self.next_round
        starts = self._starts_unplanned_at(job)
        moments = [self.next_round, math.inf if job.retry_at is None else job.retry_at]
        if job.retry_at is None and starts > self.next_round - self.round_s:
            moments.append(starts)
        return min(moments)

    def _stirred(self, draft: Draft) -> bool:
        """Whether anything happened since the last decision that a market would answer: a job
        came, ended, failed, is to be tried again or has waited for a plan in vain; a node is
        ready, gone, lost, about to be taken or was refused, or may be asked for again; a budget
        was set; a plan is new."""
        came = any(not job.background for job in draft.arrived)
        if draft.replan or came or self.fresh_plan:
            return True
        last = self.next_round - self.round_s
        waiting = [job for job in draft.paying if job.share is None and not job.held_back]
        return any(last < self._starts_unplanned_at(job) <= draft.now for job in waiting)

    def _starts_unplanned_at(self, job: JobRecord) -> Seconds:
        """When a job that no plan knows is to start all the same; never, where one does."""
        if job.share is not None or self._is_planned(job):
            return math.inf
        return job.submitted_at + self.unplanned_s

    def _is_planned(self, job: JobRecord) -> bool:
        return isinstance(self.memory, Planned) and job.stream in self.memory.by_class

    def _round(self, draft: Draft, room: Room) -> None:
        now = draft.now
        jobs: Sequence[JobRecord] = [  # whoever runs is looked at without a call
            job
            for job in draft.jobs.values()
            if not (job.stop_requested or job.paused or job.parked or job.awaits)
            and job.waits_until is None
            and job.spec.priority != "background"
            and (job.retry_at is None or job.retry_at <= now)
        ]
        self.asked_again.clear()
        current = current_allocations(jobs)
        self._take_back(draft, jobs, room)
        allowed = self._allowed(draft, jobs, room, ())
        room = _with_draining(draft, room, self.unwanted)
        if self.at_events:
            room = self._without_surplus(draft, current, room, {job.id for job in jobs})
        holders, preemption = self._preemption(draft, jobs, room, allowed)
        behind = set[JobId]()
        while allowed and self.held_up.keys() - behind:  # their money is of use to others
            behind |= self.held_up.keys()
            allowed = self._allowed(draft, jobs, room, behind)
            holders, preemption = self._preemption(draft, jobs, room, allowed)
        if len(holders) < len(jobs):
            there = {one.id for one in holders}
            jobs = [job for job in jobs if job.id in there]
        view = self._seen(draft, jobs, room, preemption)
        if allowed:
            view = self._under_caps(jobs, view, allowed)
        decision = self.policy.decide(view)
        self._remember(draft, decision)
        shut = {seen.id: seen.barred for seen in view.jobs if seen.barred}
        placed = self._placed(draft, jobs, current, view.nodes, decision, room, shut)
        if allowed:
            placed = self._capped(placed, jobs, allowed)
        placed = self._upheld(draft, jobs, holders, preemption, placed)
        shut_out = {job for job, most in allowed.items() if not most.most}
        self.over_cap = self.over_cap | shut_out
        self.taken = preemption.victims
        given_up = set(map(_id, view.nodes)) - placed.kept
        self.unwanted = frozenset((self.unwanted | given_up) & draft.nodes.keys())
        rent(draft, placed.new, self.gpu_types, self.weighed, self.coming)
        if self.at_events:
            given = placed.allocations
            self.changed = changes(current, given, lambda: self._node_waits(draft, room))
        self._hand_out(draft, placed)
        if self.next_turn(draft):
            self._round(draft, room)
        elif self.at_events:
            self._say_waits(draft, jobs, room)

    def _take_back(self, draft: Draft, jobs: Iterable[JobRecord], room: Room) -> None:
        """Jobs that wait on a full cluster may have nodes that were given up and are not gone."""
        waits = any(job.allocation is None and job.run is None for job in jobs)
        if not (self.at_events and self.unwanted and waits):
            return
        if self._limits(draft, _with_draining(draft, room, self.unwanted))[0]:
            given_up = ((id, draft.nodes[id]) for id in self.unwanted if id in draft.nodes)
            self.unwanted = frozenset(
                id for id, node in given_up if node.state != "ready" or node.leaving_at is not None
            )

    def _preemption(
        self,
        draft: Draft,
        jobs: Sequence[JobRecord],
        room: Room,
        allowed: Mapping[JobId, Allowance],
    ) -> tuple[list[Holder], Preemption]:
        """Return the jobs that take part in the decision, and the preemption plan. Jobs that must
        not overtake another take no part."""
        self.held_up = {}
        if not self.at_events:
            self.pressure = Pressure()
            return self.holders(jobs, draft.now, RESTLESS, allowed), NONE
        full, _ = self._limits(draft, room)
        calm, first = self.calm_now(draft, full=full), frozenset[JobId]()
        if full:
            first, self.held_up = self.reserved(draft, jobs, allowed)
            jobs = [job for job in jobs if job.id not in self.held_up]
        holders = self.holders(jobs, draft.now, calm, allowed, first)
        preemption = self.preemption(draft, holders)
        self.pressure = Pressure(calm, preemption)
        return holders, preemption

    def _may_start(self, job: JobRecord, now: Seconds) -> bool:
        return self._is_planned(job) or self._least_by_now(job, now) is not None

    def _upheld(
        self,
        draft: Draft,
        jobs: Sequence[JobRecord],
        holders: Sequence[Holder],
        preemption: Preemption,
        placed: "_Placed",
    ) -> "_Placed":
        """Return the decision in which jobs keep their protected GPUs, and the nodes of those."""
        there = [*self.nodes(draft), *placed.new]
        before = placed.allocations
        given = upheld(before, holders, there, preemption, last_gpus=self.at_events)
        if given is not before:
            told = {job.id for job in placed.jobs}
            others = [job for job in jobs if given.get(job.id) != before.get(job.id)]
            more = [job for job in others if job.id not in told]
            used = {node for held in given.values() for node, _ in held.nodes}
            meant = {node for held in before.values() for node, _ in held.nodes}
            placed = placed._replace(
                jobs=[*placed.jobs, *more],
                shares={**placed.shares, **_shares(others, given)},
                allocations=given,
                new=[n for n in placed.new if n.id in used or n.id not in meant],
            )
        fixed = [job for job in holders if job.id in given and job.is_fixed(preemption)]
        kept = placed.kept.union(node for job in fixed for node, _ in given[job.id].nodes)
        if any(job.settling and not job.keeps_work for job in fixed):
            kept = kept.union(node.id for node in self.nodes(draft))  # they may take them then
        return placed._replace(kept=kept)

    def _allowed(
        self, draft: Draft, jobs: Sequence[JobRecord], room: Room, behind: Collection[JobId]
    ) -> Mapping[JobId, Allowance]:
        """Allowances of jobs under caps, whatever a market would give them: an answer that caps
        depend on would change with every node that boots."""
        if not self.caps:
            return {}
        most = ((job, self.least(job)) for job in jobs)
        wished = {job.id: replace(at, width=job.spec.gpus.max) for job, at in most if at}
        full, _ = self._limits(draft, _with_draining(draft, room, self.unwanted))
        return self.allowed(draft, jobs, wished, full=full, behind=behind)

    def _under_caps(
        self,
        jobs: Sequence[JobRecord],
        view: ClusterView,
        allowed: Mapping[JobId, Allowance],
    ) -> ClusterView:
        """The view without what caps do not allow, and without jobs that they let wait."""
        seen = []
        for job, shown in zip(jobs, view.jobs, strict=True):
            most, least = allowed.get(job.id), shown.least
            if most is None:
                seen.append(shown)
            elif most.most:
                shut = shown.barred | barred(job, most, self.gpu_types)
                if least is not None:
                    least = narrowed(job, least, self.usable(job), most, self.gpu_types)
                seen.append(replace(shown, barred=shut, least=least))
        return replace(view, jobs=tuple(seen))

    def _capped(
        self,
        placed: "_Placed",
        jobs: Sequence[JobRecord],
        allowed: Mapping[JobId, Allowance],
    ) -> "_Placed":
        """With the reasons of those whom a cap lets wait."""
        given = kept_within(placed.allocations, allowed, self.gpu_types)
        short = dict(placed.short)
        for job in jobs:
            most = allowed.get(job.id)
            if most is not None and not most.most and (least := self.least(job)):
                short[job.id] = shortage_of(least, None, most)
        told = {job.id for job in placed.jobs}
        more = [job for job in jobs if job.id in short and job.id not in told]
        shares = {**_shares(more, given), **placed.shares}
        return placed._replace(
            jobs=[*placed.jobs, *more], shares=shares, allocations=given, short=short
        )

    def _without_surplus(
        self,
        draft: Draft,
        current: Mapping[JobId, Allocation],
        room: Room,
        active: Collection[JobId],
    ) -> Room:
        """The room once nodes beyond a cap that was lowered are given up: no market sees them."""
        nodes = self.nodes(draft)
        _, surplus = within_limits(active, current, nodes, self.gpu_types, room)
        if surplus:  # which of them go depends on what it costs to empty them
            room = self.emptied(draft, room, current, nodes)
            _, surplus = within_limits(active, current, nodes, self.gpu_types, room)
        self.unwanted |= frozenset(surplus)
        gone = frozenset(surplus)
        self.over_cap = frozenset(
            job
            for job, held in (current.items() if gone else ())
            if any(node in gone for node, _ in held.nodes)
        )
        return _with_draining(draft, room, surplus)

    def _remember(self, draft: Draft, decision: Decision) -> None:
        """Keep the policy's memory and reasons; of nodes that it did not look at, those that it
        gave before."""
        before = self.weighed
        going = {node: before[node] for node in self.unwanted if node in before}
        nodes = draft.nodes
        there = {node: why for node, why in self.newest.items() if node in nodes}
        self.weighed = {**going, **decision.reasons}
        self.newest = {**there, **decision.reasons}
        self.memory, self.fresh_plan = decision.memory, False
        self.chooses_nodes = decision.nodes is not None

    def _placed(
        self,
        draft: Draft,
        jobs: Sequence[JobRecord],
        current: Mapping[JobId, Allocation],
        usable: Sequence[Node],
        decision: Decision,
        room: Room,
        barred: Mapping[JobId, AbstractSet[tuple[GpuName, int]]],
    ) -> "_Placed":
        """The decision on nodes; where it takes more of them than may be rented, or has a job where
        that is not to be, what fits."""
        next_node, short = draft.state.next_node, dict[JobId, Shortage]()
        after, nodes = allocate(decision, current, usable, self.gpu_types, next_node)
        ids = frozenset(map(_id, usable))
        new = [node for node in nodes if node.id not in ids]
        if new and not _anyone_on({node.id for node in new}, current, after):  # as many as can be
            new = _rentable(new, usable, self.gpu_types, room)
        over = (room.spend_left or 0.0) < 0 and not self.at_events
        over = over or any(
            (given := after.get(job)) is not None and (given.gpu, given.width) in states
            for job, states in barred.items()
        )
        if over or not can_rent(new, usable, self.gpu_types, room):
            shares = _shares(jobs, after)
            for job in jobs:
                if job.id in barred and job.id in shares:
                    shares[job.id] = self.within(shares[job.id], job, draft.now) or shares[job.id]
            wants = self.wants([job for job in jobs if job.id in shares], shares, draft.now)
            fitted = fit(wants, current, usable, self.gpu_types, next_node, room)
            after, new = fitted.allocations, list(fitted.new_nodes)
            short = dict(fitted.short)
        else:
            jobs = self._unsettled(jobs, after)
            shares = _shares(jobs, after)
        if self.at_events and self._someone_returns(draft):
            kept = ids
        elif short or decision.nodes is None:
            kept = frozenset(node for given in after.values() for node, _ in given.nodes)
        else:
            kept = frozenset(map(_id, nodes))
        return _Placed(jobs, shares, after, new, short, kept)

    def _unsettled(
        self, jobs: Sequence[JobRecord], after: Mapping[JobId, Allocation]
    ) -> list[JobRecord]:
        """Jobs of which something may have to be written down: few, at most events."""
        has, gets = self.settled.get, after.get
        found = [
            job for job in jobs if gets(job.id) is not job.allocation or has(job.id) is not job
        ]
        if found:  # those that have ended since are forgotten
            self.settled = {job.id: job for job in jobs if has(job.id) is job}
        return found

    def _hand_out(self, draft: Draft, placed: "_Placed") -> None:
        for job in placed.jobs:
            share, given = placed.shares.get(job.id), placed.allocations.get(job.id)
            short = placed.short.get(job.id)
            if share is job.share and given is job.allocation and short is None:
                self.settled[job.id] = job
                continue
            if share != job.share:
                job = draft.put_job(replace(job, share=share))
            self.give(draft, job, given, short)
        self.short = placed.short

    def _say_waits(self, draft: Draft, jobs: Sequence[JobRecord], room: Room) -> None:
        """Why jobs have no GPUs, where that is not said yet."""
        there = draft.jobs
        waiting = [now for job in jobs if (now := there[job.id]).run is None]
        if not waiting:
            return
        requested = [node for node in draft.nodes.values() if node.state == "requested"]
        usable = (node for node in requested if is_usable(node) and node.id not in self.unwanted)
        boots = {node.gpu for node in usable}
        booting = {node.id for node in requested}
        limits: tuple[bool, bool] | None = None  # few have to know
        for job in waiting:
            planned = self._is_planned(job)
            if job.allocation is not None:
                on = (node for node, _ in job.allocation.nodes)
                said = WAITS["boot" if any(node in booting for node in on) else "others"]
            elif planned and boots and not boots.isdisjoint(self.usable(job)):
                said = WAITS["boot"]
            elif not planned:
                said = WAITS["no_plan"]
            else:
                if limits is None:  # nodes that are given up count until they are gone
                    limits = self._limits(draft, _with_draining(draft, room, self.unwanted))
                full, capped = limits
                # Whoever was let in waits for no money: what is large enough costs too much.
                if capped and (full or job.id in self.let_in):
                    said = waits_for_cap(room.cap)
                else:
                    said = WAITS["no_room" if full else "worth"]
            taker = there.get(job.preempted_by)
            if job.allocation is None and taker is not None and taker.allocation is not None:
                said = preempted("job", job.preempted_by)
            if is_modest(job, draft.now):
                said = WAITS["modest"]
            if job.id not in self.short and job.reason != said:
                draft.put_job(replace(job, reason=said))

    def _node_waits(self, draft: Draft, room: Room) -> dict[GpuName, Seconds]:
        """Seconds until another node could be ready, of types of which one boots or may be
        rented."""
        boots, kinds = self.node_times.boots(self.gpu_types), self.gpu_types
        draining = _with_draining(draft, room, self.unwanted)
        free = left_to_rent(draining, self.nodes(draft))
        found = {name: boots.get(name, 0.0) for name, kind in kinds.items() if free.has(kind, 1)}
        for node in draft.nodes.values():
            if node.state == "requested" and is_usable(node) and node.id not in self.unwanted:
                wait_s = ready_in(node, boots, draft.now)
                found[node.gpu] = min(wait_s, found.get(node.gpu, math.inf))
        return found

    def _limits(self, draft: Draft, room: Room) -> tuple[bool, bool]:
        """Whether no node can be rented beside those that are there; whether one could but for the
        cap on the spend."""
        nodes, kinds = self.nodes(draft), self.gpu_types
        free = left_to_rent(room, nodes)
        return not any(free.has(kind, 1) for kind in kinds.values()), is_capped(room, nodes, kinds)

    def _someone_returns(self, draft: Draft) -> bool:
        """Whether a job that failed is tried again before another node could be had: none is given
        back until then."""
        boots = self.node_times.boots(self.gpu_types)
        soon = draft.now + max(boots.values(), default=0.0)
        waits = [job for job in draft.jobs.values() if job.retry_at and job.retry_at < soon]
        return any(not job.background for job in waits)

    def _seen(
        self, draft: Draft, jobs: Sequence[JobRecord], room: Room, preemption: Preemption
    ) -> ClusterView:
        """The view; for a market with what jobs that it knows nothing of are to have. Jobs that are
        preempted hold nothing in it."""
        view = self.view(draft, jobs, room)
        if not self.at_events:
            return view
        if victims := preemption.victims:
            shown = [replace(v, allocation=None) if v.id in victims else v for v in view.jobs]
            view = replace(view, jobs=shown)
        for job, seen in zip(jobs, view.jobs, strict=True):
            if seen.least is None and (least := self._least_by_now(job, draft.now)):
                set_least(seen, least)
        came_by = draft.now - self.patience_s
        before = self.let_in
        self.let_in = frozenset(
            [j.id for j in jobs if j.attempts or j.submitted_at <= came_by or j.id in before]
        )
        return replace(view, let_in=self.let_in, seats=frozenset(preemption.seats))

    def _least_by_now(self, job: JobRecord, now: Seconds) -> Share | None:
        """Share of a job should nothing be planned for it; None while it may wait for a plan."""
        if job.attempts == 0 and now < job.submitted_at + self.unplanned_s:
            return None
        share = job.share or self.least(job)
        return share and self.within(share, job, now)


class _Placed(NamedTuple):
    """A decision on nodes."""

    jobs: Sequence[JobRecord]
    """Those of which something may have to be written down …"""
    shares: Mapping[JobId, Share]
    """… and their shares."""
    allocations: Mapping[JobId, Allocation]
    new: Sequence[Node]
    """Nodes to be rented."""
    short: Mapping[JobId, Shortage]
    """Reasons of jobs that have less than was decided."""
    kept: frozenset[NodeId]
    """Nodes that are not given up."""


def _with_draining(draft: Draft, room: Room, draining: Iterable[NodeId]) -> Room:
    """Nodes that are to go as soon as they are empty count as given back."""
    found = (draft.nodes[node] for node in draining if node in draft.nodes)
    going = Counter(record.gpu for record in found if is_usable(record))
    if not going:
        return room
    return replace(room, releasing=Counter(room.releasing) + going)


def _anyone_on(
    new: Collection[NodeId],
    before: Mapping[JobId, Allocation],
    after: Mapping[JobId, Allocation],
) -> bool:
    """Whether a job is to have any of these nodes: only one that is given something else can."""
    has = before.get
    others = [given for job, given in after.items() if has(job) is not given]
    return any(node in new for given in others for node, _ in given.nodes)


_id = attrgetter("id")


def _shares(jobs: Sequence[JobRecord], after: Mapping[JobId, Allocation]) -> dict[JobId, Share]:
    return {job.id: _share(job, given) for job in jobs if (given := after.get(job.id))}


def _share(job: JobRecord, given: Allocation) -> Share:
    """Its share of what it is given: the one that it has, if that is the same."""
    has = job.share
    width = given.width
    if (
        has is not None
        and has.gpu == given.gpu
        and has.width == width
        and has.until is None
        and has.note is None
    ):
        return has
    return Share(given.gpu, width)


def _rentable(
    nodes: Sequence[Node],
    rented: Sequence[Node],
    gpu_types: Mapping[GpuName, GpuType],
    room: Room,
) -> list[Node]:
    """The first of these nodes that there is room for, together."""
    if can_rent(nodes, rented, gpu_types, room):
        return list(nodes)
    found: list[Node] = []
    for node in nodes:
        if can_rent([*found, node], rented, gpu_types, room):
            found.append(node)
    return found
