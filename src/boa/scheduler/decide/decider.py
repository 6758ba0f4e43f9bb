"""View → policy → decision → placement, for the jobs in a draft. Pure: no clock, no I/O."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from boa.model.cluster import (
    Allocation,
    ClusterView,
    Decision,
    JobId,
    JobView,
    Node,
    NodeId,
    NodeReason,
    NodeRoom,
    Policy,
    Share,
)
from boa.model.events import Cause, Shortage
from boa.model.job import JobRecord
from boa.model.records import NodeRecord
from boa.model.workload import GpuType
from boa.placement.fitting import Fitted, Room, Want, can_rent, fit, within_limits
from boa.placement.packing import allocate
from boa.policy.boa import Planned
from boa.policy.market.commitments import promised, to_go
from boa.scheduler.decide.reasons import Change, changes, reason
from boa.scheduler.decide.room import Refused, left_to_rent
from boa.scheduler.decide.views import KeptViews, believed_of, job_views
from boa.scheduler.event_words import rent_fields, shortage, shortage_fields
from boa.scheduler.learn.beliefs import Beliefs
from boa.scheduler.learn.node_times import NodeTimes
from boa.scheduler.lifecycle import drop_node
from boa.scheduler.money.purse import Commitments
from boa.scheduler.observe.messages import CloudRefused
from boa.scheduler.state import Draft, is_usable
from boa.units import GpuName, Seconds

UNPLANNED_S: Seconds = 10.0
"""A job that no plan knows of waits so long for one, then starts on the least it can run on.
Of the wall: that is where plans are made."""


@dataclass(slots=True, kw_only=True)
class Decider:
    """A policy with what it remembers. `by_job`: it is asked of single jobs, as soon as needed."""

    policy: Policy
    gpu_types: Mapping[GpuName, GpuType]
    beliefs: Beliefs
    round_s: Seconds
    memory: Any = None
    fresh_plan: bool = False
    """A new plan is in force, and every job has to be asked about again."""
    next_round: Seconds = 0.0
    unplanned_s: Seconds = UNPLANNED_S
    node_times: NodeTimes = field(default_factory=NodeTimes)
    """Seconds that nodes are seen to take to get ready, and to be gone."""
    unwanted: frozenset[NodeId] = frozenset()
    """Nodes that a policy which chooses its nodes has given up: they go as soon as they are
    empty."""
    chooses_nodes: bool = False
    """The last decision said which nodes to have, empty ones too."""
    refused: dict[GpuName, Refused] = field(default_factory=dict)
    """Types that the cloud had no more of."""
    short: Mapping[JobId, Shortage] = field(default_factory=dict)
    """Reasons of jobs that have less than planned, as they were told."""
    causes: dict[JobId, Cause] = field(default_factory=dict)
    """Why jobs are to have something else since this step …"""
    changed: Mapping[JobId, Change] = field(default_factory=dict)
    """… and of whom a market has changed the GPUs."""
    weighed: Mapping[NodeId, NodeReason] = field(default_factory=dict)
    """Worth of nodes when the policy last looked, where it weighs them."""
    views: KeptViews = field(default_factory=KeptViews)
    """Those that a market was shown last: it is asked of all jobs at every event."""

    @property
    def by_job(self) -> bool:
        return self.policy.by_job

    def decide(self, draft: Draft, room: Room) -> None:
        """Give every job its GPUs; rent what is missing."""
        self.causes.clear()
        if self.by_job or self.at_events:
            self._due_again(draft)
        if not self.by_job:
            if draft.now >= self.next_round or (self.at_events and self._stirred(draft)):
                self.next_round = draft.now + self.round_s
                self._round(draft, room)
            return
        asked = [job for job in draft.jobs.values() if self._needs_a_decision(job, draft.now)]
        if asked:
            self._ask(draft, asked)
        if asked or draft.replan:
            self._fit(draft, room)
        self.fresh_plan = False

    def _due_again(self, draft: Draft) -> None:
        """Refusals that are no longer believed, and jobs that are to be tried again."""
        for gpu in [gpu for gpu, said in self.refused.items() if said.until <= draft.now]:
            del self.refused[gpu]
            draft.replan = True  # whoever was short may grow again
        for job in [j for j in draft.jobs.values() if j.retry_at and j.retry_at <= draft.now]:
            draft.put_job(replace(job, retry_at=None))
            draft.replan = True

    @property
    def at_events(self) -> bool:
        return getattr(self.policy, "at_events", False)

    def _stirred(self, draft: Draft) -> bool:
        """Whether anything happened since the last decision that a market would answer: a job
        came, ended, failed, is to be tried again or has waited for a plan in vain; a node is
        ready, gone, lost, about to be taken or was refused, or may be asked for again; a budget
        was set; a plan is new."""
        if draft.replan or draft.arrived or self.fresh_plan:
            return True
        last = self.next_round - self.round_s
        return any(last < self._patient_until(job) <= draft.now for job in draft.jobs.values())

    def _patient_until(self, job: JobRecord) -> Seconds:
        """When a job that no plan knows is to start all the same; never, where one does."""
        planned = isinstance(self.memory, Planned) and job.job_class in self.memory.by_class
        if job.share is not None or (planned and not self.by_job):
            return math.inf
        return job.submitted_at + self.unplanned_s

    def wakes_at(self, job: JobRecord) -> Seconds:
        """When this job is to be asked about next though nothing happens to it."""
        if not self.by_job and not self.at_events:
            return self.next_round
        due = math.inf if self.by_job else self.next_round
        if job.retry_at is not None:
            return min(job.retry_at, due)
        patient = self._patient_until(job)
        return min(patient, due) if self.by_job or patient > self.next_round - self.round_s else due

    def planned(self, memory: Any) -> None:
        """A new plan is in force."""
        self.memory, self.fresh_plan = memory, True

    def forget_round(self) -> None:
        """The last decision was not stored: make it again."""
        self.fresh_plan, self.next_round, self.short = True, 0.0, {}

    def refuse(self, draft: Draft, said: CloudRefused, for_s: Seconds) -> None:
        """The cloud has no such node: whoever was to have it is placed anew, without it."""
        record = draft.nodes.get(said.node)
        if record is None or record.billed_from is not None:
            return
        draft.put_node(replace(record, state="gone", gone_at=draft.now, reason=said.reason))
        self.believe_none(draft, record.gpu, for_s, said.reason)
        drop_node(draft, record.id, draft.now)
        draft.tell(
            "shortage",
            node=record.id,
            why="refused",
            gpu_type=record.gpu,
            detail=said.reason,
            again_s=for_s,
        )

    def believe_none(self, draft: Draft, gpu: GpuName, for_s: Seconds, why: str) -> None:
        """No more nodes of this type than there are, for a while."""
        had = sum(node.gpu == gpu and is_usable(node) for node in draft.nodes.values())
        self.refused[gpu] = Refused(had, draft.now + for_s, why)

    # Policies that decide job by job

    def _needs_a_decision(self, job: JobRecord, now: Seconds) -> bool:
        if not _schedulable(job, now):
            return False
        return self.fresh_plan or job.share is None or _due(job)

    def _ask(self, draft: Draft, jobs: Sequence[JobRecord]) -> None:
        decision = self.policy.decide(self._view(draft, jobs)) if self.memory else Decision()
        for job in jobs:
            share = decision.shares.get(job.id)
            if share is None and draft.now - job.submitted_at >= self.unplanned_s:
                share = job.share or self._least(job)
            share = share and self._within(share, job)
            if share is not None and share != job.share:
                self.causes[job.id] = "epoch" if _due(job) else "plan"
                draft.put_job(replace(job, share=share))
                draft.replan = True

    def _least(self, job: JobRecord) -> Share | None:
        """Share of a job that nothing is planned for: the cheapest GPUs, the fewest."""
        usable = self._usable(job)
        if not usable:
            return None
        gpu = min(usable, key=lambda name: self.gpu_types[name].price)
        return Share(gpu, job.spec.gpus.min)

    def _usable(self, job: JobRecord) -> list[GpuName]:
        """GPU types that its user allows and that there are: one may have been dropped from the
        configuration since."""
        return [gpu for gpu in job.spec.gpus.types or self.gpu_types if gpu in self.gpu_types]

    def _within(self, share: Share, job: JobRecord) -> Share | None:
        """Inside of what the job's own user allows."""
        limits, usable = job.spec.gpus, self._usable(job)
        if not usable:
            return None
        width = min(max(share.width, limits.min), limits.max)
        gpu = share.gpu if share.gpu in usable else usable[0]
        if (gpu, width) == (share.gpu, share.width):
            return share
        return replace(share, gpu=gpu, width=width)

    def _fit(self, draft: Draft, room: Room) -> None:
        """Shares → allocations as there is room; a job that waits for a retry holds nothing."""
        placed = [
            job
            for job in draft.jobs.values()
            if job.share is not None and _schedulable(job, draft.now)
        ]
        wants = self._wants(placed, {job.id: job.share for job in placed if job.share})
        usable = draft.usable_nodes()
        fitted = fit(
            wants,
            current_allocations(draft.jobs.values()),
            [record.node for record in usable],
            self.gpu_types,
            draft.state.next_node,
            room,
        )
        _rent(draft, fitted.new_nodes, self.gpu_types)
        self._apply(draft, fitted)

    def _wants(self, jobs: Sequence[JobRecord], shares: Mapping[JobId, Share]) -> dict[JobId, Want]:
        believed = believed_of(jobs, self.beliefs)
        return {
            job.id: Want(
                share=shares[job.id],
                min=job.spec.gpus.min,
                max=job.spec.gpus.max,
                types=job.spec.gpus.types,
                arrival=job.submitted_at,
                prediction=believed[self.beliefs.kin(job)].prediction,
                epoch=job.epoch,
            )
            for job in jobs
        }

    def _apply(self, draft: Draft, fitted: Fitted) -> None:
        self.unwanted = frozenset(fitted.give_back)
        for job in list(draft.jobs.values()):
            if not job.stop_requested:
                given = fitted.allocations.get(job.id)
                self._give(draft, job, given, fitted.short.get(job.id))
        self.short = fitted.short

    def _give(
        self, draft: Draft, job: JobRecord, given: Allocation | None, short: Shortage | None
    ) -> None:
        """Write down what a job is to have, and why that is less than planned."""
        why = "" if short is None else shortage(short)
        if given == job.allocation and why in ("", job.reason):
            return
        state = job.state
        if job.run is None:
            state = "starting" if job.moved_at is None else "rescaling"
            state = "waiting" if given is None else state
        changed = replace(job, state=state, reason=why or job.reason)
        if given != job.allocation:
            cause = self.causes.get(job.id) if self.by_job else "round"
            left, change = self.beliefs.left(job), self.changed.get(job.id)
            told = reason(job, given, cause, self.memory, left, change)
            changed = replace(changed, allocation=given, why=told)
        draft.put_job(changed)
        if short is not None and why != job.reason and short != self.short.get(job.id):
            draft.tell("shortage", job=job.id, name=job.name, **shortage_fields(short))

    # Policies that look at all jobs at once

    def _round(self, draft: Draft, room: Room) -> None:
        jobs = [job for job in draft.jobs.values() if _schedulable(job, draft.now)]
        room, current = self._with_draining(draft, room), current_allocations(jobs)
        if self.at_events:
            here, active = self._nodes(draft), {job.id for job in jobs}
            _, surplus = within_limits(active, current, here, self.gpu_types, room)
            self.unwanted |= frozenset(surplus)
            room = self._with_draining(draft, room, surplus)
        view = self._view(draft, jobs, room)
        decision = self.policy.decide(view)
        going = {node: why for node, why in self.weighed.items() if node in self.unwanted}
        self.memory, self.weighed = decision.memory, {**going, **decision.reasons}
        self.fresh_plan, self.chooses_nodes = False, decision.nodes is not None
        usable = view.nodes
        after, nodes = allocate(decision, current, usable, self.gpu_types, draft.state.next_node)
        ids = {node.id for node in usable}
        new = [node for node in nodes if node.id not in ids]
        why: Mapping[JobId, Shortage] = {}
        used = {node for given in after.values() for node, _ in given.nodes}
        if new and not used & {node.id for node in new}:  # nobody waits for them: as many as can be
            new = _rentable(new, usable, self.gpu_types, room)
        wanted = {job.id: _share(job, given) for job in jobs if (given := after.get(job.id))}
        over = (room.spend_left or 0.0) < 0 and not self.at_events
        if over or not can_rent(new, usable, self.gpu_types, room):
            wants = self._wants([job for job in jobs if job.id in wanted], wanted)
            fitted = fit(wants, current, usable, self.gpu_types, draft.state.next_node, room)
            after, new, why = fitted.allocations, list(fitted.new_nodes), fitted.short
        if why or decision.nodes is None:
            kept = {node for given in after.values() for node, _ in given.nodes}
        else:
            kept = {node.id for node in nodes}
        if self.at_events and self._someone_returns(draft):
            kept = ids
        self.unwanted = (self.unwanted | (ids - kept)) & draft.nodes.keys()
        _rent(draft, new, self.gpu_types, self.weighed)
        if self.at_events:
            self.changed = changes(current, after, self.node_times.boots(self.gpu_types))
        for job in jobs:
            share, given, short = wanted.get(job.id), after.get(job.id), why.get(job.id)
            if share is job.share and given is job.allocation and short is None:
                continue  # most jobs, at most events
            if share != job.share:
                job = draft.put_job(replace(job, share=share))
            self._give(draft, job, given, short)
        self.short = why

    def _someone_returns(self, draft: Draft) -> bool:
        """Whether a job that failed is tried again before another node could be had: none is given
        back until then."""
        boots = self.node_times.boots(self.gpu_types)
        soon = draft.now + max(boots.values(), default=0.0)
        return any(job.retry_at and job.retry_at < soon for job in draft.jobs.values())

    def _with_draining(self, draft: Draft, room: Room, ids: Iterable[NodeId] | None = None) -> Room:
        """Nodes that are to go as soon as they are empty count as given back."""
        draining = self.unwanted if ids is None else ids
        going = Counter(
            record.gpu for record in draft.usable_nodes() if record.id in frozenset(draining)
        )
        return replace(room, releasing=Counter(room.releasing) + going)

    def commitments(self, draft: Draft) -> Commitments | None:
        """Money that jobs will take, as far as it is known; nothing before there is a plan."""
        if not isinstance(self.memory, Planned):
            return None
        worths = self.memory.worths(self.memory.price)
        jobs = self._job_views(draft, list(draft.jobs.values()))
        workload = self.memory.solution.workload
        return Commitments(to_go(jobs, worths), promised(workload, worths))

    def _nodes(self, draft: Draft) -> list[Node]:
        unwanted = self.unwanted
        found = [n for n in draft.nodes.values() if n.id not in unwanted and is_usable(n)]
        return [record.node for record in sorted(found, key=_id)]

    def _job_views(self, draft: Draft, jobs: Sequence[JobRecord]) -> list[JobView]:
        made = self.views.of if self.at_events else job_views
        return made(jobs, self.beliefs, self.gpu_types, draft.now)

    def _view(
        self, draft: Draft, jobs: Sequence[JobRecord], room: Room | None = None
    ) -> ClusterView:
        nodes, boots = self._nodes(draft), self.node_times.boots(self.gpu_types)
        views = self._job_views(draft, jobs)
        if self.at_events:
            least = {job.id: self._least_by_now(job, draft.now) for job in jobs}
            views = [replace(view, least=least[view.id]) for view in views]
        return ClusterView(
            now=draft.now,
            jobs=views,
            nodes=nodes,
            gpu_types=self.gpu_types,
            next_node=draft.state.next_node,
            memory=self.memory,
            booting={
                node.id: _ready_in(draft.nodes[node.id], boots, draft.now)
                for node in nodes
                if draft.nodes[node.id].state == "requested"
            },
            boot_s=boots,
            reclaim_s=self.node_times.reclaims(self.gpu_types),
            room=NodeRoom() if room is None else left_to_rent(room, nodes),
        )

    def _least_by_now(self, job: JobRecord, now: Seconds) -> Share | None:
        """Share of a job should nothing be planned for it; None while it may wait for a plan."""
        if job.attempts == 0 and now < job.submitted_at + self.unplanned_s:
            return None
        share = job.share or self._least(job)
        return share and self._within(share, job)


