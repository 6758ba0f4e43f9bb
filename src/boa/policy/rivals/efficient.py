"""Every job as wide as is efficient enough: Pollux's autoscaling of one job, for each by itself."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from boa.model.cluster import ClusterView, Decision, JobView, Share
from boa.model.speedup import Floats
from boa.policy.rivals.autoscale import band
from boa.policy.rivals.outlook import Outlook, each_alone, next_look

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Efficiency:
    """The fastest GPUs whose progress per dollar is at least `target` of the best to be had.

    On one GPU type that is the widest width of this efficiency. A job that runs is left alone
    while its efficiency lies within the band in which the autoscaled rivals leave their clusters.
    """

    target: float
    name: str = "efficiency"
    by_job: ClassVar[bool] = True

    def decide(self, view: ClusterView) -> Decision:
        return each_alone(view, self._share)

    def _share(self, job: JobView, outlook: Outlook) -> Share:
        seconds = outlook.seconds[outlook.ahead(job.epoch)]
        found = efficiencies(seconds, outlook.dollars)
        enough = np.where(found >= self.target - ROUNDING, seconds, np.inf)
        best = enough.argmin(axis=1)
        held = outlook.column(job.allocation)
        first = int(best[0])
        if held is not None and self._in_band(found[:1, held])[0]:
            first = held
        later = (best[1:] != first) & ~self._in_band(found[1:, first])
        return outlook.share(first, next_look(job.epoch, later))

    def _in_band(self, found: Floats) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        return np.asarray(np.abs(found - self.target) <= band(self.target) + ROUNDING)


def efficiencies(seconds: Floats, dollars: Floats) -> Floats:
    """Progress per dollar of every epoch on every column, the best being 1."""
    per_dollar = 1.0 / (seconds * dollars)
    return np.asarray(per_dollar / per_dollar.max(axis=1, keepdims=True))
