"""Placements that runs are on, and those that runs failed at before they made any progress."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from boa.model.cluster import Allocation, JobId
from boa.units import GpuName, Seconds

AGAIN_S: tuple[Seconds, ...] = (3600.0, 6 * 3600.0)
"""Seconds after which a placement that failed may be tried again: one failure may be chance. Once
these are used up it is not, unless what is run has changed or somebody asks."""
MOST_TRIES = len(AGAIN_S) + 1


class Placement(NamedTuple):
    """GPU type, width, and whether on several nodes."""

    gpu: GpuName
    width: int
    across: bool

    @classmethod
    def of(cls, allocation: Allocation) -> "Placement":
        return cls(allocation.gpu, allocation.width, len(allocation.nodes) > 1)


class FailedPlacement(NamedTuple):
    """A placement at which runs failed by themselves, while it went well at another."""

    place: Placement
    times: int
    """Runs that failed there."""
    tries: int
    """The same, without those that had begun before the one before them was known to fail."""
    at: Seconds
    """When the last one failed …"""
    reason: str
    """… why …"""
    job: JobId
    """… of which job …"""
    code: str
    """… and what that ran (`JobRecord.code`)."""
    said: str = ""
    """Line of its log that tells most of why: for who may read the log."""

    @classmethod
    def read(cls, row: "Sequence[Any]") -> "FailedPlacement":
        """From JSON, as a tuple is written there."""
        return cls(Placement(*row[0]), *row[1:])

    @property
    def again_at(self) -> Seconds | None:
        """When it may be tried again; None: not by itself."""
        return None if self.tries >= MOST_TRIES else self.at + AGAIN_S[self.tries - 1]

    def stands(self, now: Seconds) -> bool:
        """Whether nobody is to be there now."""
        return self.again_at is None or now < self.again_at

    def once_more(self, after: "FailedPlacement", began: Seconds) -> "FailedPlacement":
        """Both together; `began`: when the later run did."""
        return after._replace(times=self.times + 1, tries=self.tries + (began > self.at))

    def withdrawn(self) -> "FailedPlacement | None":
        """Without the last failure; None: there was no other."""
        if self.times == 1:
            return None
        return self._replace(times=self.times - 1, tries=max(self.tries - 1, 1))
