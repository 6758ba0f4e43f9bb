"""Messages of engine and cloud to the scheduler."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from boa.model.cloud import CloudNode
from boa.model.cluster import NodeId
from boa.model.runs import RunEvent
from boa.units import Seconds


@dataclass(frozen=True, slots=True)
class EngineSaid:
    events: Sequence[RunEvent]


@dataclass(frozen=True, slots=True)
class CloudListed:
    nodes: Sequence[CloudNode]
    at: Seconds
    """When the cloud was asked."""


@dataclass(frozen=True, slots=True)
class CloudRefused:
    node: NodeId
    reason: str


@dataclass(frozen=True, slots=True)
class EdgeTrouble:
    who: Literal["engine", "cloud"]
    text: str


Said: TypeAlias = EngineSaid | CloudListed | CloudRefused | EdgeTrouble
