"""The local cloud: what is rented, ready, charged for and gone, and when; and one that fails."""

import json
import os
from pathlib import Path

import pytest

from boa.clock import VirtualClock
from boa.clouds.base import Cloud, CloudTrouble, NoCapacity
from boa.clouds.faulty import Faults, FaultyCloud
from boa.clouds.local import LocalCloud
from boa.errors import FileError
from boa.model.cloud import CloudNode
from boa.model.workload import GpuType
from replacing import make, promptly

T4 = GpuType(name="T4", price=1.088, gpus_per_node=4)
A100 = GpuType(name="A100", price=4.0, gpus_per_node=8)
TYPES = {"T4": T4, "A100": A100}
HOUR = 3600.0


class World:
    def __init__(self, folder: Path, provision_s: float = 0.0, release_s: float = 0.0) -> None:
        self.path, self.clock = folder / "deep" / "cloud.json", VirtualClock(1000.0)
        self.times = (provision_s, release_s)
        self.cloud = self.restarted()

    def restarted(self) -> LocalCloud:
        self.cloud = LocalCloud(self.path, TYPES, {"T4": 2}, self.clock, *self.times)
        return self.cloud

    def at(self, moment: float) -> dict[str, CloudNode]:
        self.clock.advance_to(moment)
        return {node.token: node for node in self.cloud.nodes()}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def slow(tmp_path: Path) -> World:
    return World(tmp_path, provision_s=60.0, release_s=30.0)


def test_it_offers_what_it_was_told(world: World) -> None:
    assert world.cloud.offers() == TYPES
    assert world.cloud.nodes() == []


def test_a_node_is_charged_from_the_request_and_ready_when_it_has_booted(slow: World) -> None:
    slow.cloud.rent("a", "A100")
    expected = CloudNode(
        token="a",
        gpu="A100",
        gpus=8,
        price=4.0,
        billed_from=1000.0,
        ready_at=None,
        address="127.0.0.1",
    )
    assert slow.cloud.nodes() == [expected]
    assert slow.at(1059.0)["a"].ready_at is None
    assert slow.at(1060.0)["a"].ready_at == 1060.0


def test_a_node_given_back_is_charged_until_it_is_gone_and_listed_for_an_hour(slow: World) -> None:
    slow.cloud.rent("a", "T4")
    slow.at(1100.0)
    slow.cloud.release("a")
    assert slow.at(1129.0)["a"].gone_at is None
    assert slow.at(1130.0)["a"].gone_at == 1130.0
    assert slow.at(1130.0 + HOUR - 1)["a"].ready_at == 1060.0
    assert slow.at(1130.0 + HOUR) == {}


def test_a_node_given_back_before_it_was_ready_never_is(slow: World) -> None:
    slow.cloud.rent("a", "T4")
    slow.at(1010.0)
    slow.cloud.release("a")
    assert slow.at(1039.0)["a"].gone_at is None
    gone = slow.at(1100.0)["a"]
    assert (gone.ready_at, gone.gone_at) == (None, 1040.0)


def test_a_token_rents_once_even_after_its_node_is_gone_and_forgotten(world: World) -> None:
    world.cloud.rent("a", "T4")
    world.cloud.rent("a", "A100")
    assert [node.gpu for node in world.cloud.nodes()] == ["T4"]
    world.cloud.release("a")
    world.cloud.rent("a", "T4")
    assert world.at(1000.0)["a"].gone_at == 1000.0
    assert world.at(1000.0 + 2 * HOUR) == {}
    world.cloud.rent("b", "T4")  # writes the file anew, without the old node
    world.restarted().rent("a", "T4")
    assert list(world.at(1000.0 + 2 * HOUR)) == ["b"]


def test_giving_back_twice_or_what_never_was_changes_nothing(slow: World) -> None:
    slow.cloud.release("never")
    slow.cloud.rent("a", "T4")
    slow.cloud.release("a")
    slow.at(1020.0)
    slow.cloud.release("a")
    assert slow.at(1030.0)["a"].gone_at == 1030.0


def test_it_says_no_at_the_limit_until_a_node_is_gone(slow: World) -> None:
    slow.cloud.rent("a", "T4")
    slow.cloud.rent("b", "T4")
    with pytest.raises(NoCapacity, match="all 2 T4 nodes of the local cloud are taken"):
        slow.cloud.rent("c", "T4")
    slow.cloud.rent("a", "T4")  # known already: no reason to say no
    slow.cloud.rent("d", "A100")  # no limit
    slow.cloud.release("b")
    with pytest.raises(NoCapacity):
        slow.cloud.rent("c", "T4")
    slow.at(1030.0)
    slow.cloud.rent("c", "T4")
    assert [node.token for node in slow.cloud.nodes() if node.gone_at is None] == ["a", "d", "c"]


def test_a_type_it_does_not_have_is_never_to_be_had(world: World) -> None:
    with pytest.raises(NoCapacity, match="has no H100; it has A100, T4"):
        world.cloud.rent("a", "H100")


def test_prices_are_those_at_which_a_node_was_rented(world: World) -> None:
    world.cloud.rent("a", "T4")
    dearer = {"T4": GpuType(name="T4", price=9.0, gpus_per_node=2)}
    (node,) = LocalCloud(world.path, dearer, {}, world.clock).nodes()
    assert (node.price, node.gpus) == (1.088, 4)


