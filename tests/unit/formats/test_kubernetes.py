"""The section `kubernetes` of `boa.yaml`: what arrives of it, and what is refused with a reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from boa.errors import InputError
from boa.formats.service import load_config
from boa.model.kubernetes_settings import (
    AutoscalerSettings,
    KarpenterMachine,
    KarpenterSettings,
    KubernetesSettings,
    NodeClass,
)
from boa.model.service import ServiceConfig
from documents import CONFIG


def load(folder: Path, section: Any, **more: Any) -> ServiceConfig:
    document = {
        "engine": "kubernetes",
        "gpu_types": {"T4": {"gpus_per_node": 4}},
        "data_dir": "state",
        "kubernetes": section,
        **more,
    }
    path = folder / "boa.yaml"
    path.write_text(json.dumps(document))
    return load_config(path, {}, lambda model, types: None)


def test_every_field_arrives(tmp_path: Path) -> None:
    types = {"T4": None, "A100": None}
    config = load(tmp_path, CONFIG["kubernetes"], gpu_types=types)
    assert (config.engine, config.cloud) == ("kubernetes", "kubernetes")
    assert config.kubernetes == KubernetesSettings(
        nodes="karpenter",
        kubeconfig=str(tmp_path / "cluster.yaml"),
        context="lab",
        namespace="training",
        owner="vision",
        node_label="example.com/gpu",
        image="registry.example.com/train:3",
        pod_template={"spec": {"tolerations": [{"key": "gpus", "operator": "Exists"}]}},
        placed_s=120.0,
        ready_s=600.0,
        karpenter=KarpenterSettings(
            node_class=NodeClass(group="karpenter.azure.com", kind="AKSNodeClass", name="gpus"),
            machines={
                "T4": KarpenterMachine(instance_types=("Standard_NC64as_T4_v3",), capacity="spot"),
                "A100": KarpenterMachine(
                    requirements=(
                        {
                            "key": "karpenter.azure.com/sku-gpu-name",
                            "operator": "In",
                            "values": ("A100",),
                        },
                        {"key": "karpenter.azure.com/sku-gpu-count", "operator": "Exists"},
                    )
                ),
            },
            labels={"team": "vision"},
            taints=({"key": "gpus", "value": "boa", "effect": "NoSchedule"},),
        ),
        autoscaler=AutoscalerSettings(
            priority_class="low", image="registry.example.com/pause:3", evict_others=True
        ),
    )


@pytest.mark.parametrize("section", [None, {}, {"kubeconfig": "", "context": "", "namespace": ""}])
def test_nothing_need_be_said(tmp_path: Path, section: Any) -> None:
    assert load(tmp_path, section).kubernetes == KubernetesSettings()


def test_a_template_may_be_a_file_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("kind: Pod\nspec: {runtimeClassName: nvidia}\n")
    template = load(tmp_path, {"pod_template": "pod.yaml"}).kubernetes.pod_template
    assert template == {"kind": "Pod", "spec": {"runtimeClassName": "nvidia"}}


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"kind": "Deployment"}, "kind"),
        ({"containers": []}, "containers"),
        ({"spec": []}, "spec"),
        ({"metadata": "boa"}, "metadata"),
        ({"spec": {"nodeName": "n1"}}, "spec.nodeName"),
        ({"spec": {"restartPolicy": "Always"}}, "spec.restartPolicy"),
        ({"spec": {"terminationGracePeriodSeconds": 5}}, "spec.terminationGracePeriodSeconds"),
        ({"spec": {"containers": {"name": "job"}}}, "spec.containers"),
    ],
)
def test_a_template_that_is_none_is_named_with_its_field(
    tmp_path: Path, template: Any, field: str
) -> None:
    with pytest.raises(InputError, match=rf"boa.yaml: kubernetes.pod_template.{field}: got"):
        load(tmp_path, {"pod_template": template})
    (tmp_path / "pod.json").write_text(json.dumps(template))
    with pytest.raises(InputError, match=rf"pod.json: {field}: got"):
        load(tmp_path, {"pod_template": "pod.json"})


@pytest.mark.parametrize(
    "template",
    [{"metadata": None, "spec": None}, {"spec": {"containers": None, "restartPolicy": None}}],
)
def test_a_template_may_leave_its_fields_empty(tmp_path: Path, template: Any) -> None:
    assert load(tmp_path, {"pod_template": template}).kubernetes.pod_template == template


def test_a_template_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pod.yaml: no such file"):
        load(tmp_path, {"pod_template": "pod.yaml"})


@pytest.mark.parametrize(
    ("machines", "said"),
    [
        ({}, r"machines: got null; .*T4 has none"),
        ({"H100": {"instance_types": ["p5"]}}, r"machines.H100: .*one of the gpu_types: T4"),
        ({"T4": {"capacity": "spot"}}, r"machines.T4: .*instance_types, or requirements"),
    ],
)
def test_karpenter_is_told_what_every_type_is(
    tmp_path: Path, machines: dict[str, Any], said: str
) -> None:
    karpenter = {"machines": machines} if machines else {}
    with pytest.raises(InputError, match=said):
        load(tmp_path, {"nodes": "karpenter", "karpenter": karpenter})


def test_a_type_is_called_what_a_label_may_say(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gpu_types.RTX 2080: .*a label's value"):
        load(tmp_path, {}, gpu_types={"RTX 2080": None})


@pytest.mark.parametrize(
    ("engine", "cloud", "said"),
    [
        ("kubernetes", "aws", "with engine kubernetes: kubernetes; aws goes with engine ray"),
        ("local", "kubernetes", "with engine local: local; kubernetes goes with engine kubernetes"),
        ("ray", "kubernetes", "with engine ray: ray or aws; kubernetes goes with engine kube"),
    ],
)
def test_engine_and_cloud_go_together(tmp_path: Path, engine: str, cloud: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(tmp_path, {}, engine=engine, cloud=cloud)
