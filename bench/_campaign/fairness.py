"""Fairness rules for clusters that are short of GPUs, judged by the true durations. Pure.

Nothing here believes the scheduler's words: neither its reasons, nor its events, nor what it takes
a job's state to be. A rule looks at two states, at the jobs as they are really acted out, and at
the limits that were really set (`Truth`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from boa.model.cluster import JobId, NodeId
from boa.model.job import JobRecord
from boa.scheduler.state import State
from boa.units import Seconds

PRIORITIES = ("background", "normal", "urgent")
FAILED_LATELY_S: Seconds = 3600.0
"""Seconds after a failure in which a crash-looping job must not displace another."""
TURN_S, WIDE_TURN_S = 600.0, 300.0
"""Waits after which no later job of no higher priority may start first; the second: of jobs that
need several GPUs."""
DELAY_S: Seconds = 120.0
"""Delay of an earlier job that a later one may cause: true durations are unknown to BOA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Facts of the simulation that the scheduler can only estimate."""

    now: Seconds
    ends: Mapping[JobId, Seconds] = field(default_factory=dict)
    """Moments at which running jobs end where they are."""
    takes: Callable[[JobRecord, int], Seconds] = lambda job, width: 0.0
    """Seconds from a start on the given number of GPUs to the job's end."""
    stoppable: Callable[[JobRecord], bool] = lambda job: True
    """Return whether a stop keeps a job's work, or its user agreed to lose it."""
    failures: Mapping[JobId, tuple[Seconds, ...]] = field(default_factory=dict)
    """Moments at which runs of a job failed by themselves."""
    lost: frozenset[NodeId] = frozenset()
    """Nodes that the cloud took."""
    known: Callable[[JobRecord], bool] = lambda job: True
    """Return whether a job of the class has ended before, so that its end can be estimated."""
    full: bool = True
    """No other node can be rented."""
    barred: Callable[[JobRecord], bool] = lambda job: False
    """Return whether jobs ahead of this one have used up its cap."""
    over_cap: Callable[[JobRecord], bool] = lambda job: False
    """Return whether a cap that covers the job is exceeded."""

    def failed(self, job: JobId) -> int:
        """How often a job has failed of late."""
        lately = self.now - FAILED_LATELY_S
        return sum(at > lately for at in self.failures.get(job, ()))


def rank(job: JobRecord) -> int:
    """A job's priority: its weight gives it no right to the GPUs of others."""
    return PRIORITIES.index(job.spec.priority)


def waits(job: JobRecord) -> bool:
    """Return whether a job has no GPUs and could start now."""
    return (
        job.run is None
        and job.allocation is None
        and job.retry_at is None
        and not (job.held_back or job.stop_requested or job.background)
    )


def held(job: JobRecord) -> Counter[NodeId]:
    """Return the GPUs of a job's run and of its allocation."""
    on = Counter[NodeId]()
    if job.run is not None:
        on |= Counter({node: len(slots) for node, slots in job.run.slots.items()})
    if job.allocation is not None:
        on |= Counter(dict(job.allocation.nodes))
    return on


def given(job: JobRecord | None) -> Counter[NodeId]:
    """Return the GPUs of a job's allocation."""
    return Counter(dict(job.allocation.nodes if job and job.allocation else ()))


def free(state: State) -> Counter[NodeId]:
    """Return the free GPUs of ready nodes."""
    ready = (node for node in state.nodes.values() if node.state == "ready")
    left = Counter({node.id: node.gpus for node in ready if node.leaving_at is None})
    for job in state.jobs.values():
        left.subtract({node: count for node, count in held(job).items() if node in left})
    return +left


# Losses


def taken_wrongly(before: State, after: State, truth: Truth) -> Iterator[str]:
    """Running jobs lost their last GPUs, and no job of a higher priority got GPUs there."""
    for job, was in _lost_last(before, after):
        on = held(was)
        if truth.lost & on.keys() or truth.over_cap(job) or truth.barred(job):
            continue
        if not any(rank(taker) > rank(job) for taker in _gained(before, after, on)):
            yield f"{_named(job)} on nodes {sorted(on)}"


def _lost_last(before: State, after: State) -> Iterator[tuple[JobRecord, JobRecord]]:
    for job in after.jobs.values():
        was = before.jobs.get(job.id)
        if was is None or was.run is None or was.allocation is None:
            continue
        asked = job.stop_requested or job.held_back or job.background
        if job.allocation is None and job.run is not None and not asked:
            yield job, was


def _gained(before: State, after: State, nodes: Mapping[NodeId, int]) -> Iterator[JobRecord]:
    """Return jobs that are given more GPUs on any of these nodes."""
    for job in after.jobs.values():
        more = given(job) - given(before.jobs.get(job.id))
        if more.keys() & nodes.keys():
            yield job


def made_way(before: State, after: State) -> set[JobId]:
    """Running jobs that gave GPUs up where a job of a higher priority got some."""
    found = set()
    for job in after.jobs.values():
        was = before.jobs.get(job.id)
        less = given(was) - given(job)
        if less and any(rank(taker) > rank(job) for taker in _gained(before, after, less)):
            found.add(job.id)
    return found


def rescaled(before: State, after: State) -> set[JobId]:
    """Return running jobs that are given other GPUs."""
    there = ((job, before.jobs.get(job.id)) for job in after.jobs.values())
    return {job.id for job, was in there if was and was.run and given(was) != given(job)}


