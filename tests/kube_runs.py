"""Real runs on a Kubernetes cluster of this machine, for tests to wait on."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from boa.engines.kubernetes import KubernetesEngine
from boa.engines.kubernetes.member import Member
from boa.engines.kubernetes.names import JOB
from boa.kubelink import Kube, KubeTrouble, connect, pods
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.runs import Launch, NodeSlots, RunKey
from cluster_contract import ClusterRuns
from kube.cluster import Cluster
from local_runs import until

IMAGE = "boa.test/python:1"


class KubeRuns(ClusterRuns):
    """`slots` are (index of a node, number of GPUs). In a namespace of its own."""

    def __init__(
        self,
        root: Path,
        cluster: Cluster,
        nodes: list[str],
        log_bytes: int = 1024**2,
        **settings: Any,
    ) -> None:
        self.root, self.log_bytes = root, log_bytes
        self.cluster, self.nodes = cluster, nodes
        self.namespace = cluster.namespace()
        self.settings = KubernetesSettings(
            **{"image": IMAGE, "owner": "boa-test", "placed_s": 300.0, **settings}
        )
        self.kube: Kube = connect(str(cluster.kubeconfig), namespace=self.namespace)
        self.events = {}
        self.engine: KubernetesEngine = self.new_engine()  # type: ignore[assignment]

    def new_engine(self, folder: str = "runs") -> KubernetesEngine:
        return KubernetesEngine(
            self.root / folder, kube=self.kube, settings=self.settings, log_bytes=self.log_bytes
        )

    def crash(self, **settings: Any) -> None:
        """The service is gone without a word, and another one begins."""
        self.engine.close()  # or its threads would write where the other's do
        self.settings = replace(self.settings, **settings)
        self.engine = self.new_engine()
        self.events.clear()

    def launch(self, *run: str, **given: Any) -> Launch:
        slots = given.pop("slots", ((0, 1),))
        gpu_type = given.pop("gpu_type", "T4")
        more = {name: given.pop(name) for name in ("package", "artifacts") if name in given}
        launch = super().launch(*run, **given)
        return replace(
            launch,
            gpu_type=gpu_type,
            slots=tuple(NodeSlots(i, tuple(range(n)), self.nodes[i]) for i, n in slots),
            **more,
        )

    def pods(self) -> list[dict[str, Any]]:
        """All that are in the namespace."""
        return self.kube.list(pods(self.namespace))

    def pod(self, key: RunKey, node: int = 0) -> dict[str, Any]:
        return self.kube.get(pods(self.namespace, f"boa-test-{key.job}-{key.attempt}-{node}"))

    def living(self, key: RunKey) -> bool:
        mine = [pod for pod in self.pods() if pod["metadata"]["labels"][JOB] == key.job]
        states = [one["state"] for pod in mine for one in pod["status"]["containerStatuses"]]
        return any("running" in state for state in states)

    def out_of_time(self, key: RunKey, waits: Callable[[Member], bool]) -> None:
        """End the time that a run has to be placed, once one of its pods waits so."""
        run = self.engine._runs[key]
        until(lambda: self.poll_quietly() and any(map(waits, run._members)))
        run._settings = replace(run._settings, placed_s=0.0)

    def poll_quietly(self) -> bool:
        """Whether there was somebody to ask."""
        with suppress(KubeTrouble):
            self.poll()
            return True
        return False

    def until_gone(self, key: RunKey) -> None:
        """Forget a run, until nothing of it is in the cluster."""
        self.engine.forget(key)
        until(self._none_left)

    def _none_left(self) -> bool:
        self.poll()
        return not self.pods()

    def close(self) -> None:
        super().close()
        self.kube.close()