def test_it_knows_all_nodes_after_a_crash(slow: World) -> None:
    slow.cloud.rent("a", "T4")
    slow.cloud.rent("b", "A100")
    slow.at(1070.0)
    slow.cloud.release("b")
    before = slow.cloud.nodes()
    assert slow.restarted().nodes() == before


def test_a_disk_that_cannot_be_written_is_trouble_and_rents_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.cloud.rent("a", "T4")

    def fails(_file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fails)
        with pytest.raises(CloudTrouble, match=r"cloud\.json: cannot be written \(No space left"):
            world.cloud.rent("b", "T4")
        with pytest.raises(CloudTrouble):
            world.cloud.release("a")
        assert list(world.at(1000.0)) == ["a"]
    world.cloud.rent("b", "T4")
    assert list(world.at(1000.0)) == ["a", "b"]


def test_a_list_of_nodes_that_is_no_plain_file_is_an_error_too(world: World) -> None:
    world.path.parent.mkdir(parents=True, exist_ok=True)
    make("pipe", world.path)
    with pytest.raises(FileError, match=r"cloud\.json: cannot be read \(is a pipe"):
        promptly(lambda: LocalCloud(world.path, TYPES, {}, world.clock))


def test_a_damaged_file_is_an_error_and_no_empty_cloud(world: World) -> None:
    for text in ("", "{", "[]", "{}", json.dumps({"nodes": [{"token": "a"}], "used": []})):
        world.path.parent.mkdir(exist_ok=True)
        world.path.write_text(text)
        with pytest.raises(FileError, match=r"cloud\.json: is damaged"):
            world.restarted()


# The one that fails


def faulty(world: World, **faults: float) -> FaultyCloud:
    return FaultyCloud(world.cloud, world.clock, Faults(**faults))  # type: ignore[arg-type]


def rented(cloud: Cloud, count: int) -> list[str]:
    """What comes of the first try of each token."""
    return [_outcome(cloud, f"token {number}") for number in range(count)]


def _outcome(cloud: Cloud, token: str) -> str:
    try:
        cloud.rent(token, "A100")
    except (NoCapacity, CloudTrouble) as problem:
        return type(problem).__name__
    return "rented"


def test_without_faults_it_is_the_cloud_itself(world: World) -> None:
    cloud = faulty(world)
    assert set(rented(cloud, 20)) == {"rented"}
    cloud.release("token 3")
    assert cloud.nodes() == world.cloud.nodes()
    assert cloud.offers() == TYPES


def test_trouble_before_does_nothing_and_trouble_after_has_done_it(world: World) -> None:
    assert rented(faulty(world, trouble_before=1.0), 1) == ["CloudTrouble"]
    assert world.cloud.nodes() == []
    after = faulty(world, trouble_after=1.0)
    assert rented(after, 1) == ["CloudTrouble"]
    assert list(world.at(1000.0)) == ["token 0"]
    with pytest.raises(CloudTrouble):
        after.release("token 0")
    assert world.at(1000.0)["token 0"].gone_at == 1000.0
    with pytest.raises(CloudTrouble):
        faulty(world, trouble_before=1.0).nodes()


def test_capacity_comes_and_goes_but_never_for_what_is_rented_already(world: World) -> None:
    cloud = faulty(world, no_capacity=0.5)
    first = rented(cloud, 40)
    assert 10 <= first.count("NoCapacity") <= 30
    for _ in range(20):
        rented(cloud, 40)
    assert set(rented(cloud, 40)) == {"rented"}


def test_the_same_seed_brings_the_same_faults_in_any_order(tmp_path: Path) -> None:
    def outcomes(folder: str, seed: int, order: int) -> dict[str, str]:
        cloud = faulty(World(tmp_path / folder), seed=seed, no_capacity=0.3, trouble_after=0.3)
        return {f"t{n}": _outcome(cloud, f"t{n}") for n in list(range(30))[::order]}

    assert outcomes("a", 1, 1) == outcomes("b", 1, -1) != outcomes("c", 2, 1)


def test_nodes_vanish_within_their_time_and_are_then_charged_no_more(world: World) -> None:
    cloud = faulty(world, vanish=0.5, vanish_within_s=100.0)
    rented(cloud, 40)
    there = []
    for moment in (1000.0, 1050.0, 1100.0, 1200.0):
        world.clock.advance_to(moment)
        there.append(len(cloud.nodes()))
    assert there[0] == 40 > there[1] > there[2] == there[3] > 0
    charged = [node for node in world.cloud.nodes() if node.gone_at is None]
    assert cloud.nodes() == charged


def test_a_slow_boot_delays_ready_and_nothing_else(slow: World) -> None:
    cloud = faulty(slow, boot_delay_s=100.0)
    rented(cloud, 20)
    slow.clock.advance_to(1070.0)
    seen = cloud.nodes()
    ready = [node.ready_at for node in seen if node.ready_at is not None]
    assert 0 < len(ready) < 20
    assert all(1060.0 <= moment <= 1070.0 for moment in ready)
    slow.clock.advance_to(1160.0)
    assert all(node.ready_at is not None for node in cloud.nodes())
    assert {node.billed_from for node in seen} == {1000.0}
