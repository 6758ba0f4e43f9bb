"""The test cluster itself: what the tests of the engine and of the cloud stand on."""

from pathlib import Path
from typing import Any

import pytest

from kube.api import ApiTrouble
from kube.autoscaler import Autoscaler, Group
from kube.cluster import Cluster
from kube.doubles import GPU_LABEL, Double
from kube.karpenter import CLAIMS, Karpenter
from kube.pods import IMAGE, Pods, pod, python
from kube.waiting import until

pytestmark = pytest.mark.kubernetes

TRAPPED = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"saved\\n"), sys.exit(7)))
print("up")
while True: time.sleep(60)
"""
"""It may be printing when the signal comes, and nothing prints while it prints."""
DEAF = TRAPPED.replace('lambda *_: (os.write(1, b"saved\\n"), sys.exit(7))', "signal.SIG_IGN")
LAST_WORD = """
import sys
print("hello")
open("/dev/termination-log", "w").write("bye")
sys.exit(3)
"""
TOLD = """
import time
while (said := open("/boa/told").read()) != "go": time.sleep(0.01)
print(said, open("/boa/secret").read(), open("/boa/map").read())
"""


@pytest.fixture
def pods(kube: Cluster) -> Pods:
    return Pods(kube.api, kube.namespace())


@pytest.fixture(params=["kube", pytest.param("real_kube", id="real")])
def either(request: pytest.FixtureRequest) -> Cluster:
    """A cluster with two free nodes of 4 GPUs, fake or real."""
    cluster: Cluster = request.getfixturevalue(request.param)
    if request.param == "kube":
        cluster.add_nodes(2, gpus=4)
    return cluster


def _followed_to_its_end(pods: Pods, name: str, grace_s: int) -> list[str]:
    """Its log after DELETE; a finalizer keeps the pod's outcome."""
    path = f"{pods.path}/{name}"
    pods.until_phase(name, "Running")
    pods.api.patch(path, {"metadata": {"finalizers": ["boa.test/outcome"]}})
    with pods.api.lines(f"{path}/log", follow="true") as lines:
        assert next(lines) == "up"
        pods.delete(name, grace_s)
        return list(lines)


def test_log_exit_code_and_last_word_of_a_pod_are_kept(either: Cluster) -> None:
    pods = Pods(either.api, either.namespace())
    pods.create(python("one", LAST_WORD, gpus=1))
    ended = pods.until_ended("one")
    assert (ended["exitCode"], ended["message"]) == (3, "bye")
    assert pods.log("one") == "hello\n"
    assert pods.log("one", timestamps="true").endswith("Z hello\n")


def test_a_log_is_followed_through_sigterm_to_the_end(either: Cluster) -> None:
    pods = Pods(either.api, either.namespace())
    pods.create(python("trapped", TRAPPED, gpus=1))
    said = _followed_to_its_end(pods, "trapped", grace_s=600)
    assert said[0] == "saved"  # (a real kubelet may add that the container is gone)
    assert pods.until_ended("trapped")["exitCode"] == 7
    pods.api.patch(f"{pods.path}/trapped", {"metadata": {"finalizers": None}})
    pods.until_gone("trapped")


def test_who_is_deaf_to_sigterm_is_killed_after_its_grace(either: Cluster) -> None:
    pods = Pods(either.api, either.namespace())
    pods.create(python("deaf", DEAF, gpus=1))
    _followed_to_its_end(pods, "deaf", grace_s=1)
    assert pods.until_ended("deaf")["exitCode"] == 137


