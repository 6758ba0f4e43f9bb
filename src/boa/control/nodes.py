"""Nodes: what the cloud really lists against what we believe, and which are to go. All pure."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from boa.clouds.base import CloudNode
from boa.control.lifecycle import drop_node
from boa.control.state import Draft
from boa.model.cluster import NodeId
from boa.model.live import NodeRecord
from boa.units import Seconds


def observe_cloud(draft: Draft, listed: Sequence[CloudNode], at: Seconds) -> list[str]:
    """Believe what the cloud listed at that time. Tokens of nodes that are paid for and that
    nobody here wants are returned: they have to be given back."""
    here = {node.token: node for node in draft.nodes.values()}
    orphans = []
    for node in listed:
        known = here.pop(node.token, None)
        if known is not None:
            _follow(draft, known, node)
        elif node.gone_at is None and node.token.startswith(f"{draft.state.cluster}-"):
            orphans.append(node.token)
    for missing in here.values():
        never_was = missing.billed_from is None
        if never_was and missing.state == "requested":
            continue  # not asked for yet, or not answered
        if never_was and at <= (missing.released_at or at):
            continue  # the list is older than the wish to give it back
        _gone(draft, missing, draft.now, "the cloud no longer lists it")
    return orphans


def _follow(draft: Draft, known: NodeRecord, node: CloudNode) -> None:
    fresh = replace(known, billed_from=node.billed_from, price=node.price, address=node.address)
    if node.gone_at is not None:
        _gone(draft, fresh, node.gone_at, "the cloud took it back")
        return
    if known.state == "requested" and node.ready_at is not None:
        fresh = replace(fresh, state="ready", ready_at=node.ready_at)
        draft.tell("node_ready", f"node {known.id} is ready ({known.gpu})", node=known.id)
    if fresh != known:
        draft.put_node(fresh)


def _gone(draft: Draft, known: NodeRecord, at: Seconds, why: str) -> None:
    """Charged until then. One that was not given back takes its jobs' runs with it."""
    lost = known.state != "releasing"
    draft.put_node(replace(known, state="gone", gone_at=at, reason=why if lost else known.reason))
    draft.replan = True
    if lost:
        draft.tell("node_lost", f"node {known.id} ({known.gpu}) is lost: {why}", node=known.id)
        drop_node(draft, known.id)
    else:
        draft.tell("node_gone", f"node {known.id} ({known.gpu}) is gone", node=known.id)


def give_back_empty(draft: Draft, keep_warm_s: Seconds, unwanted: Collection[NodeId]) -> None:
    """Nodes that no job has are kept warm for a while, then go; unwanted ones go at once."""
    used = {
        node
        for job in draft.jobs.values()
        for held in (job.allocation, job.run.allocation if job.run is not None else None)
        if held is not None
        for node, _ in held.nodes
    }
    for node in list(draft.nodes.values()):
        if node.state not in ("requested", "ready"):
            continue
        if node.id in used:
            if node.empty_since is not None:
                draft.put_node(replace(node, empty_since=None))
            continue
        since = draft.now if node.empty_since is None else node.empty_since
        if node.id in unwanted or draft.now - since >= keep_warm_s:
            _give_back(draft, node)
        elif node.empty_since is None:
            draft.put_node(replace(node, empty_since=since))


def _give_back(draft: Draft, node: NodeRecord) -> None:
    draft.put_node(replace(node, state="releasing", released_at=draft.now))
    draft.tell("node_released", f"giving node {node.id} back ({node.gpu})", node=node.id)
