"""All that one step of the scheduler changes: what a store writes in one transaction."""

from dataclasses import dataclass, field
from typing import Any

from boa.model.access import AuditEntry, TokenRecord
from boa.model.cluster import JobId, NodeId
from boa.model.job import JobRecord
from boa.model.notices import Notice
from boa.model.records import Cell, ClassRecord, Event, Hold, NodeRecord, Point, Sample
from boa.units import Seconds


@dataclass(slots=True, kw_only=True)
class Changes:
    """All that one step changes; written together or not at all. Records replace their like."""

    jobs: dict[JobId, JobRecord] = field(default_factory=dict)
    nodes: dict[NodeId, NodeRecord] = field(default_factory=dict)
    holds: dict[tuple[JobId, NodeId, Seconds], Hold] = field(default_factory=dict)
    """Holds by job, node and beginning."""
    cells: list[Cell] = field(default_factory=list)
    classes: list[ClassRecord] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    """JSON by key: budget, pacing, plan, clock, secrets (encrypted), …"""
    samples: list[Sample] = field(default_factory=list)
    points: dict[JobId, Point] = field(default_factory=dict)
    """Points to keep, at most one of a job."""
    tokens: dict[str, TokenRecord] = field(default_factory=dict)
    """Tokens by name."""
    audit: list[AuditEntry] = field(default_factory=list)
    notices: dict[int, Notice] = field(default_factory=dict)
    """Notices by number: new ones, and those that have got on."""

    def __bool__(self) -> bool:
        records = (self.jobs, self.nodes, self.holds, self.cells, self.classes)
        others = (self.events, self.meta, self.samples, self.points, self.tokens, self.audit)
        return any((*records, *others, self.notices))
