"""Policies' views and decisions: frozen values, the same in the simulator and live."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from boa.units import GpuName, Seconds, UsdPerHour

if TYPE_CHECKING:  # these need NumPy, which a job's record does without
    from boa.model.job_spec import GpuLimits
    from boa.model.speedup import Floats
    from boa.model.workload import GpuType

JobId: TypeAlias = str
NodeId: TypeAlias = int
Shape: TypeAlias = tuple[int, ...]
"""GPUs on each node of a placement."""


@dataclass(frozen=True, slots=True)
class Node:
    """A rented machine with GPUs of one type."""

    id: NodeId
    gpu: GpuName
    gpus: int


@dataclass(frozen=True, slots=True)
class Allocation:
    """GPUs that a job holds, all of one type: how many on which nodes."""

    gpu: GpuName
    nodes: tuple[tuple[NodeId, int], ...]
    """(node, GPUs on it), by rising node."""

    @property
    def width(self) -> int:
        nodes = self.nodes
        if len(nodes) == 1:  # most, and every decision asks this of every job
            return nodes[0][1]
        return sum(count for _, count in nodes)

    @property
    def shape(self) -> Shape:
        return tuple(count for _, count in self.nodes)


class Prediction(Protocol):
    """How fast a job is expected to run: what a policy may know of it."""

    def rates(self, gpu: GpuName, epoch: int) -> "Floats | None":
        """Rates of progress, 2 × (K + 1): at every width, on one node and across nodes.

        None where nothing is known of this type yet; 0 at widths that cannot run. Only ratios
        within one job mean anything.
        """
        ...


def version_of(prediction: Prediction) -> int | None:
    """A number that changes with anything that it predicts; None: it does not tell."""
    return getattr(prediction, "version", None)


@dataclass(frozen=True, slots=True)
class UserRequest:
    """Wish of a job's user: policies that trust users go by it."""

    gpus: int | None = None
    """None: its user did not say."""
    guaranteed: bool = False
    """Rubick: this job is not to get less than it asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One active job: waiting, or holding GPUs."""

    id: JobId
    job_class: str
    arrival: Seconds
    serial: int
    """How many of its class arrived before it."""
    epoch: int
    left: float = 1.0
    """Part of the current epoch that is still to be done."""
    work: Sequence[float] = ()
    """Progress that each of its epochs takes; empty: nobody knows."""
    prediction: Prediction
    asked: UserRequest = UserRequest()
    allocation: Allocation | None = None
    rescalings: int = 0
    """Changes of GPUs after its first start."""
    rescale_s: Seconds = 0.0
    service: float = 0.0
    """GPU-seconds held so far."""
    tried: Mapping[GpuName, int] = field(default_factory=dict)
    """The most GPUs of each type that the job has made progress on."""
    note: Any = None
    """The policy's note on this job in its last decision."""
    resumes_in: Seconds = 0.0
    """Seconds until it makes progress where it is: it is being started or rescaled."""
    limits: "GpuLimits | None" = None
    """GPUs that its user allows; None: any."""
    barred: frozenset[tuple[GpuName, int]] = frozenset()
    """GPU types and widths that it is not to have, within its limits: it failed there, or others
    of its class did."""
    urgency: float = 1.0
    """Times its class's weight that a second of it counts."""
    rank: int = 0
    """Its priority: jobs of a higher rank may take GPUs from jobs of a lower one."""
    pinned: bool = False
    """It keeps exactly the GPUs that it has: stopping it would lose its work, or it was only just
    moved."""
    modest: bool = False
    """It starts on free GPUs only, and displaces no other job."""
    lost_s: Seconds = 0.0
    """Seconds of work since its last checkpoint, which a stop would lose."""
    least: "Share | None" = None
    """GPUs to start it on where nothing is planned for it, since it has waited long enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoom:
    """Nodes that may be rented beside those that are there."""

    nodes: Mapping[GpuName, int] = field(default_factory=dict)
    """So many more of a type; types left out: any number."""
    spend: UsdPerHour | None = None
    """USD per hour that more nodes may cost together; None: any."""
    dearer: "Mapping[GpuName, UsdPerHour]" = field(default_factory=dict)
    """Prices per GPU that they are held against it by, of types that will soon cost more."""

    def _cost(self, gpu: "GpuType", count: int) -> "UsdPerHour":
        return self.dearer.get(gpu.name, gpu.price) * gpu.gpus_per_node * count

    def has(self, gpu: "GpuType", count: int) -> bool:
        """Whether so many nodes of a type may be rented."""
        if count > self.nodes.get(gpu.name, count):
            return False
        cost = self._cost(gpu, count)
        return self.spend is None or cost <= self.spend * (1 + 1e-9)

    def without(self, gpu: "GpuType", count: int) -> "NodeRoom":
        """The room that is left once these are rented."""
        nodes = dict(self.nodes)
        if gpu.name in nodes:
            nodes[gpu.name] -= count
        cost = self._cost(gpu, count)
        return replace(self, nodes=nodes, spend=None if self.spend is None else self.spend - cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """All that a policy may look at."""

    now: Seconds
    jobs: Sequence[JobView]
    """By arrival. A policy that decides job by job may be shown only those that need a decision."""
    nodes: Sequence[Node]
    """Rented now, by rising id."""
    gpu_types: "Mapping[GpuName, GpuType]"
    next_node: NodeId = 0
    """The first id that no node has had: what a policy calls the nodes it wants added."""
    memory: Any = None
    """The policy's memory, as it asked for in its last decision."""
    booting: Mapping[NodeId, Seconds] = field(default_factory=dict)
    """Nodes that jobs cannot start on yet, and in how many seconds they are expected to."""
    let_in: Collection[JobId] = frozenset()
    """Jobs that do not wait for GPUs that they are not worth: a budget that is too small, or a node
    that one job alone does not pay for, makes nobody wait for ever."""
    seats: Collection[JobId] = frozenset()
    """Jobs that other jobs give GPUs up for: they come first."""
    boot_s: Mapping[GpuName, Seconds] = field(default_factory=dict)
    """Seconds from renting a node of a type until jobs can start on it; left out: none."""
    reclaim_s: Mapping[GpuName, Seconds] = field(default_factory=dict)
    """Seconds from giving a node back until it costs nothing; left out: none."""
    room: NodeRoom = NodeRoom()
    """Nodes that may be rented beside these."""


