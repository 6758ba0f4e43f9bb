"""What is deployed, at a real API server: every object is taken, and the service's account may do
what the service does, and nothing else."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import chart
from boa.client.spawn import OwnService
from boa.clouds.kubernetes.rights import needed, useful
from boa.kubelink import Kube, KubeTrouble, Refused, connect
from boa.model.kubernetes_settings import KubernetesSettings
from kube.autoscaler import Autoscaler, Group
from kube.cluster import Cluster
from kube.doubles import Double
from kube.karpenter import Karpenter
from kube.waiting import until

pytestmark = pytest.mark.kubernetes

every_mode = pytest.mark.parametrize("mode", chart.MODES)
ALL_OF_IT: Mapping[str, Any] = {
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "boa-tls"},
    "database": {"existingSecret": "boa-database"},
    "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]},
    "image": {"pullSecrets": [{"name": "registry"}]},
    "jobs": {
        "container": {"resources": {"limits": {"memory": "16Gi"}}},
        "volumes": [{"name": "sets", "emptyDir": {}}],
        "volumeMounts": [{"name": "sets", "mountPath": "/sets"}],
    },
}
SMALL: Mapping[str, Any] = {
    "jobs": {"image": "boa.test/python:1"},
    "config": {
        "keep_warm_s": 0,
        "gpu_types": {"T4": {"price": 2, "gpus_per_node": 1, "max_nodes": 1}},
        "kubernetes": {"autoscaler": {"image": "boa.test/pause:1"}},
    },
}
"""What a machine that runs tests has room for."""
PATIENCE_S = 300.0
APPLY = "application/apply-patch+yaml"
RBAC = "rbac.authorization.k8s.io"
POD: Mapping[str, Any] = {
    "metadata": {"name": "one"},
    "spec": {"containers": [{"name": "job", "image": "none"}]},
}
Rule = tuple[str, str, str]
"""Group, resource and verb."""
OF_EVERYBODY = {
    ("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "create"),
}


@every_mode
def test_the_manifests_are_what_the_chart_renders(mode: str) -> None:
    assert (chart.MANIFESTS / f"{mode}.yaml").read_text() == chart.manifest(mode), (
        "python tests/chart.py writes them anew"
    )


@every_mode
@pytest.mark.parametrize("more", [{}, ALL_OF_IT], ids=["plain", "all"])
def test_every_object_is_taken_by_the_api_server(
    kube: Cluster, mode: str, more: Mapping[str, Any]
) -> None:
    """But for kinds that only a cluster with the Prometheus operator knows."""
    namespace = kube.namespace("deploy")
    made = chart.objects(chart.rendered(chart.values_of(mode), more, namespace=namespace))
    for one in made:
        kube.api.ask("PATCH", chart.path_of(one), one, APPLY, fieldManager="test", dryRun="All")
    assert len({(one["kind"], one["metadata"]["name"]) for one in made}) == len(made) > 10


def test_kubectl_applies_them(kube: Cluster) -> None:
    namespace = kube.namespace("deploy")
    text = chart.rendered(chart.values_of("autoscaler"), ALL_OF_IT, namespace=namespace)
    said = kube.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=text)
    assert said.count("(server dry run)") == len(chart.objects(text))


def test_a_mode_that_there_is_not_is_told_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match='got "karpenta"; expected fixed, karpenter or autosc'):
        chart.rendered(chart.values_of("fixed"), {"mode": "karpenta"})


@pytest.mark.parametrize("field", ["budget_per_hour", "gpu_types"])
def test_what_cannot_be_guessed_is_asked_for(field: str) -> None:
    with pytest.raises(ValueError, match=f"config.{field}: .* needed"):
        chart.rendered(chart.values_of("fixed"), {"config": {field: None}})


RIGHTS = {
    *("ServiceAccount", "Role", "RoleBinding"),
    *("ClusterRole", "ClusterRoleBinding", "PriorityClass"),
}


@dataclass(frozen=True, slots=True)
class Account:
    """The service's, in a namespace with what a mode gives it."""

    mode: str
    namespace: str
    kubeconfig: Path
    config: dict[str, Any]
    """boa.yaml."""


@pytest.fixture(params=chart.MODES)
def account(kube: Cluster, request: pytest.FixtureRequest) -> Account:
    mode, namespace = str(request.param), kube.namespace("deploy")
    made = chart.objects(chart.rendered(chart.values_of(mode), SMALL, namespace=namespace))
    kube.apply(*(one for one in made if one["kind"] in RIGHTS))
    (settings,) = (one for one in made if one["kind"] == "ConfigMap")
    config = yaml.safe_load(settings["data"]["boa.yaml"])
    return Account(mode, namespace, kube.kubeconfig_for("boa", namespace), config)


@pytest.fixture
def deployed(account: Account) -> Iterator[tuple[str, Kube]]:
    """A mode, and the API as its account sees it."""
    api = connect(str(account.kubeconfig), namespace=account.namespace)
    yield account.mode, api
    api.close()


