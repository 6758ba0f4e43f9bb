"""What rents and releases nodes. Repeating any call is harmless."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from boa.errors import BoaError
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds, UsdPerHour


class NoCapacity(BoaError):
    """The cloud has no such node now. Ask again later, or for another type."""


class CloudTrouble(BoaError):
    """The cloud could not be asked, or failed. Nothing is known of what came of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudNode:
    """A node as the cloud lists it: as long as it is listed without `gone_at`, it is paid for."""

    token: str
    gpu: GpuName
    gpus: int
    price: UsdPerHour
    """Per GPU and hour: the average since `billed_from`, where it changes (spot)."""
    billed_from: Seconds
    ready_at: Seconds | None
    """Jobs can start on it since; None while it boots."""
    gone_at: Seconds | None = None
    """Set on nodes given back, for as long as the cloud still lists them."""
    leaving_at: Seconds | None = None
    """The cloud has said that it will take the node away then: jobs are to leave it now."""
    address: str = ""
    """What the engine finds the node by: of the Ray cluster, its node id."""


class Cloud(Protocol):
    """Calls may block (a network); the loop makes them on a thread of their own."""

    def offers(self) -> Mapping[GpuName, GpuType]:
        """What can be rented, at which price."""
        ...

    def rent(self, token: str, gpu: GpuName) -> None:
        """Ask for one node. Under a token that was used before, nothing more is rented.

        Raises NoCapacity, or CloudTrouble if nobody knows.
        """
        ...

    def release(self, token: str) -> None:
        """Give a node back; of one that is gone or never was, nothing."""
        ...

    def nodes(self) -> Sequence[CloudNode]:
        """Every node of ours, those included that nobody here remembers. Raises CloudTrouble."""
        ...
