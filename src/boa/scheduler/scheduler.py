"""One step of deciding: what was said is taken into a draft, and what follows is decided.

Pure but for what it remembers: no clock, no thread, no I/O. A driver makes the draft, has it
stored, and acts on it: `runtime/loop.py` on the wall's clock, `sim/scheduled.py` on a virtual one.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.model.prices import CONSTANT
from boa.model.records import Report
from boa.model.runs import RunKey
from boa.replacing import replace
from boa.scheduler import lifecycle
from boa.scheduler.decide import urgency
from boa.scheduler.decide.background import Background
from boa.scheduler.decide.decider import Decider
from boa.scheduler.decide.hours import Hours
from boa.scheduler.decide.room import room_for
from boa.scheduler.ending import wind_down
from boa.scheduler.learn.beliefs import Beliefs
from boa.scheduler.money.contents import Contents
from boa.scheduler.money.prices_in_force import LEAVE_S, PricesInForce
from boa.scheduler.money.purse import Purse
from boa.scheduler.moving import keep_protected, move
from boa.scheduler.observe.messages import CloudListed, CloudRefused, EngineSaid, Said
from boa.scheduler.observe.nodes import (
    forget_gone,
    give_back_empty,
    give_up_booting,
    observe_cloud,
)
from boa.scheduler.observe.reconcile import Release, Rent
from boa.scheduler.observe.reports import Reports
from boa.scheduler.observe.sampling import Sampling
from boa.scheduler.plan.planning import Planner
from boa.scheduler.state import Draft, State
from boa.scheduler.terms import dependencies, halving
from boa.scheduler.terms import limits as job_limits
from boa.scheduler.words.of_limits import budget_ended
from boa.units import GpuName, Seconds, UsdPerHour

TROUBLE_EVERY_S: Seconds = 60.0
BOOT_S: Seconds = 1800.0
"""A node that takes longer to get ready, or ten times what it should take, is given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLimits:
    """Limits on nodes, and how patient to be."""

    max_nodes: Mapping[GpuName, int] = field(default_factory=dict)
    keep_warm_s: Seconds = 0.0
    refused_s: Seconds = 60.0
    backoff_s: Seconds = 5.0
    provision_s: Seconds = 0.0
    speed: float = 1.0
    """Seconds of ours in a second of the wall, which is what engines tell ages in."""


class ToDo(NamedTuple):
    """Work that a message leaves to the driver, once the draft is stored."""

    forget: tuple[RunKey, ...] = ()
    """Runs whose end was taken in: the engine may forget them."""
    ask_again: tuple[Rent | Release, ...] = ()
    """Requests that the cloud has not fulfilled."""


