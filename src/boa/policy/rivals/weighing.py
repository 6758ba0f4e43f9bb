"""Rules that weigh a job's seconds against its dollars: Optimus with a price, and Scavenger.

Nobody queues, and no job looks at another: each takes the GPUs on which the rest of its training
comes to the least. One that runs moves only if it gains more than the rescaling comes to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from boa.model.cluster import ClusterView, Decision, JobView, Share
from boa.model.speedup import Floats
from boa.policy.rivals.outlook import Outlook, each_alone, next_look

Values: TypeAlias = Callable[[Floats, Floats], Floats]
"""(seconds left by epoch and column, dollars per second by column) → what a second counts."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """Least Σ seconds × what a second counts, over the rest of a job at one width."""

    name: str
    values: Values
    by_job: ClassVar[bool] = True

    def decide(self, view: ClusterView) -> Decision:
        return each_alone(view, self._share)

    def _share(self, job: JobView, outlook: Outlook) -> Share:
        rests = outlook.rests(job.epoch, job.left)
        values = self.values(rests, outlook.dollars)
        stay, move = rests * values, (rests + job.rescale_s) * values
        best, held = int(np.argmin(move[0])), outlook.column(job.allocation)
        if held is not None and stay[0, held] <= move[0, best]:
            best = held
        later = move[1:].min(axis=1) < stay[1:, best]
        return outlook.share(best, next_look(job.epoch, later))


def optimus_price(seconds_per_dollar: float) -> Weighing:
    """Optimus (EuroSys'18) with money: T + λC. One GPU more while the seconds that it saves are
    worth the dollars that it costs; λ in seconds per dollar."""

    def values(rests: Floats, dollars: Floats) -> Floats:
        return np.broadcast_to(1.0 + seconds_per_dollar * dollars, rests.shape)

    return Weighing("optimus-price", values)


def scavenger(weight: float) -> Weighing:
    """Scavenger: w · T / T_min + (1 − w) · C / C_min, each job by its own fastest and cheapest."""

    def values(rests: Floats, dollars: Floats) -> Floats:
        fastest = rests.min(axis=1, keepdims=True)
        cheapest = (rests * dollars).min(axis=1, keepdims=True)
        return np.asarray(weight / fastest + (1.0 - weight) / cheapest * dollars)

    return Weighing("scavenger", values)
