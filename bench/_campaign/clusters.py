"""Worlds on a real Ray cluster of this machine: with Ray's autoscaler, or with AWS instances."""

import random
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import _rays
from _campaign import processes
from _campaign.faults import fault, one_of
from _campaign.observer import Rented
from _campaign.processes import end_all, lives, send
from _campaign.world import Means, World
from aws_boot import Hypervisor
from aws_faults import CODES, Layer, Sky
from aws_server import Aws

RAY, AWS, BOTH = ("ray",), ("aws",), ("ray", "aws")
MOST_NODES, PRICE, KIND = 2, 1.0, "g4dn.xlarge"
BOOT_S = 40.0
"""For a node to boot and a job to begin on it."""
GIVEN_UP_S = 1500.0
"""A node that does not join is given up only after a long while."""
MISSED_S = 120.0
"""An instance that is not listed any more is charged until it has been missed for long enough."""
LATE_S = 1.0
"""AWS's own times are whole seconds."""
KINDS = {"T4": _rays.Kind(gpus=1, max=MOST_NODES)}


class RayWorld(World):
    """Nodes come and go by Ray's autoscaler, whose provider has a diary."""

    def __init__(
        self, means: Means, luck: random.Random, rays: _rays.Rays, kind: str = "ray"
    ) -> None:
        self.rays = rays
        self._before = {node.node for node in rays.diary()}
        super().__init__(
            means, luck, kind, cap=MOST_NODES * PRICE, target_s=BOOT_S, settled_s=GIVEN_UP_S
        )

    def settings(self) -> dict[str, Any]:
        return {
            "engine": "ray",
            "cloud": "ray",
            "ray": {"address": self.rays.address},
            "budget_per_hour": 40.0,
            "max_spend_per_hour": self.cap,
            "gpu_types": {"T4": {"price": PRICE, "gpus_per_node": 1, "max_nodes": MOST_NODES}},
            "keep_warm_s": 1,
            "backoff_s": 0.5,
            "refused_s": 1,
        }

    def raylets(self) -> list[int]:
        """Of nodes, not the head's."""
        found = []
        for pid in _rays._marked(self.rays.mark):
            words = processes.command(pid)
            if words[:1] and words[0].endswith("/raylet") and "--head" not in words:
                found.append(pid)
        return found

    def rented(self) -> dict[str, Rented]:
        """In the wall's time, which the ledger's is not: only who is left is looked at."""
        return {
            node.node: Rented(
                token=node.node, price=PRICE, since=node.asked_at, until=node.terminated_at
            )
            for node in self.rays.diary()
            if node.node not in self._before
        }

    def slack(self) -> float:
        return float("inf")

    def is_empty(self) -> bool:
        return all(node.until is not None for node in self.rented().values())

    def close(self) -> None:
        end_all(lambda: [*self.workers(), *self.children()])
        super().close()


class AwsWorld(RayWorld):
    """Instances of an emulator boot, and are nodes of the cluster."""

    def __init__(
        self,
        means: Means,
        luck: random.Random,
        rays: _rays.Rays,
        aws: Aws,
        machines: Hypervisor,
    ) -> None:
        self.aws, self.layer, self.machines = aws, aws.layer, machines
        self.layer.sky = self.sky = Sky(time.time)
        self.missed = 0
        super().__init__(means, luck, rays, "aws")

    def settings(self) -> dict[str, Any]:
        return {
            **super().settings(),
            "cloud": "aws",
            "aws": {
                "region": self.aws.settings.region,
                "image": self.aws.settings.image,
                "subnets": list(self.aws.zones),
                "head": self.rays.address,
                "endpoint": self.layer.url,
                "machines": {"T4": {"instance_types": [KIND]}},
            },
        }

    def rented(self) -> dict[str, Rented]:
        return {
            id: Rented(token=one.token, price=PRICE, since=one.launched, until=one.ended)
            for id, one in dict(self.sky.truth).items()
        }

    def slack(self) -> float:
        seconds = LATE_S * len(self.sky.truth) + MISSED_S * self.missed
        return seconds * PRICE / 3600

    def tick(self) -> None:
        self.machines.tick()

    def running(self) -> list[str]:
        return [id for id in self.sky.truth if self.sky.state(id) == "running"]

    def recover(self) -> None:
        self.sky.planned.clear()
        self.sky.short.clear()
        self.sky.listed_after_s = 0.0
        slow_down(self.layer, 0.0)

    def close(self) -> None:
        for id in list(self.sky.truth):
            self.sky.end(id)
        self.tick()
        super().close()


