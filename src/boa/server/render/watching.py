"""Changes for somebody who watches: everything at first, then rows. Pure.

Records are frozen and replaced as a whole, so one that is the same object says the same. What a
row says of a job's end changes with the plan as well: then all of them are told again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from boa.model.cluster import JobId, NodeId
from boa.model.job import JobRecord
from boa.model.records import Hold, NodeRecord
from boa.runtime.snapshot import Snapshot
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.words.of_keeping import rounded_worth
from boa.units import UsdPerHour

CHUNK = 500
"""The most rows of a kind that are told at once."""
_Key = TypeVar("_Key")


class Standing(NamedTuple):
    """Worth of a node to the policy, and whether it is to go."""

    weighed: bool = False
    worth_per_hour: UsdPerHour | None = None
    draining: bool = False


NodeSeen = tuple[NodeRecord, Sequence[Hold], Standing]
"""A node, what jobs hold of it, and whether it is to stay."""
_Figures = tuple[Mapping[str, int] | None, int | None, int | None]
"""Counts, plan and last event, where they are other than before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Some of what has changed; the rest comes next time."""

    jobs: Sequence[JobRecord] = ()
    left: Sequence[JobId] = ()
    """Jobs that are no longer active."""
    nodes: Sequence[NodeSeen] = ()
    gone: Sequence[NodeId] = ()
    counts: Mapping[str, int] | None = None
    """Active jobs by state, if that is other than before; likewise the others."""
    plan: int | None = None
    last_event: int | None = None

    def __bool__(self) -> bool:
        lists = (self.jobs, self.left, self.nodes, self.gone)
        figures = (self.counts, self.plan, self.last_event)
        return any(lists) or any(figure is not None for figure in figures)


@dataclass(slots=True)
class Watch:
    """Who watches has seen this much. What is to be told waits in order, so that rows which
    change all the time keep no other back; what jobs are at goes before how far they got."""

    _jobs: Mapping[JobId, JobRecord] = field(default_factory=dict)
    _nodes: dict[NodeId, NodeSeen] = field(default_factory=dict)
    _plan: PlanState | None = None
    _counts: Mapping[str, int] = field(default_factory=dict)
    _last_event: int = 0
    _moved: dict[JobId, None] = field(default_factory=dict)
    _got_on: dict[JobId, None] = field(default_factory=dict)
    _left: dict[JobId, None] = field(default_factory=dict)
    _nodes_due: dict[NodeId, None] = field(default_factory=dict)
    _gone: dict[NodeId, None] = field(default_factory=dict)

    @property
    def behind(self) -> bool:
        """Whether some rows are still to be told."""
        return any((self._moved, self._got_on, self._left, self._nodes_due, self._gone))

    def begin(self, snapshot: Snapshot) -> None:
        """All of it is to be told, the newest jobs first; figures were told already."""
        self._jobs, self._nodes, self._plan = snapshot.jobs, nodes_of(snapshot), snapshot.plan
        self._counts, self._last_event = counts_of(snapshot.jobs.values()), snapshot.last_event
        self._moved = dict.fromkeys(sorted(snapshot.jobs, key=int, reverse=True))
        self._nodes_due = dict.fromkeys(sorted(self._nodes))

    def join(self, snapshot: Snapshot) -> None:
        """All of it was told already."""
        self.begin(snapshot)
        self._moved, self._nodes_due = {}, {}

    def seen(self) -> "Watch":
        """As it is now, to be kept: what changes is replaced as a whole, but for what waits."""
        return replace(
            self,
            _moved=dict(self._moved),
            _got_on=dict(self._got_on),
            _left=dict(self._left),
            _nodes_due=dict(self._nodes_due),
            _gone=dict(self._gone),
        )

    def look(self, snapshot: Snapshot) -> News:
        """News to be told now."""
        counts, plan, last_event = self._notice(snapshot)
        return News(
            jobs=self._some_jobs(),
            left=_some(self._left, CHUNK),
            nodes=[self._nodes[node] for node in _some(self._nodes_due, CHUNK)],
            gone=_some(self._gone, CHUNK),
            counts=counts,
            plan=plan,
            last_event=last_event,
        )

    def again(self, left: Iterable[JobId]) -> None:
        """Try these the next time: it could not be found out what became of them."""
        self._left.update(dict.fromkeys(left))

    def _some_jobs(self) -> list[JobRecord]:
        moved = _some(self._moved, CHUNK)
        for job in moved:
            self._got_on.pop(job, None)
        return [self._jobs[job] for job in moved + _some(self._got_on, CHUNK - len(moved))]

    def _notice(self, snapshot: Snapshot) -> _Figures:
        self._notice_nodes(snapshot)
        counts = plan = last_event = None
        if snapshot.jobs is not self._jobs:
            self._notice_jobs(snapshot.jobs)
            found = counts_of(snapshot.jobs.values())
            if found != self._counts:
                counts = self._counts = found
        if snapshot.plan is not self._plan:
            self._plan = snapshot.plan
            plan = None if snapshot.plan is None else snapshot.plan.number
            self._got_on.update(dict.fromkeys(snapshot.jobs))
        if snapshot.last_event != self._last_event:
            last_event = self._last_event = snapshot.last_event
        return counts, plan, last_event

    def _notice_jobs(self, jobs: Mapping[JobId, JobRecord]) -> None:
        before = self._jobs
        for job, record in jobs.items():
            was = before.get(job)
            if was is not record:
                same = was is not None and was.state == record.state and was.run is record.run
                (self._got_on if same else self._moved)[job] = None
        for job in before.keys() - jobs.keys():
            self._left[job] = None
            self._moved.pop(job, None)
            self._got_on.pop(job, None)
        self._jobs = jobs

    def _notice_nodes(self, snapshot: Snapshot) -> None:
        before, now = self._nodes, nodes_of(snapshot)
        for node, seen in now.items():
            was = before.get(node)
            if was is None or was[0] is not seen[0] or was[1:] != seen[1:]:
                self._nodes_due[node] = None
                self._gone.pop(node, None)
        for node in before.keys() - now.keys():
            self._gone[node] = None
            self._nodes_due.pop(node, None)
        self._nodes = now


def counts_of(jobs: Iterable[JobRecord]) -> dict[str, int]:
    return dict(Counter(job.state for job in jobs))


def nodes_of(snapshot: Snapshot) -> dict[NodeId, NodeSeen]:
    held: dict[NodeId, list[Hold]] = {node: [] for node in snapshot.nodes}
    for hold in snapshot.holds.values():
        if hold.node in held:
            held[hold.node].append(hold)
    return {
        node: (record.priced_at(snapshot.now), held[node], _standing(snapshot, node))
        for node, record in snapshot.nodes.items()
    }


def _standing(snapshot: Snapshot, node: NodeId) -> Standing:
    why = snapshot.weighed.get(node)
    return Standing(why is not None, rounded_worth(why), node in snapshot.draining)


def _some(waiting: dict[_Key, None], most: int) -> list[_Key]:
    """Take the first so many out."""
    found = [key for key, _ in zip(waiting, range(most), strict=False)]
    for key in found:
        del waiting[key]
    return found