class Scheduler:
    def __init__(
        self,
        limits: NodeLimits,
        *,
        decider: Decider,
        beliefs: Beliefs,
        planner: Planner,
        purse: Purse,
        sampling: Sampling,
        prices: PricesInForce | None = None,
    ) -> None:
        """`prices`: those of the decider's GPU types; None: they never change."""
        self.prices = prices or PricesInForce(decider.gpu_types)
        self._dearer: Mapping[GpuName, UsdPerHour] = {}
        self.limits, self.decider, self.beliefs = limits, decider, beliefs
        self.planner, self.purse, self._sampling = planner, purse, sampling
        self.background = Background(decider)
        self.hours = Hours(decider, purse, self.prices)
        self._reports = Reports(beliefs, sampling)
        self._quiet_until: dict[tuple[str, JobId | None], Seconds] = {}
        """Moments until which trouble is not told again, by who has it and whose run it is: it
        would bury all other events."""

    def observe(self, draft: Draft, said: Said) -> ToDo:
        """Take in what engine or cloud said."""
        if isinstance(said, EngineSaid):
            return self._runs(draft, said)
        if isinstance(said, CloudListed):
            return ToDo(ask_again=tuple(self._listed(draft, said)))
        if isinstance(said, CloudRefused):
            self.decider.refuse(draft, said, self.limits.refused_s)
            return ToDo()
        draft.count(**{f"{said.who}_trouble": 1})
        whose = said.who, said.job
        if draft.now >= self._quiet_until.get(whose, draft.now):
            self._quiet_until[whose] = draft.now + TROUBLE_EVERY_S
            draft.tell("trouble", job=said.job, why=said.who, detail=said.text)
        return ToDo()

    def _listed(self, draft: Draft, said: CloudListed) -> list[Rent | Release]:
        """A wish that the cloud had taken and could not fulfil is as one that it refused."""
        if said.offers is not None:
            self.prices.offered(said.offers)
        refused = {node.token: node.refused for node in said.nodes if node.refused}
        for node in list(draft.nodes.values()) if refused else ():
            if node.token in refused and node.state == "requested":
                no = CloudRefused(node.id, refused[node.token])
                self.decider.refuse(draft, no, self.limits.refused_s)
        came = [node for node in said.nodes if not node.refused] if refused else said.nodes
        return observe_cloud(draft, came, said.at)

    def _runs(self, draft: Draft, said: EngineSaid) -> ToDo:
        forget = []
        for event in said.events:
            speed = self.limits.speed  # engines tell in seconds of the wall
            event = replace(
                event,
                prepared_s=event.prepared_s * speed,
                saved_age_s=event.saved_age_s * speed,
            )
            if event.ended:
                at = draft.now - event.age_s * speed
                worked, backoff_s = self.beliefs.worked, self.limits.backoff_s
                lifecycle.run_ended(draft, event, at, backoff_s, worked, self.saves)
                forget.append(event.key)
            elif event.saved:
                lifecycle.run_saved(draft, event)
            elif event.hindrance:
                lifecycle.run_hindered(draft, event)
            elif event.awaits:
                lifecycle.run_awaits(draft, event)
            else:
                lifecycle.run_began(draft, event)
        return ToDo(forget=tuple(forget))

    def decide(self, draft: Draft, reports: deque[Report]) -> None:
        """Learn, plan, decide, place; write down who is to run where, and which nodes are to be."""
        ahead_s = self._ahead_s(draft.jobs.values())
        self._look_at_prices(draft, ahead_s)
        self._reports.take(draft, reports)
        self.settle(draft)
        self.beliefs.look(draft.now)
        if self.purse.steer(draft, self.planner.plan, self.decider.commitments):
            self.planner.hurry()
        self.decider.patience_s = self.purse.patience_s
        plans = self.decider.follows_plan and self.purse.ended is None
        week = self.hours.week(draft) if plans else None
        if plans and self.planner.step(draft, self.purse.effective, self.purse.rights_now, week):
            self.decider.planned(self.planner.memory)
        for gpu in give_up_booting(draft, self._boot_s):
            why = "the last one did not get ready"
            self.decider.believe_none(draft, gpu, self.limits.refused_s, why)
        forget_gone(draft)
        urgency.look(draft, self.decider)
        self.hours.look(draft, self.planner if plans else None)
        if (calendar := self.purse.ended) is not None:
            why = f"waits: {budget_ended(calendar.until, calendar.zone)}"
            wind_down(draft, why, self.saves)
        else:
            self._place(draft, ahead_s)
        self._sampling.look(draft, self.purse.budget, self.purse.effective)

    def _place(self, draft: Draft, ahead_s: Seconds) -> None:
        limits = self.limits
        most, cap = self.purse.hard_cap
        room = room_for(
            draft,
            limits.max_nodes,
            self.decider.refused,
            most,
            cap,
            dearer=self._dearer,
            ahead_s=ahead_s,
        )
        self.decider.caps = caps = self.purse.caps
        keep_protected(draft, self.saves)
        self.decider.decide(draft, room)
        keep_warm_s = self._keep_warm_s(draft.state)
        self.background.decide(draft, keep_warm_s)
        move(draft, caps, self.saves)
        give_back_empty(draft, keep_warm_s, self.decider.unwanted, self.decider.weighed)

    def saves(self, job: JobRecord) -> bool | None:
        """Return whether stops are believed to keep the work of a job's class (`Believed`)."""
        return self.beliefs.of(job).saves

    def _look_at_prices(self, draft: Draft, ahead_s: Seconds) -> None:
        """Go by the prices of now, and have nodes leave in time that the cap will not bear."""
        types, decider = self.prices.types(draft.now), self.decider
        if types != decider.gpu_types:
            decider.gpu_types = types
            self.planner.reprice(types)
            draft.replan = True
        decider.coming = self.prices.coming(draft.now)
        dearer = self.prices.dearer(draft.now, ahead_s)
        if dearer != self._dearer:
            self._dearer, draft.replan = dearer, True

    def _ahead_s(self, jobs: Iterable[JobRecord]) -> Seconds:
        """Seconds in which any node can be emptied, given back and gone."""
        if self.prices.schedule is CONSTANT:
            return 0.0
        reclaims = self.decider.node_times.reclaims(self.decider.gpu_types)
        grace_s = max((job.spec.grace_s for job in jobs), default=0.0)
        return LEAVE_S + grace_s + max(reclaims.values(), default=0.0)

    def settle(self, draft: Draft) -> None:
        """Follow up ends and limits of single jobs; also where nothing is decided."""
        job_limits.look(draft)
        halving.look(draft, self.saves)
        dependencies.settle(draft)

    def wakes_at(self, state: State, now: Seconds) -> Seconds:
        """When something is next due that nobody says: a round, a look at the ledger, the end of a
        boot that takes too long or of a job's wait for a plan. For drivers whose clock stands still
        until it is moved."""
        ahead_s = self._ahead_s(state.jobs.values())
        moments = [self.purse.looks_at, self.planner.due_at, self.prices.wakes_at(now, ahead_s)]
        moments += [said.until for said in self.decider.refused.values()]
        moments += [self.decider.wakes_at(job) for job in state.jobs.values() if not job.background]
        moments += [self.background.wakes_at]
        moments += [job.waits_until for job in state.jobs.values() if job.waits_until is not None]
        moments += [j.retry_at for j in state.jobs.values() if j.background and j.retry_at]
        moments += [job_limits.wakes_at(job, state, now) for job in job_limits.limited(state)]
        due = (job for job in state.jobs.values() if job.deadline is not None)
        moments += [urgency.wakes_at(job, now) for job in due]
        boot_s, keep_warm_s = self._boot_s, self._keep_warm_s(state)
        for node in state.nodes.values():
            if node.empty_since is not None:
                moments.append(node.empty_since + keep_warm_s)
            elif node.state == "requested":
                moments.append(math.nextafter(node.requested_at + boot_s, math.inf))
        return min((moment for moment in moments if moment > now), default=math.inf)

    def _keep_warm_s(self, state: State) -> Seconds:
        """A policy that chooses its nodes says itself which are to go, while there is any job to
        ask it about; a market always does."""
        decider = self.decider
        if decider.at_events:
            return math.inf
        if decider.chooses_nodes and any(not job.background for job in state.jobs.values()):
            return math.inf
        return self.limits.keep_warm_s

    @property
    def _boot_s(self) -> Seconds:
        return max(BOOT_S, 10 * self.limits.provision_s)

    def adopt(self, draft: Draft) -> None:
        """The draft is stored: from here on it is so, and is learned from."""
        self._sampling.stored(draft)
        self.decider.node_times.learn(draft.changes.nodes.values())
        for job in draft.arrived:
            self.beliefs.arrived(job, draft.now)
        for failed in draft.failed:
            self.beliefs.failed(failed.job, failed.found, failed.began, counted=failed.counted)
        for job in draft.changes.jobs.values():
            if job.ended:
                self.beliefs.ended(job, draft.now)

    def undo(self, purse: Contents) -> None:
        """The draft was not stored: nothing of it has happened."""
        self.purse.restore(purse)
        self.decider.forget_round()
