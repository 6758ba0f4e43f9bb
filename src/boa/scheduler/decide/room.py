"""Room for nodes: configured limits, refusals of the cloud, and the hard cap on the spend."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from boa.model.cluster import Node, NodeRoom
from boa.model.workload import GpuType
from boa.placement.shortage import Room
from boa.scheduler.money.ledger import committed
from boa.scheduler.state import Draft
from boa.units import GpuName, Seconds, UsdPerHour

NO_PRICES: Mapping[GpuName, UsdPerHour] = MappingProxyType({})


class Refused(NamedTuple):
    """Belief about a GPU type that the cloud said no to."""

    had: int
    """Nodes of the type that we had then: no more are to be had,"""
    until: Seconds
    """as is believed until then."""
    why: str


def room_for(
    draft: Draft,
    max_nodes: Mapping[GpuName, int],
    refused: Mapping[GpuName, Refused],
    max_spend: float | None,
    cap: str = "",
    *,
    dearer: Mapping[GpuName, UsdPerHour] = NO_PRICES,
    ahead_s: Seconds = 0.0,
) -> Room:
    """Configured limits, what refusals taught, and what the hard cap leaves; `cap`: in words.
    `dearer`: prices of types that will cost more within `ahead_s`, in which nodes can be emptied
    and be gone: the cap is held against what all will cost by then."""
    limits = dict(max_nodes)
    giving_back: dict[GpuName, int] = {}
    for node in draft.nodes.values():
        if node.state == "releasing" or node.leaving_at is not None:
            giving_back[node.gpu] = giving_back.get(node.gpu, 0) + 1
    why: dict[GpuName, str] = {}
    for gpu, said in refused.items():
        if draft.now < said.until:
            limits[gpu] = min(limits.get(gpu, said.had), said.had)
            why[gpu] = said.why
    left = (
        None
        if max_spend is None
        else max_spend - committed(draft.nodes.values(), draft.now, ahead_s)
    )
    return Room(
        max_nodes=limits, spend_left=left, cap=cap, releasing=giving_back, why=why, dearer=dearer
    )


def is_capped(room: Room, nodes: Sequence[Node], gpu_types: Mapping[GpuName, GpuType]) -> bool:
    """Whether another node could be had but for the hard cap."""
    if room.spend_left is None:
        return False
    free = replace(left_to_rent(room, nodes), spend=None)
    return any(free.has(kind, 1) for kind in gpu_types.values())


_gpu = attrgetter("gpu")


def left_to_rent(room: Room, nodes: Sequence[Node]) -> NodeRoom:
    """Nodes that may be rented beside these; those given back are in the room."""
    there = Counter(map(_gpu, nodes)) + Counter(room.releasing)
    return NodeRoom(
        nodes={gpu: max(most - there[gpu], 0) for gpu, most in room.max_nodes.items()},
        spend=None if room.spend_left is None else max(room.spend_left, 0.0),
        dearer=room.dearer,
    )
