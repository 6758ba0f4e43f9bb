"""`boa serve --engine ray --cloud aws`: instances of a moto server boot and are real Ray nodes."""

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import _rays
from aws_boot import Hypervisor, hypervisor
from aws_faults import Layer, Sky, Truth
from aws_server import Aws, moto_server
from boa.client.spawn import OwnService

pytestmark = pytest.mark.ray

DEADLINE_S, LISTED_AFTER_S = 600.0, 8.0
PRICES = {"T4": 1.0, "A10G": 0.3}
"""The second is AWS's own, of spot instances."""
KINDS = {"T4": "g4dn.xlarge", "A10G": "g5.xlarge"}
TRAINING = """
import os, sys, time
from pathlib import Path
from boa import train

gate, done = Path(sys.argv[1]), train.resume().step
began = f"resumed at {done}" if train.latest_checkpoint() else "begun"
print(f"{began} on {os.environ['INSTANCE']}", flush=True)
for epoch in train.epochs():
    while not gate.exists():
        time.sleep(0.05)
        done += 1
        train.report(samples=1, step=done)
        if train.stop_requested():
            with train.new_checkpoint() as folder:
                (folder / "step").write_text(str(done))
            sys.exit(0)
print(f"ended at {done}", flush=True)
"""


class World:
    def __init__(self, layer: Layer, machines: Hypervisor, service: OwnService) -> None:
        self.layer, self.service, self.hypervisor = layer, service, machines
        self.client = service.client()
        self._gates: dict[str, Path] = {}

    def submit(self, gpu: str) -> str:
        """A job that trains until it is told that it is done."""
        gate = self.service.folder / f"gate{len(self._gates)}"
        run = [sys.executable, "-c", TRAINING, str(gate)]
        gpus = {"max": 1, "types": [gpu]}
        job = self.client.submit({"version": 1, "class": "real", "run": run, "gpus": gpus})["id"]
        self._gates[job] = gate
        return job

    def finish(self, job: str) -> Any:
        self._gates[job].touch()
        self.until(lambda: self.client.job(job)["ended_at"] is not None)
        return self.client.job(job)

    def began(self, job: str) -> list[tuple[str, str]]:
        """How each of its runs began, and on which instance, as it said itself."""
        lines = "".join(self.client.logs(job)).splitlines()
        runs = [line.partition(" on ") for line in lines if " on i-" in line]
        return [(how, instance) for how, _, instance in runs]

    def where(self, job: str) -> str:
        """The instance that it trains on."""
        self.until(lambda: bool(self.began(job)) and (self.client.job(job)["step"] or 0) > 5)
        return self.began(job)[-1][1]

    def until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not done():
            assert time.monotonic() < deadline, self._what_is()
            self.hypervisor.tick()
            time.sleep(0.1)

    def until_empty(self) -> None:
        self.until(lambda: not self.client.nodes())
        self.hypervisor.tick()
        assert not any(machine.is_on for machine in self.hypervisor.machines.values())
        states = self.states()  # moto is one for the whole process: others' instances are in it
        assert {states[id] for id in self.layer.sky.truth} == {"terminated"}

    def states(self) -> dict[str, str]:
        """By instance, as moto itself has it."""
        groups = self.layer.ec2.describe_instances()["Reservations"]
        return {
            one["InstanceId"]: one["State"]["Name"]
            for group in groups
            for one in group["Instances"]
        }

    def _what_is(self) -> str:
        machines = self.hypervisor.machines.items()
        logs = [f"{id}: {machine.log()}" for id, machine in machines]
        return "\n".join([self.service.log.read_text()[-4000:], str(self.states()), *logs])


class Since:
    """What has come about since: instances, and what they cost."""

    def __init__(self, world: World) -> None:
        self._world, self._before = world, world.client.cost()["total_usd"]
        self._earlier = set(world.layer.sky.truth)

    def instances(self) -> dict[str, Truth]:
        found = dict(self._world.layer.sky.truth)
        return {id: one for id, one in found.items() if id not in self._earlier}

    def booting(self) -> int:
        return sum(id in self._world.hypervisor.machines for id in self.instances())

    def shut_down(self) -> dict[str, str]:
        ended = self._world.hypervisor.shut_down
        return {id: ended[id] for id in self.instances() if id in ended}

    def states(self) -> dict[str, str]:
        found = self._world.states()
        return {id: found[id] for id in self.instances()}

    def check_ledger(self) -> None:
        """From LaunchTime until AWS was told to terminate."""
        gpus = {kind: gpu for gpu, kind in KINDS.items()}
        cost = self._world.client.cost()
        parts = sum(cost[part] for part in ("jobs_usd", "idle_usd", "provisioning_usd"))
        assert cost["total_usd"] == pytest.approx(parts)
        owed = slack = 0.0
        for one in self.instances().values():
            price = PRICES[gpus[one.kind]] / 3600
            owed += price * ((one.ended or 0.0) - one.launched)
            slack += price * 0.5
        assert cost["total_usd"] - self._before == pytest.approx(owed, abs=slack)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with moto_server() as layer, ThreadPoolExecutor(1) as pool:
        account = pool.submit(Aws, layer)  # takes as long as a Ray head
        with _rays.fixed_cluster([]) as rays:
            aws = account.result()
            spot = {(KINDS["A10G"], zone): [(0.0, PRICES["A10G"])] for zone in aws.zones.values()}
            layer.sky = Sky(time.time, prices=spot)
            service = OwnService(tmp_path_factory.mktemp("service"), _config(aws, rays.address))
            with hypervisor(layer, rays.folder, _environment(rays)) as machines, service:
                world = World(layer, machines, service)
                with world.client:
                    yield world


