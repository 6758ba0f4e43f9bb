"""Instances of ours, read from AWS's lists. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from boa.clouds.aws.shapes import GPU, TOKEN
from boa.units import GpuName, Seconds

ALIVE = ("pending", "running")
NOTICE_S: Seconds = 120.0
"""Seconds from the notice that a spot instance is taken away until it is."""
MARKED = ("marked-for-termination", "marked-for-stop")
_WHEN = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Times are the wall's, as AWS gives them."""

    id: str
    token: str
    """The token that it was rented under; its own id behind the owner's name where that cannot be
    it."""
    gpu: GpuName
    kind: str
    zone: str
    spot: bool
    state: str
    launched: Seconds
    ended: Seconds | None = None
    """When AWS began to take it down, where it says so."""

    @property
    def is_gone(self) -> bool:
        return self.state == "terminated"


def instances(pages: Iterable[Mapping[str, Any]], owner: str) -> list[Instance]:
    """The oldest under a token has it; all others are nobody's, and no two have the same."""
    found = [
        _instance(said)
        for page in pages
        for reservation in page["Reservations"]
        for said in reservation["Instances"]
    ]
    taken: set[str] = set()
    listed = []
    for instance in sorted(found, key=lambda one: (one.launched, one.id)):
        ours = instance.token.startswith(f"{owner}-")
        is_token = ours and not instance.token.startswith(f"{owner}-i-")
        named = is_token and instance.token not in taken
        token = instance.token if named else f"{owner}-{instance.id}"
        taken.add(token)
        listed.append(replace(instance, token=token))
    return listed


def marked(pages: Iterable[Mapping[str, Any]]) -> dict[str, Seconds]:
    """Spot instances that AWS takes away -> when."""
    return {
        request["InstanceId"]: request["Status"]["UpdateTime"].timestamp() + NOTICE_S
        for page in pages
        for request in page["SpotInstanceRequests"]
        if request.get("InstanceId") and request.get("Status", {}).get("Code") in MARKED
    }


def _instance(said: Mapping[str, Any]) -> Instance:
    tags = {tag["Key"]: tag["Value"] for tag in said.get("Tags", ())}
    state = said["State"]["Name"]
    return Instance(
        id=said["InstanceId"],
        token=tags.get(TOKEN, ""),
        gpu=tags.get(GPU, ""),
        kind=said["InstanceType"],
        zone=said.get("Placement", {}).get("AvailabilityZone", ""),
        spot=said.get("InstanceLifecycle") == "spot",
        state=state,
        launched=said["LaunchTime"].timestamp(),
        ended=None if state in ALIVE else _when(said.get("StateTransitionReason", "")),
    )


def _when(reason: str) -> Seconds | None:
    """AWS writes: User initiated (2026-11-15 16:01:11 GMT)."""
    found = _WHEN.search(reason)
    if found is None:
        return None
    return datetime.fromisoformat(found.group(1)).replace(tzinfo=UTC).timestamp()
