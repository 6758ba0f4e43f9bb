"""Sia: every round, an integer program chooses a GPU type and a count for every job."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from boa.model.cluster import ClusterView, Decision, JobId, JobView, Share
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.policy.rivals.assignment import Assignment, assign
from boa.policy.rivals.common import WIDEST, least_width, rescale_factor
from boa.solver.tables import Ints
from boa.units import GpuName, Seconds

FAIRNESS = -0.5
"""Power that a configuration's normalised goodput is raised to."""
UNALLOCATED = 1.1
CHANGED = 0.01
MOST = 3000.0
DIGITS = 2
PENALTIES: Mapping[str, Seconds] = {"resnet18": 30.0, "yolov3": 45.0}
"""Seconds that Sia believes a rescaling to take, where that is not what it takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Configurations:
    """All (GPU type, count) that a job may be given."""

    gpus: Ints
    kinds: Ints
    names: tuple[GpuName, ...]
    ladders: tuple["Ladder", ...]
    """Ladders of all types."""

    @staticmethod
    def of(gpu_types: Mapping[GpuName, GpuType]) -> "Configurations":
        return _configurations(tuple((gpu, t.gpus_per_node) for gpu, t in gpu_types.items()))

    def index(self, gpu: GpuName, width: int) -> int:
        """The configuration of these GPUs, −1 if there is none."""
        ladder = self.ladders[self.names.index(gpu)]
        return ladder.first + ladder.widths.index(width) if width in ladder.widths else -1


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """One type's counts: configurations that stand side by side, by rising width."""

    first: int
    """Index of its first configuration."""
    widths: list[int]
    places: tuple[Ints, Ints]
    """Where rates at these widths are in a prediction: whether across nodes, and the width."""


@lru_cache(maxsize=16)
def _configurations(types: tuple[tuple[GpuName, int], ...]) -> Configurations:
    pairs = [(count, n) for n, (_, per_node) in enumerate(types) for count in counts(per_node)]
    sizes, kinds = np.array(pairs, dtype=np.int64).T
    ladders = []
    for n, (_, per_node) in enumerate(types):
        widths = sizes[kinds == n]
        places = ((widths > per_node).astype(np.intp), widths)
        ladders.append(Ladder(int(np.argmax(kinds == n)), widths.tolist(), places))
    return Configurations(sizes, kinds, tuple(gpu for gpu, _ in types), tuple(ladders))


def counts(per_node: int) -> list[int]:
    """Powers of two within a node, then whole nodes."""
    within = [1 << n for n in range(per_node.bit_length()) if 1 << n < per_node]
    return within + list(range(per_node, max(WIDEST, per_node) + 1, per_node))


@dataclass(frozen=True, slots=True)
class Sia:
    """On a fixed cluster of one or several GPU types."""

    name: str = "sia"
    by_job: ClassVar[bool] = False

    def decide(self, view: ClusterView) -> Decision:
        capacity: dict[GpuName, int] = {}
        for node in view.nodes:
            capacity[node.gpu] = capacity.get(node.gpu, 0) + node.gpus
        return Decision(shares=Round.of(view).shares(capacity), nodes=tuple(view.nodes))


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One round's program, for any capacity."""

    jobs: Sequence[JobView]
    configurations: Configurations
    goodputs: Floats
    """jobs × configurations, each job's least set to 1; 0 where not allowed."""
    costs: Floats
    current: Ints
    """Each job's configuration now, −1 for none."""

    @classmethod
    def of(cls, view: ClusterView) -> "Round":
        options = Configurations.of(view.gpu_types)
        goodputs = np.array([_goodputs(job, options) for job in view.jobs])
        goodputs = goodputs.reshape(len(view.jobs), len(options.gpus))
        current = np.array([_current(job, options) for job in view.jobs], dtype=np.int64)
        return cls(view.jobs, options, goodputs, _costs(view, goodputs, current), current)

    def shares(self, capacity: Mapping[GpuName, int]) -> dict[JobId, Share]:
        chosen = self.chosen(capacity)
        options = self.configurations
        return {
            job.id: Share(options.names[options.kinds[at]], int(options.gpus[at]))
            for job, at in zip(self.jobs, chosen, strict=True)
            if at >= 0
        }

    def chosen(self, capacity: Mapping[GpuName, int]) -> Ints:
        if not self.jobs:
            return np.zeros(0, dtype=np.int64)
        options = self.configurations
        room = tuple(capacity.get(name, 0) for name in options.names)
        return _solved(options, self.costs.tobytes(), room)


@lru_cache(maxsize=64)
def _solved(options: Configurations, costs: bytes, capacity: tuple[int, ...]) -> Ints:
    """The answer, kept for whoever asks again: autoscaling does within a round, and rounded costs
    are mostly those of the round before."""
    chosen = assign(
        Assignment(
            costs=np.frombuffer(costs).reshape(-1, len(options.gpus)),
            gpus=options.gpus,
            kinds=options.kinds,
            capacity=np.array(capacity, dtype=np.int64),
            unallocated=UNALLOCATED,
        )
    )
    chosen.flags.writeable = False
    return chosen


def _goodputs(job: JobView, options: Configurations) -> Floats:
    """Normalised by the least over all types; a type never tried counts as that, at one GPU.

    A job may grow to twice the GPUs that it has tried, on whichever type.
    """
    found = np.zeros(len(options.gpus))
    unknown = []
    tried = max(job.tried.values(), default=0)
    for gpu, ladder in zip(options.names, options.ladders, strict=True):
        known = job.prediction.rates(gpu, job.epoch)
        if known is None:
            unknown.append(ladder.first)
            continue
        most = min(max(2 * tried, least_width(known)), known.shape[1] - 1)
        count = bisect_right(ladder.widths, most)
        across, widths = ladder.places
        found[ladder.first : ladder.first + count] = known[across[:count], widths[:count]]
    positive = found[found > 0]
    if len(positive):
        found /= positive.min()
    found[unknown] = 1.0
    return found


def _current(job: JobView, options: Configurations) -> int:
    held = job.allocation
    return -1 if held is None else options.index(held.gpu, held.width)


def _costs(view: ClusterView, goodputs: Floats, current: Ints) -> Floats:
    """Terms that the configurations add to the sum that is minimised."""
    factors = np.array([_rescale_factor(view.now, job) for job in view.jobs]).reshape(-1, 1)
    changed = np.ones(goodputs.shape)
    rows = np.flatnonzero(current >= 0)
    changed[rows, current[rows]] = 0.0
    values = np.where(changed > 0, goodputs * factors, goodputs)
    with np.errstate(divide="ignore"):
        costs = np.minimum(np.round(values**FAIRNESS, DIGITS), MOST)
    return np.where(goodputs > 0, costs + CHANGED * changed, np.inf)


def _rescale_factor(now: Seconds, job: JobView) -> float:
    age, penalty = now - job.arrival, PENALTIES.get(job.job_class, job.rescale_s)
    if age < penalty:
        return 1.0
    return rescale_factor(age, job.rescalings, penalty)
