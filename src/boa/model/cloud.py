"""A node as its cloud speaks of it."""

from dataclasses import dataclass

from boa.units import GpuName, Seconds, UsdPerHour


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
    """The name that the engine finds the node by: on a Ray cluster, its node id; on Kubernetes, its
    Node's name."""
    refused: str = ""
    """Why no machine came, though the cloud had taken the wish: nothing is charged."""
