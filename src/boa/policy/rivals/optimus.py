"""Optimus (EuroSys'18) as the authors of Pollux ran it: the next GPU to whoever saves most time.

Every job gets one GPU, in the order of arrival; then the GPUs that are left go one by one to the
job whose rest would become shortest by it. What is left of a job is known.

With goodput, batch sizes are tuned and the rest is what it really is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import ClassVar

import numpy as np

from boa.model.cluster import ClusterView, Decision, JobId, JobView
from boa.model.speedup import Floats
from boa.policy.rivals.outlook import Outlooks, packed_rates
from boa.policy.rivals.reservation import pools_of
from boa.policy.rivals.seating import Wanted, seat


@dataclass(frozen=True, slots=True)
class Optimus:
    """On the nodes there are, of one GPU type."""

    goodput: bool = False
    by_job: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "optimus-goodput" if self.goodput else "optimus"

    def decide(self, view: ClusterView) -> Decision:
        gpu, kind = next(iter(view.gpu_types.items()))
        pools = pools_of(view)
        outlooks = Outlooks(view.gpu_types)
        rests = {
            job.id: true_rest(job, outlooks)
            if self.goodput
            else rest_by_width(job, gpu, kind.gpus_per_node)
            for job in view.jobs
        }
        widths = shared_out(rests, pools[gpu].gpus_free)
        wanted = [Wanted(job, gpu, widths[job.id]) for job in view.jobs if widths[job.id]]
        placed = seat(sorted(wanted, key=lambda one: one.width), pools)
        return Decision(placements=placed, nodes=tuple(view.nodes))


def rest_by_width(job: JobView, gpu: str, gpus_per_node: int) -> Floats:
    """Seconds that a job has yet to run, at widths 1 …, on the fewest nodes; the epoch that it is
    in counts for nothing, unless it is the last: then for one iteration."""
    rates = job.prediction.rates(gpu, job.epoch)
    if rates is None:
        return np.ones(1)
    left = sum(job.work[job.epoch + 1 :]) or 1.0
    with np.errstate(divide="ignore"):
        return np.asarray(left / packed_rates(rates, gpus_per_node)[1:])


def true_rest(job: JobView, outlooks: Outlooks) -> Floats:
    """The same with all that is left, epoch by epoch."""
    outlook = outlooks.of(job)
    return np.ones(1) if outlook is None else outlook.rest(job.epoch, job.left)


def shared_out(rests: Mapping[JobId, Floats], gpus: int) -> dict[JobId, int]:
    """GPUs of every job: one for each while there are any, or the fewest that it can run on; then
    where they save most."""
    names, free = list(rests), gpus
    widths = dict.fromkeys(names, 0)
    for name in names:
        least = _least_width(rests[name])
        if least <= free:
            widths[name] = least
            free -= least
    gains = [
        (-_gain(rests[name], widths[name]), place)
        for place, name in enumerate(names)
        if widths[name]
    ]
    heapify(gains)
    while free and gains and gains[0][0] < 0:
        place = gains[0][1]
        name = names[place]
        widths[name] += 1
        free -= 1
        heapreplace(gains, (-_gain(rests[name], widths[name]), place))
    return widths


def _least_width(rest: Floats) -> int:
    runs = np.flatnonzero(np.isfinite(rest))
    return int(runs[0]) + 1 if len(runs) else 1


def _gain(rest: Sequence[float] | Floats, width: int) -> float:
    """Seconds that one GPU more saves; none beyond the widest."""
    return float(rest[width - 1] - rest[width]) if width < len(rest) else 0.0
