"""Value of the rest of a job's training, on its own widths or on those of a newer plan.

A plan minimises Σ w_i λ_i E[T_i] / Σ w λ subject to Σ λ_i E[cost_i] ≤ b. With the multiplier μ on
the budget (the plan's shadow price) that is a sum over classes, λ_i times

    w_i / Σ w λ · E[T_i]  +  μ · E[cost_i]

so this is what one job adds to the objective: its seconds, and what its dollars would have saved
elsewhere. Nothing in it asks when the job began, and a job's epochs only add up, so the same sum
over what is left of the current epoch and the epochs after it values the rest of a running job
(a *rest*, in the same unit: seconds of average JCT, times hours). Rescalings count as in
`solver/objective.py`: r more seconds on the GPUs moved to, at every change of width or type, and
at the move itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from boa.model.cluster import Share
from boa.model.plan import Variant
from boa.model.speedup import Floats
from boa.model.workload import JobClass
from boa.solver.objective import cost_rates, rescale_time, run_times
from boa.solver.solution import Solution
from boa.units import GpuName, Seconds

Step: TypeAlias = tuple[GpuName, int]
"""A GPU type and a width."""


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """One way through training, valued from every epoch on. Beyond the last epoch: the last."""

    variant: Variant
    steps: list[Step]
    """GPU type and width of every epoch."""
    runs: list[float]
    """Addition to the objective by training every epoch, on its GPUs already."""
    afters: list[float]
    """Addition to the objective from the end of every epoch to the end of the job."""
    entries: list[float]
    """Addition to the objective by getting onto the GPUs of every epoch."""
    changes: list[int | None]
    """The epoch of the next change, from every epoch on."""
    times: Floats
    """Seconds of every epoch, on its GPUs already; infinite where it cannot run."""
    rates: Floats
    """Dollars per second of every epoch's GPUs."""
    rescale_s: Seconds
    """Seconds that it takes to get onto other GPUs."""
    _shares: dict[int, Share] = field(default_factory=dict)

    def rest(self, epoch: int, left: float, held: Step | None) -> float:
        """The value of what is to be done yet, with the part `left` of an epoch and holding `held`.

        The way onto the GPUs is as long for a part of an epoch as for all of it.
        """
        at = min(epoch, len(self.steps) - 1)
        value = self.afters[at]
        if left:  # nothing of an epoch that cannot be run is nothing
            value += left * self.runs[at]
        return value if held == self.steps[at] else value + self.entries[at]

    def left_s(self, epoch: int, left: float) -> Seconds:
        """Seconds of training that are to be done yet."""
        at = min(epoch, len(self.steps) - 1)
        after = float(self.times[at + 1 :].sum())
        return after + left * float(self.times[at]) if left else after

    def share(self, epoch: int) -> Share:
        known = self._shares.get(epoch)
        if known is None:
            at = min(epoch, len(self.steps) - 1)
            known = self._shares[epoch] = Share(*self.steps[at], self.changes[at], self.variant)
        return known


class Rests:
    """Every course under one plan, worked out once. Not a cache that anything depends on."""

    def __init__(self, solution: Solution, urgency: float = 1.0) -> None:
        """`urgency`: times its class's weight that a job counts."""
        self._solution = solution
        total = solution.workload.weighted_arrivals_per_hour
        self._classes: Mapping[str, tuple[JobClass, float]] = {
            c.name: (c, urgency * c.weight / total) for c in solution.workload.classes
        }
        self._times: dict[tuple[str, GpuName], Floats] = {}
        self._courses: dict[tuple[str, Variant], Course] = {}
        self._seen: dict[tuple[str, int], tuple[Variant, Course]] = {}

    def course(self, job_class: str, variant: Variant) -> Course:
        """By identity first: to hash a variant of a hundred epochs takes longer than all else."""
        seen = self._seen.get((job_class, id(variant)))
        if seen is not None:
            return seen[1]
        course = self._courses.get((job_class, variant))
        if course is None:
            course = self._courses[job_class, variant] = self._valued(job_class, variant)
        self._seen[job_class, id(variant)] = (variant, course)  # held, so that the id stays its own
        return course

    def offers(self, job_class: str, step: Step) -> bool:
        """Whether plans may give this width: it was not only tried, and is of use."""
        gpu, width = step
        return width <= self._classes[job_class][0].max_on(gpu)

    def _valued(self, name: str, variant: Variant) -> Course:
        job_class, weight = self._classes[name]
        last = len(variant.widths) - 1
        at = [min(j, last) for j in range(len(job_class.epochs))]
        steps = [(variant.gpu_types[n], int(variant.widths[n])) for n in at]
        times, dollars = np.full(len(steps), np.inf), np.zeros(len(steps))
        for gpu in set(variant.gpu_types) & self._solution.workload.gpu_types.keys():
            here = np.array([j for j, step in enumerate(steps) if step[0] == gpu], dtype=np.intp)
            widths = np.array([steps[j][1] for j in here], dtype=np.intp)
            known = self._times_on(name, gpu)
            times[here] = known[here, np.minimum(widths, known.shape[1]) - 1]
            kind, rules = self._solution.workload.gpu_types[gpu], self._solution.rules
            dollars[here] = cost_rates(widths.astype(float), kind, rules.billing)
        values = weight + self._solution.shadow_price * dollars  # of a second in every epoch
        rescale_s = rescale_time(job_class, self._solution.rules)
        entries = rescale_s * values
        moves = np.where([False, *(a != b for a, b in pairwise(steps))], entries, 0.0)
        runs = times * values
        afters = np.append(np.cumsum((runs + moves)[:0:-1])[::-1], 0.0)
        return Course(
            variant=variant,
            steps=steps,
            runs=runs.tolist(),
            afters=afters.tolist(),
            entries=entries.tolist(),
            changes=_next_changes(steps),
            times=times,
            rates=dollars,
            rescale_s=rescale_s,
        )

    def _times_on(self, name: str, gpu: GpuName) -> Floats:
        """Seconds of every epoch at widths 1 … K; infinite where it cannot run."""
        known = self._times.get((name, gpu))
        if known is None:
            job_class, _ = self._classes[name]
            widths = np.arange(1.0, job_class.max_on(gpu) + 1)
            known = np.full((len(job_class.epochs), len(widths)), np.inf)
            bases = [job_class.base_on(gpu, epoch) for epoch in job_class.epochs]
            runs = [j for j, base in enumerate(bases) if base is not None]
            if runs:
                known[runs] = run_times([job_class.epochs[j] for j in runs], gpu, widths)
            least = np.array([base or 1 for base in bases])
            known[widths < least[:, None]] = np.inf
            self._times[name, gpu] = known
        return known


def _next_changes(steps: list[Step]) -> list[int | None]:
    found: list[int | None] = [None]
    for j in range(len(steps) - 1, 0, -1):
        found.append(j if steps[j] != steps[j - 1] else found[-1])
    return found[::-1]
