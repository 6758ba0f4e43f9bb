"""From BOA's wish to nodes that jobs can start on, and back, through the double of Karpenter."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from _kube_starts import GPU, Parts, medians, parts
from _table import Measured
from boa.clock import SteadyClock
from boa.clouds.base import Cloud
from boa.clouds.kubernetes.cloud import kubernetes_cloud
from boa.kubelink import Kube, connect
from boa.model.kubernetes_settings import (
    KarpenterMachine,
    KarpenterSettings,
    KubernetesSettings,
)
from boa.model.workload import GpuType
from kube.cluster import Cluster
from kube.doubles import Life
from kube.karpenter import Karpenter

GPUS, SERVICE = 4, "bench"
LOOK_S, PATIENCE_S = 0.05, 300.0
UP = {"sent": "say_s", "born": "karpenter_s", "seen": "join_s"}
DOWN = {"sent": "say_s", "off": "karpenter_s", "seen": "seen_s"}
"""Marks in order, and what is over with each."""


class Scaling:
    def __init__(self, cluster: Cluster, cloud: Cloud, karpenter: Karpenter) -> None:
        self.cluster, self.cloud, self.karpenter = cluster, cloud, karpenter
        self.turn = 0

    def up(self, count: int) -> Parts:
        """So many nodes, from none: until the last of them is ready."""
        self.turn += 1
        wished = time.time()
        for token in self._tokens(count):
            self.cloud.rent(token, GPU)
        marks = {"sent": time.time()}
        marks["seen"] = _until(lambda: self._ready() == count)
        marks["born"] = max(life.born for life in self._lives(count))
        return parts(wished, marks, UP, "seen")

    def down(self, count: int) -> Parts:
        """All of them given back: until the last is gone."""
        wished = time.time()
        for token in self._tokens(count):
            self.cloud.release(token)
        marks = {"sent": time.time()}
        marks["seen"] = _until(lambda: not self._listed())
        marks["off"] = max(life.gone or marks["seen"] for life in self._lives(count))
        return parts(wished, marks, DOWN, "seen")

    def _tokens(self, count: int) -> Sequence[str]:
        return [f"{SERVICE}-{self.turn}-{number}" for number in range(count)]

    def _lives(self, count: int) -> Sequence[Life]:
        return self.karpenter.lives()[-count:]

    def _listed(self) -> int:
        return sum(node.gone_at is None for node in self.cloud.nodes())

    def _ready(self) -> int:
        nodes = self.cloud.nodes()
        return sum(node.ready_at is not None and node.gone_at is None for node in nodes)


def _until(done: Callable[[], bool]) -> float:
    until = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > until:
            raise SystemExit(f"not within {PATIENCE_S:.0f} s")
        time.sleep(LOOK_S)
    return time.time()


def scaling(
    kind: str,
    cluster: Cluster,
    folder: Path,
    counts: Sequence[int],
    repeat: int,
    say: Callable[[str], None],
) -> tuple[Measured, Measured]:
    came: dict[int, list[Parts]] = defaultdict(list)
    went: dict[int, list[Parts]] = defaultdict(list)
    kube = connect(str(cluster.kubeconfig), namespace=cluster.namespace())
    with Karpenter(cluster) as karpenter:
        bench = Scaling(cluster, _cloud(kube, folder), karpenter)
        for turn in range(repeat):
            for count in counts:
                came[count].append(bench.up(count))
                went[count].append(bench.down(count))
                up, down = came[count][-1]["total_s"], went[count][-1]["total_s"]
                say(f"{turn + 1}/{repeat}: {count} {kind} nodes in {up:.2f} s, gone in {down:.2f}")
    kube.close()
    load = f"load {os.getloadavg()[0]:.1f}"
    note = f"medians of {repeat}; {kind} nodes; until the last one; looked at every {LOOK_S:g} s"
    boots = "machines boot at once: a cloud's minutes come on top"
    return (
        _table("from BOA's wish to nodes that are ready", f"{note}; {boots}; {load}", came),
        _table("from nodes given back to gone", f"{note}; {load}", went),
    )


def _cloud(kube: Kube, folder: Path) -> Cloud:
    machines = {GPU: KarpenterMachine(instance_types=("made-up",))}
    return kubernetes_cloud(
        kube,
        KubernetesSettings(nodes="karpenter", karpenter=KarpenterSettings(machines=machines)),
        folder / "kubernetes.json",
        service=SERVICE,
        gpu_types={GPU: GpuType(name=GPU, price=1.0, gpus_per_node=GPUS)},
        max_nodes={},
        max_spend=None,
        clock=SteadyClock(),
    )


def _table(title: str, note: str, found: Mapping[int, list[Parts]]) -> Measured:
    table = Measured(title, note=note)
    for count, runs in found.items():
        middle = medians(runs)
        table.add(nodes=count, **middle, per_node_s=round(middle["total_s"] / count, 3))
    return table
