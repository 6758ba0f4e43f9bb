"""Rules that give every job a deadline, and spend as little as keeps it.

A job's deadline is σ times what it takes on the GPUs that are cheapest for it. Nobody queues.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from boa.model.cluster import ClusterView, Decision, JobView, Share
from boa.model.kept_rows import Ints
from boa.model.speedup import Floats
from boa.policy.rivals.outlook import Outlook, Outlooks, each_alone, unknown_share
from boa.units import Seconds

MOST_STAGES = 8
"""Parts of training that may have widths of their own."""


@dataclass(frozen=True, slots=True)
class ByDeadline:
    """The cheapest GPUs on which the job meets its deadline, for life; the fastest if none does.

    ElasticFlow without its queue: the narrowest width. With several types Gavel's cheapest
    allocation under deadlines.
    """

    slack: float
    """σ."""
    name: str
    by_job: ClassVar[bool] = True

    def decide(self, view: ClusterView) -> Decision:
        return each_alone(view, self._share)

    def _share(self, job: JobView, outlook: Outlook) -> Share:
        if job.note is not None:
            gpu, width = job.note
            return Share(gpu, width, None, job.note)
        column = cheapest_in_time(outlook.rest(0, 1.0), outlook.dollars, self.slack)
        chosen = outlook.share(column)
        return outlook.share(column, None, (chosen.gpu, chosen.width))


def cheapest_in_time(seconds: Floats, dollars: Floats, slack: float) -> int:
    """The column that costs least of those that end in time, or the fastest."""
    costs = seconds * dollars
    in_time = seconds <= slack * seconds[costs.argmin()] * (1 + 1e-9)
    return int(np.where(in_time, costs, np.inf).argmin() if in_time.any() else seconds.argmin())


@dataclass(frozen=True, slots=True)
class RubberBand:
    """A width for every stage of training: the cheapest constant one that meets the deadline, then
    stages lowered one after the other, by what saves most dollars for every second that it takes.
    """

    slack: float
    """σ."""
    name: str = "rubberband"
    by_job: ClassVar[bool] = True

    def decide(self, view: ClusterView) -> Decision:
        outlooks = Outlooks(view.gpu_types)
        plans: dict[tuple[int, Seconds], Stages] = {}
        shares = {}
        for job in view.jobs:
            outlook, stages = outlooks.of(job), job.note
            if stages is None and outlook is not None:
                key = (id(outlook), job.rescale_s)
                if key not in plans:
                    plans[key] = staged(outlook, job.rescale_s, self.slack)
                stages = plans[key]
            known = isinstance(stages, Stages)
            shares[job.id] = (
                stages.share(job.epoch) if known else unknown_share(job, view.gpu_types)
            )
        return Decision(shares=shares)


@dataclass(frozen=True, slots=True)
class Stages:
    """GPUs of a job by stage of its training."""

    ends: tuple[int, ...]
    """The epoch after each stage."""
    shares: tuple[tuple[str, int], ...]

    def share(self, epoch: int) -> Share:
        at = min(sum(end <= epoch for end in self.ends), len(self.ends) - 1)
        here = self.shares[at]
        later = range(at + 1, len(self.shares))
        change = next((n for n in later if self.shares[n] != here), None)
        return Share(*here, None if change is None else self.ends[change - 1], self)


def staged(outlook: Outlook, rescale_s: Seconds, slack: float) -> Stages:
    """RubberBand's plan of one job."""
    parts = np.array_split(np.arange(len(outlook.seconds)), min(MOST_STAGES, len(outlook.seconds)))
    runs = np.flatnonzero(np.isfinite(outlook.seconds).all(axis=0))
    seconds = np.stack([outlook.seconds[part][:, runs].sum(axis=0) for part in parts])
    whole, dollars = seconds.sum(axis=0), outlook.dollars[runs]
    deadline = slack * whole[(whole * dollars).argmin()] + rescale_s
    columns = np.full(len(parts), cheapest_in_time(whole, dollars, slack))
    while (lower := _lowered(columns, seconds, dollars, rescale_s, deadline)) is not None:
        columns = lower
    return Stages(
        tuple(int(part[-1]) + 1 for part in parts),
        tuple((outlook.gpus[n], int(outlook.widths[n])) for n in runs[columns]),
    )


def _lowered(
    columns: Ints, seconds: Floats, dollars: Floats, rescale_s: Seconds, deadline: Seconds
) -> Ints | None:
    """The best step: one stage, or neighbours together, on cheaper GPUs; None if none saves."""
    tried = _steps(columns, seconds.shape[1])
    took, cost = _totals(tried, seconds, dollars, rescale_s)
    now_took, now_cost = _totals(columns[None], seconds, dollars, rescale_s)
    saved, lost = now_cost[0] - cost, took - now_took[0]
    good = (saved > 1e-9 * now_cost[0]) & (took <= deadline * (1 + 1e-9))
    if not good.any():
        return None
    worth = np.where(good, saved / np.maximum(lost, 1e-9), -np.inf)
    return np.asarray(tried[worth.argmax()])


def _steps(columns: Ints, count: int) -> Ints:
    """Every way to put neighbouring stages on one other column."""
    found = []
    for first, last in combinations(range(len(columns) + 1), 2):
        rows = np.tile(columns, (count, 1))
        rows[:, first:last] = np.arange(count)[:, None]
        found.append(rows)
    return np.concatenate(found)


def _totals(
    columns: Ints, seconds: Floats, dollars: Floats, rescale_s: Seconds
) -> tuple[Floats, Floats]:
    """Seconds and dollars of many plans: rows are plans, columns stages."""
    times = seconds[np.arange(len(seconds)), columns]
    times[:, 0] += rescale_s
    times[:, 1:] += np.where(columns[:, 1:] != columns[:, :-1], rescale_s, 0.0)
    return times.sum(axis=1), (times * dollars[columns]).sum(axis=1)
