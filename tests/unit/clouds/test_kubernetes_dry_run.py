"""A dry run in a cluster that is a fake: what is told, and in which order."""

import time
from dataclasses import replace
from typing import Any, cast

import pytest

from boa.clouds.kubernetes.dry_run import Plan, dry_run
from boa.clouds.kubernetes.lease import Holder, taken
from boa.kubelink import Kube, KubeTrouble, NotFound
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.workload import GpuType

T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
PLAN = Plan(
    settings=KubernetesSettings(kubeconfig="/etc/kube.conf"),
    gpu_types={"T4": T4},
    max_nodes={},
    max_spend=None,
    service="boa-1",
    holder=Holder("here", "1", "aaaa"),
    known=[],
    pod={},
    image="train:3",
    url="http://boa.example.com:8420",
)


class FakeKube:
    """A cluster without nodes, where everything is allowed."""

    namespace, server = "lab", "https://kube.test:6443"

    def __init__(self, lease: dict[str, Any] | None = None) -> None:
        self.lease = lease

    def get(self, path: str) -> dict[str, Any]:
        if path == "/version":
            return {"gitVersion": "v1.31.0"}
        if self.lease is None:
            raise NotFound("none")
        return self.lease

    def list(self, path: str, **_: str) -> list[Any]:
        return []

    def create(self, path: str, body: Any, *, dry_run: bool) -> dict[str, Any]:
        assert dry_run, "nothing is changed"
        return {}

    def may(self, *_: Any, **__: Any) -> bool:
        return True


def steps(kube: FakeKube, **plan: Any) -> list[tuple[str, str]]:
    found = dry_run(cast(Kube, kube), replace(PLAN, **plan), time.time())
    return [(step.what, step.text) for step in found]


def test_what_is_wrong_by_itself_is_told_before_who_has_the_lease() -> None:
    held = taken({"spec": {}}, Holder("there", "2", "bbbb"), time.time())
    wrong = [what for what, _ in steps(FakeKube(held)) if what in ("denied", "missing", "taken")]
    assert wrong == ["missing", "taken"]  # no node, and then the lease


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_url_that_is_each_pod_itself_is_warned_of(host: str) -> None:
    def warned(url: str) -> list[str]:
        return [text for what, text in steps(FakeKube(), url=url) if what == "warning"]

    assert warned("http://boa.example.com:8420") == []
    (said,) = warned(f"http://{host}:8420")
    assert "no job could report there: set url" in said


def test_what_a_template_needs_beside_it_is_said_not_to_be_looked_at() -> None:
    template = {
        "spec": {
            "imagePullSecrets": [{"name": "registry"}],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}},
                {"name": "keys", "secret": {"secretName": "s3"}},
                {"name": "settings", "configMap": {"name": "tuning"}},
            ],
            "containers": [{"name": "job", "envFrom": [{"secretRef": {"name": "wandb"}}]}],
            "tolerations": None,
        }
    }
    settings = replace(PLAN.settings, pod_template=template)
    (said,) = [text for what, text in steps(FakeKube(), settings=settings) if what == "warning"]
    for name in (
        "the claim datasets",
        "the secret registry",
        "the secret s3",
        "the secret wandb",
        "the config map tuning",
    ):
        assert name in said
    assert "not looked at" in said


def test_an_image_that_nobody_names_is_missing() -> None:
    told = [text for what, text in steps(FakeKube(), image="") if what == "missing"]
    assert any("an image for jobs that name none" in text for text in told)
    assert not any("image" in text for _, text in steps(FakeKube()))


def test_an_account_that_is_not_accepted_is_named_with_its_server() -> None:
    class Closed(FakeKube):
        def get(self, path: str) -> dict[str, Any]:
            raise KubeTrouble("Unauthorized", status=401)

    ((what, text),) = steps(Closed())
    assert what == "missing"
    assert "https://kube.test:6443 does not accept the account of /etc/kube.conf" in text
