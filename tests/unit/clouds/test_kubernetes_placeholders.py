"""Placeholders: what they ask for, and how a token gets from its wish to a node of its own."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from boa.clouds.kubernetes import placeholders
from boa.clouds.kubernetes.objects import NAMESPACE, TOKEN, KubeNode
from boa.clouds.kubernetes.placeholders import (
    ASKED,
    HOLD,
    KEPT,
    PLACEHOLDER,
    RELEASED,
    WISH,
    Hold,
    Mark,
    Placeholder,
    Remove,
    Scene,
)
from boa.model.kubernetes_names import GPU, GPUS, OWNER
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.workload import GpuType

T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
SETTINGS = KubernetesSettings(
    nodes="autoscaler",
    pod_template={"spec": {"tolerations": [{"key": "gpus", "operator": "Exists"}]}},
)
PREFIX = "boa-1-"


def node(name: str = "n1", token: str = "", released: str = "") -> KubeNode:
    marks = {OWNER: "boa", NAMESPACE: "lab", TOKEN: token, GPU: "T4", ASKED: "50.0"}
    said = marks | ({RELEASED: released} if released else {KEPT: "true"}) if token else {}
    return KubeNode(name=name, gpu="T4", gpus=4, annotations=said, cordoned=bool(released))


def pod(token: str, role: str = WISH, on: str = "", **more: Any) -> Placeholder:
    name = token if role == WISH else placeholders.hold_name(token)
    made = Placeholder(name=name, token=token, gpu="T4", role=role, created=50.0, node=on)
    return replace(made, **more)


def scene(pods: list[Placeholder], *nodes: KubeNode) -> tuple[Scene, dict[str, KubeNode]]:
    ours = {one.name: one for one in nodes if placeholders.is_ours(one, "boa", "lab")}
    return Scene(pods, ours), {one.name: one for one in nodes}


def test_a_wish_asks_for_a_whole_node_of_its_type_away_from_other_tokens() -> None:
    made = placeholders.wish(SETTINGS, "lab", T4, "boa-1-x-1")
    spec = made["spec"]
    assert made["metadata"]["name"] == "boa-1-x-1"
    assert spec["nodeSelector"] == {"boa-constrictor.dev/gpu": "T4"}
    assert spec["containers"][0]["resources"]["limits"] == {GPUS: "4"}
    assert {one["key"] for one in spec["tolerations"]} == {"gpus", GPUS}
    (away,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert {"key": TOKEN, "operator": "NotIn", "values": ["boa-1-x-1"]} in (
        away["labelSelector"]["matchExpressions"]
    )
    assert spec["priorityClassName"] == "boa-placeholder"
    assert "command" not in spec["containers"][0], "its image idles by itself"


@pytest.mark.parametrize(
    "template",
    [
        {"spec": None},
        {"spec": {"tolerations": None, "nodeSelector": None, "imagePullSecrets": None}},
    ],
)
def test_a_template_may_leave_its_fields_empty(template: Any) -> None:
    said = replace(SETTINGS, pod_template=template)
    spec = placeholders.wish(said, "lab", T4, "boa-1-x-1")["spec"]
    assert spec["nodeSelector"] == {"boa-constrictor.dev/gpu": "T4"}
    assert spec["tolerations"] == [{"key": GPUS, "operator": "Exists"}]
    assert "imagePullSecrets" not in spec
    assert placeholders.hold(said, "lab", "T4", "boa-1-x-1", "n1")


def test_a_hold_asks_for_nothing_and_stays_on_its_node() -> None:
    made = placeholders.hold(SETTINGS, "lab", "T4", "boa-1-x-1", "n1")
    assert "resources" not in made["spec"]["containers"][0]
    assert made["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert made["metadata"]["annotations"][placeholders.STAYS] == "false"
    assert made["metadata"]["labels"][PLACEHOLDER] == HOLD


def test_a_wish_that_waits_is_left_to_wait() -> None:
    assert placeholders.steps(*scene([pod("a", status="0/3 nodes")])) == []
    (seen,) = placeholders.sights(scene([pod("boa-1-a", status="0/3 nodes")])[0], PREFIX)
    assert (seen.token, seen.since, seen.status) == ("boa-1-a", None, "0/3 nodes")


def test_a_wish_that_is_bound_marks_its_node_and_is_followed_by_a_hold_and_then_goes() -> None:
    bound = pod("a", on="n1")
    assert placeholders.steps(*scene([bound], node())) == [
        Mark("n1", "a", "T4", 50.0),
        Hold("n1", "a", "T4"),
    ]
    marked = node(token="a")
    assert placeholders.steps(*scene([bound], marked)) == [Hold("n1", "a", "T4")]
    assert placeholders.steps(*scene([bound, pod("a", HOLD)], marked)) == []
    there = [bound, pod("a", HOLD, on="n1")]
    assert placeholders.steps(*scene(there, marked)) == [Remove("a")]
    assert placeholders.steps(*scene(there[1:], marked)) == []


def test_gpus_are_free_when_the_wish_is_gone_and_the_hold_is_there() -> None:
    marked = node(token="boa-1-a")
    wish, hold = pod("boa-1-a", on="n1"), pod("boa-1-a", HOLD, on="n1")

    def is_free(*pods: Placeholder) -> bool:
        (seen,) = placeholders.sights(scene(list(pods), marked)[0], PREFIX)
        assert (seen.since, seen.token) == (50.0, "boa-1-a")
        return seen.free

    assert not is_free(wish)
    assert not is_free(wish, hold)
    assert not is_free()
    assert is_free(hold)


def test_a_node_given_back_is_charged_for_and_its_hold_goes() -> None:
    left = node(token="boa-1-a", released="90.0")
    (seen,) = placeholders.sights(scene([], left)[0], PREFIX)
    assert (seen.token, seen.since, seen.deleting) == ("boa-1-a", 50.0, True)
    hold = pod("boa-1-a", HOLD, on="n1")
    assert placeholders.steps(*scene([hold], left)) == [Remove(hold.name)]


def test_the_node_given_back_last_is_taken_over_and_none_that_goes_already() -> None:
    old, new = node("n1", "a", "90.0"), node("n2", "b", "95.0")
    going = replace(node("n3", "c", "99.0"), notice_s=0.0)
    kept, small = node("n4", "d"), replace(node("n5", "e", "99.0"), gpus=2)
    seen, _ = scene([], old, new, going, kept, small)
    assert placeholders.to_take_over(seen, T4) == new
    assert placeholders.to_take_over(scene([], kept)[0], T4) is None


def test_pods_that_ended_are_cleared_away_and_a_hold_put_back() -> None:
    over = pod("a", HOLD, on="n1", over=True)
    assert placeholders.steps(*scene([over], node(token="a"))) == [Remove(over.name)]
    assert placeholders.steps(*scene([], node(token="a"))) == [Hold("n1", "a", "T4")]


def test_others_pods_are_evicted_but_for_those_that_come_back_or_are_ours() -> None:
    def said(**meta: Any) -> dict[str, Any]:
        return {"metadata": {"name": "x", **meta}, "status": {"phase": "Running"}}

    assert placeholders.is_evictable(said())
    assert not placeholders.is_evictable(said(labels={OWNER: "boa"}))
    assert not placeholders.is_evictable(said(ownerReferences=[{"kind": "DaemonSet"}]))
    assert not placeholders.is_evictable(said(annotations={"kubernetes.io/config.mirror": "1"}))


class Cluster(RuleBasedStateMachine):
    """A scheduler that binds as late as it likes, and steps that are done once, twice or not."""

    def __init__(self) -> None:
        super().__init__()
        self.pods: dict[str, Placeholder] = {}
        self.nodes: dict[str, KubeNode] = {}
        self.tokens = 0

    @rule()
    def ask(self) -> None:
        self.tokens += 1
        self.pods[f"t{self.tokens}"] = pod(f"t{self.tokens}")

    @rule()
    def node_comes(self) -> None:
        name = f"n{len(self.nodes)}"
        self.nodes[name] = node(name)

    @rule(pick=st.integers(0, 9))
    def bind(self, pick: int) -> None:
        waiting = [one for one in self.pods.values() if not one.node]
        if not waiting:
            return
        one = waiting[pick % len(waiting)]
        if one.role == HOLD:
            there = [n for n in self.nodes.values() if n.annotations.get(TOKEN) == one.token]
        else:
            there = [n for n in self.nodes.values() if not n.cordoned and not self._others(n, one)]
        if there:
            self.pods[one.name] = replace(one, node=there[0].name)

    def _others(self, n: KubeNode, wish: Placeholder) -> bool:
        """What keeps a wish away: GPUs that another has, and placeholders of other tokens."""
        return any(p.node == n.name and p.token != wish.token for p in self.pods.values())

    @rule(how_many=st.integers(0, 4))
    def step(self, how_many: int) -> None:
        for todo in placeholders.steps(*self._scene())[:how_many]:
            if isinstance(todo, Mark):
                self.nodes[todo.node] = node(todo.node, todo.token)
            elif isinstance(todo, Hold):
                made = pod(todo.token, HOLD)
                self.pods.setdefault(made.name, made)
            else:
                self.pods.pop(todo.pod, None)

    @rule(pick=st.integers(0, 9))
    def give_back(self, pick: int) -> None:
        kept = [n for n in self.nodes.values() if TOKEN in n.annotations and not n.cordoned]
        if kept:
            one = kept[pick % len(kept)]
            token = one.annotations[TOKEN]
            self.nodes[one.name] = node(one.name, token, released="90.0")
            self.pods.pop(token, None)
            self.pods.pop(placeholders.hold_name(token), None)

    def _scene(self) -> tuple[Scene, dict[str, KubeNode]]:
        return scene(list(self.pods.values()), *self.nodes.values())

    @invariant()
    def no_two_tokens_have_one_node_and_free_gpus_are_one_s_alone(self) -> None:
        seen, _ = self._scene()
        for sight in placeholders.sights(seen, ""):
            if sight.free and sight.node is not None:
                on = {p.token for p in self.pods.values() if p.node == sight.node.name}
                assert on == {sight.token.removeprefix("of-")}
                assert all(p.role == HOLD for p in self.pods.values() if p.node == sight.node.name)

    @invariant()
    def every_token_has_at_most_one_node(self) -> None:
        tokens = [n.annotations[TOKEN] for n in self.nodes.values() if TOKEN in n.annotations]
        assert len(tokens) == len(set(tokens))


def test_whatever_the_order_no_node_ever_has_two_tokens() -> None:
    run_state_machine_as_test(Cluster, settings=settings(max_examples=60, stateful_step_count=25))
