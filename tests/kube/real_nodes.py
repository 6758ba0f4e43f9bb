"""Real nodes: a kubelet, a containerd and runc each. They need root."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from kube import cgroups, kubeconfigs, node_init
from kube.api import ApiTrouble
from kube.control_plane import ControlPlane
from kube.lines import Child
from kube.network import Network
from kube.nodes import GPU, Shape
from kube.places import NoKubernetes
from kube.waiting import until
from ports import held_port

_PROGRAMS = ("containerd", "ctr", "ip", "nsenter", "runc", "unshare")
_PLUGINS = Path("/usr/lib/cni")
_NOT_NEEDED = (
    "io.containerd.internal.v1.opt",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.tracing.processor.v1.otlp",
)


def check() -> None:
    """Raises NoKubernetes: what real nodes need is not here."""
    if os.geteuid() != 0:
        raise NoKubernetes("real nodes need root")
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing or not (_PLUGINS / "bridge").exists():
        raise NoKubernetes(
            f"no {', '.join(missing) or 'CNI plugins'} here; `make kubernetes` installs them"
        )


class RealNodes:
    """Each in a folder of its own, and in name spaces of its own (`node_init`)."""

    def __init__(self, folder: Path, plane: ControlPlane, keeper: Child, network: Network) -> None:
        self._folder, self._plane = folder / "nodes", plane
        self._keeper, self._network = keeper, network
        self._images = [plane.binaries / "image.tar"]
        self._held = contextlib.ExitStack()
        self._pids: dict[str, int] = {}
        self._lock = threading.Lock()
        self._gpus: list[threading.Thread] = []

    def start(self, shape: Shape) -> None:
        folder = self._folder / shape.name
        for name in ("cni", "containerd", "kubelet"):
            (folder / name).mkdir(parents=True)
        with self._lock:
            port = self._held.enter_context(held_port())
            self._write_settings(folder, port)
            argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
            told = {
                "folder": str(folder),
                "containerd": str(folder / "containerd.toml"),
                "images": [str(one) for one in self._images],
                "kubelet": self._kubelet(folder, shape),
            }
            init = [sys.executable, node_init.__file__, json.dumps(told)]
            log = str(self._folder.parent / "log" / f"{shape.name}.log")
            self._pids[shape.name] = self._keeper.ask(
                do="start", name=shape.name, argv=[*argv, *init], env={}, log=log
            )
        giver = threading.Thread(target=self._give_gpus, args=[shape], daemon=True)
        self._gpus = [one for one in self._gpus if one.is_alive()] + [giver]
        giver.start()

    def kill(self, name: str) -> None:
        """Its first process, and with it the kernel ends all others there."""
        with self._lock:
            if self._pids.pop(name, None) is not None:
                self._keeper.ask(do="end", name=name, term_s=0)
                cgroups.remove(self._folder / name)
                shutil.rmtree(self._folder / name, ignore_errors=True)

    def import_image(self, archive: Path) -> None:
        with self._lock:
            self._images.append(archive)
            for name in self._pids:
                until(f"images of {name}", (self._folder / name / "imported").exists)
            take = node_init.importing(str(archive))
            for one in [self._enter(name, take) for name in self._pids]:
                _, trouble = one.communicate()
                if one.returncode:
                    raise RuntimeError(f"{' '.join(take)}: {trouble}")

    def import_no_more(self, archive: Path) -> None:
        with self._lock:
            self._images.remove(archive)

    def close(self) -> None:
        for name in list(self._pids):
            self.kill(name)
        for giver in self._gpus:
            giver.join()
        self._held.close()

    def _enter(self, name: str, argv: Sequence[str]) -> subprocess.Popen[str]:
        """Begin it where the node's mounts are: `unshare` is outside, its child inside."""
        outside = self._pids[name]
        inside = Path(f"/proc/{outside}/task/{outside}/children").read_text().split()[0]
        return subprocess.Popen(
            ["nsenter", "-t", inside, "-m", *argv],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _give_gpus(self, shape: Shape) -> None:
        """An extended resource, written onto the node's status: the kubelet leaves it there."""
        much = {GPU: str(shape.gpus)}
        body = {"status": {"capacity": much, "allocatable": much}}

        def patched() -> bool:
            if shape.name not in self._pids:
                return True
            with contextlib.suppress(ApiTrouble, httpx.TransportError):  # not registered yet
                self._plane.api.patch(f"/api/v1/nodes/{shape.name}/status", body)
                return True
            return False

        with contextlib.suppress(TimeoutError):  # who waits for the node says so
            until(f"{shape.name} has its GPUs", patched)

    def _write_settings(self, folder: Path, port: int) -> None:
        (folder / "containerd.toml").write_text(_containerd(folder))
        network = {
            "cniVersion": "0.4.0",
            "name": "boa",
            "type": "bridge",
            "bridge": self._network.bridge,
            "isGateway": True,
            "ipam": {
                "type": "host-local",
                "dataDir": str(folder / "ipam"),
                "ranges": [[self._network.pods_of_next_node()]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        (folder / "cni" / "10-boa.conf").write_text(json.dumps(network))
        (folder / "kubelet.yaml").write_text(json.dumps(self._kubelet_settings(port)))

    def _kubelet_settings(self, port: int) -> dict[str, Any]:
        authority = str(self._plane.authority.certificate)
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": authority},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "address": self._network.node,
            "port": port,
            "healthzPort": 0,
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "oomScoreAdj": 0,
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "evictionHard": {"memory.available": "50Mi"},
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "2s",
            "nodeLeaseDurationSeconds": 10,
            "syncFrequency": "5s",
            "fileCheckFrequency": "60s",
            "runtimeRequestTimeout": "60s",
            "kubeAPIQPS": 50,
            "kubeAPIBurst": 100,
        }

    def _kubelet(self, folder: Path, shape: Shape) -> list[str]:
        name, authority = shape.name, self._plane.authority
        pair = authority.client(f"system:node:{name}", ["system:nodes"])
        conf = kubeconfigs.by_certificate(
            folder / "kubelet.conf", self._plane.server, authority.certificate, pair
        )
        argv = [
            str(self._plane.binaries / "kubelet"),
            f"--config={folder / 'kubelet.yaml'}",
            f"--kubeconfig={conf}",
            f"--root-dir={folder / 'kubelet'}",
            f"--cert-dir={folder / 'pki'}",
            f"--hostname-override={name}",
            f"--node-ip={self._network.node}",
            "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{node_init.SOCKET}",
            f"--provider-id={shape.provider_id or f'boa:///{name}'}",
        ]
        if shape.labels:
            argv.append("--node-labels=" + ",".join(f"{k}={v}" for k, v in shape.labels.items()))
        if shape.taints:
            taints = (
                f"{one['key']}={one.get('value', '')}:{one['effect']}" for one in shape.taints
            )
            argv.append("--register-with-taints=" + ",".join(taints))
        return argv


def _containerd(folder: Path) -> str:
    return f"""
version = 2
root = "{folder / "containerd"}"
state = "/run/c"
oom_score = 0
disabled_plugins = {json.dumps(_NOT_NEEDED)}
[grpc]
address = "{node_init.SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "boa.test/pause:1"
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{_PLUGINS}"
conf_dir = "{folder / "cni"}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""
