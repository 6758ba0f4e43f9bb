"""A policy with what it remembers, and what all ways of asking it have in common. Pure.

`by_job.py` asks of single jobs, `at_once.py` of all jobs together.
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from boa.model.cluster import (
    Allocation,
    ClusterView,
    JobId,
    JobView,
    Node,
    NodeId,
    NodeReason,
    NodeRoom,
    Policy,
    Prediction,
    Share,
)
from boa.model.events import Cause, Shortage
from boa.model.job import JobRecord
from boa.model.prices import Changes
from boa.model.priorities import Priorities
from boa.model.records import NodeRecord
from boa.model.workload import GpuType
from boa.placement.fitting import Room, Want, within_limits
from boa.policy.boa import Planned
from boa.policy.market.commitments import Arriving, arriving, to_go
from boa.replacing import replace
from boa.scheduler.decide.barring import barred_for, kept_off
from boa.scheduler.decide.part_caps import Allowance, Caps, allowances
from boa.scheduler.decide.preemption import Holder, Preemption, make_room, part_of
from boa.scheduler.decide.protection import (
    CALM,
    RESTLESS,
    Calm,
    Pressure,
    Protection,
    is_modest,
    may_preempt,
    protection,
    standing,
)
from boa.scheduler.decide.reasons import Change, reason
from boa.scheduler.decide.reservation import (
    Line,
    Reservations,
    expected_s,
    is_overdue,
    reservations,
)
from boa.scheduler.decide.room import Refused, left_to_rent
from boa.scheduler.decide.views import KeptViews, believed_of, job_views
from boa.scheduler.learn.beliefs import Beliefs, Believed
from boa.scheduler.learn.node_times import NodeTimes
from boa.scheduler.lifecycle import drop_node
from boa.scheduler.money.steering import Commitments
from boa.scheduler.observe.messages import CloudRefused
from boa.scheduler.state import Draft, is_usable
from boa.scheduler.stop_cost import StopCost, stop_cost
from boa.scheduler.words.of_keeping import WAITS
from boa.scheduler.words.of_nodes import rent_fields
from boa.scheduler.words.of_shortages import shortage, shortage_fields
from boa.units import GpuName, Seconds

UNPLANNED_S: Seconds = 10.0
"""A job that no plan knows of waits so long for one, then starts on the least it can run on.
Of the wall: that is where plans are made."""
UNBEARABLE_S: Seconds = 1e9
"""Cost of leaving a node with a job that cannot checkpoint: others go first."""


@dataclass(slots=True, kw_only=True)
class Decider(ABC):
    """A policy with what it remembers."""

    policy: Policy
    gpu_types: Mapping[GpuName, GpuType]
    beliefs: Beliefs
    round_s: Seconds
    coming: Mapping[GpuName, Changes] = field(default_factory=dict)
    """Changes of their prices that are known ahead, of types that have any."""
    memory: Any = None
    fresh_plan: bool = False
    """A new plan is in force, and every job has to be asked about again."""
    next_round: Seconds = 0.0
    unplanned_s: Seconds = UNPLANNED_S
    patience_s: Seconds = 0.0
    """Seconds that a job may wait for GPUs that it is not worth: the purse's, at every step."""
    priorities: Priorities = field(default_factory=Priorities)
    caps: Caps = ()
    """Hard caps of those who share the budget: the purse's, at every step."""
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
    taken: Mapping[JobId, JobId] = field(default_factory=dict)
    """Jobs that lose all their GPUs, and the jobs of a higher priority that get them."""
    held_up: Mapping[JobId, JobId] = field(default_factory=dict)
    """Jobs that may not start before another one that waits for longer, and that one."""
    waits_since: dict[JobId, Seconds] | None = None
    """When jobs that wait for GPUs began to; None: no decision was made since the service began."""
    over_cap: frozenset[JobId] = frozenset()
    """Jobs that a hard cap leaves no GPUs."""
    calm: float = CALM
    """Rescaling times for which a market leaves a job where it is, once it was rescaled."""
    asked_again: set[JobId] = field(default_factory=set)
    """Jobs that count more or less than when they were last asked about."""
    weighed: Mapping[NodeId, NodeReason] = field(default_factory=dict)
    """Worth of nodes when the policy last looked, where it weighs them."""
    newest: Mapping[NodeId, NodeReason] = field(default_factory=dict)
    """The same of all nodes that are there, also of those that it did not look at since."""
    arrivals_come_to: tuple[Any, Arriving] = (None, Arriving(0.0, 0.0, {}))
    """The worths that jobs go by, and what jobs which arrive will hold by them."""
    pressure: Pressure = field(default_factory=Pressure)
    """How strictly running jobs keep their GPUs at this decision."""
    views: KeptViews = field(default_factory=KeptViews)
    """Those that a market was shown last: it is asked of all jobs at every event."""
    running: Mapping[JobId, "_Running"] = field(default_factory=dict)
    """Running jobs as preemption looked at them last: few records are others by the next time."""
    looked: "_Looked | None" = None
    """Nodes when they were last looked at: several times in every decision."""

    @property
    def by_job(self) -> bool:
        """It is asked of single jobs, as soon as needed."""
        return self.policy.by_job

    @property
    def at_events(self) -> bool:
        """It is asked of all jobs whenever anything happens."""
        return getattr(self.policy, "at_events", False)

    @property
    def follows_plan(self) -> bool:
        """It is asked only once there is a plan, and remembers that."""
        return getattr(self.policy, "follows_plan", False)

    @abstractmethod
    def decide(self, draft: Draft, room: Room) -> None:
        """Give every job its GPUs; rent what is missing."""

    @abstractmethod
    def wakes_at(self, job: JobRecord) -> Seconds:
        """When this job is to be asked about next though nothing happens to it."""

    def due_again(self, draft: Draft) -> None:
        """Refusals that are no longer believed, and jobs that are to be tried again."""
        for gpu in [gpu for gpu, said in self.refused.items() if said.until <= draft.now]:
            del self.refused[gpu]
            draft.replan = True  # whoever was short may grow again
        for job in [j for j in draft.jobs.values() if j.retry_at and j.retry_at <= draft.now]:
            draft.put_job(replace(job, retry_at=None))
            draft.replan = draft.replan or not job.background

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

    def commitments(self, draft: Draft, since: Seconds) -> Commitments | None:
        """Money that jobs will take, as far as it is known, and those take that came after `since`;
        nothing before there is a plan."""
        if not isinstance(self.memory, Planned):
            return None
        worths = self.memory.worths(self.memory.price)
        jobs = self.job_views(draft, [job for job in draft.paying if not job.held_back])
        before, coming = self.arrivals_come_to
        if before is not worths:  # as long as plan and price are the same
            coming = arriving(self.memory.solution.workload, worths)
            self.arrivals_come_to = worths, coming
        new = (job for job in draft.paying if job.submitted_at > since)
        return Commitments(
            to_go=to_go(jobs, worths, self.memory.facts),
            promised=coming.dollars,
            variance=coming.variance,
            came=sum(coming.each.get(job.stream, 0.0) for job in new),
        )

    def least(self, job: JobRecord) -> Share | None:
        """Share of a job that nothing is planned for: the cheapest GPUs, the fewest."""
        usable = self.usable(job)
        if not usable:
            return None
        gpu = min(usable, key=lambda name: self.gpu_types[name].price)
        return Share(gpu, job.spec.gpus.min)

    def usable(self, job: JobRecord) -> list[GpuName]:
        """GPU types that its user allows and that there are: one may have been dropped from the
        configuration since."""
        return [gpu for gpu in job.spec.gpus.types or self.gpu_types if gpu in self.gpu_types]

    def within(self, share: Share, job: JobRecord, now: Seconds) -> Share | None:
        """Inside of what the job's own user allows, and not where it or its like have failed."""
        limits, usable = job.spec.gpus, self.usable(job)
        if not usable:
            return None
        width = min(max(share.width, limits.min), limits.max)
        gpu = share.gpu if share.gpu in usable else usable[0]
        barred = barred_for(job, self.beliefs.of(job).bars, self.gpu_types, now).states
        if (gpu, width) in barred:
            gpu, width = self._nearest(job, gpu, width, barred)
        if (gpu, width) == (share.gpu, share.width):
            return share
        return replace(share, gpu=gpu, width=width)

    def _nearest(
        self, job: JobRecord, gpu: GpuName, width: int, barred: AbstractSet[tuple[GpuName, int]]
    ) -> tuple[GpuName, int]:
        """The type and width that comes nearest to this one and is not barred: rather narrower than
        wider, rather of the same type than of another, and of others of the cheapest."""
        limits = job.spec.gpus
        free = (
            (name, k)
            for name in self.usable(job)
            for k in range(limits.min, limits.max + 1)
            if (name, k) not in barred
        )
        return min(
            free,
            key=lambda at: (
                at[0] != gpu,
                self.gpu_types[at[0]].price,
                at[1] > width,
                abs(at[1] - width),
            ),
            default=(gpu, width),
        )

    def allowed(
        self,
        draft: Draft,
        jobs: Sequence[JobRecord],
        wished: Mapping[JobId, Share],
        *,
        full: bool,
        behind: Collection[JobId] = (),
    ) -> Mapping[JobId, Allowance]:
        """Allowances of jobs under caps; few services have such caps. `behind`: jobs that another
        one comes before, and that need no money until then."""
        if not self.caps:
            return {}
        usable, now = {job.id: self.usable(job) for job in jobs}, draft.now
        holders = self.holders(jobs, now, self.calm_now(draft, full=full), {})
        keeps = {one.id for one in holders if one.keeps_work}
        settling = {one.id for one in holders if one.settling}
        humble = {job.id for job in jobs if job.run is None and not may_preempt(job, now)}
        stuck = self._stuck(draft, holders).union(behind) if full else set()
        return allowances(
            self.caps, jobs, wished, usable, self.gpu_types, keeps, humble, stuck, settling
        )

    def _stuck(self, draft: Draft, jobs: Sequence[Holder]) -> set[JobId]:
        """Return jobs that wait and would lack GPUs even if all others were narrowed. Once their
        turn has come, money is kept for them, as GPUs are."""
        room, since = self._free(draft), self.waits_since or {}
        for job in jobs:
            if job.held is not None and not job.keeps_work:
                room[job.held.gpu] += max(job.held.width - job.least, 0)
        lowest = min((job.rank for job in jobs if job.held is not None), default=0)
        return {
            job.id
            for job in jobs
            if job.waits
            and job.rank <= lowest
            and all(room[gpu] < job.least for gpu in job.types)
            and not is_overdue(draft.jobs[job.id], draft.now - since.get(job.id, draft.now))
        }

    def _free(self, draft: Draft) -> Counter[GpuName]:
        """Return the GPUs of every type that are ready and that no job has."""
        ready = {node.id: node for node in draft.usable_nodes() if node.state == "ready"}
        free = Counter[GpuName]()
        for node in ready.values():
            free[node.gpu] += node.gpus
        for job in draft.jobs.values():
            on = job.allocation if job.run is None else job.run.allocation
            for id, count in () if on is None else on.nodes:
                if id in ready:
                    free[ready[id].gpu] -= count
        return free

    def wants(
        self, jobs: Sequence[JobRecord], shares: Mapping[JobId, Share], now: Seconds
    ) -> dict[JobId, Want]:
        believed = believed_of(jobs, self.beliefs)

        def prediction(job: JobRecord) -> Prediction:
            known = believed[self.beliefs.kin(job)]
            barred = barred_for(job, known.bars, self.gpu_types, now)
            return kept_off(known.prediction, barred)

        return {
            job.id: Want(
                share=shares[job.id],
                min=job.spec.gpus.min,
                max=job.spec.gpus.max,
                types=job.spec.gpus.types,
                arrival=job.submitted_at,
                prediction=prediction(job),
                epoch=job.epoch,
            )
            for job in jobs
        }

    def give(
        self, draft: Draft, job: JobRecord, given: Allocation | None, short: Shortage | None
    ) -> None:
        """Write down what a job is to have, and why that is less than planned."""
        why = "" if short is None else shortage(short)
        if given == job.allocation and why in ("", job.reason):
            return
        state = job.state
        if job.run is None:
            state = "starting" if job.moved_at is None else "rescaling"
            if given is None:
                state = "preempted" if job.state == "preempted" else "waiting"
        changed = replace(job, state=state, reason=why or job.reason)
        if given != job.allocation:
            cause = self.causes.get(job.id) if self.by_job else "round"
            left, change = self.beliefs.left(job), self.changed.get(job.id)
            scale = self._work_scale(job)
            lost_s = self.stop_cost(job, draft.now).lost_s
            told = reason(job, given, cause, self.memory, left, change, scale=scale, lost_s=lost_s)
            if given is None:
                by = self.taken.get(job.id)
                if by:
                    told = {**told, "taken": "job", "by": by}
                elif job.id in self.over_cap:
                    told = {**told, "taken": "cap"}
            changed = replace(changed, allocation=given, why=told)
        draft.put_job(changed)
        if short is not None and why != job.reason and short != self.short.get(job.id):
            draft.tell("shortage", job=job.id, name=job.name, **shortage_fields(short))

    def stop_cost(self, job: JobRecord, now: Seconds) -> StopCost:
        """Return what stopping a job's run costs now, by what is believed of its class."""
        known, run = self.beliefs.of(job), job.run
        gpu = None if run is None else self.gpu_types.get(run.allocation.gpu)
        return stop_cost(job, now, rescale_s=known.rescale_s, saves=known.saves, gpu=gpu)

    def holders(
        self,
        jobs: Sequence[JobRecord],
        now: Seconds,
        calm: Calm,
        allowed: Mapping[JobId, Allowance],
        first: AbstractSet[JobId] = frozenset(),
    ) -> list[Holder]:
        """Return the jobs as preemption looks at them. `allowed`: what caps let them hold."""
        believed, kin = believed_of(jobs, self.beliefs), self.beliefs.kin
        before, self.running, found = self.running, dict[JobId, _Running](), []
        for job in jobs:
            known = believed[kin(job)]
            if allowed or job.run is None:
                found.append(self._holder(job, known, now, calm, allowed, first))
                continue
            terms = (known.rescale_s, known.saves, self.gpu_types)
            last = before.get(job.id)
            if last is None or last.record is not job or last.terms != terms:
                guard = protection(job, known.rescale_s, known.saves)
                last = _Running(job, terms, guard, self._holder(job, known, now, calm, {}))
            self.running[job.id], holder = last, last.holder
            passing = last.guard.settles(now, calm), job.id in first
            if passing != (holder.settling, holder.first):
                holder = holder._replace(settling=passing[0], first=passing[1])
            found.append(holder)
        return found

    def _holder(
        self,
        job: JobRecord,
        known: Believed,
        now: Seconds,
        calm: Calm,
        allowed: Mapping[JobId, Allowance],
        first: AbstractSet[JobId] = frozenset(),
    ) -> Holder:
        run, held, limits = job.run, job.allocation, job.spec.gpus
        if held is None and run is not None and run.state != "stopping":
            held = run.allocation  # its booking is gone
        guard, most = protection(job, known.rescale_s, known.saves), allowed.get(job.id)
        if most is not None and held is not None:
            width = most.width(held.gpu, self.gpu_types)
            held = part_of(held, width) if width >= min(held.width, limits.min) else None
        waits = job.allocation is None and run is None and self._may_start(job, now)
        return Holder(
            id=job.id,
            rank=standing(job, now),
            held=held,
            least=limits.min,
            types=tuple(
                gpu
                for gpu in self.usable(job)
                if most is None or most.allows(gpu, limits.min, self.gpu_types)
            ),
            keeps_work=guard.keeps_work,
            settling=guard.settles(now, calm),
            runs=run is not None and held is not None,
            waits=waits,
            first=job.id in first,
            modest=is_modest(job, now),
            started=job.attempts > 0,
            arrival=job.submitted_at,
        )

    @abstractmethod
    def _may_start(self, job: JobRecord, now: Seconds) -> bool:
        """Return whether a job that waits would start if it had GPUs."""

    def calm_now(self, draft: Draft, *, full: bool) -> Calm:
        """Return how long jobs keep their GPUs after a rescaling. `full`: no node can be rented."""
        if not full:
            return RESTLESS
        ready = (node.ready_at for node in draft.usable_nodes())
        return Calm(self.calm, max((at for at in ready if at is not None), default=-math.inf))

    def preemption(self, draft: Draft, jobs: Sequence[Holder]) -> Preemption:
        """Return the jobs that give way to others of a higher priority."""
        nodes = self.nodes(draft)
        ready = [node for node in nodes if draft.nodes[node.id].state == "ready"]
        return make_room(
            jobs, ready, lambda job: self.stop_cost(draft.jobs[job], draft.now).seconds
        )

    def emptied(
        self, draft: Draft, room: Room, current: Mapping[JobId, Allocation], nodes: Sequence[Node]
    ) -> Room:
        """Return the room with what it costs jobs to leave their nodes, where nodes must go."""
        _, surplus = within_limits(current, current, nodes, self.gpu_types, room)
        if not surplus:
            return room
        loss = dict.fromkeys((node.id for node in nodes), 0.0)
        for job in (draft.jobs[id] for id in current):
            cost = self.stop_cost(job, draft.now)
            for node in () if job.run is None else job.run.slots.keys() & loss.keys():
                loss[node] += cost.seconds + (0.0 if cost.keeps else UNBEARABLE_S)
        return replace(room, vacating=loss)

    def reserved(
        self, draft: Draft, jobs: Sequence[JobRecord], allowed: Mapping[JobId, Allowance]
    ) -> Reservations:
        """Return the jobs that are next in line on a full cluster, and those that must not start
        before them. `allowed`: what caps let jobs hold; one that they let wait is not in line."""
        now, seen = draft.now, self.waits_since
        inside = [job for job in jobs if (most := allowed.get(job.id)) is None or most.most]
        idle = [job for job in jobs if job.run is None]  # a booking may be lost again
        fresh = {job.id: now if job.attempts else job.submitted_at for job in idle}
        waits = {job: fresh[job] if seen is None else seen.get(job, now) for job in fresh}
        self.waits_since = waits
        if all(job.allocation is not None for job in idle):
            return Reservations()
        believed = believed_of(inside, self.beliefs)

        def ends_in(job: JobRecord) -> Seconds:
            assert job.run is not None
            return self.expected_s(job, job.run.allocation.gpu, job.run.allocation.width)

        def takes_s(job: JobRecord) -> Seconds:
            least = self.least(job)
            start_s = believed[self.beliefs.kin(job)].rescale_s
            return (
                math.inf
                if least is None
                else start_s + self.expected_s(job, least.gpu, least.width)
            )

        def spare(job: JobRecord) -> int:
            known, on = believed[self.beliefs.kin(job)], job.allocation
            fixed = on is None or protection(job, known.rescale_s, known.saves).keeps_work
            return 0 if fixed or on is None else max(on.width - job.spec.gpus.min, 0)

        line = Line(
            jobs=inside,
            rank=lambda job: standing(job, now),
            waited_s=lambda job: now - waits[job.id],
            ends_in=ends_in,
            takes_s=takes_s,
            spare=spare,
            usable=self.usable,
            free=self._free(draft),
        )
        return reservations(line)

    def next_turn(self, draft: Draft) -> bool:
        """Say which jobs wait for their turn; return whether the turn of any has come, since the
        job before it has its GPUs now."""
        come = [job for job, first in self.held_up.items() if draft.jobs[first].allocation]
        if not come:
            for job in [draft.jobs[id] for id in self.held_up]:
                if job.reason != WAITS["turn"]:
                    draft.put_job(replace(job, reason=WAITS["turn"]))
        return bool(come)

    def expected_s(self, job: JobRecord, gpu: GpuName, width: int) -> Seconds:
        """Return how long a job still trains on these GPUs; infinite where that is unknown."""
        left, scale = self.beliefs.left(job), self._work_scale(job)
        return expected_s(self.memory, job, gpu, width, left, scale)

    def _work_scale(self, job: JobRecord) -> float | None:
        """Return the job's work over that of its class; None where nobody knows its work."""
        work, units = sum(self.beliefs.work(job)), sum(self.beliefs.units(job.stream))
        return work / units if work > 0 and units > 0 else None

    def nodes(self, draft: Draft) -> Sequence[Node]:
        """Nodes that jobs may have, by rising id; the same again while no record is another."""
        unwanted, records = self.unwanted, list(draft.nodes.values())
        last = self.looked
        if last is None or last.unwanted != unwanted or last.records != records:
            found = [n for n in records if n.id not in unwanted and is_usable(n)]
            found.sort(key=_id)
            last = _Looked(records, unwanted, tuple([record.node for record in found]))
            self.looked = last
        return last.nodes

    def job_views(self, draft: Draft, jobs: Sequence[JobRecord]) -> list[JobView]:
        if not self.at_events:
            return job_views(jobs, self.beliefs, self.gpu_types, draft.now)
        return self.views.of(jobs, self.beliefs, self.gpu_types, draft.now, self.pressure)

    def view(
        self, draft: Draft, jobs: Sequence[JobRecord], room: Room | None = None
    ) -> ClusterView:
        nodes, boots = self.nodes(draft), self.node_times.boots(self.gpu_types)
        requested = {n.id for n in draft.nodes.values() if n.state == "requested"}
        return ClusterView(
            now=draft.now,
            jobs=self.job_views(draft, jobs),
            nodes=nodes,
            gpu_types=self.gpu_types,
            next_node=draft.state.next_node,
            memory=self.memory,
            booting={
                node.id: ready_in(draft.nodes[node.id], boots, draft.now)
                for node in (nodes if requested else ())
                if node.id in requested
            },
            boot_s=boots,
            reclaim_s=self.node_times.reclaims(self.gpu_types),
            room=NodeRoom() if room is None else left_to_rent(room, nodes),
        )


