"""A node as its cloud speaks of it."""

from dataclasses import dataclass

from boa.model.prices import NO_CHANGES, Changes
from boa.units import GpuName, Seconds, UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudNode:
    """A node as the cloud lists it: as long as it is listed without `gone_at`, it is paid for."""

    token: str
    gpu: GpuName
    gpus: int
    price: UsdPerHour
    """Per GPU and hour, at `billed_from` …"""
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
    changes: Changes = NO_CHANGES
    """… and what it changed to since, or is known to change to. Left out by a cloud that knows only
    the average of a price which changes: that is the price then."""
    refused: str = ""
    """Why no machine came, though the cloud had taken the wish: nothing is charged."""
