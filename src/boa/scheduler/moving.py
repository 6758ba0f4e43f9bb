"""From where jobs are to be to where they are: runs are started, and stopped to be elsewhere."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from boa.model.cluster import Allocation, NodeId
from boa.model.events import EventKind
from boa.model.job import JobRecord, Run
from boa.model.job import State as JobState
from boa.placement.packing import choose_slots
from boa.replacing import replace
from boa.scheduler.decide import reasons
from boa.scheduler.decide.part_caps import Caps, Held
from boa.scheduler.preempting import tell_preempted
from boa.scheduler.state import Draft, State, is_usable
from boa.scheduler.stop_cost import Saves, may_stop, unknown
from boa.scheduler.words.of_terms import PAUSED
from boa.units import UsdPerHour


def keep_protected(draft: Draft, saves: Saves) -> None:
    """Have jobs stay that were to move to nodes which boot, and may no longer be stopped.

    One may have reported since then that it does not save. `saves`: whether jobs of its class are
    believed to.
    """
    for job in list(draft.jobs.values()):
        run, given = job.run, job.allocation
        if run is None or given is None or given is run.allocation or given == run.allocation:
            continue
        stops = run.state == "stopping" or job.stop_requested or may_stop(job, saves(job))
        held = run.allocation
        if stops or not job.spec.gpus.allow(held.gpu, held.width):
            continue
        if all(node in draft.nodes and is_usable(draft.nodes[node]) for node in run.slots):
            draft.replan = True
            _stay(draft, job)


def _stay(draft: Draft, job: JobRecord) -> None:
    """Give a job the GPUs that its run has, and take them from jobs that were to have them."""
    run = None if job.run is None or job.run.state == "stopping" else job.run
    kept = None if run is None else run.allocation
    state: JobState = "preempted" if job.preempted_by else "waiting"
    if job.run is not None:
        state = job.state
    draft.put_job(replace(job, allocation=kept, why={}, state=state))
    for node, _ in () if kept is None else kept.nodes:
        others = draft.jobs_on(node)
        for other in others:
            if _given(draft.jobs_on(node), node) <= draft.nodes[node].gpus:
                break
            if other.id != job.id and (
                other.run is None or other.allocation != other.run.allocation
            ):
                _stay(draft, other)


def _given(jobs: Iterable[JobRecord], node: NodeId) -> int:
    """Return how many GPUs of a node jobs are to have."""
    return sum(dict(job.allocation.nodes).get(node, 0) for job in jobs if job.allocation)


def move(draft: Draft, caps: Caps = (), saves: Saves = unknown) -> None:
    """Start whatever has its GPUs ready and free, then stop runs that are to be elsewhere. `caps`:
    of those who share the budget; a run that would cross one begins once others have stopped.
    `saves`: whether jobs of a class are believed to save when they are asked to stop.

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
    tell_preempted(draft, elsewhere, saves)


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
    resumes = job.held_back
    draft.put_job(replace(job, run=stopping, state=state, reason=reason, resumes=resumes))


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
        moved=job.attempts > 0 and job.moved_at is not None and not job.resumes,
        resumed=job.moved_at is not None and job.resumes,
    )
    retried = job.attempts > 0 and job.moved_at is None
    rescaled = run.moved
    job = replace(
        job,
        run=run,
        attempts=run.attempt,
        state="rescaling" if rescaled else "starting",
        rescalings=job.rescalings + rescaled,
        restarts=job.restarts + retried,
        retry_at=None,
        moved_at=None,
        resumes=False,
        preempted_by="",
        stopped_s=0.0,
        reason="",
    )
    draft.put_job(replace(job, why={}))
    draft.open_holds(job, run)
    draft.count(rescalings=rescaled, restarts=retried)
    kind: EventKind = "rescaled" if rescaled else "restarted" if run.attempt > 1 else "started"
    draft.tell(kind, job=job.id, **reasons.told(job, run, retried=retried))
