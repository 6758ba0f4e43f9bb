"""The cloud's list against what was written down: no node is forgotten or paid for twice.

Pure: it says what to write down and what to ask the cloud. All of it follows from the records and
the list alone, so after a crash the same comes out again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from boa.model.cloud import CloudNode
from boa.model.cluster import NodeId
from boa.model.events import LossCode
from boa.model.prices import until
from boa.model.records import NodeRecord
from boa.replacing import replace
from boa.scheduler.words.of_nodes import LOST
from boa.units import Seconds

PRICE_STEP = 1e-3
AGAIN_S: Seconds = 60.0
"""How long a node that was asked for may stay unlisted before it is asked for again."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Write down `node`. `lost`: gone without having been given back, its jobs' runs with it."""

    what: Literal["billed", "ready", "leaving", "lost", "gone"]
    node: NodeRecord
    why: LossCode | None = None
    """Reason of a loss, for a node that is gone or lost."""


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
    """Beginning of the charge: what was charged before is on another record."""


Action: TypeAlias = Changed | Rent | Release | Orphan


def reconcile(
    records: Iterable[NodeRecord],
    listed: Iterable[CloudNode],
    at: Seconds,
    again_s: Seconds = AGAIN_S,
) -> list[Action]:
    """`at`: when the cloud was asked. What was wished for later cannot be in its list.

    Records of nodes that are gone may be among `records` and need not: with them, a node that
    turns up once more is paid for only from where they end.
    """
    unseen = {node.token: node for node in listed}
    actions: list[Action] = []
    paid_until: dict[str, Seconds] = {}
    for record in records:
        if record.state == "gone":
            if record.billed_from is not None and record.gone_at is not None:
                before = paid_until.get(record.token, record.gone_at)
                paid_until[record.token] = max(record.gone_at, before)
            continue
        seen = unseen.pop(record.token, None)
        actions += _unlisted(record, at, again_s) if seen is None else _listed(record, seen)
    for node in unseen.values():
        if node.gone_at is None:
            since = max(node.billed_from, paid_until.get(node.token, node.billed_from))
            actions.append(Orphan(node, since))
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
        changes=node.changes,
        state="releasing",
        requested_at=orphan.since,
        billed_from=orphan.since,
        released_at=now,
        address=node.address,
        reason="the cloud charged for it and nobody here had it",
    )


def _listed(record: NodeRecord, seen: CloudNode) -> list[Action]:
    known = record
    if record.billed_from is None:
        known = replace(
            record,
            billed_from=seen.billed_from,
            price=seen.price,
            changes=seen.changes,
            gpus=seen.gpus,
            address=seen.address,
        )
    elif _is_news(record, seen):
        known = replace(
            record,
            price=seen.price,
            changes=seen.changes,
            address=seen.address or record.address,
        )
    if seen.gone_at is not None:
        return [_gone(known, seen.gone_at, "taken_back")]
    if record.state == "releasing":
        # What it cost is written down at once: it may be gone from the list the next time.
        return [*([Changed("billed", known)] if known is not record else []), Release(known)]
    if seen.leaving_at is not None and record.leaving_at is None:
        return [Changed("leaving", replace(known, leaving_at=seen.leaving_at))]
    if record.state == "requested" and seen.ready_at is not None:
        ready = replace(known, state="ready", ready_at=seen.ready_at, address=seen.address)
        return [Changed("ready", ready)]
    return [Changed("billed", known)] if known is not record else []


def _is_news(record: NodeRecord, seen: CloudNode) -> bool:
    """A spot price is an average and never the same twice: what is too little to matter is not
    written down, but for the last. A node that has dropped out of Ray has its address still."""
    moved = abs(seen.price - record.price) > PRICE_STEP * record.price
    is_last = seen.gone_at is not None and seen.price != record.price
    moved = moved or seen.changes != record.changes
    return moved or is_last or seen.address not in ("", record.address)


def _unlisted(record: NodeRecord, at: Seconds, again_s: Seconds) -> list[Action]:
    if record.billed_from is not None:
        is_older = at <= record.billed_from  # the list, than the node
        return [] if is_older else [_gone(record, at, "unlisted")]
    if record.state == "requested":
        return [Rent(record)] if at - record.requested_at >= again_s else []
    # Given back before the cloud ever listed it: the wish to rent it may still be on its way.
    released = record.released_at if record.released_at is not None else record.requested_at
    if at - released < again_s:
        return [Release(record)]
    return [_gone(record, at, "never_came")]


def _gone(record: NodeRecord, at: Seconds, why: LossCode) -> Changed:
    """Charged until then."""
    if record.billed_from is not None:
        at = max(at, record.billed_from)
    what: Literal["gone", "lost"] = "gone" if record.state == "releasing" else "lost"
    reason, changes = record.reason or LOST[why], until(record.changes, at)
    gone = replace(record, state="gone", gone_at=at, reason=reason, changes=changes)
    return Changed(what, gone, why)
