"""A store in memory, and an engine that has only logs: what the server reads from."""

import math
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from boa.model.access import AuditEntry, TokenRecord
from boa.model.changes import Changes
from boa.model.cluster import JobId, NodeId
from boa.model.held import Held
from boa.model.job import JobRecord
from boa.model.notices import Notice
from boa.model.records import Event, Hold, NodeRecord, Point, Sample
from boa.model.runs import Launch, LogFile, RunEvent, RunKey
from boa.model.sampled import Sampled
from boa.store.base import Saved, StoredAudit, StoredEvent, StoreTrouble
from boa.units import Seconds


def held(holds: Sequence[Hold]) -> Held:
    """Holds by column, as a store gives them."""
    classes = sorted({hold.stream for hold in holds})
    return Held(
        streams=classes,
        which=np.array([classes.index(hold.stream) for hold in holds], dtype=np.int64),
        job=np.array([int(hold.job) for hold in holds], dtype=np.int64),
        node=np.array([hold.node for hold in holds], dtype=np.int64),
        gpus=np.array([hold.gpus for hold in holds], dtype=float),
        since=np.array([hold.since for hold in holds], dtype=float),
        until=np.array([math.inf if h.until is None else h.until for h in holds], dtype=float),
    )


class FakeStore:
    """Keeps what it is given; `trouble` makes every reading fail."""

    def __init__(self) -> None:
        self.kept: dict[JobId, JobRecord] = {}
        self.kept_nodes: dict[NodeId, NodeRecord] = {}
        self.kept_holds: list[Hold] = []
        self.kept_samples: list[Sample] = []
        self.kept_points: list[Point] = []
        self.told: list[Event] = []
        self.audited: list[AuditEntry] = []
        self.noticed: list[Notice] = []
        self.trouble: StoreTrouble | None = None
        self.failed = threading.Event()
        """Set once somebody was told of the trouble."""

    def _check(self) -> None:
        if (trouble := self.trouble) is not None:
            self.failed.set()
            raise trouble

    def load(self) -> Saved:
        raise AssertionError("the server reads; only the control loop loads")

    def commit(self, changes: Changes) -> int:
        raise AssertionError("the server reads; only the control loop writes")

    def job(self, job: JobId) -> JobRecord | None:
        self._check()
        return self.kept.get(job)

    def jobs(
        self,
        *,
        ended: bool | None = None,
        job_class: str | None = None,
        since: Seconds | None = None,
        limit: int = 1000,
        before: int | None = None,
    ) -> Sequence[JobRecord]:
        self._check()
        found = [
            record
            for record in self.kept.values()
            if (ended is None or record.ended == ended)
            and (job_class is None or record.job_class == job_class)
            and (before is None or int(record.id) < before)
        ]
        return sorted(found, key=lambda record: -int(record.id))[:limit]

    def events(
        self, *, after: int = 0, job: JobId | None = None, limit: int = 1000, newest: bool = False
    ) -> Sequence[StoredEvent]:
        self._check()
        found = [
            StoredEvent(number, event)
            for number, event in enumerate(list(self.told), start=1)
            if number > after and job in (None, event.job)
        ]
        return found[-limit:] if newest else found[:limit]

    def tokens(self) -> Sequence[TokenRecord]:
        self._check()
        return []

    def audit(
        self,
        *,
        since: Seconds = 0.0,
        who: str | None = None,
        before: int | None = None,
        limit: int = 1000,
    ) -> Sequence[StoredAudit]:
        self._check()
        found = [
            StoredAudit(number, entry)
            for number, entry in enumerate(self.audited, start=1)
            if entry.at >= since
            and who in (None, entry.who)
            and (before is None or number < before)
        ]
        return found[::-1][:limit]

    def notices(
        self,
        *,
        target: str | None = None,
        waiting: bool | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[Notice]:
        self._check()
        found = [
            notice
            for notice in self.noticed
            if target in (None, notice.target) and waiting in (None, notice.state == "waiting")
        ]
        return found[-limit:] if newest else found[:limit]

    def nodes_between(self, since: Seconds, until: Seconds) -> Sequence[NodeRecord]:
        self._check()
        return list(self.kept_nodes.values())

    def holds_between(
        self, since: Seconds, until: Seconds, *, job: JobId | None = None
    ) -> Sequence[Hold]:
        self._check()
        return [hold for hold in self.kept_holds if job in (None, hold.job)]

    def held_between(self, since: Seconds, until: Seconds) -> Held:
        self._check()
        return held(self.kept_holds)

    def nodes(self, ids: Collection[NodeId]) -> Sequence[NodeRecord]:
        self._check()
        return [node for number, node in sorted(self.kept_nodes.items()) if number in ids]

    def samples_between(self, since: Seconds, until: Seconds) -> Sequence[Sample]:
        self._check()
        return [sample for sample in self.kept_samples if since <= sample.at <= until]

    def sampled_between(self, since: Seconds, until: Seconds) -> Sampled:
        return Sampled.of(self.samples_between(since, until))

    def points(self, job: JobId) -> Sequence[Point]:
        self._check()
        return [point for point in self.kept_points if point.job == job]

    def close(self) -> None: ...


@dataclass
class FakeEngine:
    """Logs are what a test has written into a folder: ATTEMPT-RANK-PART.log, part 0 the older."""

    folder: Path

    def logs(self, job: JobId) -> Sequence[LogFile]:
        found = []
        for path in (self.folder / job).glob("*.log"):
            attempt, rank, part = map(int, path.stem.split("-"))
            found.append((attempt, rank, part, path))
        return [LogFile(attempt, rank, path) for attempt, rank, _, path in sorted(found)]

    def write(self, job: JobId, text: str, *, attempt: int = 1, rank: int = 0) -> None:
        path = self.folder / job / f"{attempt}-{rank}-1.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as log:
            log.write(text)

    def turn_over(self, job: JobId) -> None:
        """As the local engine does with a log that has grown long."""
        (self.folder / job / "1-0-1.log").rename(self.folder / job / "1-0-0.log")

    def start(self, launch: Launch) -> None:
        raise AssertionError("the server reads logs; only the control loop starts runs")

    def stop(self, key: RunKey, grace_s: Seconds, then: Launch | None = None) -> None:
        raise AssertionError("the server reads logs; only the control loop stops runs")

    def poll(self) -> Sequence[RunEvent]:
        return ()

    def runs(self) -> Collection[RunKey]:
        return ()

    def forget(self, key: RunKey) -> None:
        raise AssertionError("the server reads logs; only the control loop forgets runs")

    def close(self) -> None: ...
