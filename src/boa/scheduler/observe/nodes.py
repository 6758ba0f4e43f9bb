"""Nodes: what the cloud really lists against what we believe, and which are to go. All pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from boa.model.cloud import CloudNode
from boa.model.cluster import NodeId, NodeReason
from boa.model.events import ReleaseCode
from boa.model.job import JobRecord
from boa.model.records import NodeRecord
from boa.replacing import replace
from boa.scheduler.lifecycle import drop_node, leave_node
from boa.scheduler.observe.reconcile import Changed, Orphan, Release, Rent, adopted, reconcile
from boa.scheduler.state import Draft, owner_of
from boa.scheduler.words.of_nodes import not_ready, release_fields
from boa.units import DAY_S, GpuName, Seconds


def observe_cloud(draft: Draft, listed: Sequence[CloudNode], at: Seconds) -> list[Rent | Release]:
    """Believe what the cloud listed at that time. What it has to be asked again is returned."""
    again: list[Rent | Release] = []
    state, tokens = draft.state, {node.token for node in listed}
    owner = owner_of(state.cluster)
    state.missing &= {node.id for node in state.nodes.values() if node.token not in tokens}
    known = [*state.nodes.values()]
    known += [state.gone[token] for token in tokens if token in state.gone]  # not all of a day
    ours = [node for node in listed if node.token.startswith(f"{owner}-")]
    actions = reconcile(known, ours, at)
    draft.price_holds({one.node.id: one.node for one in actions if isinstance(one, Changed)})
    for action in actions:
        if isinstance(action, Changed):
            unlisted = action.what == "lost" and action.node.token not in tokens
            if unlisted and action.node.id not in state.missing:
                state.missing.add(action.node.id)
            else:
                _changed(draft, action)
        elif isinstance(action, Orphan):
            found = adopted(action, draft.state.next_node, draft.now)
            draft.state.next_node += 1
            draft.put_node(found)
            draft.tell("orphan", node=found.id, gpu_type=found.gpu)
        else:
            again.append(action)
    return again


def _changed(draft: Draft, change: Changed) -> None:
    node = change.node
    draft.put_node(node)
    if change.what == "ready":
        draft.replan = True  # jobs may be waiting for just that
        draft.tell("node_ready", node=node.id, gpu_type=node.gpu)
    elif change.what == "leaving":
        within = max((node.leaving_at or draft.now) - draft.now, 0.0)
        draft.tell("node_leaving", node=node.id, gpu_type=node.gpu, in_s=within)
        leave_node(draft, node.id)
    elif change.what == "gone":
        draft.tell("node_gone", node=node.id, gpu_type=node.gpu)
        draft.replan = True  # its money can be spent again
    elif change.what == "lost":
        draft.tell("node_lost", node=node.id, gpu_type=node.gpu, why=change.why)
        drop_node(draft, node.id, draft.now if node.gone_at is None else node.gone_at)


def give_back_empty(
    draft: Draft,
    keep_warm_s: Seconds,
    unwanted: Collection[NodeId],
    weighed: Mapping[NodeId, NodeReason] | None = None,
) -> None:
    """Nodes that no job has are kept warm for a while, then go; unwanted ones go at once.
    Who is there in the background keeps no node: it leaves first. `weighed`: what they were worth,
    where the policy weighs them."""
    used = _used(draft.paying)
    left = _used([job for job in draft.jobs.values() if job.spec.priority == "background"])
    nodes = draft.nodes.values()
    for node in [n for n in nodes if n.id not in used or n.empty_since is not None]:
        if node.state not in ("requested", "ready"):
            continue
        if node.id in used:
            if node.empty_since is not None:
                draft.put_node(replace(node, empty_since=None))
            continue
        since = draft.now if node.empty_since is None else node.empty_since
        if node.id in left:
            if node.empty_since is None:
                draft.put_node(replace(node, empty_since=since))
        elif node.leaving_at is not None:
            _give_back(draft, node, "leaving")
        elif node.id in unwanted:
            _give_back(draft, node, "unwanted", **release_fields((weighed or {}).get(node.id)))
        elif draft.now - since >= keep_warm_s:
            _give_back(draft, node, "empty")
        elif node.empty_since is None:
            draft.put_node(replace(node, empty_since=since))


def _used(jobs: Iterable[JobRecord]) -> set[NodeId]:
    """Nodes that jobs are on or are to be on."""
    pairs = [(job.allocation, job.run) for job in jobs]
    found = [given for given, _ in pairs if given is not None]
    found += [run.allocation for given, run in pairs if run and run.allocation is not given]
    return {node for held in found for node, _ in held.nodes}


def _give_back(
    draft: Draft, node: NodeRecord, why: ReleaseCode, reason: str = "", **more: Any
) -> None:
    """`more`: what the event says beside why."""
    draft.put_node(replace(node, state="releasing", released_at=draft.now, reason=reason))
    draft.tell("node_released", node=node.id, gpu_type=node.gpu, why=why, **more)


def give_up_booting(draft: Draft, boot_s: Seconds) -> list[GpuName]:
    """Nodes that do not come up are given back; types of which there were such are returned."""
    late = [
        node
        for node in draft.nodes.values()
        if node.state == "requested" and draft.now - node.requested_at > boot_s
    ]
    for node in late:
        _give_back(draft, node, "not_ready", not_ready(boot_s), after_s=boot_s)
        drop_node(draft, node.id, draft.now)
    return [node.gpu for node in late]


def forget_gone(draft: Draft) -> None:
    """Forget nodes that went long ago: no cloud speaks of them any more."""
    old = draft.now - DAY_S
    gone = draft.state.gone
    while gone:  # by when they went, or very nearly: the first is looked at, not all of a day
        token, node = next(iter(gone.items()))
        if (node.gone_at or 0) >= old:
            return
        del gone[token]
