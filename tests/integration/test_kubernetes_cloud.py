"""Nodes of a cluster with a real API server and scheduler, in every mode: who comes, stays, goes.

Karpenter and the cluster autoscaler are doubles of ours; machines are processes.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa import kubelink
from boa.clock import SteadyClock
from boa.clouds.base import Cloud, NoCapacity
from boa.clouds.kubernetes.cloud import kubernetes_cloud
from boa.clouds.kubernetes.lease import Holder, Lease, LeaseLost
from boa.clouds.kubernetes.placeholders import PLACEHOLDER
from boa.errors import InputError
from boa.kubelink import Kube, KubeTrouble
from boa.model.cloud import CloudNode
from boa.model.kubernetes_names import GPUS
from boa.model.kubernetes_settings import (
    AutoscalerSettings,
    KarpenterMachine,
    KarpenterSettings,
    KubernetesSettings,
)
from boa.model.workload import GpuType
from integration.runner import Boa
from kube.autoscaler import Autoscaler, Group
from kube.cluster import Cluster
from kube.doubles import Double
from kube.karpenter import CLAIMS, Karpenter
from kube.waiting import until

pytestmark = pytest.mark.kubernetes

LABEL = "boa-constrictor.dev/gpu"
TYPES = {
    "T4": GpuType(name="T4", price=1.0, gpus_per_node=2),
    "A100": GpuType(name="A100", price=4.0, gpus_per_node=2),
}
RENTED = ["karpenter", "autoscaler"]
IDLE_S = 3.0
"""Seconds; none of them count while a pod waits that the node would suit."""
AT_ONCE_S = 0.001
"""A time that is over for whatever is there: no test waits for one."""
SERVICE = "boa-test"
A, B, C = (f"{SERVICE}-x-{number}" for number in (1, 2, 3))
SETTINGS = KubernetesSettings(
    image="boa.test/python:1",
    karpenter=KarpenterSettings(
        machines={name: KarpenterMachine(instance_types=(f"{name}-2",)) for name in TYPES}
    ),
    autoscaler=AutoscalerSettings(image="boa.test/python:1"),
)


class World:
    """A namespace of its own, and a cloud in it."""

    def __init__(self, cluster: Cluster, folder: Path, mode: str, double: Double | None) -> None:
        self.cluster, self.folder, self.double = cluster, folder, double
        self.namespace = cluster.namespace()
        self.settings = replace(SETTINGS, nodes=mode, owner=f"boa-{mode}")
        self.kube: Kube = kubelink.connect(str(cluster.kubeconfig), namespace=self.namespace)
        self.cloud = self.restarted()
        self.before = len(self.lives())

    def restarted(self, lost_s: float = 1.0, **settings: Any) -> Cloud:
        return kubernetes_cloud(
            self.kube,
            replace(self.settings, **settings),
            self.folder / "kubernetes.json",
            service=SERVICE,
            gpu_types=TYPES,
            max_nodes={"T4": 2},
            max_spend=None,
            clock=SteadyClock(),
            lost_s=lost_s,
        )

    def listed(self) -> dict[str, CloudNode]:
        return {node.token: node for node in self.cloud.nodes()}

    def lives(self) -> list[Any]:
        return [] if self.double is None else self.double.lives()[getattr(self, "before", 0) :]

    def until(self, what: str, check: Callable[[dict[str, CloudNode]], Any]) -> None:
        until(what, lambda: check(self.listed()))

    def until_ready(self, *tokens: str) -> dict[str, CloudNode]:
        self.until(
            f"{tokens} are ready",
            lambda listed: all(t in listed and listed[t].ready_at is not None for t in tokens),
        )
        return self.listed()

    def until_gone(self, *tokens: str) -> None:
        self.until(f"{tokens} are gone", lambda listed: not listed.keys() & set(tokens))

    def node(self, name: str) -> Any:
        return self.cluster.api.get(f"/api/v1/nodes/{name}")

    def stranger_on(self, node: str) -> str:
        """A pod of somebody else's; its path."""
        path = f"/api/v1/namespaces/{self.cluster.namespace()}/pods"
        container = {"name": "other", "image": "boa.test/python:1"}
        spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 1}
        self.cluster.api.create(path, {"metadata": {"name": "other"}, "spec": spec})
        return f"{path}/other"

    def runs_at_once_on(self, node: str) -> bool:
        """A pod that asks for all of its GPUs, as a job's would."""
        wanted = {GPUS: "2"}
        here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        chosen = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
        container = {"name": "job", "image": "boa.test/python:1", "resources": {"limits": wanted}}
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        spec = {"containers": [container], "affinity": {"nodeAffinity": chosen}}
        self.cluster.api.create(path, {"metadata": {"name": "job"}, "spec": spec})
        until(
            "the job runs",
            lambda: self.cluster.api.get(f"{path}/job")["status"].get("phase") == "Running",
        )
        self.cluster.api.delete(f"{path}/job", grace_s=0)
        return True