class _Running(NamedTuple):
    """A running job as preemption looks at it: only `settling` and `first` pass by themselves."""

    record: JobRecord
    terms: tuple[Seconds, bool | None, Mapping[GpuName, GpuType]]
    """Beliefs, and the GPU types, that it was made by."""
    guard: Protection
    holder: Holder


class _Looked(NamedTuple):
    records: list[NodeRecord]
    unwanted: frozenset[NodeId]
    nodes: tuple[Node, ...]


def ready_in(node: NodeRecord, boots: Mapping[GpuName, Seconds], now: Seconds) -> Seconds:
    """Seconds until a node is expected to be ready; one that is late is expected to be as late
    again."""
    return abs(node.requested_at + boots.get(node.gpu, 0.0) - now)


_id = attrgetter("id")


def schedulable(job: JobRecord, now: Seconds) -> bool:
    if job.stop_requested or job.held_back:
        return False
    return job.retry_at is None or job.retry_at <= now


def current_allocations(jobs: Iterable[JobRecord]) -> dict[JobId, Allocation]:
    return {job.id: job.allocation for job in jobs if job.allocation is not None}


def rent(
    draft: Draft,
    nodes: Sequence[Node],
    gpu_types: Mapping[GpuName, GpuType],
    reasons: Mapping[NodeId, NodeReason] | None = None,
    coming: Mapping[GpuName, Changes] | None = None,
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
                changes=(coming or {}).get(node.gpu, ()),
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
