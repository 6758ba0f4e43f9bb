"""Sentences about nodes: rented, ready, given back, gone."""

from collections.abc import Mapping
from typing import Any

from boa.model.cluster import NodeReason
from boa.model.events import LossCode, NodeLeaving, NodeLost, NodeReleased, NodeRented, OfNode
from boa.scheduler.words.amounts import rate, seconds
from boa.scheduler.words.pieces import About, Part, Words, node, time, worded
from boa.units import Seconds

_NOT_READY = "not ready after"
LOST: Mapping[LossCode, str] = {
    "taken_back": "the cloud took it back",
    "unlisted": "the cloud no longer lists it",
    "never_came": "it never came",
}


def node_rented(about: About, data: NodeRented) -> Words:
    yield "renting "
    yield node(about)
    yield f": {data['gpus']}×{data['gpu_type']} at {rate(data['price_per_hour'])}"
    waiting = data.get("waiting", 0)
    if waiting:
        yield f"; {waiting} job{'s wait' if waiting > 1 else ' waits'}"
    if "saves_s" not in data:
        return
    yield "; "
    yield time(data.get("over_s", 0.0))
    yield " of it save jobs "
    yield worded(data["saves_s"])
    if "worth_per_hour" in data:
        yield f": worth {rate(data['worth_per_hour'])}"


def rent_fields(why: NodeReason | None) -> dict[str, Any]:
    """Reason of a rented node as fields of its event."""
    if why is None:
        return {}
    found: dict[str, Any] = {"waiting": why.waiting}
    if why.left_s is not None and why.saves_s is not None and why.over_s is not None:
        found["saves_s"], found["left_s"] = min(why.saves_s, why.left_s), why.left_s
        found["over_s"] = min(why.over_s, why.left_s)
        if why.worth_per_hour is not None:
            found["worth_per_hour"] = why.worth_per_hour
    return found


def release_fields(why: NodeReason | None) -> dict[str, Any]:
    """Reason of a node given back as fields of its event. A worth that was not less than the price
    is not why it goes."""
    if why is None:
        return {}
    found: dict[str, Any] = {"price_per_hour": why.price_per_hour}
    if why.worth_per_hour is not None and why.worth_per_hour < why.price_per_hour:
        found["worth_per_hour"] = why.worth_per_hour
    if why.moved:
        found |= {"moved": list(why.moved), "pause_s": why.pause_s}
    return found


def node_ready(about: About, data: OfNode) -> Words:
    yield node(about)
    yield f" is ready ({data['gpu_type']})"


def node_released(about: About, data: NodeReleased) -> Words:
    yield "giving "
    yield node(about)
    yield f" back ({data['gpu_type']})"
    if data["why"] == "not_ready":
        yield f": {_NOT_READY} "
        yield time(data.get("after_s", 0.0))
    if "worth_per_hour" in data:
        worth, price = data["worth_per_hour"], data.get("price_per_hour", 0.0)
        yield f": it was worth {rate(max(worth, 0.0))} of the {rate(price)} that it costs"
    moved = data.get("moved", [])
    for n, job in enumerate(moved):
        yield "; " if n == 0 else ", "
        yield Part(f"job {job}", job=job)
    if moved:
        yield f" move{'s' if len(moved) == 1 else ''} (a pause of "
        yield time(data.get("pause_s", 0.0))
        yield ")"


def not_ready(after_s: Seconds) -> str:
    """Why a node was given back that did not come up."""
    return f"{_NOT_READY} {seconds(after_s)}"


def node_leaving(about: About, data: NodeLeaving) -> Words:
    yield "the cloud takes "
    yield node(about)
    yield f" ({data['gpu_type']}) away in "
    yield time(data["in_s"])


def node_gone(about: About, data: OfNode) -> Words:
    yield node(about)
    yield f" ({data['gpu_type']}) is gone"


def node_lost(about: About, data: NodeLost) -> Words:
    yield node(about)
    yield f" ({data['gpu_type']}) is lost: {LOST[data['why']]}"


def orphan(about: About, data: OfNode) -> Words:
    yield f"the cloud has a node that nobody wants ({data['gpu_type']}): giving it back"
