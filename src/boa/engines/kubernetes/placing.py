"""When a run whose pods are not all up is given up, and why. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from boa.engines.kubernetes.marker import Marker
from boa.engines.kubernetes.member import Member
from boa.engines.kubernetes.status import AT_ONCE, BROKEN, IMAGE
from boa.units import Seconds

BROKEN_S: Seconds = 60.0
"""Seconds for what seldom mends by itself, such as an image that is not found: GPUs are waiting."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    reason: str
    by_job: bool
    """Whether what the job or the template asks for is wrong, and not the cluster too full."""
    pod: str = ""
    """The pod whose last warning may tell more."""


def given_up(
    marker: Marker, members: Sequence[Member], now: Seconds, waited_s: Seconds, placed_s: Seconds
) -> GivenUp | None:
    """None: not yet."""
    for member in members:
        if member.broken_since is None or member.pod is None:
            continue
        hopeless = member.pod.waiting in AT_ONCE
        if hopeless or now - member.broken_since >= min(BROKEN_S, placed_s):
            return GivenUp(_broken(member, marker.image), by_job=True)
    if waited_s < placed_s:
        return None
    late = next((one for one in members if one.pod is None or not one.pod.going), members[-1])
    if late.broken_since is not None:
        return GivenUp(_broken(late, marker.image), by_job=True)
    width = sum(member.part.gpus for member in members)
    what = f"{width} {marker.gpu_type} GPU{'s' if width > 1 else ''}"
    where = f"pod {late.name} for node {late.part.node}"
    said = f"{what} could not be had within {placed_s:g} s: {where}: {why_late(late)}"
    return GivenUp(said, by_job=False, pod=late.name if _is_placed(late) else "")


def awaited(members: Sequence[Member]) -> str:
    """The first that is not up, and why, in words."""
    late = [one for one in members if one.pod is None or not one.pod.going]
    return f"node {late[0].part.node}: {why_late(late[0])}" if late else ""


def watch_broken(member: Member, now: Seconds) -> None:
    """Note since when its container cannot begin."""
    broken = member.pod is not None and member.pod.waiting in BROKEN
    if not broken:
        member.broken_since = None
    elif member.broken_since is None:
        member.broken_since = now


def why_late(member: Member) -> str:
    if member.pod is None:
        return member.refused or "it could not be created"
    if member.pod.why:
        return member.pod.why
    if member.pod.going:
        return "a pod of the run has no address"
    return "its container has not begun" if _is_placed(member) else "it is not scheduled"


def _is_placed(member: Member) -> bool:
    return member.pod is not None and member.pod.stage == "placed"


def _broken(member: Member, image: str) -> str:
    assert member.pod is not None
    if member.pod.waiting in IMAGE:
        return f"image {image} cannot be had on node {member.part.node}: {member.pod.why}"
    return f"its container cannot begin on node {member.part.node}: {member.pod.why}"
