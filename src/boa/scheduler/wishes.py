"""Calls to engine and cloud that follow from what is stored. Each may be made twice."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from boa.model.job import JobRecord, Run
from boa.model.records import NodeRecord
from boa.model.runs import RunKey


@dataclass(frozen=True, slots=True)
class StartRun:
    job: JobRecord
    run: Run

    @property
    def key(self) -> RunKey:
        return RunKey(self.job.id, self.run.attempt)


@dataclass(frozen=True, slots=True)
class StopRun:
    job: JobRecord
    key: RunKey


@dataclass(frozen=True, slots=True)
class RentNode:
    node: NodeRecord


@dataclass(frozen=True, slots=True)
class ReleaseNode:
    node: NodeRecord


Wish: TypeAlias = StartRun | StopRun | RentNode | ReleaseNode


def wishes(jobs: Iterable[JobRecord], nodes: Iterable[NodeRecord]) -> Iterator[Wish]:
    """Runs first, then nodes, in the order that they come in."""
    for job in jobs:
        run = job.run
        if run is None or job.ended:
            continue
        if run.state == "requested":
            yield StartRun(job, run)
        elif run.state == "stopping":
            yield StopRun(job, RunKey(job.id, run.attempt))
    for node in nodes:
        if node.state == "requested" and node.billed_from is None:
            yield RentNode(node)
        elif node.state == "releasing":
            yield ReleaseNode(node)