def slow_down(layer: Layer, seconds: float) -> None:
    """Every call takes so much longer."""

    def answer(body: bytes, headers: dict[str, str]) -> tuple[int, bytes] | None:
        time.sleep(seconds)
        return Layer.answer(layer, body, headers)

    layer.answer = answer  # type: ignore[method-assign]


def _aws(world: World) -> AwsWorld:
    assert isinstance(world, AwsWorld)
    return world


def _ray(world: World) -> RayWorld:
    assert isinstance(world, RayWorld)
    return world


@fault("kill-raylet", BOTH, weight=5)
def kill_raylet(world: World, luck: random.Random) -> bool:
    """With all that it began, as when its machine is gone."""
    raylet = one_of(world, luck, _ray(world).raylets)
    if raylet is None:
        return False
    tree = _rays._trees([raylet])
    end_all(lambda: [pid for pid in tree if lives(pid)])
    return True


@fault("stop-raylet", BOTH, weight=2)
def stop_raylet(world: World, luck: random.Random) -> bool:
    """A machine that hangs for a while: all of it, as one whose disk does not answer."""
    raylet = one_of(world, luck, _ray(world).raylets)
    if raylet is None:
        return False
    tree = _rays._trees([raylet])
    for pid in tree:
        send(pid, signal.SIGSTOP)
    world.use()
    world.advance()
    for pid in tree:
        send(pid, signal.SIGCONT)
    return True


ACTIONS = ("CreateFleet", "DescribeInstances", "TerminateInstances")


def _calls(*kinds: str) -> Any:
    def strike(world: World, luck: random.Random) -> bool:
        planned = _aws(world).sky.planned
        for action in ACTIONS:
            planned[action] += [luck.choice(kinds) for _ in range(luck.randint(1, 4))]
        world.use()
        world.advance()
        return True

    return strike


fault("calls-lost", AWS, weight=5)(_calls("lost"))
fault("calls-throttled", AWS, weight=3)(_calls("throttle"))
fault("calls-fail", AWS, weight=3)(_calls("500", "500-after", ""))
assert "throttle" in CODES


@fault("calls-slow", AWS)
def calls_slow(world: World, luck: random.Random) -> bool:
    slow_down(_aws(world).layer, luck.choice((0.5, 2.0)))
    world.use()
    world.advance()
    slow_down(_aws(world).layer, 0.0)
    return True


@fault("shortage", AWS)
def shortage(world: World, luck: random.Random) -> bool:
    here = _aws(world)
    here.sky.short |= {(KIND, subnet) for subnet in here.aws.zones}
    world.use()
    world.advance()
    here.sky.short.clear()
    return True


@fault("listed-late", AWS, weight=2)
def listed_late(world: World, luck: random.Random) -> bool:
    _aws(world).sky.listed_after_s = 3.0
    world.use()
    world.service.kill()
    world.up()
    return True


@fault("lost-node", AWS, weight=4)
def lost_node(world: World, luck: random.Random) -> bool:
    """AWS ends an instance by itself."""
    here = _aws(world)
    lost = one_of(world, luck, here.running)
    if lost is None:
        return False
    here.sky.end(lost, "Server.InternalError")
    here.tick()
    return True


@fault("vanished-node", AWS, weight=1)
def vanished_node(world: World, luck: random.Random) -> bool:
    """It is not even listed any more."""
    here = _aws(world)
    lost = one_of(world, luck, here.running)
    if lost is None:
        return False
    here.missed += 1
    here.sky.vanish(lost)
    here.tick()
    return True


def ray_environment(rays: _rays.Rays) -> Mapping[str, str]:
    """Of every machine; its processes end with the cluster's at the latest."""
    settings = {name: value for name, value in _rays.SETTINGS.items() if "OSX" not in name}
    return {**settings, _rays.MARK: rays.mark, "OBJECT_STORE": str(_rays.OBJECT_STORE)}


def has_ray() -> bool:
    import importlib.util

    return importlib.util.find_spec("ray") is not None


def has_moto() -> bool:
    import importlib.util

    return importlib.util.find_spec("moto") is not None and Path("/usr/bin/curl").exists()
