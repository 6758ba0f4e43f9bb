"""The protocol of clouds, which rent and release nodes. Repeating any call is harmless."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from boa.errors import BoaError
from boa.model.cloud import CloudNode
from boa.model.workload import GpuType
from boa.units import GpuName


class NoCapacity(BoaError):
    """The cloud has no such node now. Ask again later, or for another type."""


class CloudTrouble(BoaError):
    """The cloud could not be asked, or failed. Nothing is known of what came of the request."""


class Cloud(Protocol):
    """Calls may block (a network); the loop makes them on a thread of their own."""

    def offers(self) -> Mapping[GpuName, GpuType]:
        """GPU types that can be rented, with their prices."""
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
