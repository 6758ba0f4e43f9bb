"""A simulation that turns the service's own scheduler: what is decided here is decided live.

The driver that `runtime/loop.py` is on the wall's clock, with a virtual clock and in memory: runs
are acted out (`engine.py`), the cloud is the local one without its file, nothing is stored. For
caps, shortages, nodes kept warm, pacing and the service's profiler, which `simulator.py` does not
know; where none of these is asked for, both come to the same, and that one is quicker.
"""

import heapq
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from boa.clock import VirtualClock
from boa.clouds.by_calendar import PricedByCalendar
from boa.clouds.local import LocalCloud
from boa.errors import BoaError, BudgetTooSmall
from boa.model.calendar_prices import prices_by
from boa.model.cluster import JobId, NodeId, Policy
from boa.model.job import JobSpec
from boa.model.records import Report as JobReport
from boa.model.runs import Launch, NodeSlots
from boa.model.service import ClassPrior
from boa.model.trace import TraceJob
from boa.scheduler.money.ledger import committed, hold_cost
from boa.scheduler.observe.commands import submit
from boa.scheduler.observe.messages import CloudListed, EngineSaid
from boa.scheduler.plan.planning import REPLAN_S
from boa.scheduler.state import Draft, State
from boa.scheduler.wishes import RentNode, StartRun, StopRun, Wish, wishes
from boa.sim.assemble import scheduler_of
from boa.sim.beliefs import LearnerBeliefs
from boa.sim.engine import EVERY_EPOCH, SimulatedEngine
from boa.sim.jobs import NEVER, ActiveJob
from boa.sim.knowledge import Knowledge
from boa.sim.physics import Truth, gpu_limits
from boa.sim.recording import Listener, Recording
from boa.sim.rental import Rental
from boa.sim.report import SimulationReport
from boa.sim.settings import Settings
from boa.sim.stuck import Patience
from boa.units import GpuName, Seconds, UsdPerHour

if TYPE_CHECKING:
    from boa.sim.simulator import Progress

Watch: TypeAlias = Callable[[Draft], None]
"""Called after every step with all that it has changed."""
MOST_STEPS = 100
"""In which everything that follows from one moment must have come to rest."""


