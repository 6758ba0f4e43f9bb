"""Settings that make no sense on Kubernetes are refused before anything is begun."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.clock import VirtualClock
from boa.errors import InputError
from boa.model.service import RunAs
from boa.server import engine_and_cloud
from live import config


@pytest.mark.parametrize(
    ("field", "value", "instead"),
    [
        ("pass_env", ("S3_*",), "env of a container in kubernetes.pod_template"),
        ("run_as", RunAs(default="nobody"), "spec.securityContext of kubernetes.pod_template"),
    ],
)
def test_what_a_pod_has_of_its_own_is_said_in_its_template(
    tmp_path: Path, field: str, value: Any, instead: str
) -> None:
    said = replace(config(tmp_path), engine="kubernetes", cloud="kubernetes", **{field: value})
    with pytest.raises(InputError, match=f"^{field}: .*{instead}"):
        engine_and_cloud.check(said)


def test_a_service_inside_a_cluster_has_to_be_reached_by_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = replace(config(tmp_path), engine="kubernetes", cloud="kubernetes", host="127.0.0.1")
    monkeypatch.delenv(engine_and_cloud.IN_CLUSTER, raising=False)
    engine_and_cloud.check(said)
    monkeypatch.setenv(engine_and_cloud.IN_CLUSTER, "10.0.0.1")
    with pytest.raises(InputError, match=r"^url: .*http://SERVICE.NAMESPACE.svc"):
        engine_and_cloud.check(said)
    engine_and_cloud.check(replace(said, url="http://boa.lab.svc:8420"))
    engine_and_cloud.check(replace(said, host="0.0.0.0"))


@pytest.mark.parametrize("nodes", ["karpenter", "autoscaler"])
def test_time_is_not_compressed_where_nodes_are_rented(tmp_path: Path, nodes: str) -> None:
    said = replace(config(tmp_path), engine="kubernetes", cloud="kubernetes", speed=20.0)
    engine_and_cloud.check(said)
    rented = replace(said, kubernetes=replace(said.kubernetes, nodes=nodes))
    with pytest.raises(InputError, match=f"^speed: .*1 with kubernetes.nodes {nodes}: its dollars"):
        engine_and_cloud.check(rented)
    engine_and_cloud.check(replace(rented, speed=1.0))


@pytest.mark.parametrize(
    ("container", "field"),
    [
        ({"command": ["sh"]}, "command"),
        ({"resources": {"limits": {"nvidia.com/gpu": 1}}}, "resources.limits"),
        ({"volumeMounts": [{"name": "x", "mountPath": "/boa/x"}]}, "volumeMounts"),
    ],
)
def test_a_template_that_the_engine_would_not_take_is_refused_before_anything_is_begun(
    tmp_path: Path, container: Any, field: str
) -> None:
    said = replace(config(tmp_path), engine="kubernetes", cloud="kubernetes")
    template = {"spec": {"containers": [{"name": "job", **container}]}}
    wrong = replace(said, kubernetes=replace(said.kubernetes, pod_template=template))
    with pytest.raises(InputError, match=rf"^kubernetes.pod_template.spec.containers.*{field}"):
        engine_and_cloud.check(wrong)


def test_no_job_of_a_cluster_is_ever_run_on_this_machine(tmp_path: Path) -> None:
    said = replace(config(tmp_path), engine="kubernetes", cloud="kubernetes")
    with pytest.raises(AssertionError):
        engine_and_cloud.engine(said, "boa")
    with pytest.raises(AssertionError):
        engine_and_cloud.cloud(said, VirtualClock(), "boa")
