"""The Helm chart, rendered; and plain manifests of it: `python tests/chart.py` writes them anew.

What renders is a small Go program, since a chart's templates are Go's (`kube.renderer`).
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kube.renderer import renderer

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "deploy" / "helm" / "boa-constrictor"
MANIFESTS = ROOT / "deploy" / "manifests"
MODES = ("fixed", "karpenter", "autoscaler")
PLAIN = {"token": {"existingSecret": "boa-token"}}
"""A manifest in git has no token: who applies it makes that Secret."""
OF_HELM = re.compile(
    r"^ +annotations:\n +helm\.sh/resource-policy:.*\n"
    r"|^ +(?:helm\.sh/chart|app\.kubernetes\.io/managed-by):.*\n",
    re.MULTILINE,
)
HEAD = """\
# Mode {mode}, in namespace boa: what the chart in deploy/helm makes of values-{mode}.yaml.
# Written by tests/chart.py. In a copy of yours change prices, images, sizes (docs/kubernetes.md).
"""


def rendered(
    *values: Path | Mapping[str, Any], release: str = "boa", namespace: str = "boa"
) -> str:
    """As `helm template` prints it. Raises ValueError with what the chart says is wrong."""
    with tempfile.TemporaryDirectory() as work:
        files = []
        for number, one in enumerate(values):
            file = one if isinstance(one, Path) else Path(work) / f"{number}.yaml"
            if not isinstance(one, Path):
                file.write_text(yaml.safe_dump(dict(one)))
            files.append(str(file))
        command = [str(renderer()), str(CHART), release, namespace, *files]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return done.stdout


def objects(text: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(text) if one is not None]


def path_of(one: Mapping[str, Any]) -> str:
    """Where the API has it."""
    version, kind, its = one["apiVersion"], str(one["kind"]).lower(), one["metadata"]
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    where = f"/namespaces/{its['namespace']}" if "namespace" in its else ""
    many = re.sub("y$", "ie", kind) + ("es" if kind.endswith("s") else "s")
    return f"{root}{where}/{many}/{its['name']}"


def values_of(mode: str) -> Path:
    """Example values of a mode."""
    return ROOT / "deploy" / "helm" / f"values-{mode}.yaml"


def manifest(mode: str) -> str:
    """Every object of a mode, for kubectl: without what is Helm's."""
    text = OF_HELM.sub("", rendered(values_of(mode), PLAIN))
    text = re.sub(r"^# Source: .*\n(?:---\n)?", "", text, flags=re.MULTILINE)
    return HEAD.format(mode=mode) + text


def main(arguments: Sequence[str] = ()) -> None:
    MANIFESTS.mkdir(parents=True, exist_ok=True)
    for mode in MODES:
        (MANIFESTS / f"{mode}.yaml").write_text(manifest(mode))


if __name__ == "__main__":
    main(sys.argv[1:])
