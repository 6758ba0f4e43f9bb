"""The control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler."""

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

import httpx

from kube import kubeconfigs
from kube.api import Api, ApiTrouble
from kube.certificates import Authority, Pair
from kube.lines import Child
from kube.waiting import until
from ports import held_port

NODE_SILENT_S = 20
"""After which a node is NotReady. Kubernetes' own 40 s are too long for tests; much less, and a
machine that has other things to do loses nodes."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the API server is, and the range of services' addresses."""

    host: str = "127.0.0.1"
    port: int = 0
    services: str = "10.96.0.0/16"
    advertised: str = "192.0.2.1"
    """Not the loopback, says the API server; nobody goes there."""


class ControlPlane:
    """Real binaries of `binaries`, state in `folder`."""

    def __init__(self, folder: Path, binaries: Path, keeper: Child, addresses: Addresses) -> None:
        self.folder, self.binaries, self._keeper = folder, binaries, keeper
        self._held = contextlib.ExitStack()
        ports = [self._held.enter_context(held_port()) for _ in range(4)]
        self._etcd, self._peer = (f"http://127.0.0.1:{port}" for port in ports[:2])
        self._addresses = addresses
        self._scheduler = f"127.0.0.1:{ports[3]}"
        self._port = addresses.port or ports[2]
        self.server = f"https://{addresses.host}:{self._port}"
        self.authority = Authority(folder / "pki")
        self.admin: Pair = self.authority.client("admin", ["system:masters"])
        self._key = self.authority.signing_key("service-accounts")
        alternatives = ["localhost", "127.0.0.1", addresses.host, "kubernetes.default.svc"]
        self._serving = self.authority.server("kube-apiserver", alternatives)
        self._client = self.authority.client("kube-apiserver-kubelet-client", ["system:masters"])
        self.kubeconfig = kubeconfigs.by_certificate(
            folder / "admin.conf", self.server, self.authority.certificate, self.admin
        )
        for user in ("system:kube-controller-manager", "system:kube-scheduler"):
            kubeconfigs.by_certificate(
                self._conf(user),
                self.server,
                self.authority.certificate,
                self.authority.client(user),
            )
        self.api = Api(self.server, self.authority.certificate, self.admin)

    def start(self) -> None:
        """Until a pod could be created."""
        self._start("etcd", *self._etcd_flags())
        self.start_api()
        self.api.until(
            "the default service account",
            "/api/v1/namespaces/default/serviceaccounts/default",
            lambda found: found and found.get("secrets"),
        )

    def start_api(self) -> None:
        """The API server, and those who end by themselves when it is gone."""
        self._start("kube-apiserver", *self._api_flags())
        until("the API server's readiness", self._ready)
        self._start("kube-controller-manager", *self._manager_flags())
        self._start("kube-scheduler", f"--config={self._scheduler_config()}", "--secure-port=0")

    def kill_api(self) -> None:
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver"):
            self._keeper.ask(do="end", name=name, term_s=0)

    def close(self) -> None:
        self.api.close()
        self._held.close()

    def _start(self, name: str, *flags: str) -> None:
        log = str(self.folder / "log" / f"{name}.log")
        argv = [str(self.binaries / name), *flags]
        self._keeper.ask(do="start", name=name, argv=argv, env={}, log=log)

    def _ready(self) -> bool:
        if not self._keeper.ask(do="alive", name="kube-apiserver"):
            said = (self.folder / "log" / "kube-apiserver.log").read_text()[-2000:]
            raise RuntimeError(f"kube-apiserver has ended: {said}")
        with contextlib.suppress(httpx.TransportError, ApiTrouble):
            return self.api.text("/readyz") == "ok"
        return False

    def _conf(self, user: str) -> Path:
        return self.folder / "pki" / f"{user.removeprefix('system:')}.conf"

    def _etcd_flags(self) -> list[str]:
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self._etcd}",
            f"--advertise-client-urls={self._etcd}",
            f"--listen-peer-urls={self._peer}",
            f"--initial-advertise-peer-urls={self._peer}",
            f"--initial-cluster=default={self._peer}",
            "--log-level=warn",
        ]

    def _api_flags(self) -> list[str]:
        return [
            f"--etcd-servers={self._etcd}",
            f"--bind-address={self._addresses.host}",
            f"--secure-port={self._port}",
            f"--advertise-address={self._addresses.advertised}",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
            f"--client-ca-file={self.authority.certificate}",
            f"--kubelet-client-certificate={self._client.certificate}",
            f"--kubelet-client-key={self._client.key}",
            "--kubelet-preferred-address-types=InternalIP",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={self._key}",
            f"--service-account-key-file={self._key}",
            f"--service-cluster-ip-range={self._addresses.services}",
            "--profiling=false",
        ]

    def _manager_flags(self) -> list[str]:
        without = "cronjob,csrapproving,csrcleaner,csrsigning,horizontalpodautoscaling,ttl"
        return [
            f"--kubeconfig={self._conf('kube-controller-manager')}",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self._key}",
            f"--root-ca-file={self.authority.certificate}",
            "--leader-elect=false",
            "--controllers=*," + ",".join(f"-{name}" for name in without.split(",")),
            "--node-monitor-period=1s",
            f"--node-monitor-grace-period={NODE_SILENT_S}s",
            "--node-eviction-rate=10",  # pods of several dead nodes are sent away at once
            "--unhealthy-zone-threshold=1",
            "--pvclaimbinder-sync-period=1s",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            "--port=0",
            "--secure-port=0",
        ]

    def _scheduler_config(self) -> Path:
        """A pod that found no place is tried again soon, not after 10 s."""
        path = self.folder / "pki" / "scheduler.json"
        connection = {
            "kubeconfig": str(self._conf("kube-scheduler")),
            "qps": 200,
            "burst": 400,
        }
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1beta1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
            "podMaxBackoffSeconds": 2,
            # There is no way to have none, and another cluster may have the usual port.
            "healthzBindAddress": self._scheduler,
            "metricsBindAddress": self._scheduler,
        }
        path.write_text(json.dumps(config))
        return path
