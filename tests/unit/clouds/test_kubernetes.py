"""Nodes of a Kubernetes cluster: what its objects say, and what becomes of each token."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.clock import VirtualClock
from boa.clouds.base import NoCapacity
from boa.clouds.kubernetes import book, claims
from boa.clouds.kubernetes.book import Book, Entry
from boa.clouds.kubernetes.cloud import kubernetes_cloud
from boa.clouds.kubernetes.objects import NOTICES, TOKEN, KubeNode, node_of
from boa.clouds.kubernetes.watching import LOST_S, UNKNOWN_S, Moment, Sight, Watch
from boa.kubelink import Kube
from boa.model.kubernetes_names import GPU, GPUS, OWNER
from boa.model.kubernetes_settings import KarpenterMachine, KarpenterSettings, KubernetesSettings
from boa.model.workload import GpuType

T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
TYPES = {"T4": T4}
LABEL = "boa-constrictor.dev/gpu"
PREFIX = "boa-1-"
READY_S = 600.0


def node(name: str = "n1", **more: Any) -> KubeNode:
    return KubeNode(**{"name": name, "gpu": "T4", "gpus": 4, **more})


def said_node(**more: Any) -> dict[str, Any]:
    """As the API server shows it."""
    return {
        "metadata": {
            "name": "n1",
            "labels": {LABEL: "T4"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **more.get("metadata", {}),
        },
        "spec": more.get("spec", {}),
        "status": {
            "allocatable": {GPUS: "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
            **more.get("status", {}),
        },
    }


# What a Node says


def test_a_node_is_read_as_the_api_server_shows_it() -> None:
    found = node_of(said_node(), LABEL)
    assert (found.name, found.gpu, found.gpus, found.created) == ("n1", "T4", 4, 1767225600.0)
    assert (found.lacks(4), found.going_in) == ("", None)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"conditions": [{"type": "Ready", "status": "Unknown", "reason": "Gone"}]}, "Gone"),
        ({"conditions": []}, "not Ready"),
        ({"allocatable": {}}, f"0 allocatable {GPUS}, of 4"),
        ({"allocatable": {GPUS: "2"}}, f"2 allocatable {GPUS}, of 4"),
    ],
)
def test_ready_is_a_kubelet_that_says_so_and_all_of_the_gpus(status: Any, why: str) -> None:
    assert why in node_of(said_node(status=status), LABEL).lacks(4)


@pytest.mark.parametrize("taint", [*NOTICES, "aws-node-termination-handler/asg-lifecycle"])
def test_taints_of_those_who_take_nodes_away_are_a_notice(taint: str) -> None:
    found = node_of(said_node(spec={"taints": [{"key": taint, "effect": "NoSchedule"}]}), LABEL)
    assert found.going_in == NOTICES.get(taint, 0.0)


@pytest.mark.parametrize("taint", ["nvidia.com/gpu", "DeletionCandidateOfClusterAutoscaler"])
def test_other_taints_are_none(taint: str) -> None:
    found = node_of(said_node(spec={"taints": [{"key": taint, "effect": "NoSchedule"}]}), LABEL)
    assert found.going_in is None


def test_azure_tells_of_an_eviction_by_a_condition() -> None:
    event = {"type": "VMEventScheduled", "status": "True", "reason": "PreemptScheduled"}
    ready = {"type": "Ready", "status": "True"}
    said = said_node(status={"conditions": [ready, event]})
    assert node_of(said, LABEL).going_in == 30.0


def test_a_node_that_is_cordoned_or_deleted_can_be_used_no_longer() -> None:
    assert node_of(said_node(spec={"unschedulable": True}), LABEL).going_in == 0.0
    deleted = {"name": "n1", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert node_of(said_node(metadata=deleted), LABEL).going_in == 0.0


# What becomes of a token


class World:
    """A watch, and a clock that both sides have."""

    def __init__(self) -> None:
        self.watch = Watch(TYPES, ready_s=READY_S)
        self.asked: dict[str, Sight] = {}

    def look(self, at: float, *sights: Sight) -> Any:
        looked = self.watch.look(sights, self.asked, Moment(now=at, wall=at))
        self.asked |= {one.token: one for one in sights if one.token in self.asked}
        return looked


@pytest.fixture
def world() -> World:
    return World()


def sight(token: str = "a", **more: Any) -> Sight:
    return Sight(**{"token": token, "gpu": "T4", "asked": 100.0, **more})


def test_nothing_is_listed_before_there_is_a_machine_and_then_it_is_charged_from_its_launch(
    world: World,
) -> None:
    world.asked["a"] = sight()
    assert world.look(110.0, sight()).listed == []
    (listed,) = world.look(120.0, sight(since=115.0)).listed
    assert (listed.billed_from, listed.ready_at, listed.gpus) == (115.0, None, 4)
    (listed,) = world.look(130.0, sight(since=115.0, node=node(gpus=0))).listed
    assert listed.ready_at is None
    (listed,) = world.look(140.0, sight(since=115.0, node=node())).listed
    assert (listed.ready_at, listed.address, listed.leaving_at) == (140.0, "n1", None)


def test_gpus_that_a_placeholder_has_are_not_ready(world: World) -> None:
    (listed,) = world.look(120.0, sight(since=115.0, node=node(), free=False)).listed
    assert listed.ready_at is None


def test_a_wish_that_fails_or_vanishes_is_refused_with_its_reason(world: World) -> None:
    world.asked |= {"a": sight("a"), "b": sight("b", status="not Launched: no quota")}
    looked = world.look(110.0, sight("a", failure="none left (InsufficientCapacity)"))
    assert looked.refused == {
        "a": "none left (InsufficientCapacity)",
        "b": "it was taken away before its machine came: not Launched: no quota",
    }
    assert looked.listed == []


def test_a_wish_that_nobody_fulfils_is_given_up_in_the_end(world: World) -> None:
    world.asked["a"] = sight()
    assert not world.look(100.0 + READY_S - 1, sight(status="0/3 nodes")).refused
    refused = world.look(100.0 + READY_S, sight(status="0/3 nodes")).refused
    assert refused == {"a": "no T4 came within 600 s: 0/3 nodes"}


def test_a_machine_that_does_not_get_ready_leaves_and_is_said_to_be_none(world: World) -> None:
    seen = sight(since=110.0, node=node(gpus=0))
    assert not world.look(200.0, seen).duds
    looked = world.look(100.0 + READY_S, seen)
    assert looked.duds == {"a": f"n1 has 0 allocatable {GPUS}, of 4"}
    assert looked.listed[0].leaving_at == 100.0 + READY_S


def test_jobs_leave_a_node_that_is_taken_away(world: World) -> None:
    world.look(120.0, sight(since=110.0, node=node()))
    noticed = world.look(130.0, sight(since=110.0, node=node(notice_s=120.0))).listed[0]
    assert noticed.leaving_at == 250.0
    world.look(120.0, sight("b", since=110.0, node=node()))
    assert world.look(130.0, sight("b", since=110.0, deleting=True)).listed[0].leaving_at == 130.0


def test_jobs_leave_a_node_that_is_silent_for_long_and_not_one_that_comes_back(
    world: World,
) -> None:
    up, down = sight(since=110.0, node=node()), sight(since=110.0, node=node(ready=False))
    world.look(120.0, up)
    world.look(130.0, down)
    world.look(130.0 + LOST_S - 1, up)
    assert world.look(140.0 + LOST_S, down).listed[0].leaving_at is None
    assert world.look(140.0 + 2 * LOST_S, down).listed[0].leaving_at == 140.0 + 2 * LOST_S


def test_a_wish_that_nobody_here_asked_for_is_taken_away_after_a_while_and_never_charged(
    world: World,
) -> None:
    looked = world.look(1000.0, sight(asked=900.0))
    assert (looked.listed, looked.strays) == ([], [])
    looked = world.look(1000.0 + UNKNOWN_S, sight(asked=900.0))
    assert (looked.listed, looked.strays) == ([], ["a"])
    looked = world.look(1001.0 + UNKNOWN_S, sight(asked=900.0, deleting=True))
    assert (looked.listed, looked.strays) == ([], [])


@given(speed=st.floats(0.1, 100), ago=st.floats(-5, 1e6))
def test_no_moment_of_the_wall_is_in_the_future(speed: float, ago: float) -> None:
    moment = Moment(now=1e7, wall=2e9, speed=speed)
    assert moment.at(2e9 - ago) <= moment.now


# Karpenter's claims

SETTINGS = KubernetesSettings(
    nodes="karpenter",
    karpenter=KarpenterSettings(
        machines={
            "T4": KarpenterMachine(
                instance_types=("g4dn.12xlarge",),
                capacity="spot",
                requirements=({"key": "zone", "operator": "In", "values": ("a", "b")},),
            )
        },
        labels={"team": "vision"},
        taints=({"key": "nvidia.com/gpu", "effect": "NoSchedule"},),
    ),
)


def said_claim(token: str = "boa-1-x-1", **more: Any) -> dict[str, Any]:
    made = claims.claim(SETTINGS, "lab", T4, token)
    made["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", **more.get("metadata", {})}
    return made | {"status": {"conditions": more.get("conditions", [])}}


def launched(status: str = "True", **more: str) -> dict[str, str]:
    stamp = "2026-01-01T00:00:05Z"
    return {"type": "Launched", "status": status, "lastTransitionTime": stamp, **more}


def test_a_claim_is_named_after_its_token_and_asks_for_all_that_is_configured() -> None:
    made = claims.claim(SETTINGS, "lab", T4, "boa-1-x-1")
    assert made["metadata"]["name"] == "boa-1-x-1"
    assert made["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "true"}
    labels = made["metadata"]["labels"]
    assert (labels[OWNER], labels[TOKEN], labels[GPU]) == ("boa", "boa-1-x-1", "T4")
    assert labels["team"] == "vision"
    spec = made["spec"]
    assert spec["resources"] == {"requests": {GPUS: "4"}}
    assert spec["requirements"] == [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g4dn.12xlarge"]},
        {"key": "zone", "operator": "In", "values": ["a", "b"]},
    ]
    assert spec["expireAfter"] == "Never"


def test_a_claim_is_charged_from_its_launch_and_until_its_node_is_gone_too() -> None:
    (waiting,) = claims.sights([said_claim()], [], PREFIX)
    assert (waiting.since, waiting.asked) == (None, 1767225600.0)
    (up,) = claims.sights([said_claim(conditions=[launched()])], [], PREFIX)
    assert (up.token, up.since) == ("boa-1-x-1", 1767225605.0)
    left = node(labels={TOKEN: "boa-1-x-1", GPU: "T4"}, created=7.0)
    (alone,) = claims.sights([], [left], PREFIX)
    assert (alone.token, alone.since, alone.deleting) == ("boa-1-x-1", 7.0, True)


def test_a_claim_without_capacity_says_so_and_one_that_waits_says_for_what() -> None:
    no = launched("False", reason="InsufficientCapacity", message="none of g4dn\nmore")
    (failed,) = claims.sights([said_claim(conditions=[no])], [], PREFIX)
    assert failed.failure == "none of g4dn (InsufficientCapacity)"
    (waiting,) = claims.sights([said_claim(conditions=[launched()])], [], PREFIX)
    assert waiting.status == "not Registered"


def test_a_claim_of_another_service_of_this_owner_is_listed_by_its_name() -> None:
    (stray,) = claims.sights([said_claim("boa-9-x-1", conditions=[launched()])], [], PREFIX)
    assert stray.token == "boa-1-of-boa-9-x-1"


# Nodes that are there


def entry(token: str = "a", name: str = "n1") -> Entry:
    return Entry(token=token, gpu="T4", gpus=4, price=1.0, node=name, taken_at=100.0)


def test_a_token_takes_a_node_that_is_free_and_fit() -> None:
    nodes = [
        node("n1"),
        node("n2", gpus=2),
        node("n3", ready=False),
        node("n4", cordoned=True),
        node("n5", gpu="A100"),
        node("n6"),
    ]
    taken = book.taken(Book(), entry())
    assert [one.name for one in book.free(taken, nodes, "T4", 4)] == ["n6"]
    assert [one.name for one in book.free(Book(), nodes, "T4", 4)] == ["n1", "n6"]


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ([], f"no node has the label {LABEL}=T4; its values there: none"),
        ([node(gpu="A100")], "its values there: A100"),
        ([node("n1")], "all 1 T4 nodes of the cluster are taken"),
        ([node("n2", gpus=2)], f"n2 has 2 allocatable {GPUS}, of 4 (gpus_per_node of T4)"),
        ([node("n2", ready=False, why="KubeletNotReady")], "n2 is not Ready (KubeletNotReady)"),
        ([node("n2", cordoned=True)], "n2 is cordoned"),
    ],
)
def test_why_there_is_none_is_said(nodes: list[KubeNode], why: str) -> None:
    assert why in book.why_none(book.taken(Book(), entry()), nodes, "T4", 4, LABEL)


def test_a_node_given_back_is_free_and_charged_no_longer() -> None:
    after = book.released(book.taken(Book(), entry()), "a", 200.0)
    assert after.entries["a"].seen().gone_at == 200.0
    assert book.free(after, [node()], "T4", 4)
    assert book.released(after, "a", 300.0) is after


def test_a_node_that_is_gone_or_leaves_or_is_silent_is_so_listed() -> None:
    taken = book.taken(Book(), entry())
    assert book.observed(taken, [], 300.0, LOST_S).entries["a"].gone_at == 300.0
    leaving = book.observed(taken, [node(cordoned=True)], 300.0, LOST_S).entries["a"]
    assert (leaving.gone_at, leaving.leaving_at) == (None, 300.0)
    down = book.observed(taken, [node(ready=False)], 300.0, LOST_S)
    assert down.entries["a"].leaving_at is None
    again = book.observed(down, [node()], 310.0, LOST_S)
    assert again.entries["a"].down_since is None
    gone = book.observed(down, [node(ready=False)], 300.0 + LOST_S, LOST_S)
    assert gone.entries["a"].leaving_at == 300.0 + LOST_S


class FakeKube:
    namespace = "lab"

    def list(self, path: str, **_: str) -> list[Any]:
        return [said_node(), said_node(metadata={"name": "n2"})]


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"max_nodes": {"T4": 1}}, "max_nodes of T4 is 1"),
        ({"max_spend": 7.0}, "max_spend_per_hour is 7: nodes cost 4.00 now, and another T4 node"),
    ],
)
def test_no_more_nodes_are_taken_than_may_be(tmp_path: Path, limits: Any, why: str) -> None:
    cloud = kubernetes_cloud(
        cast(Kube, FakeKube()),
        KubernetesSettings(),
        tmp_path / "kubernetes.json",
        service="boa-1",
        gpu_types=TYPES,
        **{"max_nodes": {}, "max_spend": None, **limits},
        clock=VirtualClock(100.0),
    )
    cloud.rent("a", "T4")
    with pytest.raises(NoCapacity, match=why):
        cloud.rent("b", "T4")
    cloud.release("a")
    cloud.rent("c", "T4")


def test_a_book_is_the_same_after_it_was_written() -> None:
    known = book.released(book.taken(book.taken(Book(), entry()), entry("b", "n2")), "a", 9.0)
    assert book.of_document(book.document(known)) == known


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans(), st.integers(0, 3)), max_size=30)
)
def test_no_two_tokens_ever_have_one_node(moves: list[tuple[str, bool, int]]) -> None:
    """Whoever takes and gives back, and whatever nodes come and go."""
    known, now = Book(), 0.0
    for token, takes, up in moves:
        now += 1
        nodes = [node(f"n{i}") for i in range(up + 1)]
        known = book.observed(known, nodes, now, LOST_S)
        found = book.free(known, nodes, "T4", 4)
        if takes and token not in known.used and found:
            known = book.taken(known, replace(entry(token, found[0].name), taken_at=now))
        else:
            known = book.released(known, token, now)
        held = [one.node for one in known.entries.values() if one.gone_at is None]
        assert len(held) == len(set(held))
