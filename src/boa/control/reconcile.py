"""What the cloud lists against what was written down: no node is forgotten or paid for twice.

Pure: it says what to write down and what to ask the cloud. All of it follows from the records and
the list alone, so after a crash the same comes out again.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from boa.clouds.base import CloudNode
from boa.model.cluster import NodeId
from boa.model.live import NodeRecord
from boa.units import Seconds

AGAIN_S: Seconds = 60.0
"""How long a node that was asked for may stay unlisted before it is asked for again."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Write down `node`. `lost`: gone without having been given back, its jobs' runs with it."""

    what: Literal["billed", "ready", "lost", "gone"]
    node: NodeRecord


@dataclass(frozen=True, slots=True)
class Rent:
    """Ask for it (again), under its token."""

    node: NodeRecord


@dataclass(frozen=True, slots=True)
class Release:
    """Give it back (again)."""

    node: NodeRecord


@dataclass(frozen=True, slots=True)
class Orphan:
    """Charged for, and nobody here has it: to be written down with `adopted`, which gives it
    back and pays for it."""

    listed: CloudNode
    since: Seconds
    """What was charged before is on another record."""


Action: TypeAlias = Changed | Rent | Release | Orphan


def reconcile(
    records: Iterable[NodeRecord],
    listed: Iterable[CloudNode],
    now: Seconds,
    *,
    listed_at: Seconds | None = None,
    again_s: Seconds = AGAIN_S,
) -> list[Action]:
    """`listed_at`: when the cloud was asked; what was wished for later cannot be in its list.

    Records of nodes that are gone may be among `records` and need not: with them, a node that
    turns up once more is paid for only from where they end.
    """
    at = now if listed_at is None else listed_at
    unseen = {node.token: node for node in listed}
    actions: list[Action] = []
    for record in records:
        seen = unseen.pop(record.token, None)
        if seen is None:
            actions += _unlisted(record, now, at, again_s)
        else:
            actions += _listed(record, seen)
    actions += [Orphan(node, node.billed_from) for node in unseen.values() if node.gone_at is None]
    return actions


def adopted(orphan: Orphan, id: NodeId, now: Seconds) -> NodeRecord:
    """A record of its own, given back at once."""
    node = orphan.listed
    return NodeRecord(
        id=id,
        token=node.token,
        gpu=node.gpu,
        gpus=node.gpus,
        price=node.price,
        state="releasing",
        requested_at=orphan.since,
        billed_from=orphan.since,
        released_at=now,
        address=node.address,
        reason="the cloud charged for it and nobody here had it",
    )


def to_release(nodes: Iterable[NodeRecord], keep_warm_s: Seconds, now: Seconds) -> list[NodeId]:
    """Ready nodes that no job has had for so long."""
    return [
        node.id
        for node in nodes
        if node.state == "ready"
        and node.empty_since is not None
        and now - node.empty_since >= keep_warm_s
    ]


def emptied(
    nodes: Iterable[NodeRecord], used: Collection[NodeId], now: Seconds
) -> list[NodeRecord]:
    """Nodes that became empty, or are no longer: as they are to be written down."""
    changed = []
    for node in nodes:
        if node.state == "ready" and (node.empty_since is None) == (node.id not in used):
            changed.append(replace(node, empty_since=None if node.id in used else now))
    return changed


def _listed(record: NodeRecord, seen: CloudNode) -> list[Action]:
    if record.state == "gone":
        again = seen.gone_at is None and record.gone_at is not None
        return [Orphan(seen, max(record.gone_at or 0.0, seen.billed_from))] if again else []
    known = record
    if record.billed_from is None:
        known = replace(
            record,
            billed_from=seen.billed_from,
            price=seen.price,
            gpus=seen.gpus,
            address=seen.address,
        )
    if seen.gone_at is not None:
        return [_gone(known, seen.gone_at, "the cloud took it back")]
    if record.state == "releasing":
        # What it cost is written down at once: it may be gone from the list the next time.
        return [*([Changed("billed", known)] if known is not record else []), Release(known)]
    if record.state == "requested" and seen.ready_at is not None:
        ready = replace(known, state="ready", ready_at=seen.ready_at, address=seen.address)
        return [Changed("ready", ready)]
    return [Changed("billed", known)] if known is not record else []


def _unlisted(record: NodeRecord, now: Seconds, at: Seconds, again_s: Seconds) -> list[Action]:
    if record.state == "gone":
        return []
    if record.billed_from is not None:
        return [_gone(record, now, "the cloud no longer lists it")]
    if record.state == "requested":
        return [Rent(record)] if at - record.requested_at >= again_s else []
    # Given back before the cloud ever listed it: the wish to rent it may still be on its way.
    released = record.released_at if record.released_at is not None else record.requested_at
    if at - released < again_s:
        return [Release(record)]
    return [_gone(record, now, "it never came")]


def _gone(record: NodeRecord, at: Seconds, why: str) -> Changed:
    """Charged until then."""
    if record.billed_from is not None:
        at = max(at, record.billed_from)
    what: Literal["gone", "lost"] = "gone" if record.state == "releasing" else "lost"
    return Changed(what, replace(record, state="gone", gone_at=at, reason=record.reason or why))
