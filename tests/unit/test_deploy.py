"""What deploy/ has agrees with the package: settings are read, versions and users are the same."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from boa._version import __version__
from boa.formats.service import load_config

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "boa-constrictor"
MANIFESTS = sorted((DEPLOY / "manifests").glob("*.yaml"))
every_manifest = pytest.mark.parametrize("path", MANIFESTS, ids=[path.stem for path in MANIFESTS])


def objects(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one is not None]


def only(path: Path, kind: str) -> dict[str, Any]:
    (found,) = (one for one in objects(path) if one["kind"] == kind)
    return found


@every_manifest
def test_the_settings_of_a_manifest_are_read_and_are_its_modes(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "boa.yaml"
    file.write_text(only(path, "ConfigMap")["data"]["boa.yaml"])
    config = load_config(file, {}, lambda *_: None)
    assert config.engine == config.cloud == "kubernetes"
    assert config.kubernetes.nodes == path.stem
    assert str(config.data_dir) == "/var/lib/boa"


@every_manifest
def test_service_and_jobs_see_the_same_checkpoints_as_the_same_user(path: Path) -> None:
    service = only(path, "Deployment")["spec"]["template"]["spec"]
    settings = yaml.safe_load(only(path, "ConfigMap")["data"]["boa.yaml"])
    job = settings["kubernetes"]["pod_template"]["spec"]

    def shared(pod: dict[str, Any]) -> set[tuple[str, str]]:
        (claim,) = (one for one in pod["volumes"] if one["name"] == "checkpoints")
        assert claim["persistentVolumeClaim"] == {"claimName": "boa-checkpoints"}
        mounts = pod["containers"][0]["volumeMounts"]
        return {
            (one["mountPath"], one["subPath"]) for one in mounts if one["name"] == "checkpoints"
        }

    assert shared(service) == shared(job)
    assert service["securityContext"] == job["securityContext"]


@every_manifest
def test_no_manifest_has_a_secret_in_it(path: Path) -> None:
    assert [one for one in objects(path) if one["kind"] == "Secret"] == []


@every_manifest
def test_the_service_is_nobody_and_can_change_nothing_but_its_volumes(path: Path) -> None:
    pod = only(path, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert chart["appVersion"] == __version__
    assert values["jobs"]["image"].endswith(f":{__version__}")


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.job"])
def test_images_have_the_charts_user(name: str) -> None:
    user = yaml.safe_load((CHART / "values.yaml").read_text())["jobs"]["user"]
    assert re.findall(r"^USER (.*)$", (DEPLOY / name).read_text(), re.MULTILINE) == [
        f"{user}:{user}"
    ]
