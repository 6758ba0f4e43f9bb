"""Preemption: a running job loses all its GPUs by a decision of BOA's, and is told so. Pure."""

from collections.abc import Iterable
from typing import Any

from boa.model.cluster import Allocation, JobId
from boa.model.events import PreemptionCode
from boa.model.job import JobRecord, Run
from boa.replacing import replace
from boa.scheduler.decide.protection import rank
from boa.scheduler.state import Draft
from boa.scheduler.stop_cost import Saves, lost_s, saves_on_request, unknown, with_stop
from boa.scheduler.words.of_terms import preempted


def tell_preempted(draft: Draft, jobs: Iterable[JobId], saves: Saves = unknown) -> None:
    """Tell of every run that BOA stops and that is to go on nowhere for now: once for each run.

    `saves`: whether jobs of a class are believed to save when they are asked to stop. A run on a
    node that is gone is told of when the engine says that it ended.
    """
    for job in [draft.jobs[id] for id in jobs]:
        run = job.run
        if (
            run is None
            or run.state != "stopping"
            or run.preempted
            or (job.allocation is not None and _is_there(draft, job.allocation))
            or job.stop_requested
            or job.held_back
            or any(node not in draft.nodes for node in run.slots)
        ):
            continue
        _tell(draft, job, run, saves(job))


def _is_there(draft: Draft, allocation: Allocation) -> bool:
    """Return whether a job's next GPUs are ready: it need not wait for a node to boot."""
    nodes = (draft.nodes.get(node) for node, _ in allocation.nodes)
    return all(node is not None and node.state == "ready" for node in nodes)


def _tell(draft: Draft, job: JobRecord, run: Run, saves: bool | None) -> None:
    why: PreemptionCode = job.why.get("taken", "room")
    by = _taker(draft, job, run) if why == "job" else ""
    if why == "job" and not by:  # the GPUs went elsewhere since
        why = "room"
    data: dict[str, Any] = {"by_job": by} if by else {}
    draft.tell(
        "preempted",
        job=job.id,
        name=job.name,
        why=why,
        gpu_type=run.allocation.gpu,
        width=run.allocation.width,
        saves=saves_on_request(job, saves),
        lost_s=lost_s(job, run, run.stopping_at or draft.now, saves),
        **data,
    )
    draft.count(preemptions=1)
    if why != "node":
        job = with_stop(job, draft.now, times=1)
    told = replace(run, preempted=True)
    draft.put_job(replace(job, run=told, preempted_by=by, reason=preempted(why, by)))


def _taker(draft: Draft, job: JobRecord, run: Run) -> JobId:
    """Return the job of a higher priority that has the run's GPUs now: the one that they were
    taken for, unless a later decision of the same step gave them to another; empty: none has."""
    takers = [
        other
        for other in draft.jobs.values()
        if other.allocation is not None
        and (other.run is None or other.run.allocation != other.allocation)
        and rank(other) > rank(job)
        and any(node in run.slots for node, _ in other.allocation.nodes)
    ]
    takers.sort(key=lambda other: (other.id != job.why.get("by"), other.run is not None))
    return takers[0].id if takers else ""