def test_an_annotation_reaches_a_pod_that_runs_and_so_do_secrets(either: Cluster) -> None:
    pods = Pods(either.api, either.namespace())
    space = pods.path.removesuffix("/pods")
    either.api.create(f"{space}/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "hush"}})
    either.api.create(f"{space}/configmaps", {"metadata": {"name": "m"}, "data": {"b": "plain"}})
    field = {"fieldPath": "metadata.annotations['told']"}
    sources = [
        {"downwardAPI": {"items": [{"path": "told", "fieldRef": field}]}},
        {"secret": {"name": "s", "items": [{"key": "a", "path": "secret"}]}},
        {"configMap": {"name": "m", "items": [{"key": "b", "path": "map"}]}},
    ]
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/boa"}]}
    volumes = [{"name": "v", "projected": {"sources": sources}}]
    pods.create(python("told", TOLD, container=mounts, volumes=volumes))
    pods.until_phase("told", "Running")
    either.api.patch(f"{pods.path}/told", {"metadata": {"annotations": {"told": "go"}}})
    assert pods.until_ended("told")["exitCode"] == 0
    assert pods.log("told") == "go hush plain\n"


def test_pods_share_a_claim(either: Cluster, tmp_path: Path) -> None:
    pods = Pods(either.api, either.namespace())
    either.shared_claim("kept", pods.path.split("/")[4], tmp_path / "kept")
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/var/lib/boa/kept"}]}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "kept"}}]
    write = "open('/var/lib/boa/kept/step', 'a').write('x')"
    for name in ("first", "second"):
        pods.create(python(name, write, container=mounts, volumes=volumes))
        assert pods.until_ended(name)["exitCode"] == 0
    assert (tmp_path / "kept" / "step").read_text() == "xx"
    assert not Path("/var/lib/boa").exists()


def test_pods_live_on_while_the_api_server_is_away(kube: Cluster, pods: Pods) -> None:
    kube.add_node(gpus=1)
    pods.create(python("going", "import time; time.sleep(1); print('done')", gpus=1))
    pods.until_phase("going", "Running")
    with kube.without_api():
        pass
    assert pods.until_ended("going")["exitCode"] == 0
    assert pods.log("going") == "done\n"


def test_a_second_pod_on_gpus_that_are_held_is_refused_by_the_node(
    kube: Cluster, pods: Pods
) -> None:
    node = kube.add_node(gpus=1)
    pods.create(python("first", TRAPPED, gpus=1))
    pods.until_phase("first", "Running")
    pods.create(python("second", TRAPPED, gpus=1) | {"spec": _bound(node)})  # past the scheduler
    assert pods.until_phase("second", "Failed")["status"]["reason"] == "OutOfnvidia.com/gpu"


def _bound(node: str) -> dict[str, Any]:
    spec: dict[str, Any] = python("", TRAPPED, gpus=1)["spec"]
    return {**spec, "nodeName": node}


def test_an_image_that_does_not_exist_is_said_so(kube: Cluster, pods: Pods) -> None:
    kube.add_node(gpus=1)
    pods.create(pod("bad", ["true"], container={"image": "missing.test/no:1"}))
    until("ImagePullBackOff", lambda: "ImagePullBackOff" in str(pods.get("bad")["status"]))
    assert pods.get("bad")["status"]["phase"] == "Pending"
    pods.delete("bad")
    pods.until_gone("bad")


def test_what_a_service_account_may_not_is_refused(kube: Cluster, pods: Pods) -> None:
    space = pods.path.split("/")[4]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{space}"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    kube.api.create(f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": "boa", "namespace": space}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    kube.api.create(
        f"{rbac}/rolebindings",
        {"metadata": {"name": "r"}, "subjects": [subject], "roleRef": role},
    )
    conf = kube.kubeconfig_for("boa", space)
    until("the role's effect", lambda: _may(kube, conf, "list"))
    assert not _may(kube, conf, "delete")
    with pytest.raises(RuntimeError, match="forbidden"):
        kube.kubectl("delete", "pod", "any", kubeconfig=conf)


def _may(kube: Cluster, conf: Path, verb: str) -> bool:
    try:
        return kube.kubectl("auth", "can-i", verb, "pods", kubeconfig=conf).strip() == "yes"
    except RuntimeError:
        return False


