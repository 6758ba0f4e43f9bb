"""Nodes that are rented: what is asked for, refused and listed, of a source that is a fake."""

from dataclasses import replace
from typing import Any, cast

import pytest

from boa import kubelink
from boa.clock import VirtualClock
from boa.clouds.base import NoCapacity
from boa.clouds.kubernetes import placeholders
from boa.clouds.kubernetes.objects import TOKEN
from boa.clouds.kubernetes.placeholders import Mark
from boa.clouds.kubernetes.renting import RentedNodes
from boa.clouds.kubernetes.sources import AutoscalerNodes
from boa.clouds.kubernetes.watching import UNKNOWN_S, Sight, Watch
from boa.kubelink import Kube
from boa.model.kubernetes_names import GPUS
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.workload import GpuType

SETTINGS = KubernetesSettings(nodes="autoscaler")
T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
START = 1000.0


class FakeSource:
    """What is there by token; what is taken away is there still, and on its way out."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.there: dict[str, Sight] = {}
        self.taken_away: list[str] = []
        self.idle: str = ""

    def look(self) -> list[Sight]:
        return list(self.there.values())

    def spare(self, gpu: GpuType) -> str:
        return self.idle

    def ask(self, token: str, gpu: GpuType) -> None:
        if self.idle:
            self.there[token] = replace(self.there.pop(self.idle), token=token, deleting=False)
            self.idle = ""
        else:
            self.put(token)

    def take_away(self, token: str) -> None:
        self.taken_away.append(token)
        if token in self.there:
            self.put(token, deleting=True)

    def put(self, token: str, **more: Any) -> None:
        before = self.there.get(token, Sight(token=token, gpu="T4", asked=self.clock.now()))
        self.there[token] = replace(before, **more)


class World:
    def __init__(self, **limits: Any) -> None:
        self.clock = VirtualClock(START)
        self.source = FakeSource(self.clock)
        self.cloud = RentedNodes(
            self.source,
            Watch({"T4": T4}, ready_s=600.0),
            gpu_types={"T4": T4},
            **{"max_nodes": {}, "max_spend": None, **limits},
            clock=self.clock,
            wall=self.clock.now,
        )

    def listed(self, at: float) -> dict[str, Any]:
        self.clock.advance_to(at)
        listed = self.cloud.nodes()
        tokens = [node.token for node in listed]
        assert len(tokens) == len(set(tokens)), "nothing is listed twice"
        return {node.token: node for node in listed}


def test_a_refused_wish_that_is_being_deleted_is_listed_as_refused_alone() -> None:
    world = World()
    world.cloud.rent("a", "T4")
    world.source.put("a", failure="none left")
    for at in (START, START + UNKNOWN_S, START + 2 * UNKNOWN_S):
        seen = world.listed(at)["a"]
        assert (seen.refused, seen.gone_at) == ("none left", START)
    with pytest.raises(NoCapacity, match="none left"):
        world.cloud.rent("a", "T4")


def test_a_wish_that_turns_out_to_have_failed_is_refused_to_whoever_asks_again() -> None:
    world = World()
    world.source.put("a", failure="none left")  # asked for before this service was started
    with pytest.raises(NoCapacity, match="none left"):
        world.cloud.rent("a", "T4")
    assert world.listed(START)["a"].refused == "none left"


def test_a_machine_that_came_for_a_refused_wish_is_charged_for_and_no_longer_refused() -> None:
    world = World()
    world.cloud.rent("a", "T4")
    world.source.put("a", failure="none left")
    world.listed(START)
    world.source.put("a", failure="", since=START + 5)
    seen = world.listed(START + 10)["a"]
    assert (seen.refused, seen.gone_at, seen.billed_from) == ("", None, START + 5)


def test_a_wish_that_nobody_here_asked_for_is_taken_away_once_and_not_listed() -> None:
    world = World()
    world.source.put("left")
    assert world.listed(START) == {}
    for at in (START + UNKNOWN_S, START + 2 * UNKNOWN_S):
        assert world.listed(at) == {}
    assert world.source.taken_away == ["left"]


@pytest.mark.parametrize("limit", [{"max_nodes": {"T4": 1}}, {"max_spend": 4.0}], ids=str)
def test_at_a_limit_a_node_that_was_given_back_is_taken_over_and_no_other_asked_for(
    limit: dict[str, Any],
) -> None:
    world = World(**limit)
    world.cloud.rent("a", "T4")
    world.source.put("a", since=START)
    world.cloud.release("a")
    world.listed(START + 1)
    with pytest.raises(NoCapacity):
        world.cloud.rent("b", "T4")
    world.source.idle = "a"
    world.cloud.rent("b", "T4")
    assert list(world.listed(START + 2)) == ["b"]
    with pytest.raises(NoCapacity):
        world.cloud.rent("c", "T4")


class FakeKube:
    """A cluster with one node, and what was patched of it."""

    namespace = "lab"

    def __init__(self, node: dict[str, Any]) -> None:
        self.node = node
        self.patched: list[Any] = []

    def get(self, path: str) -> dict[str, Any]:
        return {}

    def list(self, path: str, **_: str) -> list[Any]:
        return [self.node] if path == kubelink.nodes() else []

    def patch(self, path: str, body: Any) -> dict[str, Any]:
        self.patched.append(body)
        return {}


def test_a_node_that_was_given_back_is_spare_until_it_is_taken_over() -> None:
    kept = placeholders.marks(SETTINGS, "lab", Mark("n1", "boa-1-a", "T4", START))
    left = placeholders.cordon(START + 1)
    said = kept["metadata"]["annotations"] | left["metadata"]["annotations"]
    kube = FakeKube(
        {
            "metadata": {
                "name": "n1",
                "labels": {SETTINGS.node_label: "T4"},
                "annotations": said,
            },
            "spec": left["spec"],
            "status": {
                "allocatable": {GPUS: "4"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )
    source = AutoscalerNodes(cast(Kube, kube), SETTINGS, "boa-1-", ["T4"])
    source.look()
    assert source.spare(T4) == "boa-1-a"
    source.ask("boa-1-b", T4)
    assert kube.patched[0]["metadata"]["annotations"][TOKEN] == "boa-1-b"
    assert source.spare(T4) == ""
