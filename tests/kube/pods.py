"""Pods for the tests of the cluster itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from kube.api import Api
from kube.nodes import GPU

IMAGE = "boa.test/python:1"
"""Debian's Python and busybox: real nodes have it, fake ones do not ask."""


def pod(
    name: str,
    command: Sequence[str],
    gpus: int = 0,
    node: str = "",
    container: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """One container, never started again."""
    main: dict[str, Any] = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "resources": {"limits": {GPU: str(gpus)} if gpus else {}},
    }
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    whole = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 5,
        "containers": [{**main, **(container or {})}],
        **spec,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


def python(name: str, code: str, **rest: Any) -> dict[str, Any]:
    """One that runs a few lines of Python."""
    return pod(name, ["python3", "-uc", code], **rest)


class Pods:
    """Of one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api, self.path = api, f"/api/v1/namespaces/{namespace}/pods"

    def create(self, body: Mapping[str, Any]) -> str:
        self.api.create(self.path, body)
        return str(body["metadata"]["name"])

    def get(self, name: str) -> Any:
        return self.api.found(f"{self.path}/{name}")

    def delete(self, name: str, grace_s: int | None = None) -> None:
        self.api.delete(f"{self.path}/{name}", grace_s)

    def until_phase(self, name: str, *phases: str) -> Any:
        return self.api.until(
            f"{name} is {' or '.join(phases)}",
            f"{self.path}/{name}",
            lambda found: found and found["status"].get("phase") in phases,
        )

    def until_ended(self, name: str) -> Any:
        """How its container ended."""
        found = self.api.until(f"{name} has ended", f"{self.path}/{name}", terminated)
        return terminated(found)

    def until_gone(self, name: str) -> None:
        self.api.until(f"{name} is gone", f"{self.path}/{name}", lambda found: found is None)

    def log(self, name: str, **query: str) -> str:
        return self.api.text(f"{self.path}/{name}/log", **query)


def terminated(found: Any) -> Any:
    statuses = found["status"].get("containerStatuses") if found else None
    return statuses and statuses[0]["state"].get("terminated")
