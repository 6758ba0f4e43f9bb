"""Who held GPUs: dollars and GPU-hours that jobs held, by anything that is known of a job. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from boa.model.cluster import JobId
from boa.model.held import Held
from boa.model.records import NodeRecord
from boa.scheduler.money.costs import spent_on_holds
from boa.units import Seconds, Usd


@dataclass(frozen=True, slots=True)
class Holding:
    """All that some jobs held in some time."""

    usd: Usd = 0.0
    gpu_hours: float = 0.0
    jobs: int = 0

    def __add__(self, other: "Holding") -> "Holding":
        return Holding(
            self.usd + other.usd, self.gpu_hours + other.gpu_hours, self.jobs + other.jobs
        )


Of: TypeAlias = tuple[JobId, str]
"""A job, and its stream: class and payer."""
_Label = TypeVar("_Label")


def by_job(
    nodes: Sequence[NodeRecord], held: Held, since: Seconds, until: Seconds
) -> Mapping[Of, Holding]:
    """All that each job held, of jobs that held anything."""
    if not nodes:
        return {}
    which, job, usd, hours = spent_on_holds(nodes, held, since, until)
    key = job * len(held.streams) + which  # a job whose payer has changed has two streams
    numbers, first, place = np.unique(key, return_index=True, return_inverse=True)
    columns = (
        job[first],
        which[first],
        np.bincount(place, usd, len(numbers)),
        np.bincount(place, hours, len(numbers)),
    )
    return {
        (str(number), held.streams[of]): Holding(dollars, gpu_hours, 1)
        for number, of, dollars, gpu_hours in zip(*(c.tolist() for c in columns), strict=True)
    }


def added_up(
    holdings: Mapping[Of, Holding], label: Callable[[Of], _Label]
) -> dict[_Label, Holding]:
    """By the label of each job; whoever held most comes first."""
    found: dict[_Label, Holding] = {}
    for of, holding in holdings.items():
        named = label(of)
        found[named] = found.get(named, Holding()) + holding
    return dict(sorted(found.items(), key=lambda one: -one[1].usd))