@dataclass(frozen=True, slots=True)
class Share:
    """GPUs for one job; the nodes are left to the placement."""

    gpu: GpuName
    width: int
    until: int | None = None
    """The epoch at whose start the policy wants to be asked again; None: never."""
    note: Any = None
    """Shown again in the job's next view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReason:
    """Worth of a node to the jobs that are there, beside its cost."""

    price_per_hour: UsdPerHour
    """Price of the whole node."""
    worth_per_hour: UsdPerHour | None = None
    """Dollars per hour that jobs gain by it, at the price of money; None: money is not short, or
    nothing is known of the jobs that it is for."""
    saves_s: Seconds | None = None
    """Seconds that jobs finish sooner by it, all together …"""
    over_s: Seconds | None = None
    """… if it is there for so long."""
    left_s: Seconds | None = None
    """Seconds that these jobs still have to go, all together; None: nothing is known of the work of
    some."""
    waiting: int = 0
    """Jobs that wait for GPUs now."""
    moved: tuple[JobId, ...] = ()
    """Jobs that have to move for it to be given back …"""
    pause_s: Seconds = 0.0
    """… and the seconds that they pause for it, all together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The GPUs of every job in the view. A job left out gets nothing: it waits."""

    shares: Mapping[JobId, Share] = field(default_factory=dict)
    placements: Mapping[JobId, Allocation] = field(default_factory=dict)
    """Placements by policies that choose nodes themselves; these jobs are not in `shares`."""
    nodes: tuple[Node, ...] | None = None
    """The cluster to have: others are released, new ids rented. None: what the shares need."""
    memory: Any = None
    reasons: Mapping[NodeId, NodeReason] = field(default_factory=dict)
    """Why nodes are rented, kept or given back, where the policy weighs them."""


class Policy(Protocol):
    """decide is pure: the same view gives the same decision."""

    @property
    def name(self) -> str: ...

    @property
    def by_job(self) -> bool:
        """Whether it decides job by job: it may then be asked at events, of single jobs.

        Others look at all jobs, in rounds.
        """
        ...

    def decide(self, view: ClusterView) -> Decision: ...
