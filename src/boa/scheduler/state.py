"""The service's state, and a draft of the next one: nothing counts until it is stored."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from boa.model.changes import Changes
from boa.model.cluster import JobId, NodeId
from boa.model.events import EventKind, has_its_fields
from boa.model.job import JobRecord, Run
from boa.model.placements import FailedPlacement
from boa.model.records import Event, Hold, NodeRecord
from boa.model.sweep import Sweep
from boa.replacing import replace
from boa.scheduler.money.ledger import (
    Totals,
    as_until_now,
    closed_hold,
    closed_node,
    ended_hold,
    hold_cost,
)
from boa.scheduler.money.tally import Tally
from boa.scheduler.words.sentences import sentence
from boa.units import Seconds

SWEEPS = "sweep/"
"""Beginning of the names that sweeps are stored under."""
HoldKey = tuple[JobId, NodeId, Seconds]


def priced_as(hold: Hold, node: NodeRecord | None) -> Hold:
    """An open hold at the prices of its node; as it is, where that is not there any more."""
    if node is None or hold.changes == node.changes:
        return hold
    return replace(hold, price=node.price, changes=node.changes)


def owner_of(cluster: str) -> str:
    """The part of its name that stays when the database is lost."""
    return cluster.rpartition("-")[0] or cluster


@dataclass(slots=True, kw_only=True)
class State:
    """Everything that has not ended; records are frozen, a step replaces them."""

    jobs: dict[JobId, JobRecord] = field(default_factory=dict)
    nodes: dict[NodeId, NodeRecord] = field(default_factory=dict)
    holds: dict[HoldKey, Hold] = field(default_factory=dict)
    """Open holds."""
    totals: Totals = field(default_factory=Totals)
    """Cost of closed nodes and closed holds, added up."""
    tally: Tally = field(default_factory=Tally)
    """Dollars that jobs that are paid for have held since money was last looked at."""
    serials: dict[str, int] = field(default_factory=dict)
    """How many jobs of each class there have been."""
    next_job: int = 1
    next_node: NodeId = 1
    cluster: str = "boa"
    """Begins every token. Its part before the last dash is the service's own, and stays when its
    database is lost: a cloud account can be shared by several services."""
    gone: dict[str, NodeRecord] = field(default_factory=dict)
    """Nodes that went not long ago, by token: one that turns up again is not paid for twice."""
    sweeps: dict[str, Sweep] = field(default_factory=dict)
    """Those with jobs that have not ended, by id."""
    next_sweep: int = 1
    missing: set[NodeId] = field(default_factory=set)
    """Nodes that the last list left out: one list is not believed."""

    def copy(self) -> "State":
        return State(
            jobs=dict(self.jobs),
            nodes=dict(self.nodes),
            holds=dict(self.holds),
            totals=self.totals,
            tally=self.tally,
            serials=dict(self.serials),
            next_job=self.next_job,
            next_node=self.next_node,
            cluster=self.cluster,
            gone=dict(self.gone),
            sweeps=dict(self.sweeps),
            next_sweep=self.next_sweep,
            missing=set(self.missing),
        )


class FailedRun(NamedTuple):
    """A run that failed by itself."""

    job: JobRecord
    found: FailedPlacement
    began: Seconds
    counted: bool
    """As a failure of the job's own."""


