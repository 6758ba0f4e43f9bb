"""Which token has which of the nodes that are simply there. Pure: nodes in, a book out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from boa.clouds.kubernetes.objects import KubeNode
from boa.model.cloud import CloudNode
from boa.model.kubernetes_names import GPUS
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, UsdPerHour

LISTED_AFTER_GONE_S: Seconds = SECONDS_PER_HOUR
REMEMBERED = 10_000
"""Tokens: nobody asks again under one that so many others have followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A token, and the node that it has."""

    token: str
    gpu: GpuName
    gpus: int
    price: UsdPerHour
    node: str
    taken_at: Seconds
    down_since: Seconds | None = None
    leaving_at: Seconds | None = None
    gone_at: Seconds | None = None
    """Given back, or its node is no longer there."""

    def seen(self) -> CloudNode:
        return CloudNode(
            token=self.token,
            gpu=self.gpu,
            gpus=self.gpus,
            price=self.price,
            billed_from=self.taken_at,
            ready_at=self.taken_at,
            gone_at=self.gone_at,
            leaving_at=self.leaving_at,
            address=self.node,
        )


@dataclass(frozen=True, slots=True)
class Book:
    entries: Mapping[str, Entry] = field(default_factory=dict)
    used: Sequence[str] = ()
    """Tokens that there were, the newest last."""

    @property
    def held(self) -> set[str]:
        return {entry.node for entry in self.entries.values() if entry.gone_at is None}

    @property
    def spend(self) -> UsdPerHour:
        """All nodes that are taken now, per hour."""
        return sum(e.price * e.gpus for e in self.entries.values() if e.gone_at is None)

    def count(self, gpu: GpuName) -> int:
        return sum(e.gpu == gpu and e.gone_at is None for e in self.entries.values())

    def with_entry(self, entry: Entry) -> "Book":
        return replace(self, entries={**self.entries, entry.token: entry})


def free(book: Book, nodes: Sequence[KubeNode], gpu: GpuName, gpus: int) -> list[KubeNode]:
    """Nodes of a type that nobody has and jobs can start on, by name."""
    held = book.held
    found = [
        node
        for node in nodes
        if node.gpu == gpu
        and node.name not in held
        and not node.lacks(gpus)
        and node.going_in is None
    ]
    return sorted(found, key=lambda node: node.name)


def why_none(book: Book, nodes: Sequence[KubeNode], gpu: GpuName, gpus: int, label: str) -> str:
    """The reason that no node of the type is free."""
    ours = [node for node in nodes if node.gpu == gpu]
    if not ours:
        there = ", ".join(sorted({node.gpu for node in nodes if node.gpu})) or "none"
        return f"no node has the label {label}={gpu}; its values there: {there}"
    rest = [node for node in ours if node.name not in book.held]
    if not rest:
        return f"all {len(ours)} {gpu} nodes of the cluster are taken"
    lacking = [node.lacks(gpus) for node in rest if node.lacks(gpus)]
    if lacking and GPUS in lacking[0]:
        return f"{lacking[0]} (gpus_per_node of {gpu})"
    return lacking[0] if lacking else f"{rest[0].name} is cordoned, or being taken away"


def taken(book: Book, entry: Entry) -> Book:
    used = (*book.used[-REMEMBERED:], entry.token)
    return replace(book, used=used).with_entry(entry)


def released(book: Book, token: str, now: Seconds) -> Book:
    """Nothing is rented: whoever gives a node back is charged for it no longer."""
    entry = book.entries.get(token)
    if entry is None or entry.gone_at is not None:
        return book
    return book.with_entry(replace(entry, gone_at=now))


def observed(book: Book, nodes: Sequence[KubeNode], now: Seconds, lost_s: Seconds) -> Book:
    """The same after a look at the cluster: whose node is gone, or leaves."""
    by_name = {node.name: node for node in nodes}
    entries = {
        token: entry if entry.gone_at is not None else _after(entry, by_name, now, lost_s)
        for token, entry in book.entries.items()
        if entry.gone_at is None or now < entry.gone_at + LISTED_AFTER_GONE_S
    }
    return replace(book, entries=entries)


def _after(entry: Entry, nodes: Mapping[str, KubeNode], now: Seconds, lost_s: Seconds) -> Entry:
    node = nodes.get(entry.node)
    if node is None:
        return replace(entry, gone_at=now)
    if entry.leaving_at is not None:
        return entry
    if node.going_in is not None:
        return replace(entry, leaving_at=now + node.going_in)
    if node.ready:
        return entry if entry.down_since is None else replace(entry, down_since=None)
    if entry.down_since is None:
        return replace(entry, down_since=now)
    return replace(entry, leaving_at=now) if now - entry.down_since >= lost_s else entry


def document(book: Book) -> dict[str, Any]:
    return {
        "version": 1,
        "entries": [asdict(entry) for entry in book.entries.values()],
        "used": list(book.used),
    }


def of_document(said: Mapping[str, Any]) -> Book:
    entries = [Entry(**entry) for entry in said["entries"]]
    return Book({entry.token: entry for entry in entries}, tuple(said["used"]))