class ScheduledSimulation:
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
        priors: Mapping[str, ClassPrior] | None = None,
        watch: Watch | None = None,
    ) -> None:
        """`priors`: what the service's profiler believes before any job has run, if it learns."""
        self._watch = watch
        self.settings, self.policy, self.knowledge = settings, policy, knowledge
        self.clock, self.span_s = VirtualClock(), span_s
        self.recording = Recording(knowledge, span_s, listener, keep_jcts=keep_jcts)
        self.rental = Rental(knowledge.gpu_types)
        self.active: dict[JobId, ActiveJob] = {}
        """By the scheduler's own ids."""
        self.state = State(next_node=1)
        self._arrivals: Iterator[TraceJob] = iter(jobs)
        self._next: TraceJob | None = next(self._arrivals, None)
        self._arrived = 0
        self._budget = budget
        self._learns = settings.learning == "service"
        self._incoming: deque[JobReport] = deque()
        self._moments: list[Seconds] = []
        """A heap: when nodes get ready, or are really gone."""
        self._types: dict[NodeId, GpuName] = {}
        self._listed = False
        """Whether the scheduler knows what the cloud would list now."""
        self._replan_at = REPLAN_S
        self.engine = SimulatedEngine(
            self.clock,
            self._cast,
            self._incoming.append,
            cold_s=settings.cold_s,
            interference=settings.interference,
            wakes_ready=self._learns,
        )
        self.prices = prices_by(settings.calendar)
        local = LocalCloud(
            None,
            knowledge.gpu_types,
            {},
            self.clock,
            provision_s=settings.provision_s,
            release_s=settings.reclaim_s,
        )
        self.cloud = PricedByCalendar(local, self.prices, self.clock)
        self.scheduler = scheduler_of(
            policy,
            settings,
            knowledge.gpu_types,
            LearnerBeliefs(knowledge, self.active),
            self.prices,
            budget=budget,
            ends_at=span_s or math.inf,
            priors=priors or {},
        )

    def run(self, progress: "Progress | None" = None) -> SimulationReport:
        began, steps, patience = time.perf_counter(), 0, Patience(self.settings.interval_s)
        while self._next is not None or self._anyone_pays():
            self._go_to(self._next_moment())
            steps += 1
            if progress is not None and steps % 64 == 0:
                progress(len(self.recording.tally.jcts), self.clock.now())
            ended = len(self.recording.tally.jcts)
            if self._next is None and patience.lost(self.clock.now(), self.active.values(), ended):
                break
        self._close()
        return SimulationReport(
            policy=self.policy.name,
            settings=self.settings,
            gpu_types=self.knowledge.gpu_types,
            jobs=self._arrived,
            span_s=self.span_s,
            tally=self.recording.tally,
            rental=self.rental,
            series=self.recording.series,
            wall_s=time.perf_counter() - began,
            notes={
                **(getattr(self.scheduler.decider.memory, "report", {}) or {}),
                **self._by_period(),
            },
        )

    def _by_period(self) -> dict[str, Any]:
        """Bill of each period of a calendar while it held, its jobs' last hours included."""
        purse = self.scheduler.purse
        if purse.calendar is None:
            return {}
        found = {
            period.name: {
                "budget_per_hour": period.budget,
                "hours": purse.accounts.hours.get(period.name, 0.0),
                "average_spend_per_hour": purse.accounts.average(period.name),
            }
            for period in purse.calendar.periods
        }
        return {"periods": found}

    def _anyone_pays(self) -> bool:
        """Who is left in the background would wait for ever for others to leave something."""
        return any(job.asked.priority != "background" for job in self.active.values())

    # Time

    def _next_moment(self) -> Seconds:
        now = self.clock.now()
        arrival = NEVER if self._next is None else self._next.arrival_s
        cloud = self._moments[0] if self._moments else NEVER
        due = self.scheduler.wakes_at(self.state, now)
        found = min(arrival, self.engine.wakes_at(), cloud, due)
        if found == NEVER:
            raise BoaError(f"{len(self.active)} jobs wait for something that never comes")
        return max(found, now)

    def _go_to(self, moment: Seconds) -> None:
        before = self.clock.now()
        for at in self.recording.due(moment):
            self.clock.advance_to(max(at, self.clock.now()))
            self.engine.look()
            jobs = (job for job in self.active.values() if not job.finished)
            self.recording.sample(at, jobs, self._gpus_rented())
        if self.prices.next_change(before) <= moment:
            self._listed = False
        self.clock.advance_to(max(moment, self.clock.now()))
        while self._moments and self._moments[0] <= moment:
            heapq.heappop(self._moments)
            self._listed = False
        self._refresh()
        self.engine.look()
        self._settle()

    def _refresh(self) -> None:
        """As in `simulator.py`: in rounds before every decision, at events when it is time."""
        now, rounds = self.clock.now(), not self.scheduler.decider.by_job
        if now >= self._replan_at or rounds:
            self.knowledge.refresh()
            self._replan_at = (math.floor(now / REPLAN_S) + 1) * REPLAN_S
        if self.settings.retune and rounds and now >= self.scheduler.decider.next_round:
            for job in self.active.values():
                job.pace = None

    def _settle(self) -> None:
        """Step until nothing more happens at this moment. A market answers what it is told and the
        time, not what it decided itself: where nothing is new it would do nothing."""
        answers = self.scheduler.decider.at_events
        for _ in range(MOST_STEPS):
            before, heard = self.state, self._learns and bool(self._incoming or self.engine.news)
            self._step()
            quiet = not self.scheduler.planner.thinking and not self._incoming and self._listed
            quiet = quiet and not heard  # what was learned counts from the next step
            if quiet and not self.engine.news and (answers or _same(before, self.state)):
                return
        raise AssertionError("the scheduler does not come to rest")

    def _step(self) -> None:
        draft = Draft(self.state, self.clock.now())
        ended = self.scheduler.observe(draft, EngineSaid(self.engine.poll())).forget
        if not self._listed:
            self._listed = True
            self.scheduler.observe(draft, CloudListed(self.cloud.nodes(), draft.now))
        self._admit(draft)
        self.scheduler.decide(draft, self._incoming)
        self.state = draft.state
        self.scheduler.adopt(draft)
        self._check_budget()
        for key in ended:
            self.engine.forget(key)
        self._act(draft)
        if self._watch is not None:
            self._watch(draft)

    def _admit(self, draft: Draft) -> None:
        while self._next is not None and self._next.arrival_s <= draft.now:
            asked, self._next = self._next, next(self._arrivals, None)
            truth = self.knowledge.truth(asked)
            record = submit(draft, self._spec(asked, truth), self.knowledge.gpu_types, {})
            job = ActiveJob(asked, truth, self.knowledge.learner(truth, asked), record.serial)
            job.tried.update(self.knowledge.tried_before(truth))
            self._arrived += 1
            self.active[record.id] = job
            self.recording.tell(asked.arrival_s, "arrive", job)

    def _spec(self, asked: TraceJob, truth: Truth) -> JobSpec:
        """Description that its user would have submitted."""
        types = self.knowledge.gpu_types
        rates = {gpu: truth.rates(gpu) for gpu in types if truth.widest(gpu)}
        work = truth.work(asked)
        return JobSpec(
            job_class=truth.name,
            run=("true",),
            name=asked.name,
            priority=asked.priority,
            gpus=gpu_limits(rates),
            epochs=len(work),
            total_work=float(work.sum()),
        )

    def _cast(self, launch: Launch) -> ActiveJob:
        return self.active[launch.key.job]

    def _check_budget(self) -> None:
        """As everywhere in simulations, a budget that could never keep up is an error."""
        plan = self.scheduler.planner.plan
        if plan is None or plan.number > 1 or plan.too_small is None or self._learns:
            return
        if self.settings.calendar is not None:  # too little for the first hours is not too little
            return
        if self._budget is not None and self._budget < plan.too_small and plan.hopeless:
            raise BudgetTooSmall(self._budget, plan.too_small)

    # Acting

    def _act(self, draft: Draft) -> None:
        for wish in wishes(draft.changes.jobs.values(), draft.changes.nodes.values()):
            self._carry_out(wish)
        for node in draft.changes.nodes.values():
            self._types[node.id] = node.gpu
            if node.gone_at is not None and node.billed_from is not None:
                self.rental.closed(
                    node.node,
                    node.billed_from,
                    node.released_at,
                    node.gone_at,
                    ready=node.ready_at,
                    price=(node.price, node.changes),
                )
        self.rental.costs(committed(self.state.nodes.values(), draft.now))
        for hold in draft.changes.holds.values():
            if hold.until is not None:
                held_s = (hold.until - hold.since) * hold.gpus
                gpu, background = self._types[hold.node], self._is_background(hold.job)
                self.recording.tally.held(gpu, held_s, background=background)
                if not background:
                    self.recording.tally.paid(hold.stream, hold_cost(hold, hold.until))
        for job in draft.changes.jobs.values():
            acted = self.active[job.id]
            if job.ended:
                self._ended(job.id, acted)
            elif not self._learns:
                self.engine.waits_for(job.id, None if job.share is None else job.share.until)
            else:
                self.engine.waits_for(job.id, EVERY_EPOCH)

    def _is_background(self, job: JobId) -> bool:
        return self.active[job].asked.priority == "background"

    def _carry_out(self, wish: Wish) -> None:
        now = self.clock.now()
        if isinstance(wish, StartRun):
            if not self.engine.knows(wish.key):
                job, run = wish.job, wish.run
                slots = tuple(NodeSlots(node, gpus) for node, gpus in sorted(run.slots.items()))
                kind = "start" if run.attempt == 1 else "rescale"
                self.engine.start(
                    Launch(
                        key=wish.key,
                        spec=job.spec,
                        gpu_type=run.allocation.gpu,
                        slots=slots,
                        checkpoint_dir="",
                    )
                )
                self.recording.tell(now, kind, self.active[job.id])
        elif isinstance(wish, StopRun):
            self.engine.stop(wish.key, 0.0)
        elif isinstance(wish, RentNode):
            self.cloud.rent(wish.node.token, wish.node.gpu)
            heapq.heappush(self._moments, now + self.settings.provision_s)
            self._listed = False
            self.recording.tell_node(now, "rent", wish.node.id, gpu_type=wish.node.gpu)
        elif wish.node.released_at == now:  # and not only written down once more
            self.cloud.release(wish.node.token)
            heapq.heappush(self._moments, now + self.settings.reclaim_s)
            self._listed = False
            self.recording.tell_node(now, "release", wish.node.id)

    def _ended(self, job_id: JobId, job: ActiveJob) -> None:
        del self.active[job_id]
        self.recording.tally.ended(job)
        self.recording.tell(job.clock, "finish", job)

    def _gpus_rented(self) -> int:
        return sum(node.gpus for node in self.state.nodes.values() if node.released_at is None)

    def _close(self) -> None:
        """The trace is over: whatever is still there goes as it would by itself."""
        end = max(self.clock.now(), self.recording.tally.last_end)
        for node in self.state.nodes.values():
            kept = end if node.empty_since is None else node.empty_since + self.settings.keep_warm_s
            released = max(end, kept) if node.released_at is None else node.released_at
            if node.billed_from is not None:
                gone = released + self.settings.reclaim_s
                self.rental.closed(
                    node.node,
                    node.billed_from,
                    released,
                    gone,
                    ready=node.ready_at,
                    price=(node.price, node.changes),
                )


def _same(before: State, after: State) -> bool:
    parts = ("jobs", "nodes", "holds")
    return all(getattr(before, part) == getattr(after, part) for part in parts)