class Draft:
    """A state being changed, with the list of changes that one transaction will store."""

    def __init__(self, state: State, now: Seconds) -> None:
        self.now = now
        self.state = state.copy()
        self.changes = Changes()
        self.replan = False
        """Whether anything happened that placement has to look at."""
        self.counted: dict[str, float] = {}
        self.arrived: list[JobRecord] = []
        self.failed: list[FailedRun] = []
        self.sweeps_ended: dict[str, str] = {}
        """How those have ended that did in this draft, by id."""
        self.changed_sweeps: dict[str, Sweep] = {}
        self._by_node: dict[NodeId, dict[JobId, None]] | None = None

    @property
    def jobs(self) -> dict[JobId, JobRecord]:
        return self.state.jobs

    @property
    def paying(self) -> list[JobRecord]:
        """Jobs that GPUs are rented for: all but those in the background."""
        jobs = self.state.jobs.values()
        return [job for job in jobs if job.spec.priority != "background"]  # as `job.background`

    @property
    def nodes(self) -> dict[NodeId, NodeRecord]:
        return self.state.nodes

    def put_job(self, job: JobRecord) -> JobRecord:
        """An ended job is stored and leaves the state."""
        self.changes.jobs[job.id] = job
        if self._by_node is not None:
            _note(self._by_node, job)
        if job.ended:
            self.jobs.pop(job.id, None)
            self.replan = self.replan or not job.background
        else:
            self.jobs[job.id] = job
        return job

    def jobs_on(self, node: NodeId) -> list[JobRecord]:
        """Those that run on it or are to; known by node once somebody asks, since whole racks of
        nodes go at once and every job would be looked at for each of them."""
        if self._by_node is None:
            self._by_node = {}
            for job in self.jobs.values():
                _note(self._by_node, job)
        found = (self.jobs.get(job) for job in self._by_node.get(node, ()))
        return [job for job in found if job is not None and node in _nodes_of(job)]

    def put_node(self, node: NodeRecord) -> None:
        self.changes.nodes[node.id] = node
        if node.state == "gone":
            self.nodes.pop(node.id, None)
            self.state.missing.discard(node.id)
            self.state.gone[node.token] = node
            self.state.totals = closed_node(self.state.totals, node)
            self.put_meta("totals", self.state.totals.as_document())
        else:
            self.nodes[node.id] = node

    def open_holds(self, job: JobRecord, run: Run) -> None:
        """From now on the job is charged for what its run has."""
        for node, slots in run.slots.items():
            hold = Hold(
                job=job.id,
                stream=job.stream,
                node=node,
                gpus=len(slots),
                price=self.nodes[node].price,
                since=run.requested_at,
                changes=self.nodes[node].changes,
            )
            key = (job.id, node, run.requested_at)
            self.state.holds[key] = self.changes.holds[key] = hold

    def price_holds(self, nodes: Mapping[NodeId, NodeRecord]) -> None:
        """Charge holds on these nodes at the prices that they are now known to have."""
        before = self.nodes
        news = {
            id: node
            for id, node in nodes.items()
            if id in before and before[id].changes != node.changes
        }
        for key, hold in list(self.state.holds.items()) if news else ():
            if hold.node in news:
                self.state.holds[key] = priced_as(hold, news[hold.node])

    def close_holds(
        self, job: JobRecord, run: Run, at: Seconds, nodes: Iterable[NodeId] | None = None
    ) -> JobRecord:
        """Its run ended then (or lost these nodes); what it held is added to the job's cost."""
        for node in run.slots if nodes is None else nodes:
            key = (job.id, node, run.requested_at)
            held = self.state.holds.pop(key, None)
            if held is None:  # its node was lost before
                continue
            until = min(max(at, held.since), self.now)
            if not job.background:
                self.state.tally = self.state.tally.with_closed(held, until)
            hold = ended_hold(held, until)
            self.changes.holds[key] = hold
            self.state.totals = closed_hold(self.state.totals, hold, background=job.background)
            job = replace(
                job,
                cost_usd=job.cost_usd + hold_cost(hold, self.now),
                held_gpu_s=job.held_gpu_s + ((hold.until or at) - hold.since) * hold.gpus,
            )
        self.put_meta("totals", self.state.totals.as_document())
        self.put_meta("tally", self.state.tally.as_document())
        return job

    def change_background(self, job: JobRecord) -> None:
        """It is about to go into the background, or to leave it: from now on, not before."""
        holds = [hold for hold in self.state.holds.values() if hold.job == job.id]
        was = job.background
        self.state.totals = as_until_now(self.state.totals, holds, self.now, background=was)
        self.state.tally = self.state.tally.as_until_now(holds, self.now, background=was)
        self.put_meta("totals", self.state.totals.as_document())
        self.put_meta("tally", self.state.tally.as_document())

    def put_sweep(self, sweep: Sweep) -> None:
        """One that is over is stored and leaves the state."""
        self.changed_sweeps[sweep.id] = sweep
        self.put_meta(f"{SWEEPS}{sweep.id}", sweep.document())
        if sweep.over:
            self.state.sweeps.pop(sweep.id, None)
            self.sweeps_ended[sweep.id] = sweep.outcome
        else:
            self.state.sweeps[sweep.id] = sweep

    def put_meta(self, key: str, value: Any) -> None:
        self.changes.meta[key] = value

    def tell(
        self,
        kind: EventKind,
        *,
        job: JobId | None = None,
        node: NodeId | None = None,
        **data: Any,
    ) -> None:
        """Write down that something happened: `data` are the fields of its kind."""
        assert has_its_fields(kind, data), f"{kind}: {sorted(data)}"
        text = sentence(kind, job, node, data)
        event = Event(at=self.now, kind=kind, text=text, job=job, node=node, data=data)
        self.changes.events.append(event)

    def count(self, **amounts: float) -> None:
        for name, amount in amounts.items():
            self.counted[name] = self.counted.get(name, 0.0) + amount

    def usable_nodes(self) -> list[NodeRecord]:
        """Rented or on their way, ready ones first; not those given back, or about to be taken."""
        found = filter(is_usable, self.nodes.values())
        return sorted(found, key=lambda n: (n.state != "ready", n.id))


def is_usable(node: NodeRecord) -> bool:
    return node.state in ("requested", "ready") and node.leaving_at is None


def _nodes_of(job: JobRecord) -> set[NodeId]:
    given, run = job.allocation, job.run
    found = set() if given is None else {node for node, _ in given.nodes}
    return found if run is None else found.union(run.slots)


def _note(by_node: dict[NodeId, dict[JobId, None]], job: JobRecord) -> None:
    for node in _nodes_of(job):
        by_node.setdefault(node, {})[job.id] = None
