"""Nodes that hold training state which is on no disk yet: given back when it is, or the grace of
its job is over.

Where the state of a job is, a file beside its checkpoints tells (`boa.train.keeper.pointer`), as
far as the service sees that folder. Its keeper writes it by itself, seconds after a run has ended.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from boa.model.cluster import JobId, NodeId
from boa.model.job import JobRecord
from boa.model.records import NodeRecord
from boa.train.keeper import pointer
from boa.units import Seconds


class Draining:
    """Jobs that ended are nobody's concern: what they had to keep they have saved."""

    def __init__(self, home_of: Callable[[JobRecord], Path]) -> None:
        """`home_of`: where a job's checkpoints are."""
        self._home_of = home_of
        self._been: dict[NodeId, set[JobId]] = {}
        """Jobs that have had GPUs of a node since the service began."""
        self._asked: set[NodeId] = set()
        """Nodes of which jobs that left them before that were asked for, too."""
        self._since: dict[NodeId, Seconds] = {}
        """When it was first to be given back, by the wall."""

    def seen(self, jobs: Iterable[JobRecord]) -> None:
        for job in jobs:
            for node in job.run.slots if job.run is not None else ():
                self._been.setdefault(node, set()).add(job.id)

    def waits(self, node: NodeRecord, jobs: Mapping[JobId, JobRecord], now: Seconds) -> bool:
        """Whether it is to be given back later. `now`: by the wall, from any beginning."""
        since = self._since.setdefault(node.id, now)
        if not node.address:
            return False
        been = self._been.setdefault(node.id, set())
        if node.id not in self._asked:
            self._asked.add(node.id)
            been.update(job.id for job in tuple(jobs.values()) if self._left(node, job))
        been.intersection_update(tuple(jobs))  # ended ones are gone
        here = [jobs[job] for job in tuple(been) if job in jobs]
        return any(now - since < job.spec.grace_s and self._left(node, job) for job in here)

    def _left(self, node: NodeRecord, job: JobRecord) -> bool:
        return job.attempts > 0 and node.address in pointer.nodes(self._home_of(job))

    def gone(self, node: NodeId) -> None:
        self._been.pop(node, None)
        self._since.pop(node, None)
        self._asked.discard(node)