def _ready_in(node: NodeRecord, boots: Mapping[GpuName, Seconds], now: Seconds) -> Seconds:
    """Seconds until a node is expected to be ready; one that is late is expected to be as late
    again."""
    return abs(node.requested_at + boots.get(node.gpu, 0.0) - now)


_id = attrgetter("id")


def _schedulable(job: JobRecord, now: Seconds) -> bool:
    return not job.stop_requested and (job.retry_at is None or job.retry_at <= now)


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


def _due(job: JobRecord) -> bool:
    """Whether an epoch has begun that its share does not reach into."""
    share = job.share
    return share is not None and share.until is not None and job.epoch >= share.until


def current_allocations(jobs: Iterable[JobRecord]) -> dict[JobId, Allocation]:
    return {job.id: job.allocation for job in jobs if job.allocation is not None}


def _rentable(
    nodes: Sequence[Node],
    rented: Sequence[Node],
    gpu_types: Mapping[GpuName, GpuType],
    room: Room,
) -> list[Node]:
    """The first of these nodes that there is room for, together."""
    found: list[Node] = []
    for node in nodes:
        if can_rent([*found, node], rented, gpu_types, room):
            found.append(node)
    return found


def _rent(
    draft: Draft,
    nodes: Sequence[Node],
    gpu_types: Mapping[GpuName, GpuType],
    reasons: Mapping[NodeId, NodeReason] | None = None,
) -> None:
    """Write down that these are to be rented; who rents them reads it from there."""
    for node in nodes:
        price = gpu_types[node.gpu].price
        draft.put_node(
            NodeRecord(
                id=node.id,
                token=f"{draft.state.cluster}-{node.id}",
                gpu=node.gpu,
                gpus=node.gpus,
                price=price,
                requested_at=draft.now,
            )
        )
        draft.state.next_node = max(draft.state.next_node, node.id + 1)
        draft.tell(
            "node_rented",
            node=node.id,
            gpu_type=node.gpu,
            gpus=node.gpus,
            price_per_hour=price * node.gpus,
            **rent_fields((reasons or {}).get(node.id)),
        )
