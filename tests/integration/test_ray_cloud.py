"""Nodes of a real Ray cluster, with its real autoscaler: who comes, who stays, who goes."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from _rays import Kind, Rays, _marked, autoscaled_cluster
from boa import raylink
from boa.clock import SteadyClock
from boa.clouds.base import NoCapacity
from boa.clouds.ray.cloud import RayCloud
from boa.model.cloud import CloudNode
from boa.model.workload import GpuType

pytestmark = pytest.mark.ray

NAMESPACE = "boa-test"
TYPES = {
    "T4": GpuType(name="T4", price=1.0, gpus_per_node=2),
    "A100": GpuType(name="A100", price=4.0, gpus_per_node=2),
}
DEADLINE_S = 600.0


class World:
    def __init__(self, rays: Rays, path: Path) -> None:
        self.rays, self.path = rays, path
        self.cloud = self.restarted()

    def restarted(
        self, path: Path | None = None, nodes: str = "autoscaler", gpus: int = 2
    ) -> RayCloud:
        return RayCloud(
            path or self.path,
            address=self.rays.address,
            namespace=NAMESPACE,
            nodes=nodes,
            gpu_types={**TYPES, "T4": GpuType(name="T4", price=1.0, gpus_per_node=gpus)},
            max_nodes={"T4": 2},
            clock=SteadyClock(),
        )

    def listed(self) -> dict[str, CloudNode]:
        return {node.token: node for node in self.cloud.nodes()}

    def until_ready(self, *tokens: str) -> None:
        until(lambda: set(tokens) <= self.listed().keys())
        nodes = {self.listed()[token].address for token in tokens}
        until(lambda: nodes <= {node.node for node in self.rays.diary()})

    def until_gone(self, token: str) -> None:
        until(lambda: self.listed()[token].gone_at is not None)

    @contextmanager
    def between_two_looks_of_the_autoscaler(self) -> Iterator[None]:
        """It looks every second; a busy machine may take longer for what is done in between."""
        monitors = [pid for pid in _marked(self.rays.mark) if _is_monitor(pid)]
        assert monitors
        for pid in monitors:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in monitors:
                os.kill(pid, signal.SIGCONT)


def _is_monitor(pid: int) -> bool:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return any(word.endswith(b"monitor.py") and b"autoscaler" in word for word in words)
    return False


def until(done: Callable[[], bool]) -> None:
    """Seldom: Ray is asked every time, and needs the processor itself."""
    deadline = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """With two T4 nodes, `a` and `b`."""
    kinds = {"T4": Kind(gpus=2, max=3), "A100": Kind(gpus=2, max=1)}
    with autoscaled_cluster(kinds, idle_s=2.0) as rays:
        world = World(rays, tmp_path_factory.mktemp("cloud") / "ray.json")
        world.cloud.rent("a", "T4")
        world.cloud.rent("b", "T4")
        world.until_ready("a", "b")
        yield world
        raylink.connect(rays.address, NAMESPACE).shutdown()


def test_nodes_come_as_asked_for_and_a_restart_asks_for_nothing_more(world: World) -> None:
    again = world.restarted()
    again.rent("a", "T4")
    assert {node.token: node for node in again.nodes()} == world.listed()
    assert {node.node for node in world.rays.diary()} == {
        node.address for node in world.listed().values()
    }
    with pytest.raises(NoCapacity, match="all 2 T4 nodes"):
        world.cloud.rent("c", "T4")
    with pytest.raises(NoCapacity, match="no H100 in the config; it has A100, T4"):
        world.cloud.rent("c", "H100")


def test_fixed_nodes_are_those_that_are_there(world: World, tmp_path: Path) -> None:
    fixed = world.restarted(tmp_path / "fixed.json", nodes="fixed")
    fixed.rent("x", "T4")
    fixed.rent("y", "T4")
    with pytest.raises(NoCapacity, match=r"no node .* has the resource A100; resources there: T4"):
        fixed.rent("z", "A100")
    with pytest.raises(NoCapacity, match="all T4 nodes of the Ray cluster are taken"):
        fixed.rent("z", "T4")
    addresses = {node.address for node in fixed.nodes()}
    assert addresses == {node.address for node in world.listed().values()}
    fixed.release("x")
    assert [node.token for node in fixed.nodes() if node.gone_at is None] == ["y"]


def test_nodes_with_other_gpus_than_configured_are_refused_with_both_numbers(
    world: World, tmp_path: Path
) -> None:
    """A config that says 4 where nodes have 2."""
    for nodes in ("autoscaler", "fixed"):
        wrong = world.restarted(tmp_path / f"{nodes}.json", nodes=nodes, gpus=4)
        with pytest.raises(NoCapacity, match=r"has 2 T4 and 2 GPU, and gpus_per_node of T4 is 4"):
            wrong.rent("x", "T4")


def test_the_node_given_back_goes_and_is_charged_until_then_and_the_other_stays(
    world: World,
) -> None:
    gone, kept = world.listed()["a"].address, world.listed()["b"].address
    released = time.time()
    with world.between_two_looks_of_the_autoscaler():
        world.cloud.release("a")
        assert world.listed()["a"].gone_at is None
    world.until_gone("a")
    charged_until = world.listed()["a"].gone_at
    assert charged_until is not None
    assert released < charged_until <= time.time()
    until(lambda: any(node.terminated_at is not None for node in world.rays.diary()))
    ends = {node.node: node.terminated_at for node in world.rays.diary()}
    assert ends[gone] is not None
    assert ends[kept] is None
    assert world.listed()["b"].gone_at is None


def test_a_node_given_back_is_taken_over_while_it_is_there(world: World) -> None:
    node, launched = world.listed()["b"].address, len(world.rays.diary())
    with world.between_two_looks_of_the_autoscaler():
        world.cloud.release("b")
        world.cloud.rent("c", "T4")
    listed = world.listed()
    assert (listed["c"].address, listed["c"].gone_at) == (node, None)
    assert listed["b"].gone_at == listed["c"].billed_from
    assert len(world.rays.diary()) == launched


def test_a_node_that_dies_is_gone_and_ray_brings_what_is_asked_for_and_no_other(
    world: World,
) -> None:
    world.rays.kill_node(world.listed()["c"].address)
    world.until_gone("c")
    world.cloud.rent("d", "A100")
    world.until_ready("d")
    launched = [node.kind for node in world.rays.diary()]
    assert launched == ["T4", "T4", "A100"]
    world.cloud.release("d")
    world.until_gone("d")
