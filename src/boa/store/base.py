"""The store's protocol: one transaction per change, made before it is acted on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from boa.errors import BoaError
from boa.model.access import AuditEntry, TokenRecord
from boa.model.changes import Changes
from boa.model.cluster import JobId, NodeId
from boa.model.held import Held
from boa.model.job import JobRecord
from boa.model.notices import Notice
from boa.model.records import Cell, ClassRecord, Event, Hold, NodeRecord, Point, Sample
from boa.model.sampled import Sampled
from boa.units import Seconds


class StoreTrouble(BoaError):
    """The database is locked, full or away. Nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Everything that a service needs to go on: all that has not ended."""

    jobs: Sequence[JobRecord]
    """Not ended, by number."""
    nodes: Sequence[NodeRecord]
    """Not gone, by id."""
    holds: Sequence[Hold]
    """Open holds."""
    cells: Sequence[Cell]
    classes: Sequence[ClassRecord]
    meta: Mapping[str, Any]
    next_job: int
    """The first number that no job has had."""
    next_node: NodeId
    points: Mapping[JobId, Point] = field(default_factory=dict)
    """The last one of every job that has not ended and has any."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    number: int
    """Rises by time; what a reader of events goes on from."""
    event: Event


@dataclass(frozen=True, slots=True)
class StoredAudit:
    number: int
    """Rises by time."""
    entry: AuditEntry


class Store(Protocol):
    """`load` and `commit` by one thread; reading from any."""

    def load(self) -> Saved: ...

    def commit(self, changes: Changes) -> int:
        """Write all of it in one transaction; raises StoreTrouble and writes nothing.

        Gives the number of the last event that is now stored.
        """
        ...

    def job(self, job: JobId) -> JobRecord | None: ...

    def jobs(
        self,
        *,
        ended: bool | None = None,
        job_class: str | None = None,
        since: Seconds | None = None,
        limit: int = 1000,
        before: int | None = None,
    ) -> Sequence[JobRecord]:
        """Newest first. `before`: jobs of smaller numbers only; `since`: submitted since."""
        ...

    def events(
        self, *, after: int = 0, job: JobId | None = None, limit: int = 1000, newest: bool = False
    ) -> Sequence[StoredEvent]:
        """By rising number; the first ones after `after`, or the `newest` so many."""
        ...

    def tokens(self) -> Sequence[TokenRecord]:
        """All that there ever were by their names, revoked ones included."""
        ...

    def audit(
        self,
        *,
        since: Seconds = 0.0,
        who: str | None = None,
        before: int | None = None,
        limit: int = 1000,
    ) -> Sequence[StoredAudit]:
        """Newest first. `before`: of smaller numbers only."""
        ...

    def notices(
        self,
        *,
        target: str | None = None,
        waiting: bool | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[Notice]:
        """By rising number; the first so many, or the `newest`."""
        ...

    def nodes_between(self, since: Seconds, until: Seconds) -> Sequence[NodeRecord]:
        """All nodes that were charged for at any time in between, gone ones included."""
        ...

    def holds_between(
        self, since: Seconds, until: Seconds, *, job: JobId | None = None
    ) -> Sequence[Hold]:
        """All holds that overlap, closed and open."""
        ...

    def held_between(self, since: Seconds, until: Seconds) -> Held:
        """The same by column, in no order: a fraction of the time."""
        ...

    def nodes(self, ids: Collection[NodeId]) -> Sequence[NodeRecord]:
        """These nodes, gone ones included, as far as they are known; by id."""
        ...

    def samples_between(self, since: Seconds, until: Seconds) -> Sequence[Sample]:
        """By time, both ends included."""
        ...

    def sampled_between(self, since: Seconds, until: Seconds) -> Sampled:
        """The same by column: a fraction of the time."""
        ...

    def points(self, job: JobId) -> Sequence[Point]:
        """By time."""
        ...

    def close(self) -> None: ...