def _config(aws: Aws, head: str) -> dict[str, Any]:
    return {
        "engine": "ray",
        "cloud": "aws",
        "ray": {"address": head},
        "budget_per_hour": 100,
        "keep_warm_s": 0,
        "pass_env": ["INSTANCE"],
        "gpu_types": {
            "T4": {"price": PRICES["T4"], "gpus_per_node": 1},
            "A10G": {"gpus_per_node": 1},
        },
        "aws": {
            "region": aws.settings.region,
            "image": aws.settings.image,
            "subnets": list(aws.zones),
            "head": head,
            "endpoint": aws.layer.url,
            "machines": {
                "T4": {"instance_types": [KINDS["T4"]]},
                "A10G": {"instance_types": [KINDS["A10G"]], "spot": True},
            },
        },
    }


def _environment(rays: _rays.Rays) -> dict[str, str]:
    """Of every machine; its processes end with the cluster's at the latest."""
    settings = {name: value for name, value in _rays.SETTINGS.items() if "OSX" not in name}
    return {**settings, _rays.MARK: rays.mark, "OBJECT_STORE": str(_rays.OBJECT_STORE)}


def test_each_job_gets_one_instance_and_exactly_that_one_is_given_back(world: World) -> None:
    """Though AWS's answers are lost, and the service is killed while they boot, not listed yet."""
    sky, since = world.layer.sky, Since(world)
    sky.planned["CreateFleet"] += ["lost", "lost"]
    sky.listed_after_s = LISTED_AFTER_S
    first, second = world.submit("T4"), world.submit("T4")
    world.until(lambda: since.booting() == 2)
    world.service.kill()
    world.service.start()
    ends, stays = world.where(first), world.where(second)
    sky.listed_after_s = 0.0
    assert since.states() == {ends: "running", stays: "running"}
    assert world.finish(first)["state"] == "succeeded"
    world.until(lambda: not world.hypervisor.machines[ends].is_on)
    assert since.states() == {ends: "terminated", stays: "running"}
    ended = world.finish(second)
    assert (ended["state"], ended["attempts"]) == ("succeeded", 1)
    world.until_empty()
    assert set(since.instances()) == {ends, stays}
    assert not since.shut_down(), "no node ended by itself"
    since.check_ledger()


def test_a_job_saves_and_moves_when_its_spot_instance_is_interrupted(world: World) -> None:
    since, job = Since(world), world.submit("A10G")
    taken = world.where(job)
    world.layer.sky.interrupt(taken)
    world.until(lambda: len(world.began(job)) == 2)
    ended = world.finish(job)
    assert (ended["state"], ended["failures"], ended["restarts"]) == ("succeeded", 0, 0)
    (_, first), (how, second) = world.began(job)
    assert first == taken != second
    assert int(how.removeprefix("resumed at ")) > 5
    world.until_empty()
    assert list(since.instances()) == [first, second]
    reasons = [one.reason for one in since.instances().values()]
    assert reasons == ["User initiated"] * 2, "left before AWS took it"
    since.check_ledger()


def test_a_node_that_cannot_join_ends_itself_and_another_is_not_tried_at_once(
    world: World,
) -> None:
    since, world.hypervisor.duds = Since(world), 1
    job = world.submit("T4")
    told = "did not join the Ray cluster"
    world.until(lambda: any(told in event["text"] for event in world.client.history()))
    (dud,) = since.instances()
    assert since.shut_down() == {dud: "-h now"}
    assert "its GPUs are not all there" in world.hypervisor.machines[dud].log()
    assert since.states() == {dud: "terminated"}
    assert world.client.job(job)["failures"] == 0
    world.client.stop(job)
    world.until_empty()
    assert list(since.instances()) == [dud]
    since.check_ledger()
