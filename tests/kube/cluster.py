"""A cluster that is up: nodes come and go, the API server too."""

import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kube import kubeconfigs, network, owners, places, real_nodes
from kube.api import Api, ApiTrouble
from kube.control_plane import Addresses, ControlPlane
from kube.nodes import GPU, FakeNodes, Nodes, Shape, python
from kube.real_nodes import RealNodes
from kube.waiting import until

Taint = Mapping[str, str]


class Cluster:
    """Made by `Cluster.up`; safe to use from several threads."""

    def __init__(self, folder: Path, plane: ControlPlane, nodes: Nodes) -> None:
        self.folder, self._plane, self._nodes = folder, plane, nodes
        self._lock = threading.Lock()
        self._named = 0
        self.nodes: list[str] = []
        """Those that were added, and neither killed nor removed."""
        self.ended: dict[str, float] = {}
        """When machines were gone, in the wall's time."""
        self._namespaces: list[str] = []

    @classmethod
    @contextlib.contextmanager
    def up(cls, folder: Path | None = None, *, real: bool = False) -> "Iterator[Cluster]":
        """A control plane without nodes, and its end.

        Its state is in memory; `folder`, if any, gets its logs in the end. Real nodes need root.

        Raises:
            NoKubernetes: the binaries are not there, or what real nodes need.
        """
        binaries = places.binaries()
        if real:
            real_nodes.check()
        owners.sweep()
        if os.geteuid() == 0:
            network.sweep()
        state = owners.own_folder()
        with contextlib.ExitStack() as after:
            after.callback(shutil.rmtree, state, ignore_errors=True)
            (state / "log").mkdir()
            if folder is not None:
                after.callback(_keep_logs, state / "log", folder)
            net = after.enter_context(network.own_network()) if real else None
            keeper = python(state, "keeper", str(Path(__file__).with_name("keeper.py")))
            after.callback(keeper.close)
            plane = ControlPlane(state, binaries, keeper, _addresses(net))
            after.callback(plane.close)
            plane.start()
            nodes: Nodes = (
                RealNodes(state, plane, keeper, net) if net else FakeNodes(state, plane, keeper)
            )
            after.callback(nodes.close)
            yield cls(state, plane, nodes)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self._plane.kubeconfig

    @property
    def server(self) -> str:
        return self._plane.server

    @property
    def api(self) -> Api:
        """As administrator."""
        return self._plane.api

    def namespace(self, prefix: str = "test") -> str:
        """A new one, in which pods can be created."""
        made = self.api.create(
            "/api/v1/namespaces", {"metadata": {"generateName": f"{prefix.lower()}-"}}
        )
        name = str(made["metadata"]["name"])
        self._namespaces.append(name)
        self.api.until(
            f"a service account in {name}",
            f"/api/v1/namespaces/{name}/serviceaccounts/default",
            lambda found: found and found.get("secrets"),
        )
        return name

    def token_of(self, account: str, namespace: str) -> str:
        """Of a service account, for a day; the account is made if it is not there."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        if self.api.found(f"{path}/{account}") is None:
            self.api.create(path, {"metadata": {"name": account}})
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 86400},
        }
        return str(self.api.create(f"{path}/{account}/token", body)["status"]["token"])

    def kubeconfig_for(self, account: str, namespace: str) -> Path:
        """What the service account may, and no more."""
        token = self.token_of(account, namespace)
        path = self.folder / f"{namespace}-{account}.conf"
        authority = self._plane.authority.certificate
        return kubeconfigs.by_token(path, self.server, authority, token, namespace)

    def add_node(
        self,
        name: str = "",
        gpus: int = 4,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Taint] = (),
        **more: Any,
    ) -> str:
        """A machine that joins, once it is ready and has its GPUs; its name."""
        return self.add_nodes(1, gpus, labels, taints, names=[name] if name else None, **more)[0]

    def add_nodes(
        self,
        count: int,
        gpus: int = 4,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Taint] = (),
        names: Sequence[str] | None = None,
        **more: Any,
    ) -> list[str]:
        """The same for several at once."""
        wanted = 0 if more.get("gpus_after_s") else gpus
        names = list(names or [self.new_name() for _ in range(count)])
        for name in names:
            shape = Shape(name=name, gpus=gpus, labels=labels or {}, taints=taints, **more)
            self.begin_node(shape)
        for name in names:
            self.api.until(
                f"{name} is ready with {gpus} GPUs",
                f"/api/v1/nodes/{name}",
                lambda node: node and usable(node) and gpus_of(node) == wanted,
            )
        return names

    def begin_node(self, shape: Shape) -> None:
        """A machine that is switched on: nobody waits for it to join."""
        self._nodes.start(shape)
        with self._lock:
            self.nodes.append(shape.name)

    @contextlib.contextmanager
    def image(self, archive: Path) -> Iterator[None]:
        """One of `kube.image`, for every node, and for those that come meanwhile."""
        self._nodes.import_image(archive)
        try:
            yield
        finally:
            self._nodes.import_no_more(archive)

    def kill_node(self, name: str) -> None:
        """The machine is gone at once, and nobody is told."""
        self._nodes.kill(name)
        with self._lock, contextlib.suppress(ValueError):
            self.ended.setdefault(name, time.time())
            self.nodes.remove(name)

    def remove_node(self, name: str) -> None:
        """As an autoscaler does: the machine is gone, then its Node."""
        self.kill_node(name)
        self.api.delete(f"/api/v1/nodes/{name}")

    @contextlib.contextmanager
    def without_api(self) -> Iterator[None]:
        """It is killed, with the manager and the scheduler, which cannot be without it; and is
        back in the end."""
        self._plane.kill_api()
        try:
            yield
        finally:
            self._plane.start_api()

    def kubectl(self, *args: str, stdin: str | None = None, kubeconfig: Path | None = None) -> str:
        """What it prints.

        Raises:
            RuntimeError: it fails, with what it says.
        """
        done = subprocess.run(
            [str(self._plane.binaries / "kubectl"), *args],
            env={"KUBECONFIG": str(kubeconfig or self.kubeconfig), "HOME": str(self.folder)},
            input=stdin,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, *documents: Mapping[str, Any], kubeconfig: Path | None = None) -> None:
        """Manifests, as `kubectl apply` takes them."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(listed), kubeconfig=kubeconfig)

    def shared_claim(self, name: str, namespace: str, path: Path) -> None:
        """A bound ReadWriteMany claim on a folder of this machine: every node has it."""
        size, volume = {"storage": "1Gi"}, f"{namespace}-{name}"
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        host = {"path": str(path), "type": "DirectoryOrCreate"}
        kept = {
            "persistentVolumeReclaimPolicy": "Retain",
            "capacity": size,
            "hostPath": host,
            "claimRef": {"namespace": namespace, "name": name},
        }
        self.api.create(
            "/api/v1/persistentvolumes", {"metadata": {"name": volume}, "spec": {**common, **kept}}
        )
        wanted = {**common, "volumeName": volume, "resources": {"requests": size}}
        claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        self.api.create(claims, {"metadata": {"name": name}, "spec": wanted})
        self.api.until(
            f"claim {name} is bound",
            f"{claims}/{name}",
            lambda claim: claim and claim["status"].get("phase") == "Bound",
        )

    @contextlib.contextmanager
    def clean_after(self) -> Iterator[None]:
        """Nodes and namespaces that come meanwhile are gone in the end, and nodes that died."""
        nodes, spaces = _names(self.api.get("/api/v1/nodes")), set(self._namespaces)
        try:
            yield
        finally:
            for name in _names(self.api.get("/api/v1/nodes")) - nodes.intersection(self.nodes):
                self.remove_node(name)
            for name in [one for one in self._namespaces if one not in spaces]:
                self.empty(name)
                self.api.delete(f"/api/v1/namespaces/{name}")
                self._namespaces.remove(name)

    def empty(self, namespace: str) -> None:
        """No pod is left there, whatever holds it."""
        pods = f"/api/v1/namespaces/{namespace}/pods"
        for pod in self.api.get(pods)["items"]:
            path = f"{pods}/{pod['metadata']['name']}"
            if pod["metadata"].get("finalizers"):
                with contextlib.suppress(ApiTrouble):  # gone meanwhile
                    self.api.patch(path, {"metadata": {"finalizers": None}})
            self.api.delete(path, grace_s=0)

    def until_not_ready(self, name: str) -> None:
        until(f"{name} is not ready", lambda: not ready(self.api.get(f"/api/v1/nodes/{name}")))

    def new_name(self) -> str:
        """Of a node that is not there yet."""
        with self._lock:
            self._named += 1
            return f"node-{self._named}"


def usable(node: Mapping[str, Any]) -> bool:
    """Ready, and the scheduler has been told so."""
    taints = {one["key"] for one in node["spec"].get("taints", [])}
    return ready(node) and "node.kubernetes.io/not-ready" not in taints


def ready(node: Mapping[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def gpus_of(node: Mapping[str, Any]) -> int:
    return int(node["status"].get("allocatable", {}).get(GPU, 0))


def _names(listed: Mapping[str, Any]) -> set[str]:
    return {str(one["metadata"]["name"]) for one in listed["items"]}


def _addresses(net: network.Network | None) -> Addresses:
    if net is None:
        return Addresses()
    return Addresses(host=net.api, port=443, services=net.services, advertised=net.api)


def _keep_logs(logs: Path, folder: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.copytree(logs, folder / "kube-log", dirs_exist_ok=True)
