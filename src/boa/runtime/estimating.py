"""The estimate of a job that was not submitted, from all that the loop knows. Changes nothing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from boa.formats.checks import TINY
from boa.model.access import Caller
from boa.model.cluster import Allocation, Share
from boa.model.job import JobRecord, JobSpec
from boa.model.plan import ClassPlan, Variant
from boa.model.priorities import Priority
from boa.model.service import ServiceConfig
from boa.model.streams import stream_of
from boa.policy.boa import Planned
from boa.scheduler.decide.hours import PutOff
from boa.scheduler.learn.class_document import document_of
from boa.scheduler.learn.class_knowledge import Known
from boa.scheduler.learn.estimates import EstimatesOfPlan
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.observe import commands
from boa.scheduler.plan import job_estimate
from boa.scheduler.plan.displacing import Displaced, blocked, displaced
from boa.scheduler.plan.job_estimate import Basis, Figures, Past, Probe, Range, Stage, Way
from boa.scheduler.plan.priority_costs import PriorityCost, priority_costs
from boa.scheduler.plan.queue_ahead import Ahead, Queue, free_gpus, most_gpus, queue_for
from boa.scheduler.plan.why import wider
from boa.scheduler.scheduler import Scheduler
from boa.scheduler.state import Draft
from boa.solver.objective import Rules
from boa.units import GpuName, Seconds, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEstimate:
    job_class: str
    payer: str = ""
    """Part of the budget that would pay because of who asks; empty: the class says."""
    priority: Priority = "normal"
    """As asked for: time, cost and widths are a normal job's."""
    basis: Basis | None = None
    """None: nobody knows the class."""
    jobs: int = 0
    """Jobs of the class that succeeded."""
    time_s: Seconds | None = None
    """From its start to its end."""
    jct_s: Seconds | None = None
    """Seconds from submission to end; None: its wait for GPUs is unknown."""
    cost_usd: Usd | None = None
    times: Range | None = None
    jcts: Range | None = None
    costs: Range | None = None
    spread_jobs: int = 0
    """Jobs that the ranges are taken from."""
    ways: tuple[Way, ...] = ()
    queue: Queue | None = None
    displaces: tuple[Displaced, ...] = ()
    """Running jobs that would give up GPUs for it, if it came now at the priority asked for."""
    blocked: str = ""
    """Why no running job would, where it needs that."""
    put_off: PutOff | None = None
    """Where it would wait for other hours first."""
    probe: Probe | None = None
    plan: int | None = None
    """Number of the plan that its widths are from; None: it would get its least."""
    priorities: tuple[PriorityCost, ...] = ()
    """Costs of each priority that it could have; none where they are not known."""
    now: Seconds

    @property
    def stream(self) -> str:
        return stream_of(self.job_class, self.payer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """Material of an estimate, asked for on the loop's own thread."""

    scheduler: Scheduler
    profiler: Profiler
    config: ServiceConfig
    believed: EstimatesOfPlan = field(default_factory=EstimatesOfPlan)

    def estimated(
        self, spec: JobSpec, by: Caller, past: Sequence[Past], draft: Draft
    ) -> JobEstimate:
        """A job of this caller's. Raises InputError of a spec that would be refused."""
        decider, now = self.scheduler.decider, draft.now
        commands.check(spec, decider.gpu_types, self.config.max_nodes)
        serial = draft.state.serials.get(spec.job_class, 0)
        payer = self.scheduler.purse.payer_of(spec.job_class, by.name, by.team)
        job = JobRecord(id="0", spec=spec, serial=serial, payer=payer, submitted_at=now)
        least = decider.least(job)
        state = self.scheduler.planner.plan
        rules = Rules(billing=self.config.billing) if state is None else state.solution.rules
        known = self.profiler.supposed(spec, now)
        basis = basis_of(known, spec)
        if least is None:
            return JobEstimate(job_class=spec.job_class, payer=payer, now=now)
        room, why = self._room(draft, least.gpu, spec, spec.priority)
        if basis is None:
            return JobEstimate(
                job_class=spec.job_class,
                payer=payer,
                queue=self._queue(draft, least.gpu, least.width, room),
                displaces=room,
                blocked=why,
                probe=job_estimate.probe(least.gpu, least.width, decider.gpu_types, rules),
                now=now,
            )
        planned = () if state is None else _planned(state.solution.plan.by_class(), job.stream)
        variants = planned or (Variant(1.0, (least.gpu,), (float(least.width),)),)
        found = self._ways(known, job, variants, rules, now)
        memory = decider.memory if planned and isinstance(decider.memory, Planned) else None
        main = max(found, key=lambda way: way.share, default=None)
        first = least if main is None else main.stages[0]
        room, why = self._room(draft, first.gpu, spec, spec.priority)
        queue = self._queue(draft, first.gpu, first.width, room)
        job_class, taken = known.as_class(now), None
        expected = job_estimate.means(found)
        if expected is not None and job_class is not None:
            units = float(known.picture.work.sum())
            as_run = job_estimate.as_run(job_class, decider.gpu_types, rules, first.gpu, units)
            taken = job_estimate.figures(expected, past, as_run, queue)
            longer, dearer = taken.time_s / expected[0], taken.cost_usd / max(expected[1], TINY)
            found = job_estimate.as_taken(found, longer, dearer)
        mean = None if taken is None else (taken.time_s, taken.cost_usd)
        return JobEstimate(
            job_class=spec.job_class,
            payer=payer,
            basis=basis,
            jobs=known.ended,
            **({} if taken is None else _figures(taken)),
            spread_jobs=len(past),
            ways=found,
            queue=queue,
            put_off=self.scheduler.hours.foreseen(now, job),
            plan=state.number if state is not None and planned else None,
            priorities=priority_costs(
                memory,
                job.stream,
                spec.gpus,
                decider.priorities,
                mean,
                _wider(known, first, now),
                lambda priority: self._room(draft, first.gpu, spec, priority)[0],
            ),
            displaces=room,
            blocked=why,
            priority=spec.priority,
            now=now,
        )

    def _ways(
        self,
        known: Known,
        job: JobRecord,
        variants: tuple[Variant, ...],
        rules: Rules,
        now: Seconds,
    ) -> tuple[Way, ...]:
        """None, where not enough is known of the class."""
        job_class = known.as_class(now)
        if job_class is None:
            return ()
        allowed = [self._within(variant, job, now) for variant in variants]
        scale, gpu_types = _scale(known, job.spec), self.scheduler.decider.gpu_types
        return job_estimate.ways(job_class, allowed, gpu_types, rules, scale)

    def _within(self, variant: Variant, job: JobRecord, now: Seconds) -> Variant:
        """As the job's own limits, and widths that failed, let it be."""
        pairs = zip(variant.gpu_types, variant.widths, strict=True)
        wanted = [Share(gpu, int(width)) for gpu, width in pairs]
        steps = [self.scheduler.decider.within(step, job, now) or step for step in wanted]
        return replace(
            variant,
            gpu_types=tuple(step.gpu for step in steps),
            widths=tuple(float(step.width) for step in steps),
        )

    def _room(
        self, draft: Draft, gpu: GpuName, spec: JobSpec, priority: Priority
    ) -> tuple[tuple[Displaced, ...], str]:
        """Return the running jobs that a job would take GPUs from, to have the least that it can
        run on, or why there are none. Neither, where more nodes can be rented or GPUs are free."""
        decider, held = self.scheduler.decider, Counter[GpuName]()
        for job in draft.paying:
            if job.allocation is not None:
                held[job.allocation.gpu] += job.allocation.width
        if priority == "background" or spec.gpus.min <= self._most(gpu) - held[gpu]:
            return (), ""
        spec = replace(spec, priority=priority)
        asked = JobRecord(id="0", spec=spec, serial=0, submitted_at=draft.now)
        nodes = [n.node for n in draft.usable_nodes() if n.state == "ready" and n.gpu == gpu]
        calm = decider.calm_now(draft, full=True)
        new = decider.holders([asked], draft.now, calm, {})[0]
        others = decider.holders(draft.paying, draft.now, calm, {})
        found = displaced(
            new, others, nodes, lambda job: decider.stop_cost(draft.jobs[job], draft.now)
        )
        return found, "" if found else blocked(new, others, gpu)

    def _most(self, gpu: GpuName) -> float:
        """GPUs of a type that there can be at once."""
        kind = self.scheduler.decider.gpu_types[gpu]
        return most_gpus(
            kind.gpus_per_node,
            kind.node_price,
            self.config.max_nodes.get(gpu),
            self.scheduler.purse.max_spend,
        )

    def _queue(self, draft: Draft, gpu: GpuName, width: int, room: Sequence[Displaced]) -> Queue:
        """Return the jobs that a job waits for. It does not wait where others make `room`."""
        decider = self.scheduler.decider
        ahead: list[Ahead] = []
        held: dict[GpuName, int] = {}
        for job in draft.paying:
            given = job.allocation
            wanted: Allocation | Share | None = given or job.share
            if given is not None:
                held[given.gpu] = held.get(given.gpu, 0) + given.width
            if wanted is None and not job.stop_requested:
                wanted = decider.least(job)
            if wanted is not None and wanted.gpu == gpu:
                left_s = self._left_s(job, draft.now)
                runs = given is not None
                if runs or not (job.stop_requested or job.held_back):
                    ahead.append(Ahead(job.id, wanted.gpu, wanted.width, left_s, runs))
        ready = [(n.gpu, n.gpus) for n in draft.usable_nodes() if n.state == "ready"]
        queue = queue_for(
            gpu,
            width,
            sorted(ahead, key=lambda one: int(one.job)),
            most=self._most(gpu),
            free=free_gpus(gpu, ready, held),
            boot_s=decider.node_times.boots([gpu])[gpu],
        )
        return replace(queue, wait_s=0.0, boot_s=0.0) if room else queue

    def _left_s(self, job: JobRecord, now: Seconds) -> Seconds | None:
        """Return how long a job still takes. One that has reported no progress takes as long as
        others of its class, until it has taken longer."""
        plan, run = self.scheduler.planner.plan, job.run
        if run is None or job.progress or job.epoch or not self.profiler.has_ended(job.job_class):
            return self.believed.of(job, plan).left_s
        whole_s = self.believed.of(replace(job, state="waiting", run=None), plan).left_s
        left_s = None if whole_s is None else whole_s - (now - run.requested_at)
        return left_s if left_s is not None and left_s > 0 else None


def _wider(known: Known, first: Stage | Share, now: Seconds) -> str:
    """Why the class may not have more GPUs yet."""
    curve = known.picture.curves.get(first.gpu)
    return "" if curve is None else wider(document_of(known, now), first.gpu, curve.widths[-1])


def _figures(taken: Figures) -> dict[str, Any]:
    return {name.name: getattr(taken, name.name) for name in fields(Figures)}


def basis_of(known: Known, spec: JobSpec) -> Basis | None:
    """Ground that an estimate can stand on. Neither a speed nor a work alone tells of an end."""
    if known.ended > 0:
        return "jobs"
    if known.profile is not None:
        return "profile"
    if known.tried and (known.work or known.total is not None or spec.total_work is not None):
        return "measured"
    return None


def _scale(known: Known, spec: JobSpec) -> float:
    total = float(known.picture.work.sum())
    return 1.0 if spec.total_work is None or total <= 0 else spec.total_work / total


def _planned(plans: dict[str, ClassPlan], name: str) -> tuple[Variant, ...]:
    found = plans.get(name)
    return () if found is None else found.variants
