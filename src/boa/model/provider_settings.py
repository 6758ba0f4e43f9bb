"""Where jobs run and nodes come from beyond this machine: what `boa.yaml` says of Ray and AWS."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from boa.units import GpuName

CLOUDS_OF = {"local": ("local",), "ray": ("ray", "aws"), "kubernetes": ("kubernetes",)}
"""Engines, and the clouds whose nodes they can run jobs on; the first is the default."""
RAY_NODES = ("autoscaler", "fixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class RaySettings:
    """A Ray cluster that is there already."""

    address: str = "auto"
    """HOST:PORT of its head; auto: the one that this machine belongs to."""
    nodes: str = "autoscaler"
    """autoscaler: Ray's own brings nodes and takes them away, as we ask. fixed: those that are
    there; what nobody uses costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsMachine:
    """The machines that a GPU type means on AWS."""

    instance_types: tuple[str, ...]
    """The first that can be had; all with the same GPUs."""
    spot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSettings:
    region: str
    image: str
    """The AMI that nodes boot: with the driver, Ray and this package."""
    subnets: tuple[str, ...]
    """One for each zone that nodes may be in."""
    machines: Mapping[GpuName, AwsMachine]
    head: str
    """HOST:PORT of the Ray head that nodes join."""
    security_groups: tuple[str, ...] = ()
    key_name: str = ""
    instance_profile: str = ""
    setup: str = ""
    """Shell lines that run on a node before it joins."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Beside our own, on everything."""
    endpoint: str | None = None
    """Where the API is, if not at AWS: an emulator."""