@pytest.fixture
def world(kube_cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """Of the mode that the test names."""
    with ExitStack() as after:
        after.enter_context(kube_cluster.clean_after())
        double: Double | None = None
        if request.param == "karpenter":
            double = after.enter_context(Karpenter(kube_cluster))
        elif request.param == "autoscaler":
            groups = {name: Group(gpus=2, max=3) for name in TYPES}
            double = after.enter_context(Autoscaler(kube_cluster, groups, idle_s=IDLE_S))
        world = World(kube_cluster, tmp_path, request.param, double)
        after.callback(world.kube.close)
        yield world
        for token in world.listed():
            world.cloud.release(token)
        if double is not None:
            until("no node is left", lambda: not {*world.listed()} - set(refused(world)))


def refused(world: World) -> dict[str, str]:
    return {token: node.refused for token, node in world.listed().items() if node.refused}


def modes(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("world", names, indirect=True)


@modes(*RENTED)
def test_a_node_comes_once_under_its_token_and_is_charged_until_its_machine_is_gone(
    world: World,
) -> None:
    world.cloud.rent(A, "T4")
    world.cloud.rent(A, "T4")
    again = world.restarted()  # as a service that was killed just then
    again.rent(A, "T4")
    seen = world.until_ready(A)[A]
    (life,) = world.lives()
    assert (seen.address, seen.gpus, seen.price, seen.leaving_at) == (life.node, 2, 1.0, None)
    assert {node.token for node in again.nodes()} == {A}
    assert world.runs_at_once_on(seen.address), "its GPUs are free"
    world.cloud.release(A)
    world.cloud.release(A)
    world.until_gone(A)
    now = time.time()
    (life,) = world.lives()
    assert life.gone is not None
    # from the launch, or from the wish, which was seconds before it
    assert life.born - 60 < seen.billed_from < life.born + 1
    assert life.gone <= now


@modes(*RENTED)
def test_no_more_nodes_are_asked_for_than_may_be_and_each_has_a_token_of_its_own(
    world: World,
) -> None:
    world.cloud.rent(A, "T4")
    world.cloud.rent(B, "T4")
    with pytest.raises(NoCapacity, match="max_nodes of T4 is 2, and the cluster has 2"):
        world.cloud.rent(C, "T4")
    with pytest.raises(NoCapacity, match="no H100 in the config; it has A100, T4"):
        world.cloud.rent(C, "H100")
    listed = world.until_ready(A, B)
    assert len({listed[A].address, listed[B].address}) == 2
    assert len(world.lives()) == 2
    world.cloud.release(A)
    world.until_gone(A)
    assert world.listed()[B].leaving_at is None, "that one, and no other"


@modes("karpenter")
@pytest.mark.parametrize("vanish", [False, True], ids=["failed", "vanished"])
def test_a_claim_that_fails_is_given_up_and_said_why(world: World, vanish: bool) -> None:
    assert isinstance(world.double, Karpenter)
    world.double.fail("A100", message="all of them are taken", vanish=vanish)
    world.cloud.rent(A, "A100")
    world.until("it is refused", lambda listed: A in listed and listed[A].refused)
    said = world.listed()[A]
    assert said.gone_at == said.billed_from, "charged to nobody"
    assert "taken" in said.refused
    with pytest.raises(NoCapacity):
        world.cloud.rent(A, "A100")
    until("no claim is left", lambda: not world.cluster.api.get(CLAIMS)["items"])


@modes("karpenter")
def test_a_machine_that_never_registers_is_given_back_and_no_other_asked_for_at_once(
    world: World,
) -> None:
    assert isinstance(world.double, Karpenter)
    world.double.never_register("T4")
    world.cloud.rent(A, "T4")
    world.until("its machine is there", lambda listed: A in listed)
    world.cloud = world.restarted(ready_s=AT_ONCE_S)
    assert world.listed()[A].leaving_at is not None
    with pytest.raises(NoCapacity, match="did not get ready: no Node has come up"):
        world.cloud.rent(B, "T4")


@modes("karpenter")
def test_an_interruption_is_heard_and_strays_of_this_owner_are_listed_to_be_given_back(
    world: World,
) -> None:
    assert isinstance(world.double, Karpenter)
    world.cloud.rent(A, "T4")
    other = kubernetes_cloud(
        world.kube, world.settings, world.folder / "other.json", service="boa-gone",
        gpu_types=TYPES, max_nodes={}, max_spend=None, clock=SteadyClock(),
    )  # fmt: skip
    other.rent("boa-gone-x-1", "A100")
    stray = f"{SERVICE}-of-boa-gone-x-1"
    listed = world.until_ready(A, stray)
    world.cloud.release(stray)
    world.until_gone(stray)
    with world.double.lock:  # before its machine is switched off
        world.double.interrupt(listed[A].address, after_s=600.0)
        world.until("it leaves", lambda now: now[A].leaving_at is not None)
    world.until_gone(A)


@modes("autoscaler")
def test_a_node_given_back_is_cordoned_and_taken_over_while_it_is_there(world: World) -> None:
    assert isinstance(world.double, Autoscaler)
    evicting = replace(SETTINGS.autoscaler, evict_others=True)
    world.cloud = world.restarted(autoscaler=evicting)
    world.cloud.rent(A, "T4")
    node = world.until_ready(A)[A].address
    others = world.stranger_on(node)
    with world.double.lock:  # between two looks of the autoscaler
        world.cloud.release(A)
        assert world.node(node)["spec"]["unschedulable"]
        until("the stranger is gone", lambda: world.cluster.api.found(others) is None)
        assert world.listed()[A].gone_at is None, "charged for still"
        world.cloud.rent(B, "T4")
        assert "unschedulable" not in world.node(node)["spec"]
    listed = world.until_ready(B)
    assert (listed[B].address, A in listed) == (node, False)
    assert len(world.lives()) == 1
    held = world.cluster.api.get(f"/api/v1/namespaces/{world.namespace}/pods")["items"]
    assert {pod["metadata"]["labels"][PLACEHOLDER] for pod in held} == {"hold"}


@modes("autoscaler")
def test_a_wish_that_no_node_comes_for_is_given_up_with_the_scheduler_s_reason(
    world: World,
) -> None:
    assert isinstance(world.double, Autoscaler)
    world.double.fail("A100")
    world.cloud.rent(A, "A100")
    pods = f"/api/v1/namespaces/{world.namespace}/pods"
    until(
        "the scheduler has said why",
        lambda: world.cluster.api.get(f"{pods}/{A}")["status"].get("conditions"),
    )
    assert A not in world.listed()
    world.cloud = world.restarted(ready_s=AT_ONCE_S)
    assert f"no A100 came within {AT_ONCE_S:g} s: " in world.listed()[A].refused
    assert "nodes" in world.listed()[A].refused
    until("no pod is left", lambda: not world.cluster.api.get(pods)["items"])


@modes("fixed")
def test_fixed_nodes_are_those_that_are_there(world: World) -> None:
    with pytest.raises(NoCapacity, match=f"no node has the label {LABEL}=T4"):
        world.cloud.rent(A, "T4")
    names = world.cluster.add_nodes(2, gpus=2, labels={LABEL: "T4"})
    world.cluster.add_node(gpus=1, labels={LABEL: "A100"})
    world.cloud.rent(A, "T4")
    world.cloud.rent(B, "T4")
    assert {world.listed()[token].address for token in (A, B)} == set(names)
    assert world.restarted().nodes() == world.cloud.nodes()
    with pytest.raises(NoCapacity, match="max_nodes of T4 is 2"):
        world.cloud.rent(C, "T4")
    with pytest.raises(NoCapacity, match=r"has 1 allocatable nvidia.com/gpu, of 2"):
        world.cloud.rent(C, "A100")
    world.cloud.release(A)
    assert world.listed()[A].gone_at is not None
    world.cluster.kubectl("cordon", world.listed()[B].address)
    assert world.listed()[B].leaving_at is not None, "nothing can start there"
    world.cluster.remove_node(world.listed()[B].address)
    assert world.listed()[B].gone_at is not None


# One service at a time


@modes("fixed")
def test_a_lease_keeps_a_second_service_out_and_the_first_can_come_back(world: World) -> None:
    def lease(host: str, folder: str) -> Lease:
        kube = kubelink.connect(str(world.cluster.kubeconfig), namespace=world.namespace)
        return Lease(kube, "boa", Holder(host, "7", folder))

    first, second = lease("one", "a"), lease("two", "b")
    with pytest.raises(KubeTrouble, match="was not renewed"):
        first.check()
    first.take()
    first.check()
    with pytest.raises(InputError, match=r"kubernetes.owner: one \(process 7\) is its service"):
        second.take()
    again = lease("three", "a")  # of the same data folder: started again elsewhere
    again.take()
    with pytest.raises(LeaseLost, match=r"held by three \(process 7\) now"):
        first.renew()
    with pytest.raises(KubeTrouble, match="held by three"):
        first.check()
    first.close()
    again.renew()
    again.close()
    second.take()
    second.close()


# A dry run


@modes("karpenter")
def test_a_dry_run_tells_what_would_be_made_and_whether_the_account_may(
    world: World, run: Boa
) -> None:
    config = {
        "version": 1,
        "engine": "kubernetes",
        "data_dir": "data",
        "gpu_types": {"T4": {"gpus_per_node": 2, "max_nodes": 3}},
        "kubernetes": {
            "kubeconfig": str(world.cluster.kubeconfig),
            "namespace": world.namespace,
            "image": "boa.test/python:1",
            "nodes": "karpenter",
            "karpenter": {"machines": {"T4": {"instance_types": ["g4dn"]}}},
        },
    }
    path = world.folder / "boa.json"
    path.write_text(json.dumps(config))
    said = run("serve", "--config", str(path), "--dry-run")
    for word in (
        f"Kubernetes v1.20.2, namespace {world.namespace}",
        "T4: 3 nodes",
        "allowed   create nodeclaims in the whole cluster",
        "fits      a job's pod: the API server would take it",
        "fits      a NodeClaim for T4: the API server would take it",
        "make      the lease boa",
    ):
        assert word in said
    assert not world.cluster.api.get(CLAIMS)["items"], "nothing was changed"
    kubernetes: dict[str, Any] = config["kubernetes"]  # type: ignore[assignment]
    kubernetes["nodes"] = "autoscaler"
    path.write_text(json.dumps(config))
    said = run("serve", "--config", str(path), "--dry-run")
    assert "make      for each T4 node: a placeholder pod that asks for all of it" in said
    away = world.folder / "away.conf"
    there = Path(world.cluster.kubeconfig).read_text()
    away.write_text(there.replace(world.cluster.server, "https://127.0.0.1:1"))
    kubernetes |= {"kubeconfig": str(away), "nodes": "karpenter"}
    path.write_text(json.dumps(config))
    run("serve", "--config", str(path), "--dry-run", code=2)
    assert "the Kubernetes API server at https://127.0.0.1:1 cannot be asked" in run.err
    nobody = world.cluster.kubeconfig_for("nobody", world.namespace)
    kubernetes["kubeconfig"] = str(nobody)
    path.write_text(json.dumps(config))
    steps = json.loads(run("serve", "--config", str(path), "--dry-run", "--json", code=2))["steps"]
    denied = [step["text"] for step in steps if step["what"] == "denied"]
    assert f"create pods in namespace {world.namespace}" in denied
    assert "list nodes in the whole cluster" in denied
