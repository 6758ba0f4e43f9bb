"""The loop: jobs arrive, the policy decides, placement gives GPUs, training goes on.

Two ways to be asked. In rounds, every `interval_s` the policy sees all jobs. At events, it sees a
job when it arrives and when it reaches the epoch that its share named; that suits policies that
decide job by job, and costs nothing for jobs that nothing happens to.
"""

import heapq
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from boa.clock import VirtualClock
from boa.model.cluster import (
    Allocation,
    ClusterView,
    Decision,
    JobId,
    Node,
    Policy,
    Share,
)
from boa.model.trace import TraceJob
from boa.placement.packing import allocate
from boa.placement.pool import Pool
from boa.scheduler.plan.planning import REPLAN_S, inline_planner, plan_now
from boa.sim.engine import crowded
from boa.sim.jobs import NEVER, ActiveJob
from boa.sim.knowledge import Knowledge
from boa.sim.recording import Listener, Recording
from boa.sim.rental import Rental
from boa.sim.report import SimulationReport
from boa.sim.settings import Settings
from boa.sim.stuck import Patience
from boa.units import Seconds, UsdPerHour

Progress = Callable[[int, Seconds], None]
"""(jobs ended, virtual time)"""


class QuickSimulation:
    def __init__(
        self,
        jobs: Iterable[TraceJob],
        knowledge: Knowledge,
        policy: Policy,
        settings: Settings,
        *,
        span_s: Seconds,
        budget: UsdPerHour | None = None,
        listener: Listener | None = None,
        keep_jcts: bool = False,
    ) -> None:
        """`budget`: what plans are made with, for a policy that follows one."""
        self.settings, self.policy, self.knowledge = settings, policy, knowledge
        self._budget = budget
        self._planner = inline_planner(knowledge)
        self.clock = VirtualClock()
        self.span_s = span_s
        self.active: dict[JobId, ActiveJob] = {}
        self.rental = Rental(knowledge.gpu_types, settings.provision_s, settings.reclaim_s)
        self.recording = Recording(knowledge, span_s, listener, keep_jcts=keep_jcts)
        self.tally = self.recording.tally
        self.memory: Any = None
        self._arrivals: Iterator[TraceJob] = iter(jobs)
        self._next: TraceJob | None = next(self._arrivals, None)
        self._arrived = 0
        self._serials: dict[str, int] = {}
        self._pools = {
            gpu: Pool(gpu, kind.gpus_per_node) for gpu, kind in knowledge.gpu_types.items()
        }
        self._wakes: list[tuple[Seconds, int, ActiveJob, int]] = []
        self._order = 0
        self._replan_at = REPLAN_S
        self._patience = Patience(settings.interval_s)

    def run(self, progress: Progress | None = None) -> SimulationReport:
        began = time.perf_counter()
        for gpu, count in (self.settings.cluster or {}).items():
            size = self.knowledge.gpu_types[gpu].gpus_per_node
            for _ in range(count):
                node = Node(self.rental.next_node, gpu, size)
                self._rent(node, 0.0, ready_at_once=True)
        step = self._step_events if self.settings.interval_s is None else self._step_rounds
        steps = 0
        while step():
            steps += 1
            if progress is not None and steps % 64 == 0:
                progress(len(self.tally.jcts), self.clock.now())
        for rented in list(self.rental.nodes):
            self._release(rented, max(self.clock.now(), self.tally.last_end))
        return SimulationReport(
            policy=self.policy.name,
            settings=self.settings,
            gpu_types=self.knowledge.gpu_types,
            jobs=self._arrived,
            span_s=self.span_s,
            tally=self.tally,
            rental=self.rental,
            series=self.recording.series,
            wall_s=time.perf_counter() - began,
            notes=dict(getattr(self.memory, "report", {}) or {}),
        )

    # Rounds

    def _step_rounds(self) -> bool:
        interval = self.settings.interval_s
        assert interval is not None
        if not self.active:
            if self._next is None:
                return False
            idle_until = max(math.ceil(self._next.arrival_s / interval) - 1, 0) * interval
            self._sample_to(idle_until)
            self.clock.advance_to(max(idle_until, self.clock.now()))
        now = self.clock.now() + interval
        self._sample_to(now)
        self.clock.advance_to(now)
        for job in list(self.active.values()):
            self._advance(job, now)
        self._admit(now)
        self._refresh(now)
        if self.settings.retune:
            for job in self.active.values():
                job.pace = None
        views = [job.as_view() for job in self.active.values()]
        self._plan(now)
        decision = self._decide(views)
        self._apply_round(decision, now)
        if self.settings.interference:
            self._interfere(now)
        ended = len(self.tally.jcts)
        return self._next is not None or not self._patience.lost(now, self.active.values(), ended)

    def _admit(self, now: Seconds) -> None:
        while self._next is not None and self._next.arrival_s <= now:
            job = self._arrive()
            job.clock = now

    def _apply_round(self, decision: Decision, now: Seconds) -> None:
        current = {j.id: j.allocation for j in self.active.values() if j.allocation is not None}
        after, nodes = allocate(
            decision,
            current,
            self.rental.all_nodes(),
            self.knowledge.gpu_types,
            self.rental.next_node,
        )
        for job in self.active.values():
            if job.allocation is not None and after.get(job.id) != job.allocation:
                self.rental.await_boot(job.allocation, now, leave=True)
        self._rent_exactly(nodes, now)
        for job in self.active.values():
            job.apply(decision.shares.get(job.id))
            new = after.get(job.id)
            if new != job.allocation:
                self._move(job, new, now)

    def _rent_exactly(self, nodes: Iterable[Node], now: Seconds) -> None:
        wanted = {node.id: node for node in nodes}
        for unwanted in [known for known in self.rental.nodes if known not in wanted]:
            self._release(unwanted, now)
        for node in wanted.values():
            if node.id not in self.rental.nodes:
                self._rent(node, now)

    # Events

    def _step_events(self) -> bool:
        while self._wakes and self._wakes[0][3] != self._wakes[0][2].stamp:
            heapq.heappop(self._wakes)  # overtaken by a later move
        arrival = self._next.arrival_s if self._next is not None else NEVER
        wake = self._wakes[0][0] if self._wakes else NEVER
        now = min(arrival, wake)
        if now == NEVER:
            return False
        self._sample_to(now)
        self.clock.advance_to(now)
        self._refresh(now)
        if arrival <= wake:
            job = self._arrive()
        else:
            job = heapq.heappop(self._wakes)[2]
            if not job.finished:  # or the sample of this very moment has ended it
                self._advance(job, now)
        due = job.allocation is None or (job.until is not None and job.epoch >= job.until)
        self._ask([job] if due and not job.finished else [], now)
        if not due and not job.finished:
            self._schedule(job)
        return True

    def _ask(self, jobs: list[ActiveJob], now: Seconds) -> None:
        """These jobs get their GPUs by the plan in force; if it is time for a new one, everybody is
        asked about when it is there. As by the service, which looks for that at every event."""
        before = self.memory
        if jobs and (before is not None or self._budget is None):
            self._give(jobs, now)
        self._plan(now)
        if self._budget is not None and self.memory is not before:
            for job in list(self.active.values()):
                self._advance(job, now)
            self._give(list(self.active.values()), now)
        if self.settings.interference:
            self._interfere(now)

    def _give(self, jobs: list[ActiveJob], now: Seconds) -> None:
        decision = self._decide([job.as_view() for job in jobs])
        self._apply_shares(jobs, decision.shares, now)
        for job in jobs:
            self._schedule(job)

    def _plan(self, now: Seconds) -> None:
        if self._budget is not None:
            self.memory = plan_now(self._planner, now, self._budget)

    def _schedule(self, job: ActiveJob) -> None:
        at = job.wakes_at()
        if at < NEVER:
            self._order += 1
            heapq.heappush(self._wakes, (at, self._order, job, job.stamp))

    def _apply_shares(
        self, jobs: list[ActiveJob], shares: Mapping[JobId, Share], now: Seconds
    ) -> None:
        """As `placement.packing` places: whoever moves lets go first, and the widest goes first."""
        moving = []
        for job in jobs:
            share, held = shares.get(job.id), job.allocation
            job.apply(share)
            if held is None or share is None or (held.gpu, held.width) != (share.gpu, share.width):
                moving.append((job, share, held))
        for _, _, held in moving:
            if held is not None:
                self._pools[held.gpu].give(held)
                self.rental.await_boot(held, now, leave=True)
        for job, share, _ in sorted(moving, key=lambda one: -one[1].width if one[1] else 0):
            self._move(job, None if share is None else self._take(share, now), now)
        for _, _, held in moving:
            if held is not None:
                self._release_empty(held, now)

    def _take(self, share: Share, now: Seconds) -> Allocation:
        pool = self._pools[share.gpu]
        for _ in range(pool.nodes_missing(share.width)):
            node = Node(self.rental.next_node, share.gpu, pool.per_node)
            self._rent(node, now)
            pool.add(node.id)
        taken = pool.take(share.width)
        assert taken is not None
        return taken

    def _release_empty(self, allocation: Allocation, now: Seconds) -> None:
        pool = self._pools[allocation.gpu]
        for node, _ in allocation.nodes:
            if node in pool.free and pool.is_empty(node):
                pool.drop(node)
                self._release(node, now)

    # Both

    def _decide(self, views: list[Any]) -> Decision:
        now, rounds = self.clock.now(), self.settings.interval_s is not None
        decision = self.policy.decide(
            ClusterView(
                now=now,
                jobs=views,
                nodes=self.rental.all_nodes() if rounds else (),
                gpu_types=self.knowledge.gpu_types,
                next_node=self.rental.next_node,
                memory=self.memory,
                booting=self.rental.booting(now) if rounds else {},
                boot_s=dict.fromkeys(self.knowledge.gpu_types, self.settings.provision_s),
                reclaim_s=dict.fromkeys(self.knowledge.gpu_types, self.settings.reclaim_s),
            )
        )
        self.memory = decision.memory
        return decision

    def _arrive(self) -> ActiveJob:
        asked = self._next
        assert asked is not None
        self._next = next(self._arrivals, None)
        self._arrived += 1
        truth = self.knowledge.truth(asked)
        serial = self._serials.get(truth.name, 0)
        self._serials[truth.name] = serial + 1
        job = ActiveJob(asked, truth, self.knowledge.learner(truth, asked), serial)
        job.tried.update(self.knowledge.tried_before(truth))
        self.active[job.id] = job
        self.recording.tell(asked.arrival_s, "arrive", job)
        return job

    def _advance(self, job: ActiveJob, now: Seconds) -> None:
        before, gpu = job.service, job.allocation.gpu if job.allocation is not None else None
        job.advance(now)
        if gpu is not None:
            self.tally.held(gpu, job.service - before)
        if job.finished:
            self._end(job, now)

    def _end(self, job: ActiveJob, now: Seconds) -> None:
        self.tally.ended(job)
        job.stamp += 1
        del self.active[job.id]
        self.recording.tell(job.clock, "finish", job)
        if self.settings.interval_s is None:
            assert job.allocation is not None
            self._pools[job.allocation.gpu].give(job.allocation)
            self._release_empty(job.allocation, now)

    def _move(self, job: ActiveJob, new: Allocation | None, now: Seconds) -> None:
        ready = now
        if new is not None:
            nodes = [node for node, _ in new.nodes]
            self.rental.await_boot(new, now)
            ready = max(self.rental.ready_at(nodes), now) + job.truth.rescale_s
            if not self.rental.used.issuperset(nodes):
                ready += self.settings.cold_s
                self.rental.used.update(nodes)
        kind = "stop" if new is None else "start" if job.starts == 0 else "rescale"
        job.reallocate(new, now, ready)
        self.recording.tell(now, kind, job)

    def _rent(self, node: Node, now: Seconds, *, ready_at_once: bool = False) -> None:
        self.rental.rent(node, now, ready_at_once=ready_at_once)
        self.recording.tell_node(now, "rent", node.id, gpu_type=node.gpu)

    def _release(self, node: int, now: Seconds) -> None:
        self.rental.release(node, now)
        self.recording.tell_node(now, "release", node)

    def _refresh(self, now: Seconds) -> None:
        """In rounds, before every decision; at events, when it is time to plan anew."""
        if now >= self._replan_at or self.settings.interval_s is not None:
            self.knowledge.refresh()
            self._replan_at = (math.floor(now / REPLAN_S) + 1) * REPLAN_S

    def _interfere(self, now: Seconds) -> None:
        """Jobs across nodes that share a node slow each other down."""
        slow = crowded(self.active.values())
        for job in list(self.active.values()):
            speed = 1.0 - self.settings.interference if job.id in slow else 1.0
            if speed != job.speed:
                self._advance(job, now)
                job.speed = speed
                job.stamp += 1
                if self.settings.interval_s is None and not job.finished:
                    self._schedule(job)

    def _sample_to(self, now: Seconds) -> None:
        for moment in self.recording.due(now):
            for job in list(self.active.values()):
                if job.allocation is not None and job.clock < moment and not job.whole_s:
                    self._advance(job, moment)
            self.recording.sample(moment, self.active.values(), self.rental.gpus)
