"""Which token has which node of a Ray cluster. Pure: what Ray shows in, books and demands out.

Ray knows nothing of tokens: its autoscaler is told how many nodes there should be, and brings some.
A node that comes up while one of our tokens waits for its type is that token's; any other is a
stranger, brought for somebody else. A node that was given back is charged until Ray says that it
is dead, or until another token takes it over.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from boa.model.cloud import CloudNode
from boa.raylink import RayNode
from boa.units import SECONDS_PER_HOUR, GpuName, Seconds, UsdPerHour

LISTED_AFTER_GONE_S: Seconds = SECONDS_PER_HOUR
LATE_S: Seconds = SECONDS_PER_HOUR
"""How long after it was given back a token may still get a node: the launch could not be stopped,
and somebody has to pay for it."""
REMEMBERED = 10_000
"""Tokens: nobody asks again under one that so many others have followed."""
NODE_ID = "ray.io/node-id"
"""A label that every node has."""
HEAD = "node:__internal_head__"
"""A resource that only the head has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A token."""

    token: str
    gpu: GpuName
    gpus: int
    price: UsdPerHour
    asked_at: Seconds
    node: str = ""
    """Its id in Ray; empty until one has come."""
    seen_at: Seconds | None = None
    released_at: Seconds | None = None
    gone_at: Seconds | None = None

    @property
    def is_wanted(self) -> bool:
        return self.released_at is None and self.gone_at is None

    @property
    def is_charged(self) -> bool:
        return self.gone_at is None and (self.released_at is None or bool(self.node))

    def is_kept(self, now: Seconds) -> bool:
        if self.gone_at is not None:
            return now < self.gone_at + LISTED_AFTER_GONE_S
        return self.released_at is None or bool(self.node) or now < self.released_at + LATE_S

    def seen(self) -> CloudNode:
        return CloudNode(
            token=self.token,
            gpu=self.gpu,
            gpus=self.gpus,
            price=self.price,
            billed_from=self.asked_at,
            ready_at=self.seen_at,
            gone_at=self.gone_at,
            address=self.node,
        )


@dataclass(frozen=True, slots=True)
class Book:
    entries: Mapping[str, Entry] = field(default_factory=dict)
    """Entries by token."""
    used: Sequence[str] = ()
    """Tokens that there were, the newest last."""
    strangers: Mapping[str, GpuName] = field(default_factory=dict)
    """Nodes that are there and not ours, with their type."""
    misfits: Mapping[GpuName, str] = field(default_factory=dict)
    """Types of which there are nodes with other GPUs than they should have: what one has."""

    def with_entry(self, entry: Entry) -> "Book":
        return replace(self, entries={**self.entries, entry.token: entry})

    def charged(self, gpu: GpuName) -> int:
        return sum(entry.gpu == gpu and entry.is_charged for entry in self.entries.values())


@dataclass(frozen=True, slots=True)
class Demand:
    """A node that there should be."""

    gpu: GpuName
    gpus: int
    node: str = ""
    """This one; empty: one more."""
    but: tuple[str, ...] = ()
    """One more than these."""

    @property
    def bundle(self) -> dict[str, float]:
        return {"GPU": self.gpus, self.gpu: self.gpus}

    @property
    def selector(self) -> dict[str, str]:
        if self.node:
            return {NODE_ID: self.node}
        return {NODE_ID: _none_of(self.but)} if self.but else {}


@lru_cache(maxsize=16)
def _none_of(nodes: tuple[str, ...]) -> str:
    """Once for all wishes of a type: with thousands of nodes it is long."""
    return f"!in({','.join(nodes)})"


def fits(node: RayNode, gpu: GpuName, gpus: int) -> bool:
    return node.resources.get(gpu) == gpus == node.resources.get("GPU")


def rented(book: Book, entry: Entry) -> Book:
    """If a node of its type that was given back is still there, it is taken over: the one given
    back last, which Ray will not be about to take away."""
    used = (*book.used[-REMEMBERED:], entry.token)
    book = replace(book, used=used)
    idle = [
        old
        for old in book.entries.values()
        if old.gpu == entry.gpu
        and old.gpus == entry.gpus
        and old.node
        and old.released_at is not None
        and old.gone_at is None
    ]
    if idle:
        old = max(idle, key=lambda old: (old.released_at, old.token))
        entry = replace(entry, node=old.node, seen_at=entry.asked_at)
        book = book.with_entry(replace(old, gone_at=entry.asked_at))
    return book.with_entry(entry)


def released(book: Book, token: str, now: Seconds) -> Book:
    entry = book.entries.get(token)
    if entry is None or not entry.is_wanted:
        return book
    return book.with_entry(replace(entry, released_at=now))


def observed(
    book: Book, nodes: Collection[RayNode], types: Mapping[GpuName, int], now: Seconds
) -> Book:
    """The same after a look at the cluster: who is gone, and who has come for whom.

    `types`: GPUs on a node of each.
    """
    alive = {node.id: node for node in nodes if node.alive}
    entries = _left(book, alive.keys(), now)
    known = book.strangers.keys() | _held(entries)
    new = {id: node for id, node in alive.items() if id not in known and HEAD not in node.resources}
    entries = _matched(entries, new, now)
    others = _others(entries, alive, types)
    strangers = {node.id: gpu for node, gpu in others}
    return replace(book, entries=entries, strangers=strangers, misfits=_misfits(others, types))


def observed_fixed(
    book: Book, nodes: Collection[RayNode], types: Mapping[GpuName, int], now: Seconds
) -> Book:
    """Where nobody takes nodes away: what was given back is charged no longer, and whoever waits
    gets a node that is free."""
    alive = {node.id: node for node in nodes if node.alive}
    entries = {
        token: replace(entry, gone_at=entry.released_at)
        if entry.released_at is not None and entry.gone_at is None
        else entry
        for token, entry in _left(book, alive.keys(), now).items()
    }
    held = _held(entries)
    free = {id: node for id, node in alive.items() if id not in held}
    entries = _matched(entries, free, now)
    misfits = _misfits(_others(entries, alive, types), types)
    return Book(entries=entries, used=book.used, misfits=misfits)


def _others(
    entries: Mapping[str, Entry], alive: Mapping[str, RayNode], types: Collection[GpuName]
) -> list[tuple[RayNode, GpuName]]:
    """Nodes of our types that are nobody's."""
    ours, found = _held(entries), []
    for id, node in alive.items():
        gpu = next((gpu for gpu in sorted(types) if node.resources.get(gpu)), None)
        if gpu is not None and id not in ours:
            found.append((node, gpu))
    return found


