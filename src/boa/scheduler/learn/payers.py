"""Who pays for the jobs of a class, as parts of those that come: streams of one class. Frozen."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from boa.model.streams import class_of, payer_in, stream_of
from boa.model.workload import JobClass
from boa.scheduler.learn.fading_means import FADE

FORGOTTEN = 0.01
"""Weight below which a payer is left out, until a job of its comes again."""


@dataclass(frozen=True, slots=True)
class Payers:
    """Weights by payer: every job counts 5 % less with the next; empty: its class says who."""

    weights: Mapping[str, float] = field(default_factory=dict)

    def arrived(self, payer: str) -> "Payers":
        faded = {name: weight * FADE for name, weight in self.weights.items()}
        faded[payer] = faded.get(payer, 0.0) + 1.0
        return Payers({name: weight for name, weight in faded.items() if weight >= FORGOTTEN})

    def shares(self, active: Collection[str] = ()) -> Mapping[str, float]:
        """By payer: its part of all jobs. `active`: payers that have jobs now, however seldom."""
        weights = dict.fromkeys(active, FORGOTTEN) | dict(self.weights)
        total = sum(weights.values())
        return {payer: weight / total for payer, weight in weights.items()} if total else {"": 1.0}

    def streams(self, found: JobClass, active: Collection[str] = ()) -> tuple[JobClass, ...]:
        """A class by who pays for it; as it is where nobody is named. `active`: streams."""
        mine = {payer_in(stream) for stream in active if class_of(stream) == found.name}
        return tuple(
            replace(
                found,
                name=stream_of(found.name, payer),
                arrivals_per_hour=found.arrivals_per_hour * share,
            )
            for payer, share in sorted(self.shares(mine).items())
        )
