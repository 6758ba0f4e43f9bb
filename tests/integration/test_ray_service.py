"""`boa serve` on a real Ray cluster whose real autoscaler brings nodes and takes them away."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from _rays import Kind, Launched, Rays, autoscaled_cluster
from boa.client import Client
from boa.client.spawn import OwnService
from boa.formats.profile import load_profile
from boa.sim.replay_jobs import replay_spec

pytestmark = pytest.mark.ray

SPEED = 4.0
DEADLINE_S = 600.0
PRICES = {"T4": 1.0, "A100": 30.0}
LITTLE, MUCH = 0.2, 100.0
"""Budgets: for `mover`, mostly T4; A100 alone."""
PROFILES: dict[str, dict[str, Any]] = {
    # as fast as it has GPUs, up to four
    "wide": {"work": [160.0], "rates": {"T4": [[1.0, 2.0, 3.0, 4.0]]}},
    # ten times as fast on a type that costs thirty times as much
    "mover": {"work": [400.0], "rates": {"T4": [[1.0]], "A100": [[10.0]]}},
}
TRAINING = """
import sys, time
from boa import train

STEPS = 120
done = train.resume().step
weight = 1.0
if resumed := train.latest_checkpoint():
    weight = float((resumed / "weight").read_text())
    print(f"resumed at {done}", flush=True)
for epoch in train.epochs():
    while done < STEPS:
        time.sleep(0.05)
        if done == STEPS // 2 and not resumed:
            continue  # until it is killed, however long that takes
        weight, done = weight * 0.9 + done, done + 1
        train.report(samples=1, step=done)
        if done % 10 == 0 or train.stop_requested():
            with train.new_checkpoint() as folder:
                (folder / "weight").write_text(repr(weight))
        if train.stop_requested():
            sys.exit(0)
print(f"trained to {weight!r}", flush=True)
"""


class World:
    def __init__(self, rays: Rays, service: OwnService, client: Client, folder: Path) -> None:
        self.rays, self.service, self.client, self.folder = rays, service, client, folder

    def replay(self, name: str) -> str:
        file = self.folder / f"{name}.json"
        return self.client.submit(replay_spec(load_profile(file), file))["id"]

    def nodes(self, kind: str) -> Sequence[Launched]:
        return [node for node in self.rays.diary() if node.kind == kind]

    def until_empty(self) -> None:
        """Nothing is rented, as BOA says and as the provider does."""
        until(lambda: not self.client.nodes())
        until(lambda: all(node.terminated_at is not None for node in self.rays.diary()))

    def where(self, job: str) -> list[str]:
        """Ray's ids of the nodes that it is on."""
        held = {part["node"] for part in self.client.job(job)["held"]}
        return [node["address"] for node in self.client.nodes() if node["id"] in held]


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.1)


BY_PLAN = pytest.mark.parametrize("world", ["gpu"], indirect=True)
"""Widths and types as the plan has them: a market minds that nodes have to boot."""
BY_PRICE = pytest.mark.parametrize("world", ["node"], indirect=True)


@pytest.fixture(scope="module")
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A cluster and a service that bills so."""
    folder = tmp_path_factory.mktemp("service")
    for name, profile in PROFILES.items():
        rates = {gpu: {"one_node": r, "across": r} for gpu, r in profile["rates"].items()}
        document = {"version": 1, "class": name, "work": profile["work"], "rates": rates}
        (folder / f"{name}.json").write_text(json.dumps(document))
    kinds = {"T4": Kind(gpus=1, max=4), "A100": Kind(gpus=1, max=1)}
    with autoscaled_cluster(kinds, idle_s=1.0) as rays:
        config = {
            "engine": "ray",
            "cloud": "ray",
            "ray": {"address": rays.address},
            "billing": request.param,
            "budget_per_hour": LITTLE,
            "speed": SPEED,
            "keep_warm_s": 0,
            "gpu_types": {
                name: {"price": PRICES[name], "gpus_per_node": 1, "max_nodes": kind.max}
                for name, kind in kinds.items()
            },
            "classes": {
                name: {
                    "profile": str(folder / f"{name}.json"),
                    "arrivals_per_hour": 1,
                    "arrivals_weight_h": 100,
                    "measured_weight": 100,
                }
                for name in PROFILES
            },
        }
        service = OwnService(folder / "service", config)
        with service, service.client() as client:
            yield World(rays, service, client, folder)


@BY_PLAN
def test_nodes_come_as_boa_decides_and_go_when_it_has_no_use_for_them(world: World) -> None:
    job = world.replay("wide")
    until(lambda: len(world.where(job)) == 4)
    assert world.client.wait(job)["state"] == "succeeded"
    world.until_empty()
    assert len(world.nodes("T4")) == 4
    assert not world.nodes("A100")


@BY_PLAN
def test_a_job_moves_to_another_type_by_plan_and_a_killed_service_finds_its_run_again(
    world: World,
) -> None:
    job, before = world.replay("mover"), len(world.nodes("T4"))
    until(lambda: world.client.job(job)["state"] == "running")
    first = world.client.job(job)
    assert first["gpu_type"] == "T4"
    world.service.kill()
    world.service.start()
    until(lambda: world.client.job(job)["state"] == "running")
    again = world.client.job(job)
    assert (again["attempt"], again["gpu_type"]) == (first["attempt"], "T4")
    world.client.set_budget(MUCH)
    until(lambda: world.client.job(job)["gpu_type"] == "A100")
    assert world.client.wait(job)["state"] == "succeeded"
    world.until_empty()
    assert len(world.nodes("T4")) - before == 1
    assert len(world.nodes("A100")) == 1


@BY_PRICE
def test_a_job_whose_node_dies_goes_on_elsewhere_from_its_last_checkpoint(world: World) -> None:
    spent, since = world.client.cost(), len(world.rays.diary())
    run = [sys.executable, "-c", TRAINING]
    gpus = {"max": 1, "types": ["T4"]}
    job = world.client.submit({"version": 1, "class": "real", "run": run, "gpus": gpus})["id"]
    until(lambda: (world.client.job(job)["step"] or 0) > 20)
    (node,) = world.where(job)
    world.rays.kill_node(node)
    ended = world.client.wait(job)
    assert (ended["state"], ended["failures"]) == ("succeeded", 0)
    log = "".join(world.client.logs(job))
    assert "resumed at" in log
    assert f"trained to {_weight(120)!r}" in log
    world.until_empty()
    assert [n.kind for n in world.rays.diary()][since:] == ["T4", "T4"]
    _check_ledger(world, spent, since)


def _weight(steps: int) -> float:
    weight = 1.0
    for step in range(steps):
        weight = weight * 0.9 + step
    return weight


def _check_ledger(world: World, before: Any, since: int) -> None:
    """What was charged is what the provider rented, and its parts add up."""
    after = world.client.cost()
    parts = sum(after[part] for part in ("jobs_usd", "idle_usd", "provisioning_usd"))
    assert after["total_usd"] == pytest.approx(parts)
    rented_h = sum(
        (node.terminated_at or 0.0) - node.asked_at for node in world.rays.diary()[since:]
    ) * (SPEED / 3600)
    charged_h = (after["total_usd"] - before["total_usd"]) / PRICES["T4"]
    # from the wish, not the launch; until Ray has it dead, a moment before its provider has
    assert charged_h == pytest.approx(rented_h, abs=2 * 2.5 * SPEED / 3600)
