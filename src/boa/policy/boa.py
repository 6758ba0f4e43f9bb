"""BOA: fixed widths by class and epoch from a plan; nobody queues.

Variants are dealt out along the golden ratio, so that after any number of jobs each share is met
to within a few jobs. A job that runs keeps its variant when the plan changes, unless what is left
of its training gains enough by the new one to pay for the rescaling, and 5 % more: plans are flat
near their optimum, and one that is solved again on slightly other figures looks quite different.
By the same rule a few jobs try what nobody has run (`trials.py`), held against what is hoped of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from boa.errors import BudgetTooSmall
from boa.model.cluster import ClusterView, Decision, JobView, Share
from boa.model.plan import Variant
from boa.model.workload import Workload
from boa.policy.courses import Course, Rests
from boa.policy.market.facts import KeptFacts
from boa.policy.market.urgency import UrgentWorths
from boa.policy.market.worth import Worths
from boa.policy.trials import GOLDEN, Trials, hopeful
from boa.solver.planner import plan as solve
from boa.solver.solution import Solution
from boa.units import SECONDS_PER_HOUR, Seconds, UsdPerHour

BACK = 10.0
"""Rescaling times that a job must have left to leave a width that was tried in vain."""
DEAREST = 1.0
"""Seconds of a job that a second of the cheapest GPU is worth at most: dearer money saves next to
nothing, and has a few narrow jobs keep a whole node for days."""
MARGIN = 0.05
"""Part of the value of its rest that a running job must gain to be moved, beyond the rescaling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """BOA's memory: its plan, and of which forecast and when it was made."""

    solution: Solution
    version: int
    at: Seconds
    plans: int = 1
    by_class: Mapping[str, tuple[Variant, ...]]
    rests: Rests = field(compare=False, repr=False)
    worths: Worths = field(compare=False, repr=False)
    urgent: UrgentWorths = field(compare=False, repr=False)
    """Worths of jobs that count more or less than their class …"""
    trials: Trials = field(default_factory=Trials)
    hopes: Rests | None = field(default=None, compare=False, repr=False)
    """Courses as trials may find them …"""
    hoped: Worths | None = field(default=None, compare=False, repr=False)
    """… and worths."""
    urgent_rests: dict[float, Rests] = field(compare=False, repr=False, default_factory=dict)
    """… and their courses, by how much."""
    facts: KeptFacts = field(init=False, compare=False, repr=False, default_factory=KeptFacts)
    """Facts of jobs by this plan's courses …"""
    trial_facts: KeptFacts = field(init=False, compare=False, repr=False, default_factory=KeptFacts)
    """… and where jobs that try something go by what is hoped of it."""

    @property
    def price(self) -> float:
        """ρ: weighted job-seconds that a dollar is worth."""
        return price_of(self.solution.shadow_price, self.solution.workload)

    @property
    def report(self) -> dict[str, Any]:
        return {
            "planned_jct_s": self.solution.average_jct,
            "planned_spend_per_hour": self.solution.spend + max(self.trials.spend, 0.0),
            "plans": self.plans,
        }


@dataclass(frozen=True, slots=True)
class Boa:
    """The widths of the plan that is remembered; `scheduler/plan` makes it and keeps it new."""

    name: ClassVar[str] = "boa"
    by_job: ClassVar[bool] = True
    """Decides job by job, so it may be asked at events."""
    follows_plan: ClassVar[bool] = True

    def decide(self, view: ClusterView) -> Decision:
        """A job of a class that is not in the plan gets nothing: it waits for the next plan."""
        planned: Planned | None = view.memory
        if planned is None:
            return Decision()
        shares = {
            job.id: _share(planned, variants, job)
            for job in view.jobs
            if (variants := planned.by_class.get(job.job_class))
        }
        return Decision(shares=shares, memory=planned)


def price_of(shadow_price: float, workload: Workload) -> float:
    """ρ of a plan for the workload, by its multiplier."""
    weighted, arrivals = workload.weighted_arrivals_per_hour, workload.arrivals_per_hour
    found = shadow_price * weighted
    gpu = min(kind.price for kind in workload.gpu_types.values()) / SECONDS_PER_HOUR
    if not gpu or not arrivals:
        return found
    return min(found, DEAREST * weighted / arrivals / gpu)