def rules(api: Kube, namespace: str) -> set[Rule]:
    """All that the account may there, as the API server itself lists it."""
    review = api.create(
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": namespace}}
    )
    assert not review["status"]["incomplete"]
    return {
        (group, resource, verb)
        for rule in review["status"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def needs(mode: str, *, everywhere: bool) -> set[Rule]:
    """What the service itself says that it needs, and what it can do without."""
    settings = KubernetesSettings(nodes=mode)
    return {
        (right.group, "/".join(filter(None, (right.resource, right.subresource))), right.verb)
        for right in (*needed(settings), *(right for right, _ in useful()))
        if right.everywhere == everywhere
    }


def test_an_account_may_what_its_mode_needs_and_nothing_else(deployed: tuple[str, Kube]) -> None:
    mode, api = deployed
    in_all = needs(mode, everywhere=True) | OF_EVERYBODY
    assert rules(api, api.namespace) == needs(mode, everywhere=False) | in_all
    assert rules(api, "kube-system") == in_all


def attempts(api: Kube, mode: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """What a service that was taken over might try."""
    own, roles = f"/api/v1/namespaces/{api.namespace}", f"/apis/{RBAC}/v1"
    yield "read its own token", lambda: api.get(f"{own}/secrets/boa-token")
    yield "list secrets", lambda: api.list(f"{own}/secrets")
    yield "list those of others", lambda: api.list("/api/v1/namespaces/kube-system/secrets")
    yield "see pods of others", lambda: api.list("/api/v1/pods")
    yield "run pods elsewhere", lambda: api.create("/api/v1/namespaces/default/pods", POD)
    yield "delete them", lambda: api.delete("/api/v1/namespaces/kube-system/pods/dns")
    yield "enter pods", lambda: api.create(f"{own}/pods/one/exec?command=sh&stdout=1", {})
    yield "attach to them", lambda: api.create(f"{own}/pods/one/attach?stdout=1", {})
    yield "reach their ports", lambda: api.create(f"{own}/pods/one/portforward", {})
    yield "bind them to nodes", lambda: api.create(f"{own}/pods/one/binding", {})
    yield "write their status", lambda: api.patch(f"{own}/pods/one", {}, subresource="status")
    yield "evict them", lambda: api.create(f"{own}/pods/one/eviction", {})
    yield "delete nodes", lambda: api.delete("/api/v1/nodes/one")
    yield "write nodes' status", lambda: api.patch("/api/v1/nodes/one", {}, subresource="status")
    yield "ask kubelets", lambda: api.get("/api/v1/nodes/one/proxy/pods")
    yield (
        "give itself rights",
        lambda: api.patch(f"{roles}/namespaces/{api.namespace}/roles/boa", {"rules": []}),
    )
    yield "bind itself", lambda: api.create(f"{roles}/clusterrolebindings", {})
    yield "be others", lambda: api.create(f"{own}/serviceaccounts/default/token", {})
    yield "change its settings", lambda: api.patch(f"{own}/configmaps/boa", {"data": None})
    yield (
        "change its deployment",
        lambda: api.patch(
            f"/apis/apps/v1/namespaces/{api.namespace}/deployments/boa", {"spec": {"replicas": 2}}
        ),
    )
    yield "drop its disk", lambda: api.delete(f"{own}/persistentvolumeclaims/boa-data")
    yield "see namespaces", lambda: api.list("/api/v1/namespaces")
    yield "raise priorities", lambda: api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {})
    yield "change claims", lambda: api.patch("/apis/karpenter.sh/v1/nodeclaims/one", {})
    if mode != "autoscaler":
        yield "cordon nodes", lambda: api.patch("/api/v1/nodes/one", {"spec": {}})
    if mode != "karpenter":
        yield "rent nodes", lambda: api.create("/apis/karpenter.sh/v1/nodeclaims", {})
        yield "give them back", lambda: api.delete("/apis/karpenter.sh/v1/nodeclaims/one")


def test_what_an_account_may_not_is_refused(deployed: tuple[str, Kube]) -> None:
    mode, api = deployed
    done = {what: outcome(attempt) for what, attempt in attempts(api, mode)}
    assert {what for what, said in done.items() if said != "refused"} == set(), done


def outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except Refused:
        return "refused"
    except KubeTrouble as trouble:
        return f"got there: {trouble}"
    return "done"


@contextlib.contextmanager
def nodes_of(kube: Cluster, mode: str) -> Iterator[Double | None]:
    """Those that are there, or who brings them."""
    if mode == "fixed":
        kube.add_node(gpus=1, labels={"boa-constrictor.dev/gpu": "T4"})
        yield None
    elif mode == "karpenter":
        with Karpenter(kube) as double:
            yield double
    else:
        with Autoscaler(kube, {"T4": Group(gpus=1)}, idle_s=3.0) as double:
            yield double


def test_its_rights_are_enough_to_rent_run_and_give_back(
    kube: Cluster, account: Account, tmp_path: Path
) -> None:
    ours = {**account.config["kubernetes"], "kubeconfig": str(account.kubeconfig)}
    del ours["pod_template"]  # claims, which the test of the pod has
    left_out = ("url", "host", "port", "data_dir")
    config = {key: one for key, one in account.config.items() if key not in left_out}
    service = OwnService(tmp_path / "service", {**config, "kubernetes": ours})
    with nodes_of(kube, account.mode) as double, service, service.client() as client:
        job = {"class": "demo", "run": ["python3", "-c", "print('hello')"], "launcher": "single"}
        ended = client.wait(client.submit(job)["id"])
        assert ended["state"] == "succeeded", ended
        until("nothing is rented", lambda: not client.nodes(), PATIENCE_S)
        until("no pod is left", lambda: not pods_in(kube, account.namespace), PATIENCE_S)
        if double is not None:
            assert len(double.lives()) == 1
    assert "forbidden" not in service.log.read_text(), "it has tried what it may not"


def pods_in(kube: Cluster, namespace: str) -> list[Any]:
    return list(kube.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"])
