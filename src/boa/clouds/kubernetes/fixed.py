"""Nodes of a cluster that are simply there: nothing is rented, a token takes one that is free.

Who has which is in a file of the data folder. So the service needs to read nodes and nothing more,
and a file that is lost costs nobody a node.
"""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from boa import kubelink
from boa.clock import Clock
from boa.clouds.base import CloudTrouble, NoCapacity
from boa.clouds.files import Kept
from boa.clouds.kubernetes import book
from boa.clouds.kubernetes.book import Book, Entry
from boa.clouds.kubernetes.objects import KubeNode, node_of
from boa.clouds.kubernetes.watching import LOST_S
from boa.kubelink import Kube, KubeTrouble
from boa.model.cloud import CloudNode
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds, UsdPerHour


class FixedNodes:
    """`label`: whose value is a node's GPU type."""

    def __init__(
        self,
        path: Path,
        kube: Kube,
        *,
        label: str,
        gpu_types: Mapping[GpuName, GpuType],
        max_nodes: Mapping[GpuName, int],
        max_spend: UsdPerHour | None = None,
        clock: Clock,
        lost_s: Seconds = LOST_S,
    ) -> None:
        self._kube, self._label, self._lost_s = kube, label, lost_s
        self._gpu_types, self._max_nodes, self._clock = dict(gpu_types), dict(max_nodes), clock
        self._max_spend = max_spend
        self._lock = threading.Lock()
        self._kept = Kept(path, "the cluster's", book.of_document, book.document, Book())

    def offers(self) -> Mapping[GpuName, GpuType]:
        return self._gpu_types

    def rent(self, token: str, gpu: GpuName) -> None:
        with self._lock:
            if token in self._kept.get().used:
                return
            kind = self._gpu_types.get(gpu)
            if kind is None:
                known = ", ".join(sorted(self._gpu_types))
                raise NoCapacity(f"no {gpu} in the config; it has {known}")
            nodes = self._nodes()
            known_book = self._look(nodes)
            self._guard(kind, known_book)
            found = book.free(known_book, nodes, gpu, kind.gpus_per_node)
            if not found:
                raise NoCapacity(
                    book.why_none(known_book, nodes, gpu, kind.gpus_per_node, self._label)
                )
            entry = Entry(
                token=token,
                gpu=gpu,
                gpus=kind.gpus_per_node,
                price=kind.price,
                node=found[0].name,
                taken_at=self._clock.now(),
            )
            self._kept.put(book.taken(known_book, entry))

    def _guard(self, kind: GpuType, known: Book) -> None:
        most = self._max_nodes.get(kind.name)
        if most is not None and known.count(kind.name) >= most:
            raise NoCapacity(f"max_nodes of {kind.name} is {most}, and all of them are taken")
        spent, more = known.spend, kind.price * kind.gpus_per_node
        if self._max_spend is not None and spent + more > self._max_spend * (1 + 1e-9):
            raise NoCapacity(
                f"max_spend_per_hour is {self._max_spend:g}: nodes cost {spent:.2f} now, and "
                f"another {kind.name} node is {more:.2f}"
            )

    def release(self, token: str) -> None:
        with self._lock:
            before = self._kept.get()
            after = book.released(before, token, self._clock.now())
            if after is not before:
                self._kept.put(after)

    def nodes(self) -> Sequence[CloudNode]:
        with self._lock:
            seen = self._look(self._nodes())
            return [entry.seen() for entry in seen.entries.values()]

    def _look(self, nodes: Sequence[KubeNode]) -> Book:
        before = self._kept.get()
        after = book.observed(before, nodes, self._clock.now(), self._lost_s)
        if after != before:
            self._kept.put(after)
        return after

    def _nodes(self) -> list[KubeNode]:
        try:
            listed = self._kube.list(kubelink.nodes(), labels=self._label)
        except KubeTrouble as trouble:
            raise CloudTrouble(str(trouble)) from trouble
        return [node_of(said, self._label) for said in listed]