def displaced(before: State, after: State, truth: Truth) -> Iterator[str]:
    """A job that fails again and again was given GPUs which a running job had."""
    room = free(before)
    for job in before.jobs.values():  # jobs that end leave room
        now = after.jobs.get(job.id)
        if now is None or now.stop_requested or now.held_back or now.run is None:
            room += held(job)
    for job in after.jobs.values():
        was = before.jobs.get(job.id)
        if was is None or was.run is not None or was.allocation is not None:
            continue
        if truth.failed(job.id) < 2 or not (over := given(job) - room):
            continue
        losers = [
            loser.id
            for loser in after.jobs.values()
            if (given(before.jobs.get(loser.id)) - given(loser)).keys() & over.keys()
            and not (loser.stop_requested or loser.held_back or loser.background)
            and loser.run is not None
            and not _is_as_wished(loser)
        ]
        if losers:
            yield f"{_named(job)} took GPUs of jobs {', '.join(losers)}"


def _is_as_wished(job: JobRecord) -> bool:
    """Return whether a job has exactly the GPUs of its share."""
    has, wish = job.allocation, job.share
    return has is not None and wish is not None and (has.gpu, has.width) == (wish.gpu, wish.width)


# Waits


def blocked_by(state: State, job: JobRecord, truth: Truth) -> JobRecord | None:
    """Return a job with a better claim to the empty GPUs that one waits next to.

    It came first or has a higher priority or has run before, and could not start as soon if the
    other one took the GPUs now, on however few.
    """
    left = free(state).total()
    widths = range(job.spec.gpus.min, min(job.spec.gpus.max, left) + 1)
    for first in state.jobs.values():
        if first.id == job.id or not waits(first) or truth.barred(first):
            continue
        if goes_before(first, job) and all(delays(state, truth, job, k, first) for k in widths):
            return first
    return None


def goes_before(first: JobRecord, job: JobRecord) -> bool:
    """Return whether one waiting job is ahead of another."""
    claims = [(rank(one), one.attempts > 0, -one.submitted_at) for one in (first, job)]
    return claims[0] > claims[1]


def delays(state: State, truth: Truth, job: JobRecord, width: int, first: JobRecord) -> bool:
    """Return whether a job delays another one if it gets the given number of GPUs now.

    `state`: the job's own GPUs, if it has any, count as free.
    """
    left = free(state).total() + held(state.jobs[job.id]).total()
    at, need = truth.now, first.spec.gpus.min
    ends = sorted(
        (truth.ends[other.id], held(other).total())
        for other in state.jobs.values()
        if other.id in truth.ends and other.id != job.id
    )
    for ends_at, count in ends:
        if left >= need:
            break
        left, at = left + count, max(ends_at, at)
    return left - width < need and truth.now + truth.takes(job, width) > at + DELAY_S


def overtakers(
    before: State, after: State, truth: Truth, since: Mapping[JobId, Seconds]
) -> Iterator[tuple[JobRecord, JobRecord]]:
    """Newcomers that are given GPUs before a job with a better claim, which they delay.

    `since`: the moment from which a job has waited. A job with a turn has waited for long, or has
    run before. Where the end of a running job cannot be expected, GPUs are kept for it at times.
    A job that could not start itself without delaying a better claim is overtaken by none.
    """
    if not all(truth.known(job) for job in after.jobs.values() if job.run is not None):
        return
    for job in after.jobs.values():
        was = before.jobs.get(job.id)
        new = job.allocation is not None and (was is None or was.allocation is None)
        if not new or (was is not None and was.attempts) or job.background:
            continue
        newcomer = replace(job, attempts=0)  # its run may have begun in this very step
        for first in after.jobs.values():
            was_first = before.jobs.get(first.id)
            if was_first is None or not (waits(first) and waits(was_first)) or first is job:
                continue
            waited = truth.now - since.get(first.id, truth.now)
            if not goes_before(first, newcomer) or truth.failed(first.id):
                continue
            if not has_turn(first, waited) or truth.barred(first):
                continue
            if not delays(after, truth, job, given(job).total(), first):
                continue
            without = replace(after, jobs={**after.jobs, job.id: was or _unplaced(job)})
            room = free(without).total() >= first.spec.gpus.min
            if not (room and blocked_by(without, first, truth)):
                yield first, job


def _unplaced(job: JobRecord) -> JobRecord:
    return replace(job, allocation=None, run=None)


def has_turn(job: JobRecord, waited: Seconds) -> bool:
    """Return whether a job's turn has come on a full cluster."""
    return job.attempts > 0 or waited > (TURN_S if job.spec.gpus.min == 1 else WIDE_TURN_S)


def could_take(state: State, job: JobRecord, truth: Truth) -> list[JobId]:
    """Return jobs of a lower priority that hold the GPUs which a waiting job could have.

    Empty where it could not start even then, or where better claims would take them all.
    """
    usable = (n for n in state.nodes.values() if n.state == "ready" and n.leaving_at is None)
    room, lower = Counter({node.id: node.gpus for node in usable}), list[JobId]()
    for other in state.jobs.values():
        on = Counter({node: n for node, n in held(other).items() if node in room})
        if on and rank(other) < rank(job) and truth.stoppable(other):
            lower.append(other.id)
        else:
            room.subtract(on)
    claimed = sum(
        other.spec.gpus.min
        for other in state.jobs.values()
        if other.id != job.id and waits(other) and goes_before(other, job)
    )
    return lower if (+room).total() - claimed >= job.spec.gpus.min else []


def _named(job: JobRecord) -> str:
    return f"job {job.id} ({job.job_class}, {job.spec.priority})"
