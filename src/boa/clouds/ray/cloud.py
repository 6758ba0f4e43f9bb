"""Nodes of a Ray cluster: brought and taken away by Ray's autoscaler, or simply there.

Tokens and their nodes are in a file, since Ray has no place for them: it is replaced as a whole
and on the disk before Ray is asked. Ray's autoscaler has one demand for the whole cluster, which
each call overwrites. So all that is wanted is said at once, by us alone, after every change and
every so often (a cluster that was restarted has forgotten it). See `bookkeeping` for who gets what.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from boa import raylink
from boa.clock import Clock
from boa.clouds.base import CloudTrouble, NoCapacity
from boa.clouds.files import Kept
from boa.clouds.ray import bookkeeping
from boa.clouds.ray.bookkeeping import Book, Demand, Entry
from boa.errors import BoaError
from boa.model.cloud import CloudNode
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds

AGAIN_S: Seconds = 30.0
"""Seconds of the wall after which Ray is told again what is wanted, even if nothing has changed."""


class RayCloud:
    """At most `max_nodes` of a type (types left out have no limit of ours)."""

    def __init__(
        self,
        path: Path,
        *,
        address: str,
        namespace: str,
        nodes: str,
        gpu_types: Mapping[GpuName, GpuType],
        max_nodes: Mapping[GpuName, int],
        clock: Clock,
    ) -> None:
        self._address, self._namespace = address, namespace
        self._fixed = nodes == "fixed"
        self._gpu_types, self._max_nodes, self._clock = dict(gpu_types), dict(max_nodes), clock
        self._per_node = {name: kind.gpus_per_node for name, kind in gpu_types.items()}
        self._lock = threading.Lock()
        self._kept = Kept(path, "the Ray cloud's", _of_document, _document, Book())
        self._said: list[Demand] | None = None
        self._said_at: Seconds = 0.0
        raylink.connect(address, namespace)  # whoever gave a wrong address is to know at once

    def offers(self) -> Mapping[GpuName, GpuType]:
        return self._gpu_types

    def rent(self, token: str, gpu: GpuName) -> None:
        with self._lock:
            book = self._look()
            if token in book.used:
                self._check_comes(book, token)
                return
            self._check_type(book, gpu)
            kind, now = self._gpu_types[gpu], self._clock.now()
            entry = Entry(
                token=token, gpu=gpu, gpus=kind.gpus_per_node, price=kind.price, asked_at=now
            )
            after = bookkeeping.rented(book, entry)
            if self._fixed:
                after = bookkeeping.observed_fixed(after, self._nodes(), self._per_node, now)
                if not after.entries[token].node:
                    raise NoCapacity(self._none_free(gpu))
            self._check_most(after, gpu)
            self._kept.put(after)
            self._say(after)

    def release(self, token: str) -> None:
        with self._lock:
            book, now = self._kept.get(), self._clock.now()
            after = bookkeeping.released(book, token, now)
            if after is not book:
                self._kept.put(after)
            if self._fixed:
                self._look()
            else:
                self._say(after)

    def nodes(self) -> Sequence[CloudNode]:
        with self._lock:
            book = self._look()
            self._say(book)
            return bookkeeping.listing(book)

    # What can be had

    def _check_type(self, book: Book, gpu: GpuName) -> None:
        if gpu not in self._gpu_types:
            known = ", ".join(sorted(self._gpu_types))
            raise NoCapacity(f"no {gpu} in the config; it has {known}")
        if gpu in book.misfits:
            raise NoCapacity(
                f"a node of the Ray cluster has {book.misfits[gpu]}, and gpus_per_node of {gpu} is "
                f"{self._per_node[gpu]}: all of these numbers have to be the same"
            )

    def _none_free(self, gpu: GpuName) -> str:
        alive = [node for node in self._nodes() if node.alive]
        if any(gpu in node.resources for node in alive):
            return f"all {gpu} nodes of the Ray cluster are taken"
        named = {name for node in alive for name in node.resources if name.isalnum()}
        known = ", ".join(sorted(named - {"CPU", "GPU", "memory"})) or "none of its own"
        return f"no node of the Ray cluster has the resource {gpu}; resources there: {known}"

    def _check_most(self, after: Book, gpu: GpuName) -> None:
        most = self._max_nodes.get(gpu)
        if most is not None and after.charged(gpu) > most:
            raise NoCapacity(f"all {most} {gpu} nodes of the Ray cluster are taken")

    def _check_comes(self, book: Book, token: str) -> None:
        """A node that was asked for, has not come, and will not."""
        entry = book.entries.get(token)
        if entry is not None and entry.is_wanted and not entry.node:
            try:
                self._check_type(book, entry.gpu)
            except NoCapacity:
                self._kept.put(bookkeeping.released(book, token, self._clock.now()))
                raise

    # Ray

    def _look(self) -> Book:
        """The book with everything that the cluster shows now, written down where it is new."""
        book, now = self._kept.get(), self._clock.now()
        nodes = self._nodes()
        if self._fixed:
            after = bookkeeping.observed_fixed(book, nodes, self._per_node, now)
        else:
            after = bookkeeping.observed(book, nodes, self._per_node, now)
        if after != book:
            self._kept.put(after)
        return after

    def _nodes(self) -> Sequence[raylink.RayNode]:
        try:
            return raylink.nodes(raylink.connect(self._address, self._namespace))
        except BoaError as problem:
            raise CloudTrouble(str(problem)) from problem
        except Exception as problem:  # Ray's own, of many kinds
            raise CloudTrouble(f"Ray does not answer: {_first_line(problem)}") from problem

    def _say(self, book: Book) -> None:
        """Tell Ray what is wanted, unless it was told just now."""
        if self._fixed:
            return
        wanted, now = bookkeeping.demands(book), time.monotonic()
        if wanted == self._said and now - self._said_at < AGAIN_S:
            return
        from ray.autoscaler.sdk import request_resources

        try:
            request_resources(
                bundles=[demand.bundle for demand in wanted],
                bundle_label_selectors=[demand.selector for demand in wanted],
            )
        except Exception as problem:
            self._said = None
            raise CloudTrouble(f"Ray takes no demand: {_first_line(problem)}") from problem
        self._said, self._said_at = wanted, now


def _first_line(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).split("\n")[0]


def _document(book: Book) -> dict[str, Any]:
    return {
        "version": 1,
        "entries": [asdict(entry) for entry in book.entries.values()],
        "used": list(book.used),
        "strangers": dict(book.strangers),
        "misfits": dict(book.misfits),
    }


def _of_document(document: Mapping[str, Any]) -> Book:
    entries = [Entry(**entry) for entry in document["entries"]]
    return Book(
        {entry.token: entry for entry in entries},
        tuple(document["used"]),
        dict(document["strangers"]),
        dict(document["misfits"]),
    )
