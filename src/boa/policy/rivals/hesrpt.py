"""heSRPT (Berg, Vesilo and Harchol-Balter 2020): shares of a fixed pool by remaining size.

Optimal for the mean where all sizes are known, all jobs are there and each speeds up as kᵖ: of n
jobs by falling size, the i-th has (i/n)^{1/(1−p)} − ((i−1)/n)^{1/(1−p)} of all GPUs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from boa.model.cluster import ClusterView, Decision, JobView
from boa.model.kept_rows import Ints
from boa.model.speedup import Floats
from boa.policy.rivals.outlook import Outlook, Outlooks
from boa.policy.rivals.reservation import pools_of
from boa.policy.rivals.seating import Wanted, seat

MOST_P = 0.99
"""Beyond, all goes to the smallest job: a speedup that is linear as far as it was measured."""


@dataclass(frozen=True, slots=True)
class HeSrpt:
    """On the nodes there are, of one GPU type; p is fitted to every job's own speedup."""

    name: str = "hesrpt"
    by_job: ClassVar[bool] = False

    def decide(self, view: ClusterView) -> Decision:
        gpu, pools, outlooks = next(iter(view.gpu_types)), pools_of(view), Outlooks(view.gpu_types)
        known = [(job, seen) for job in view.jobs if (seen := outlooks.of(job)) is not None]
        if not known:
            return Decision(nodes=tuple(view.nodes))
        known.sort(key=lambda one: -size_of(*one))
        wanted = [Wanted(job, gpu, width) for job, width in shared(known, pools[gpu].gpus_free)]
        placed = seat(sorted(wanted, key=lambda one: -one.width), pools)
        return Decision(placements=placed, nodes=tuple(view.nodes))


def shared(known: Sequence[tuple[JobView, Outlook]], gpus: int) -> list[tuple[JobView, int]]:
    """Jobs, by falling size, with their GPUs. Who cannot run on its share waits, the largest first,
    and the others share again."""
    least = [int(seen.widths[seen.rest(job.epoch, job.left) < np.inf].min()) for job, seen in known]
    left = list(range(len(known)))
    while True:
        parts = fractions([exponent(*known[n]) for n in left])
        most = np.array([len(known[n][1].gpus) for n in left])
        widths = whole_gpus(parts, most, gpus).tolist()
        short = [n for n, width in zip(left, widths, strict=True) if 0 < width < least[n]]
        if not short:
            return [(known[n][0], w) for n, w in zip(left, widths, strict=True) if w]
        left.remove(short[0])


def size_of(job: JobView, seen: Outlook) -> float:
    """GPU-seconds that are left of it where it is most efficient."""
    return float((seen.rest(job.epoch, job.left) * seen.widths).min())


def exponent(job: JobView, seen: Outlook) -> float:
    """p of the power law that comes nearest to its speedup in this epoch."""
    epoch = min(job.epoch, len(seen.seconds) - 1)
    known = seen.notes.get(epoch)
    if known is None:
        known = seen.notes[epoch] = _fitted(seen.seconds[epoch], seen.widths)
    return known


def _fitted(seconds: Floats, widths: Ints) -> float:
    runs = np.isfinite(seconds)
    if runs.sum() < 2:
        return 0.0
    logs, speeds = np.log(widths[runs]), -np.log(seconds[runs])
    slope = np.cov(logs, speeds)[0, 1] / np.var(logs, ddof=1)
    return float(min(max(slope, 0.0), MOST_P))


def fractions(exponents: Sequence[float]) -> Floats:
    """Shares of jobs by falling size; where exponents differ, their shares are made to fit."""
    count = len(exponents)
    at, power = np.arange(1, count + 1), 1.0 / (1.0 - np.array(exponents))
    found = (at / count) ** power - ((at - 1) / count) ** power
    return np.asarray(found / found.sum())


def whole_gpus(parts: Floats, most: Ints, gpus: int) -> Ints:
    """So many GPUs, in whole ones and none beyond a job's most; the largest parts lost by rounding
    are made good first, the smaller job's before the larger one's."""
    widths, left = np.zeros(len(parts), dtype=np.int64), gpus
    while left:
        room = widths < most
        if not room.any():
            break
        share = np.where(room, parts, 0.0)
        if not share.sum():
            share = room.astype(float)
        ideal = share / share.sum() * left
        given = np.minimum(np.floor(ideal).astype(np.int64), most - widths)
        if not given.any():
            order = np.lexsort((-np.arange(len(parts)), -ideal))
            given[[at for at in order.tolist() if room[at]][:left]] = 1
        widths, left = widths + given, left - int(given.sum())
    return widths
