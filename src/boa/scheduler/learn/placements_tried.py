"""Placements that jobs of a class were on: where it went well, and where runs failed.

A failure is kept where it is our own decision's: no job of the class ever got anywhere there, while
one did elsewhere. It counts for what was run then (`JobRecord.code`): other code is another try.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boa.model.cluster import JobId
from boa.model.placements import FailedPlacement, Placement
from boa.scheduler.learn.bars import Bars, bars_of
from boa.units import GpuName, Seconds

MOST_KEPT = 64
"""Failures of a class that are remembered; the oldest are forgotten."""


@dataclass(slots=True)
class PlacementsTried:
    worked: set[Placement] = field(default_factory=set)
    failed: dict[tuple[Placement, str], FailedPlacement] = field(default_factory=dict)
    """By placement and code, the last one that failed at the end."""
    code: str = ""
    """Fingerprint of what the newest job runs; empty: unknown."""
    seen_at: Seconds = -math.inf
    """The time, as of the last failure or of the last one that may be tried again."""

    # What is told: each gives whether that is news

    def runs(self, code: str) -> bool:
        if not code or code == self.code:
            return False
        before, self.code = self.standing(), code
        return self.standing() != before

    def works(self, place: Placement) -> bool:
        if place in self.worked:
            return False
        self.worked.add(place)
        self.failed = {key: one for key, one in self.failed.items() if one.place != place}
        return True

    def fails(self, found: FailedPlacement, began: Seconds) -> bool:
        """`began`: when its run did."""
        if found.place in self.worked:
            return False
        before = self.failed.pop((found.place, found.code), None)
        self.failed[found.place, found.code] = (
            found if before is None else before.once_more(found, began)
        )
        while len(self.failed) > MOST_KEPT:
            del self.failed[next(iter(self.failed))]
        self.seen_at = max(self.seen_at, found.at)
        return True

    def withdraw(self, job: JobId) -> bool:
        """Forget what a job taught that fails where others go well: it was the job."""
        mine = [key for key, found in self.failed.items() if found.job == job]
        for key in mine:
            left = self.failed.pop(key).withdrawn()
            if left is not None:
                self.failed[key] = left
        return bool(mine)

    def forgive(self, gpu: GpuName | None, width: int | None) -> list[FailedPlacement]:
        """Forget failures on this type, or any, at this width, or any: somebody asks."""
        found = [
            one
            for one in self.failed.values()
            if gpu in (None, one.place.gpu) and width in (None, one.place.width)
        ]
        for one in found:
            del self.failed[one.place, one.code]
        return found

    def look(self, now: Seconds) -> bool:
        """Whether something may be tried again since."""
        if now < self.again_at:
            return False
        self.seen_at = now
        return True

    # What follows

    @property
    def again_at(self) -> Seconds:
        """When something may next be tried again."""
        moments = (one.again_at for one in self.failed.values())
        return min((at for at in moments if at is not None and at > self.seen_at), default=math.inf)

    def standing(self) -> list[FailedPlacement]:
        """Failures that count for what the newest job runs, by placement."""
        found = [
            one for one in self.failed.values() if not self.code or one.code in ("", self.code)
        ]
        return sorted(found, key=lambda one: one.place)

    def bars(self, widest: int) -> Bars:
        return bars_of(self.standing(), self.worked, widest, self.seen_at)

    # As it is stored

    def as_document(self) -> Mapping[str, Any]:
        return {
            "worked": [list(place) for place in sorted(self.worked)],
            "failed": [[list(one.place), *one[1:]] for one in self.failed.values()],
            "code": self.code,
            "seen_at": None if math.isinf(self.seen_at) else self.seen_at,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "PlacementsTried":
        failed = [FailedPlacement.read(row) for row in document["failed"]]
        seen_at = document["seen_at"]
        return cls(
            worked={Placement(*row) for row in document["worked"]},
            failed={(one.place, one.code): one for one in failed},
            code=document["code"],
            seen_at=-math.inf if seen_at is None else seen_at,
        )