def planned_of(
    solution: Solution, version: int, at: Seconds, plans: int = 1, trials: Trials | None = None
) -> Planned:
    """BOA's memory of a plan: the forecast it was made from, when, the how many-th."""
    hoped = hopeful(solution.workload) if trials else None
    worths = Worths(solution.workload)
    return Planned(
        solution=solution,
        version=version,
        at=at,
        plans=plans,
        by_class={planned.name: planned.variants for planned in solution.plan.classes},
        rests=Rests(solution),
        worths=worths,
        urgent=UrgentWorths(worths),
        trials=trials or Trials(),
        hopes=None if hoped is None else Rests(replace(solution, workload=hoped)),
        hoped=None if hoped is None else Worths(hoped),
    )


def within_reach(workload: Workload, budget: UsdPerHour) -> tuple[Solution, UsdPerHour | None]:
    """While jobs run, a budget that turns out too small buys the cheapest plan.

    With it comes what that plan needs, if the budget is too small.
    """
    try:
        return solve(workload, budget), None
    except BudgetTooSmall as problem:
        return solve(workload, problem.needed * (1 + 1e-9)), problem.needed


def _share(planned: Planned, variants: tuple[Variant, ...], job: JobView) -> Share:
    if job.urgency != 1.0:
        return _urgent_share(planned, variants, job)
    dealt = planned.rests.course(job.job_class, dealt_to(variants, job.serial))
    kept = _kept(planned.rests, job)
    trial = planned.trials.variant(job.job_class, job.serial)
    if trial is not None and planned.hopes is not None:
        tried = planned.hopes.course(job.job_class, trial)
        if kept is None or _pays(kept, tried, job):
            return tried.share(job.epoch)
    if kept is None or _pays(kept, dealt, job) or _is_over(planned, kept, dealt, job):
        return dealt.share(job.epoch)
    return kept.share(job.epoch)


def _urgent_share(planned: Planned, variants: tuple[Variant, ...], job: JobView) -> Share:
    """By the same rule, at the job's own weight."""
    rests = planned.urgent_rests.get(job.urgency)
    if rests is None:
        rests = planned.urgent_rests[job.urgency] = Rests(planned.solution, job.urgency)
    variant = planned.urgent.variant(job.job_class, planned.price, job.urgency)
    dealt = rests.course(job.job_class, variant or dealt_to(variants, job.serial))
    kept = _kept(rests, job)
    stays = kept is not None and not _pays(kept, dealt, job)
    return (kept if kept is not None and stays else dealt).share(job.epoch)


def _kept(rests: Rests, job: JobView) -> Course | None:
    """The course that the job goes on with if it is left alone; None before it has started."""
    held = job.allocation
    if held is None and not job.service:
        return None
    if job.note is not None:
        return rests.course(job.job_class, job.note)
    if held is None:
        return None
    return rests.course(job.job_class, Variant(1.0, (held.gpu,), (held.width,)))


def _pays(kept: Course, dealt: Course, job: JobView) -> bool:
    """Whether the rest of the job, from the middle of an epoch if it is there, is worth moving."""
    if kept is dealt:
        return False
    held = None if job.allocation is None else (job.allocation.gpu, job.allocation.width)
    left = max(0.0, min(1.0, job.left))  # in this order, so that NaN counts as a whole epoch
    go, stay = dealt.rest(job.epoch, left, held), kept.rest(job.epoch, left, held)
    return go < (1 - MARGIN) * stay


def _is_over(planned: Planned, kept: Course, dealt: Course, job: JobView) -> bool:
    """Whether a trial has shown that its width is of no use, and there is enough left to go back:
    where money is left over, no price would tell."""
    at = min(job.epoch, len(kept.steps) - 1)
    if planned.rests.offers(job.job_class, kept.steps[at]):
        return False
    return dealt.left_s(job.epoch, min(max(job.left, 0.0), 1.0)) > BACK * dealt.rescale_s


def dealt_to(variants: tuple[Variant, ...], serial: int) -> Variant:
    """The variant whose stretch of [0, 1) a job falls on that so many of its class came before."""
    at = ((serial + 1) * GOLDEN) % 1.0
    for variant in variants:
        at -= variant.share
        if at < 0:
            return variant
    return variants[-1]
