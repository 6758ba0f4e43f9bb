"""A moto server on this machine, our fault layer in front of it, and clouds that talk to it."""

import functools
import itertools
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from aws_faults import Layer, Sky
from boa.clock import VirtualClock
from boa.clouds.aws import AwsCloud
from boa.model.provider_settings import AwsMachine, AwsSettings
from boa.model.workload import GpuType

REGION = "us-east-1"
START = 1_790_000_000.0
T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
A100 = GpuType(name="A100", price=3.0, gpus_per_node=8)
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}


@contextmanager
def moto_server() -> Iterator[Layer]:
    """One for many tests, as it takes seconds to know all of EC2; and credentials for it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"):
            patch.delenv(name, raising=False)
        with _served() as layer:
            yield layer


@contextmanager
def _served() -> Iterator[Layer]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    layer = Layer(server.get_host_and_port())
    host, port = layer.moto
    layer.ec2 = boto3.client("ec2", region_name=REGION, endpoint_url=f"http://{host}:{port}")
    try:
        yield layer
    finally:
        layer.close()
        server.stop()


_numbers = itertools.count(1)


@functools.cache
def _account(ec2: Any) -> tuple[dict[str, str], str]:
    """Two subnets in zones of their own, and an image."""
    subnets = ec2.describe_subnets()["Subnets"]
    one_each = {one["AvailabilityZone"]: one["SubnetId"] for one in subnets if one["DefaultForAz"]}
    zones = {subnet: zone for zone, subnet in sorted(one_each.items())[:2]}
    return zones, ec2.describe_images()["Images"][0]["ImageId"]


@dataclass
class Aws:
    """An account, empty at first, in the time of a virtual clock."""

    layer: Layer
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(START))
    joined: dict[str, str] = field(default_factory=dict)
    """Token -> node id: a test says who has joined."""
    joins: bool = True
    """Whether every running instance has joined by itself."""
    owner: str = field(default_factory=lambda: f"boa-{next(_numbers):04}")
    """Nobody else's: moto keeps what earlier tests have left."""

    def __post_init__(self) -> None:
        self.layer.sky = Sky(self.clock.now)
        self.ec2 = self.layer.ec2
        """Around the layer: what is really there."""
        self.zones, image = _account(self.ec2)
        self.settings = AwsSettings(
            region=REGION,
            image=image,
            subnets=tuple(self.zones),
            machines={
                "T4": AwsMachine(instance_types=("g4dn.12xlarge",)),
                "A100": AwsMachine(instance_types=("p4d.24xlarge", "p4de.24xlarge")),
            },
            head="10.0.0.5:6379",
            endpoint=self.layer.url,
        )

    @property
    def sky(self) -> Sky:
        return self.layer.sky

    def cloud(self, *, spot: bool = False, **fields: Any) -> AwsCloud:
        settings = fields.pop("settings", self.settings)
        if spot:
            machines = {n: replace(m, spot=True) for n, m in settings.machines.items()}
            settings = replace(settings, machines=machines)
        given: dict[str, Any] = {
            "gpu_types": {"T4": T4, "A100": A100},
            "unpriced": frozenset(),
            "max_nodes": {},
            "max_spend": None,
            **fields,
        }
        return AwsCloud(
            settings,
            clock=self.clock,
            wall=self.clock.now,
            owner=self.owner,
            joined=self.in_ray,
            **given,
        )

    def in_ray(self) -> Mapping[str, str]:
        if not self.joins:
            return self.joined
        running = (id for id in self.sky.truth if self.sky.state(id) == "running")
        return {self.sky.truth[id].token: f"ray-{id}" for id in running}

    def there(self) -> list[dict[str, Any]]:
        """Instances that are really there, as moto has them."""
        mine = [{"Name": "tag:boa:owner", "Values": [self.owner]}]
        groups = self.ec2.describe_instances(Filters=mine)["Reservations"]
        found = [one for group in groups for one in group["Instances"]]
        return [one for one in found if one["State"]["Name"] not in ("terminated", "shutting-down")]

    def after(self, seconds: float) -> None:
        self.clock.advance_to(self.clock.now() + seconds)