def test_a_quota_refuses_what_is_beyond_it(kube: Cluster, pods: Pods) -> None:
    space = pods.path.removesuffix("/pods")
    hard = {"requests.nvidia.com/gpu": "1"}
    kube.api.create(f"{space}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    kube.api.until("the quota", f"{space}/resourcequotas/q", lambda q: q["status"].get("hard"))
    with pytest.raises(ApiTrouble, match="exceeded quota"):
        pods.create(pod("greedy", ["true"], gpus=2))


def test_a_claim_of_karpenters_becomes_a_node_and_ends_with_it(kube: Cluster) -> None:
    with Karpenter(kube, gpus_after_s=0.5) as karpenter:  # as a device plugin takes its time
        claim = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": "c", "labels": {GPU_LABEL: "t4"}},
            "spec": {"resources": {"requests": {"nvidia.com/gpu": "2"}}},
        }
        kube.api.create(CLAIMS, claim)
        found = kube.api.until("it is there", f"{CLAIMS}/c", _is_initialized)
        node = found["status"]["nodeName"]
        joined = kube.api.get(f"/api/v1/nodes/{node}")
        assert joined["metadata"]["labels"][GPU_LABEL] == "t4"
        assert joined["status"]["allocatable"]["nvidia.com/gpu"] == "2"
        kube.api.delete(f"{CLAIMS}/c")
        kube.api.until("it is gone", f"{CLAIMS}/c", lambda found: found is None)
        assert kube.api.found(f"/api/v1/nodes/{node}") is None
        _assert_one_life(karpenter, node, "t4")

        karpenter.fail("t4", message="none left")
        kube.api.create(CLAIMS, claim)
        kube.api.until("it fails", f"{CLAIMS}/c", lambda found: "none left" in str(found))
        kube.api.delete(f"{CLAIMS}/c")
        kube.api.until("it is gone", f"{CLAIMS}/c", lambda found: found is None)


def _is_initialized(claim: Any) -> bool:
    conditions = claim.get("status", {}).get("conditions", [])
    return any(one["type"] == "Initialized" and one["status"] == "True" for one in conditions)


def _assert_one_life(double: Double, node: str, gpu: str) -> None:
    (life,) = double.lives()
    assert (life.node, life.gpu) == (node, gpu)
    assert life.gone is not None
    assert life.born < life.gone


def test_a_pending_pod_gets_a_node_of_its_group_and_an_idle_node_goes(
    kube: Cluster, pods: Pods
) -> None:
    groups = {"t4": Group(gpus=1), "v100": Group(gpus=4, max=1)}
    with Autoscaler(kube, groups, idle_s=0.5) as autoscaler:
        for name in ("one", "two"):
            body = pod(name, [], gpus=4, nodeSelector={GPU_LABEL: "v100"})
            pods.create(body)
        running = until(
            "one of them runs",
            lambda: [
                one
                for name in ("one", "two")
                if (one := pods.get(name))["status"].get("phase") == "Running"
            ],
        )
        node = running[0]["spec"]["nodeName"]
        assert len(autoscaler.lives()) == 1  # the group has no more
        for name in ("one", "two"):
            pods.delete(name)
        kube.api.until("it is gone", f"/api/v1/nodes/{node}", lambda found: found is None)
        _assert_one_life(autoscaler, node, "v100")


def test_real_pods_find_each_other_and_the_api_server(real_kube: Cluster) -> None:
    pods = Pods(real_kube.api, real_kube.namespace())
    one, other = real_kube.nodes
    serve = "import socket; socket.create_server(('', 29500)).accept(); print('met')"
    pods.create(python("rank-0", serve, gpus=4, node=one))
    address = pods.until_phase("rank-0", "Running")["status"]["podIP"]
    join = f"""
import os, socket, time
for where in (("{address}", 29500), (os.environ["KUBERNETES_SERVICE_HOST"], 443)):
    while True:
        try: socket.create_connection(where, timeout=5); break
        except OSError: time.sleep(0.1)
"""
    pods.create(python("rank-1", join, gpus=4, node=other))
    assert pods.until_ended("rank-1")["exitCode"] == 0
    assert pods.until_ended("rank-0")["exitCode"] == 0
    assert pods.get("rank-0")["spec"]["containers"][0]["image"] == IMAGE


def test_a_node_that_is_killed_is_not_ready_and_its_pod_is_sent_away(
    kube: Cluster, pods: Pods
) -> None:
    kube.add_nodes(2, gpus=4)
    away = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    pods.create(python("lost", TRAPPED, gpus=4, tolerations=[away]))
    node = pods.until_phase("lost", "Running")["spec"]["nodeName"]
    kube.kill_node(node)  # (were it the last, no pod would be sent away)
    kube.until_not_ready(node)
    found = until("its deletion", lambda: pods.get("lost")["metadata"].get("deletionTimestamp"))
    assert found
    assert pods.get("lost")["status"]["phase"] == "Running"  # nobody is there to say otherwise
    kube.remove_node(node)
