"""Messages of engine and cloud to the scheduler."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from boa.model.cloud import CloudNode
from boa.model.cluster import JobId, NodeId
from boa.model.runs import RunEvent
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds


@dataclass(frozen=True, slots=True)
class EngineSaid:
    events: Sequence[RunEvent]


@dataclass(frozen=True, slots=True)
class CloudListed:
    nodes: Sequence[CloudNode]
    at: Seconds
    """When the cloud was asked."""
    offers: Mapping[GpuName, GpuType] | None = None
    """Prices that it asked for then; None: as before."""


@dataclass(frozen=True, slots=True)
class CloudRefused:
    node: NodeId
    reason: str


@dataclass(frozen=True, slots=True)
class EdgeTrouble:
    who: Literal["engine", "cloud"]
    text: str
    job: JobId | None = None
    """The job whose run is in trouble; None: all are."""


Said: TypeAlias = EngineSaid | CloudListed | CloudRefused | EdgeTrouble