def _misfits(
    others: Collection[tuple[RayNode, GpuName]], types: Mapping[GpuName, int]
) -> dict[GpuName, str]:
    return {
        gpu: f"{node.resources[gpu]:g} {gpu} and {node.resources.get('GPU', 0):g} GPU"
        for node, gpu in others
        if not fits(node, gpu, types[gpu])
    }


def _left(book: Book, alive: Collection[str], now: Seconds) -> dict[str, Entry]:
    """Entries still spoken of; those whose node is dead are gone."""
    return {
        token: replace(entry, gone_at=now)
        if entry.node and entry.gone_at is None and entry.node not in alive
        else entry
        for token, entry in book.entries.items()
        if entry.is_kept(now)
    }


def _held(entries: Mapping[str, Entry]) -> set[str]:
    return {entry.node for entry in entries.values() if entry.node and entry.gone_at is None}


def _matched(
    entries: Mapping[str, Entry], free: Mapping[str, RayNode], now: Seconds
) -> dict[str, Entry]:
    """Who waits longest gets the first node of its type; what was given back comes last."""
    left, matched = dict(sorted(free.items())), dict(entries)

    def turn(entry: Entry) -> tuple[bool, Seconds, str]:
        return (entry.released_at is not None, entry.asked_at, entry.token)

    waiting = (entry for entry in entries.values() if not entry.node and entry.gone_at is None)
    for entry in sorted(waiting, key=turn):
        found = next((id for id, node in left.items() if fits(node, entry.gpu, entry.gpus)), None)
        if found is not None:
            del left[found]
            matched[entry.token] = replace(entry, node=found, seen_at=now)
    return matched


def demands(book: Book) -> list[Demand]:
    """All nodes that there should be, each by its name; those still to come: more than these.

    Without the names Ray would take one that was given back, or a stranger, for the one wanted.
    Of a type that comes with other GPUs than it should, no more are asked for: they would be
    strangers all.
    """
    there: dict[GpuName, list[str]] = {}
    for entry in book.entries.values():
        if entry.node and entry.gone_at is None:
            there.setdefault(entry.gpu, []).append(entry.node)
    for id, gpu in book.strangers.items():
        there.setdefault(gpu, []).append(id)
    these = {gpu: tuple(sorted(nodes)) for gpu, nodes in there.items()}
    return [
        Demand(
            entry.gpu,
            entry.gpus,
            node=entry.node,
            but=() if entry.node else these.get(entry.gpu, ()),
        )
        for entry in book.entries.values()
        if entry.is_wanted and (entry.node or entry.gpu not in book.misfits)
    ]


def listing(book: Book) -> list[CloudNode]:
    """Nodes that have come, as the loop is told of them."""
    return [entry.seen() for entry in book.entries.values() if entry.node]
