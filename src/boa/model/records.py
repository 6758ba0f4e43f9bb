"""Records that the service keeps beside its jobs: nodes, holds, events, profiles. Frozen values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from boa.model.cluster import JobId, Node, NodeId
from boa.model.events import EventKind
from boa.model.layouts import Trial
from boa.model.prices import NO_CHANGES, Changes, price_at
from boa.units import GpuName, Seconds, UsdPerHour

NodeState: TypeAlias = Literal["requested", "ready", "releasing", "gone"]
"""requested: rented or about to be, not yet usable; releasing: given back, still charged."""
RESCALE_PARTS = ("stop", "save", "start", "load", "first_step")
"""Parts of a rescaling that a job can tell of: SIGTERM until all ranks have stopped; until its
checkpoint is published; from the beginning of the new process until its process group and device
are there; until model and checkpoint are loaded; by how much the first step is longer than
others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """A node that was decided on, from before it is rented until after it is gone."""

    id: NodeId
    token: str
    """The cloud's name for it; the same request under the same token rents nothing twice."""
    gpu: GpuName
    gpus: int
    price: UsdPerHour
    """Per GPU and hour, as really charged, until it changes …"""
    changes: Changes = NO_CHANGES
    """… and what it changed to since, or is known to change to."""
    state: NodeState = "requested"
    requested_at: Seconds
    billed_from: Seconds | None = None
    """When the cloud began to charge; None while it has not said that it rents the node."""
    ready_at: Seconds | None = None
    released_at: Seconds | None = None
    """When it was given back."""
    gone_at: Seconds | None = None
    """When the cloud stopped charging."""
    leaving_at: Seconds | None = None
    """The cloud will take it away then: no job is to be on it any more."""
    empty_since: Seconds | None = None
    """Ready and without any job since; None while jobs hold GPUs of it."""
    address: str = ""
    reason: str = ""

    def price_at(self, at: Seconds) -> UsdPerHour:
        """Per GPU and hour, at a moment of its life; of a gone node, at most at its end."""
        if self.gone_at is not None:
            at = min(at, math.nextafter(self.gone_at, -math.inf))
        return price_at(self.price, self.changes, at)

    def priced_at(self, at: Seconds) -> "NodeRecord":
        """The same with the price of that moment alone."""
        if not self.changes:
            return self
        return replace(self, price=self.price_at(at), changes=NO_CHANGES)

    @property
    def node(self) -> Node:
        return _node(self.id, self.gpu, self.gpus)


_node = lru_cache(maxsize=4096)(Node)
"""The same one again: every decision asks this of every node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """GPUs of one ready node that a job held: the unit that jobs are charged by."""

    job: JobId
    stream: str
    """Its class, and who pays for it."""
    node: NodeId
    gpus: int
    price: UsdPerHour
    """Per GPU and hour, until it changes; of a hold that has ended, on average."""
    since: Seconds
    until: Seconds | None = None
    """None: it still does."""
    changes: Changes = NO_CHANGES
    """Changes of an open hold's price, as its node has them; stored with the node alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something a person may want to know."""

    at: Seconds
    kind: EventKind
    text: str
    """The sentence, as it was made from the rest when the event happened."""
    job: JobId | None = None
    node: NodeId | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    """JSON: the fields of the kind (`events.FIELDS`); fewer where an older version wrote it."""


@dataclass(frozen=True, slots=True)
class CellKey:
    """Where something was measured."""

    job_class: str
    gpu: GpuName
    across: bool
    """Over more than one node."""
    width: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Cell:
    """Measurements there, added up (with old ones fading)."""

    key: CellKey
    seconds: Seconds
    units: float
    """Progress made in these seconds."""
    reports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRecord:
    """Facts of a class beside its cells."""

    name: str
    document: Mapping[str, Any]
    """JSON, the profiler's own: limits, arrivals so far, work per epoch, rescaling times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnd:
    """Figures of a job when an epoch of it ended."""

    epoch: int
    """Epochs done by then."""
    values: Mapping[str, float | None]
    """The newest by then, `loss` among them; None: it was no finite number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A running job's report of itself. Times are the server's seconds."""

    job: JobId
    attempt: int
    uptime_s: Seconds
    """Seconds since its process began; differences of it are what rates are made from."""
    epoch: int
    progress: float
    """Units done of this epoch, those of earlier runs included."""
    units: float
    """Units done by this attempt, over all its epochs: never falls within an attempt."""
    step: int | None = None
    loss: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    rescale: Mapping[str, Seconds] = field(default_factory=dict)
    """Parts of the rescaling that this attempt began with (`RESCALE_PARTS`), as far as known."""
    layouts: tuple[Trial, ...] = ()
    """Layouts of its model that this attempt has tried, or has learned of."""
    ends: "tuple[EpochEnd, ...]" = ()
    """Epochs that have ended since the last report that arrived: one that comes late says more than
    how things are now."""
    saves: bool | None = None
    """Whether the job saves a checkpoint when it is asked to stop (SIGTERM); None: it has not said
    so."""
    saved_s: Seconds | None = None
    """`uptime_s` at which the newest complete checkpoint was taken; 0: the one that this attempt
    resumed from; None: there is no checkpoint."""
    total: float | None = None
    """Units of the whole job, all epochs together, as the script knows them."""
    done: bool = False
    """The job has finished its work: a stop that comes now finds nothing left to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The service at some moment, as the ledger cannot show it: what it steered to and had to
    do."""

    at: Seconds
    every_s: Seconds
    """How soon the next one was to come."""
    budget: UsdPerHour
    effective: UsdPerHour
    wanted: Mapping[GpuName, int]
    """GPUs that the plan had for all active jobs."""
    active: int
    """Jobs that have not ended."""
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A report that was kept, to show how its job went."""

    job: JobId
    at: Seconds
    attempt: int
    epoch: int
    progress: float
    units: float
    """Units done by this attempt, as in the report."""
    uptime_s: Seconds
    step: int | None = None
    loss: float | None = None
    batch_size: float | None = None
    turns: int = 0
    """How many points of the job so far were kept because its epoch had changed."""
