"""The user's pod template, read and checked: what of it goes into pods of ours. Pure."""

import posixpath
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from boa.engines.kubernetes.in_pod import BASE
from boa.errors import InputError
from boa.model.kubernetes_names import DOMAIN, GPUS

FIELD = "kubernetes.pod_template"
CONTAINER = "job"
"""Our container; of a template's it is the one of this name, or the only one."""
VOLUMES = "boa-"
"""Beginning of names of volumes that are ours."""
SHM = "/dev/shm"
_OURS = {
    "nodeName": "nothing: a pod goes where it was planned",
    "restartPolicy": "nothing: a run that ended is started again by the service",
    "automountServiceAccountToken": "false, or nothing: jobs have no business with the cluster",
    "terminationGracePeriodSeconds": "nothing: the grace time is the job's, grace_s",
}
_LISTS = ("tolerations", "volumes", "initContainers", "imagePullSecrets", "hostAliases")
_MAPPINGS = ("affinity", "nodeSelector", "securityContext", "dnsConfig")
_OURS_OF_CONTAINER = {
    "command": "nothing: pods run the supervisor, and this the job's command",
    "args": "nothing: pods run the supervisor, and this the job's command",
    "terminationMessagePath": "nothing: how a run ended is read from there",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The pod's, without its containers."""
    container: Mapping[str, Any] = field(default_factory=dict)
    """Ours, as far as the user says."""
    others: Sequence[Mapping[str, Any]] = ()

    @property
    def image(self) -> str:
        return str(self.container.get("image") or "")

    def mounts(self) -> list[str]:
        """Paths that volumes are mounted at."""
        return [absolute(one["mountPath"]) for one in self.container.get("volumeMounts", ())]

    def keeps(self, path: str) -> bool:
        """Whether what is written there outlives the pod."""
        volumes = {one["name"]: one for one in self.spec.get("volumes", ())}
        return any(
            f"{path}/".startswith(f"{absolute(one['mountPath']).rstrip('/')}/")
            and "emptyDir" not in volumes.get(one["name"], {})
            for one in self.container.get("volumeMounts", ())
        )


def absolute(path: str) -> str:
    """As a kubelet takes it: by one slash, and without dots."""
    return posixpath.normpath(f"/{path.lstrip('/')}")


def read(template: Mapping[str, Any]) -> Template:
    """A Pod, or its metadata and spec alone. Raises InputError of what would be ours to say."""
    template = deepcopy(dict(template))
    kind = template.get("kind", "Pod")
    if kind != "Pod":
        raise InputError(f"{FIELD}.kind", kind, "Pod")
    metadata, spec = _mapping(template, "metadata", FIELD), _mapping(template, "spec", FIELD)
    for name, expected in _OURS.items():
        if spec.get(name) not in (None, False):
            raise InputError(f"{FIELD}.spec.{name}", spec[name], expected)
    for name in _LISTS:
        _list(spec, name, f"{FIELD}.spec")
    for name in _MAPPINGS:
        _mapping(spec, name, f"{FIELD}.spec")
    container, others = _containers(spec)
    _check_container(container)
    _check_volumes(spec, container)
    labels = _mapping(metadata, "labels", f"{FIELD}.metadata")
    annotations = _mapping(metadata, "annotations", f"{FIELD}.metadata")
    for kind, names in (("labels", labels), ("annotations", annotations)):
        for name in names:
            if str(name).startswith(f"{DOMAIN}/"):
                raise InputError(f"{FIELD}.metadata.{kind}", name, f"none of {DOMAIN}: ours")
    return Template(
        labels=labels, annotations=annotations, spec=spec, container=container, others=others
    )


def _containers(spec: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    field = f"{FIELD}.spec.containers"
    found = _list(spec, "containers", f"{FIELD}.spec")
    if any(not isinstance(one, dict) for one in found):
        raise InputError(field, found, "a list of containers")
    ours = [one for one in found if one.get("name") == CONTAINER]
    if not ours and len(found) > 1:
        names = [one.get("name") for one in found]
        raise InputError(field, names, f"one called {CONTAINER}, which runs the job")
    if not ours:
        ours = found
    spec.pop("containers", None)
    own = {key: one for key, one in ours[0].items() if one is not None} if ours else {}
    return own, [one for one in found if one not in ours]


def _check_container(container: dict[str, Any]) -> None:
    field = f"{FIELD}.spec.containers[{container.get('name', CONTAINER)}]"
    for name in ("env", "envFrom", "ports", "volumeMounts"):
        _list(container, name, field)
    for name, expected in _OURS_OF_CONTAINER.items():
        if container.get(name) is not None:
            raise InputError(f"{field}.{name}", container[name], expected)
    resources = _mapping(container, "resources", field)
    for kind in ("limits", "requests"):
        given = _mapping(resources, kind, f"{field}.resources")
        if GPUS in given:
            expected = "no GPUs: how many a pod has is decided"
            raise InputError(f"{field}.resources.{kind}.{GPUS}", given[GPUS], expected)
    container["resources"] = resources


def _check_volumes(spec: dict[str, Any], container: dict[str, Any]) -> None:
    for volume in _list(spec, "volumes", f"{FIELD}.spec"):
        name = _name(volume)
        if not name or name.startswith(VOLUMES):
            expected = f"a volume with a name, which does not begin with {VOLUMES}"
            raise InputError(f"{FIELD}.spec.volumes", volume, expected)
    for mount in _list(container, "volumeMounts", f"{FIELD}.spec.containers"):
        path = mount.get("mountPath") if isinstance(mount, dict) else None
        below = isinstance(path, str) and f"{absolute(path)}/".startswith(f"{BASE}/")
        if not _name(mount) or not isinstance(path, str) or not path or below:
            expected = f"a volume's name and a mountPath that is not below {BASE}"
            where = f"{FIELD}.spec.containers[{container.get('name', CONTAINER)}].volumeMounts"
            raise InputError(where, mount, expected)


def _name(of: object) -> str:
    found = of.get("name") if isinstance(of, dict) else None
    return found if isinstance(found, str) else ""


def _mapping(of: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    """Without what is left empty, as in `limits:`."""
    found = of.get(name)
    if found is not None and not isinstance(found, dict):
        raise InputError(f"{where}.{name}", found, "a mapping")
    return {key: one for key, one in (found or {}).items() if one is not None}


def _list(of: Mapping[str, Any], name: str, where: str) -> list[Any]:
    found = of.get(name)
    if found is not None and not isinstance(found, list):
        raise InputError(f"{where}.{name}", found, "a list")
    return list(found or ())
