"""From where jobs are to be to where they are: runs are started, and stopped to be elsewhere."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from boa.model.cluster import Allocation, NodeId
from boa.model.events import EventKind
from boa.model.job import JobRecord, Run
from boa.model.job import State as JobState
from boa.placement.packing import choose_slots
from boa.scheduler.decide import reasons
from boa.scheduler.decide.part_caps import Caps, Held
from boa.scheduler.preempting import tell_preempted
from boa.scheduler.state import Draft, State
from boa.scheduler.words.of_terms import PAUSED
from boa.units import UsdPerHour


def move(draft: Draft, caps: Caps = ()) -> None:
    """Start whatever has its GPUs ready and free, then stop runs that are to be elsewhere. `caps`:
    of those who share the budget; a run that would cross one begins once others have stopped.

    A run whose next nodes are still booting goes on, unless somebody waits for its GPUs.
    """
    waited_for = _start_all(draft, caps)
    running = [(job, job.run) for job in draft.jobs.values() if job.run is not None]
    elsewhere = []
    for job, run in running:
        if job.allocation is run.allocation and not job.stop_requested:
            continue  # nearly always it is given the very same
        elsewhere.append(job.id)
        if run.state == "stopping":
            continue
        if job.stop_requested:
            _stop(draft, job, run, job.reason)
        elif _elsewhere(job, run) and (
            job.allocation is None
            or _ready(draft, job.allocation)
            or any(node in waited_for for node in run.slots)
        ):
            _stop(draft, job, run, _why_elsewhere(job))
    tell_preempted(draft, elsewhere)


def _why_elsewhere(job: JobRecord) -> str:
    if job.held_back:
        return PAUSED if job.paused else job.reason
    return "moving" if job.allocation else "GPUs are short"


def _elsewhere(job: JobRecord, run: Run) -> bool:
    """Whether it is to have other GPUs than its run."""
    return job.allocation != run.allocation


def _stop(draft: Draft, job: JobRecord, run: Run, reason: str) -> None:
    stopping = replace(run, state="stopping", stopping_at=draft.now)
    state: JobState = job.state if job.stop_requested else "rescaling"
    draft.put_job(replace(job, run=stopping, state=state, reason=reason))


def _ready(draft: Draft, allocation: Allocation) -> bool:
    return all(
        node in draft.nodes and draft.nodes[node].state == "ready" for node, _ in allocation.nodes
    )


def _startable(draft: Draft) -> list[JobRecord]:
    return [
        job
        for job in draft.jobs.values()
        if job.run is None
        and job.allocation is not None
        and not job.stop_requested
        and _ready(draft, job.allocation)
    ]


def _start_all(draft: Draft, caps: Caps) -> set[NodeId]:
    """Nodes whose GPUs somebody waits for are returned."""
    startable = _startable(draft)
    if not startable:
        return set()
    waited_for: set[NodeId] = set()
    asked = {node for job in startable if job.allocation for node, _ in job.allocation.nodes}
    busy = _busy_slots(draft.jobs.values(), asked)
    held = Held(caps, draft.jobs.values() if caps else (), _prices(draft) if caps else {})
    for job in startable:
        allocation = job.allocation
        assert allocation is not None
        gpus = {node: draft.nodes[node].gpus for node, _ in allocation.nodes}
        slots = choose_slots(allocation, busy, gpus)
        if slots is None:
            waited_for.update(gpus)
            continue
        if not held.starts(job, slots):
            continue
        for node, chosen in slots.items():
            busy.setdefault(node, set()).update(chosen)
        _start(draft, job, allocation, slots)
    return waited_for


def _prices(draft: Draft) -> dict[NodeId, UsdPerHour]:
    return {node.id: node.price_at(draft.now) for node in draft.nodes.values()}


def next_slots(state: State, job: JobRecord) -> dict[NodeId, tuple[int, ...]] | None:
    """Which GPUs a job that is stopped to be elsewhere will have, as it looks now: those of its run
    are free then. None: they are not all to be had."""
    allocation = job.allocation
    if allocation is None or job.stop_requested:
        return None
    nodes = [node for node, _ in allocation.nodes]
    if any(node not in state.nodes or state.nodes[node].state != "ready" for node in nodes):
        return None
    others = [other for other in state.jobs.values() if other.id != job.id]
    gpus = {node: state.nodes[node].gpus for node in nodes}
    return choose_slots(allocation, _busy_slots(others, set(nodes)), gpus)


def _busy_slots(jobs: Iterable[JobRecord], nodes: AbstractSet[NodeId]) -> dict[NodeId, set[int]]:
    """GPUs of these nodes that runs are on."""
    busy: dict[NodeId, set[int]] = {}
    for job in jobs:
        if job.run is not None and not nodes.isdisjoint(job.run.slots):
            for node, slots in job.run.slots.items():
                if node in nodes:
                    busy.setdefault(node, set()).update(slots)
    return busy


def _start(
    draft: Draft, job: JobRecord, allocation: Allocation, slots: dict[NodeId, tuple[int, ...]]
) -> None:
    run = Run(
        attempt=job.attempts + 1,
        allocation=allocation,
        slots=slots,
        requested_at=draft.now,
        decided_at=draft.now - (0.0 if job.moved_at is None else job.stopped_s),
        moved=job.attempts > 0 and job.moved_at is not None,
    )
    again = job.attempts > 0
    retried = again and job.moved_at is None
    rescaled = again and not retried
    job = replace(
        job,
        run=run,
        attempts=run.attempt,
        state="rescaling" if rescaled else "starting",
        rescalings=job.rescalings + rescaled,
        restarts=job.restarts + retried,
        retry_at=None,
        moved_at=None,
        preempted_by="",
        stopped_s=0.0,
        reason="",
    )
    draft.put_job(replace(job, why={}))
    draft.open_holds(job, run)
    draft.count(rescalings=rescaled, restarts=retried)
    kind: EventKind = "restarted" if retried else "rescaled" if rescaled else "started"
    draft.tell(kind, job=job.id, **reasons.told(job, run, retried=retried))
