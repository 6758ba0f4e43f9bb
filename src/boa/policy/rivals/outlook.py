"""Seconds and dollars that the rest of a job takes, on any GPUs that it could have."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from boa.model.cluster import (
    Allocation,
    ClusterView,
    Decision,
    JobView,
    Prediction,
    Share,
    version_of,
)
from boa.model.kept_rows import Ints
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.units import SECONDS_PER_HOUR, GpuName

LOOK_AHEAD = 10
"""Epochs after which a rule looks again at the latest: what is predicted may have changed."""
MOST_SEEN = 64
"""Outlooks that are kept between decisions."""
NOTHING = 1e-12
"""Part of an epoch that counts as left when none is: no time times none is no number."""


def packed_rates(rates: Floats, gpus_per_node: int) -> Floats:
    """Rates at every width on the fewest nodes; `rates` as `Prediction.rates` gives them."""
    widths = np.arange(rates.shape[-1])
    return np.where(widths <= gpus_per_node, rates[..., 0, :], rates[..., 1, :])


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Epochs of a job by rows, by columns the GPUs that it could have: types and widths."""

    gpus: tuple[GpuName, ...]
    widths: Ints
    dollars: Floats
    """Dollars per second of every column."""
    seconds: Floats
    """Seconds of every epoch; infinite where it cannot run."""
    after: Floats
    """Seconds from the end of every epoch to the end of the job."""
    notes: dict[int, float] = field(default_factory=dict)
    """A figure by epoch, of whoever looks: worked out once for all jobs that look out on this."""

    def rest(self, epoch: int, left: float) -> Floats:
        """Seconds to the end from now on."""
        at = min(epoch, len(self.seconds) - 1)
        return np.asarray(min(max(left, NOTHING), 1.0) * self.seconds[at] + self.after[at])

    def ahead(self, epoch: int) -> slice:
        """Rows of this epoch and of those within the look ahead."""
        at = min(epoch, len(self.seconds) - 1)
        return slice(at, at + 1 + LOOK_AHEAD)

    def rests(self, epoch: int, left: float) -> Floats:
        """Seconds to the end from now on (first row), and from the starts of the epochs ahead."""
        rows = self.ahead(epoch)
        parts = np.ones((len(self.seconds[rows]), 1))
        parts[0] = min(max(left, NOTHING), 1.0)
        return parts * self.seconds[rows] + self.after[rows]

    def column(self, held: Allocation | None) -> int | None:
        """The column of the GPUs that it has, if it can run there."""
        if held is None:
            return None
        return self.column_of(held.gpu, held.width)

    def column_of(self, gpu: GpuName, width: int) -> int | None:
        if gpu not in self.gpus:
            return None
        at = self.gpus.index(gpu) + width - 1
        return at if at < len(self.gpus) and self.gpus[at] == gpu else None

    def share(self, column: int, until: int | None = None, note: object = None) -> Share:
        return Share(self.gpus[column], int(self.widths[column]), until, note)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """An outlook, with what it was made from: nobody else gets their addresses meanwhile."""

    prediction: Prediction
    version: int
    work: tuple[float, ...]
    gpu_types: Mapping[GpuName, GpuType]
    outlook: Outlook | None

    def of(self, job: JobView, gpu_types: Mapping[GpuName, GpuType]) -> bool:
        """Whether this job looks out on the same, as far as can be told without looking."""
        return (
            self.version == version_of(job.prediction)
            and self.work == tuple(job.work)
            and self.gpu_types == gpu_types
        )


_seen: dict[int, _Seen] = {}
"""By the address of a prediction: an event asks for one job, and its class has mostly been seen."""


class Outlooks:
    """Outlooks of the jobs in one view: those of a class mostly look out on the same."""

    def __init__(self, gpu_types: Mapping[GpuName, GpuType]) -> None:
        self._gpu_types = gpu_types
        self._known: dict[tuple[int, tuple[float, ...]], Outlook | None] = {}

    def of(self, job: JobView) -> Outlook | None:
        """None: nothing is known of it on any type."""
        seen = _seen.get(id(job.prediction))
        if seen is not None and seen.of(job, self._gpu_types):
            return seen.outlook
        work = tuple(job.work)
        if not work:  # nobody knows how many epochs there are: this one is looked at alone
            return self._made(job, (1.0,), job.epoch)
        key = (id(job.prediction), work)
        if key not in self._known:
            self._known[key] = self._made(job, work, 0)
        self._keep(job, work, self._known[key])
        return self._known[key]

    def _keep(self, job: JobView, work: tuple[float, ...], outlook: Outlook | None) -> None:
        version = version_of(job.prediction)
        if version is None:
            return
        if len(_seen) >= MOST_SEEN:
            _seen.clear()
        seen = _Seen(job.prediction, version, work, self._gpu_types, outlook)
        _seen[id(job.prediction)] = seen

    def _made(self, job: JobView, work: Sequence[float], first: int) -> Outlook | None:
        gpus: list[GpuName] = []
        widths, dollars, rates = [], [], []
        for gpu, kind in self._gpu_types.items():
            found = [job.prediction.rates(gpu, first + n) for n in range(len(work))]
            known = [table for table in found if table is not None]
            if len(known) < len(found):
                continue
            narrowest = min(table.shape[-1] for table in known)
            packed = packed_rates(
                np.stack([table[:, :narrowest] for table in known]), kind.gpus_per_node
            )[:, 1:]
            count = packed.shape[-1]
            gpus += [gpu] * count
            widths.append(np.arange(1, count + 1))
            dollars.append(widths[-1] * kind.price / SECONDS_PER_HOUR)
            rates.append(packed)
        if not gpus:
            return None
        with np.errstate(divide="ignore"):
            seconds = np.array(work)[:, None] / np.concatenate(rates, axis=1)
        if not np.isfinite(seconds.sum(axis=0)).any():
            return None
        after = np.zeros_like(seconds)
        after[:-1] = np.cumsum(seconds[:0:-1], axis=0)[::-1]
        return Outlook(tuple(gpus), np.concatenate(widths), np.concatenate(dollars), seconds, after)


def unknown_share(job: JobView, gpu_types: Mapping[GpuName, GpuType]) -> Share:
    """GPUs of a job that nothing is known of: what its user asked for, of the first type that it
    allows; looked at again after an epoch."""
    allowed = job.limits.types if job.limits is not None and job.limits.types else tuple(gpu_types)
    gpu = next((name for name in gpu_types if name in allowed), next(iter(gpu_types)))
    return Share(gpu, job.asked.gpus or 1, job.epoch + 1)


def each_alone(view: ClusterView, share: Callable[[JobView, Outlook], Share]) -> Decision:
    """A decision on every job by itself."""
    outlooks = Outlooks(view.gpu_types)
    shares = {}
    for job in view.jobs:
        seen = outlooks.of(job)
        shares[job.id] = unknown_share(job, view.gpu_types) if seen is None else share(job, seen)
        if seen is not None and not job.work:  # it was looked at for this epoch alone
            shares[job.id] = replace(shares[job.id], until=job.epoch + 1)
    return Decision(shares=shares)


def next_look(epoch: int, moves: NDArray[np.bool_]) -> int | None:
    """The epoch to be asked again at: the first of the later ones where the job would move, but
    within the look ahead; `moves`: of every later epoch, whether it would."""
    soon = np.flatnonzero(moves[:LOOK_AHEAD])
    if len(soon):
        return epoch + 1 + int(soon[0])
    return epoch + LOOK_AHEAD if len(moves) >= LOOK_AHEAD else None
