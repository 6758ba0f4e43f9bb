"""A check that holds every reason which is told against the state before and after a step.

It keeps books of its own on the runs of jobs, so that a wrong reason cannot vouch for itself. Pure:
no clock, no I/O. Tests run it over random episodes (`bench/campaign.py --world virtual`), and a
service does with `BOA_CHECK=1`, where it logs what it finds.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from boa.model.cluster import Allocation, JobId, NodeId
from boa.model.events import EventKind
from boa.model.job import JobRecord, Run
from boa.model.priorities import PRIORITIES
from boa.model.records import Event, NodeRecord
from boa.scheduler.lifecycle import FAILED_LATELY_S
from boa.scheduler.state import State, is_usable
from boa.scheduler.words.of_keeping import PAYS, WAITS, waits_for_cap
from boa.units import GpuName, Seconds

Problems: TypeAlias = Iterator[str]
CLOSE = 1e-6
ROUNDED = 0.5
"""Seconds that a time in words may be off by."""
STARTS: tuple[EventKind, ...] = ("started", "rescaled", "restarted")
SAYS_STOP = frozenset(
    {
        *STARTS,
        *("preempted", "paused", "stop", "stopped", "succeeded", "failed", "retry"),
    }
)
"""Events of a job that tell of the stop of its run, or of what became of it."""
OTHERS = ("for_job", "by", "by_job")
"""Fields that name another job."""
LATELY_S: Seconds = FAILED_LATELY_S + 60.0
"""Seconds after a failure in which a job may say that it waits for free GPUs only."""
CAP_WAIT = waits_for_cap("\0").partition("\0")[0]
"""Beginning of the reason of a job that waits for a cap."""


@dataclass(slots=True)
class _Past:
    """Facts of a job that were seen while it ran, whatever its own record says of them."""

    run: Run
    """The newest."""
    epoch: int | None
    """Where it was when that run began; None: unknown, as it began before the first look."""
    plans: int | None
    """Plans that had been told by then."""
    lacked: bool | None = False
    """It has had no GPUs at some moment since; None: unknown."""
    silent: bool = False
    """The run was told to stop by decision, and no event has said so yet."""
    takers: set[JobId] = field(default_factory=set)
    """Jobs that got GPUs on nodes where it gave some up."""


@dataclass(slots=True)
class Checker:
    """Books of what was seen from step to step, from the first state that it is shown on.

    What happened before that is unknown: nothing is said of it.
    """

    max_nodes: Mapping[GpuName, int] = field(default_factory=dict)
    """As configured."""
    gpu_types: Collection[GpuName] = ()
    """All that there are; empty: unknown."""
    capped: Callable[[], bool] | None = None
    """Whether a cap on the spend is in force; None: unknown."""
    _past: dict[JobId, _Past] = field(default_factory=dict)
    _looked: bool = False
    _now: Seconds = -math.inf
    """Time of the newest event: it is at least so late."""
    _plans: int = 0
    _plan: int = 0
    """Number of the newest plan that was told."""
    _refused: dict[GpuName, Seconds] = field(default_factory=dict)
    """Types of which fewer than configured can be had, and until when."""
    _on: dict[NodeId, set[JobId]] = field(default_factory=dict)
    """Jobs that were on a node that is still there."""

    def violations(self, before: State, after: State, events: Sequence[Event]) -> list[str]:
        """Return what is wrong with the reasons of a step, in words; nothing else changes."""
        found: list[str] = []
        if not self._looked:
            self._looked = True
            self._remember(before, seen=False)
        for event in events:
            self._now = max(self._now, event.at)
            rule = _RULES.get(event.kind)
            problems = [*self._named(before, after, event)]
            problems += () if rule is None else rule(self, before, after, event)
            found += [f"{event.kind}: {problem}: {event.text!r}" for problem in problems]
            self._note(event)
        for job in after.jobs.values():
            said = self._waits(before, after, job)
            found += [f"job {job.id}: {problem}: {job.reason!r}" for problem in said]
        found += self._stops(before, after, events)
        self._remember(after)
        return found

    # Books

    def _note(self, event: Event) -> None:
        data = event.data
        self._plans += event.kind == "planned"
        if event.kind == "shortage" and data["why"] == "refused":
            self._refused[data["gpu_type"]] = event.at + data.get("again_s", math.inf)
        elif event.kind == "node_released" and data["why"] == "not_ready":
            self._refused[data["gpu_type"]] = math.inf  # as long as none is asked for again
        elif event.kind == "node_rented":
            self._refused.pop(data["gpu_type"], None)

    def _remember(self, after: State, *, seen: bool = True) -> None:
        """`seen`: the runs that are new have begun before our eyes."""
        for job in after.jobs.values():
            past, run = self._past.get(job.id), job.run
            if run is not None and (past is None or past.run.attempt != run.attempt):
                past = _Past(run, job.epoch, self._plans) if seen else _Past(run, None, None)
                past.lacked = None if not seen and run.state == "stopping" else False
                self._past[job.id] = past
                for node in run.slots:
                    self._on.setdefault(node, set()).add(job.id)
            if past is not None and job.allocation is None:
                past.lacked = True
            if past is not None and run is not None and job.allocation is not run.allocation:
                past.takers |= _takers(after, job.id, run.allocation, job.allocation)
        for gone in self._past.keys() - after.jobs.keys():
            del self._past[gone]
        for node in self._on.keys() - after.nodes.keys():
            del self._on[node]

    # Rules

    def _named(self, before: State, after: State, event: Event) -> Problems:
        """An event that names a job names one that exists."""
        others = [event.data.get(name) for name in OTHERS]
        for job in [event.job, *others, *event.data.get("moved", ())]:
            if job is None:
                continue
            if not (job in before.jobs or job in after.jobs or _was(job, after)):
                yield f"there is no job {job}"
        if any(job is not None and job == event.job for job in others):
            yield "a job is named as another one"

    def _start(self, before: State, after: State, event: Event) -> Problems:
        assert event.job is not None
        job, past, data = after.jobs.get(event.job), self._past.get(event.job), event.data
        if job is None or job.run is None:
            yield "the job has no run"
            return
        given = job.run.allocation
        if (data["gpu_type"], data["width"]) != (given.gpu, given.width):
            yield "its run is on other GPUs"
        if (event.kind == "started") != (data["attempt"] == 1):
            yield "the first start is the one that is told as such"
        yield from self._cause(after, job, given, past, data)
        yield from _before(past, data)
        yield from _figures(past, data)
        yield from _words(event.text, data)
        if "wait_s" in data:
            yield from self._wait(after, data)

    def _cause(
        self,
        after: State,
        job: JobRecord,
        given: Allocation,
        past: _Past | None,
        data: Mapping[str, Any],
    ) -> Problems:
        why, run = data.get("why"), None if past is None else past.run.allocation
        if why == "first" and data["attempt"] != 1:
            yield "it has started before"
        if why == "short" and not _is_less(data):
            yield "it has as many GPUs as planned"
        if run is None or past is None:  # a later start: it ran before the first look
            later = ("nodes", "returned", "widened", "squeezed", "moved", "room")
            if data["attempt"] == 1 and why in later:
                yield "it has never had GPUs"
            return
        nodes = {node for node, _ in run.nodes}
        if why == "nodes" and nodes == {node for node, _ in given.nodes}:
            yield "it is on the same nodes"
        if why == "returned" and past.lacked is False and nodes <= _usable(after):
            yield "it has never been without GPUs"
        if why == "moved" and run.gpu == given.gpu:
            yield "it is on the same GPU type"
        if why == "widened" and not (run.gpu == given.gpu and given.width > run.width):
            yield f"it has had {run.width}×{run.gpu}"
        if why == "squeezed" and not (run.gpu == given.gpu and given.width < run.width):
            yield f"it has had {run.width}×{run.gpu}"
        other = data.get("for_job")
        if other is not None and other not in past.takers | _takers(after, job.id, run, given):
            yield f"job {other} has no GPUs where it gives some up"
        if why == "epoch" and past.epoch is not None and job.epoch <= past.epoch:
            yield "no epoch has begun since its last start"
        if why == "plan" and past.plans == self._plans:
            yield "there has been no new plan since its last start"

    def _wait(self, after: State, data: Mapping[str, Any]) -> Problems:
        """A wait for a node implies one that boots, or that may be rented."""
        if data["wait_s"] < ROUNDED:
            yield "a wait of no time"
        gpu = data["gpu_type"]
        most = self.max_nodes.get(gpu)
        boots = any(node.gpu == gpu and node.state == "requested" for node in after.nodes.values())
        if not boots and most is not None and _count(after, gpu) >= most:
            yield "no node boots, and none may be rented"

    def _rented(self, before: State, after: State, event: Event) -> Problems:
        data, node = event.data, after.nodes.get(event.node or 0)
        if node is None or node.gpu != data["gpu_type"] or event.node in before.nodes:
            yield "no such node is new"
        idle = sum(job.run is None for job in after.jobs.values())
        idle += sum(job.run is not None and job.allocation is None for job in after.jobs.values())
        if data.get("waiting", 0) > idle:
            yield f"{idle} jobs have no GPUs"
        if "saves_s" in data:
            yield from _at_most(data, "saves_s", "left_s")

    def _released(self, before: State, after: State, event: Event) -> Problems:
        data = event.data
        if event.node not in before.nodes:
            yield "no such node"
        if data.get("worth_per_hour", 0.0) > data.get("price_per_hour", 0.0) + CLOSE:
            yield "it is worth more than it costs"
        if data["why"] in ("empty", "unwanted") and _has_jobs(after, event.node):
            yield "jobs are on it"
        moved, was_on = data.get("moved", ()), self._on.get(event.node or 0, set())
        for job in moved:
            if job not in was_on:
                yield f"job {job} was never on it"
            elif job not in after.jobs:
                yield f"job {job} does not move: it has ended"
        if "pause_s" in data and not (moved and 0 <= data["pause_s"] < math.inf):
            yield "a pause of no job"

    def _shortage(self, before: State, after: State, event: Event) -> Problems:
        data, job = event.data, after.jobs.get(event.job or "")
        if data["why"] == "refused" or job is None:
            return
        given = job.allocation
        if given is None and "given_width" in data:
            yield "it has no GPUs"
        if given is not None and data.get("given_width") != given.width:
            yield f"it has {given.width}×{given.gpu}"

    def _deadline(self, before: State, after: State, event: Event) -> Problems:
        why, in_s, takes_s = event.data["why"], event.data["in_s"], event.data.get("takes_s")
        if takes_s is not None:
            takes_s += event.data.get("boot_s", 0.0)
        if why == "missed" and in_s > CLOSE:
            yield "the deadline is not over"
        if why == "nears" and takes_s is not None and takes_s > in_s + ROUNDED:
            yield "it takes longer than there is"
        if why == "out_of_reach" and takes_s is not None and takes_s < in_s - ROUNDED:
            yield "it takes less than there is"

    def _planned(self, before: State, after: State, event: Event) -> Problems:
        number = event.data["number"]
        if number <= self._plan:
            yield f"the last plan was number {self._plan}"
        self._plan = number

    def _preempted(self, before: State, after: State, event: Event) -> Problems:
        was, now = before.jobs.get(event.job or ""), after.jobs.get(event.job or "")
        if was is None or now is None or was.run is None:
            yield "it has had no run"
            return
        data, why, nodes = event.data, event.data["why"], set(was.run.slots)
        if was.allocation is not None:
            nodes |= {node for node, _ in was.allocation.nodes}
        stays = nodes <= _usable(after)
        if (why == "job") != ("by_job" in data):
            yield "it names a job for another reason, or none for this one"
        elif why == "job" and (by := after.jobs.get(data["by_job"])) is None:
            yield f"job {data['by_job']} is not there"
        elif why == "job" and by is not None:
            if _rank(by) <= _rank(now):
                yield f"job {by.id} has no higher priority"
            if not nodes & _nodes_of(by):
                yield f"job {by.id} has no GPUs on its nodes"
        if why == "node" and stays:
            yield "its nodes stay"
        if why == "cap" and self.capped is not None and not self.capped():
            yield "no cap is in force"
        if why == "ended" and any(job.allocation for job in after.jobs.values()):
            yield "others have GPUs: the budget goes on"
        others = (job for job in after.jobs.values() if job.id != now.id)
        wanted = not stays or any(nodes & _nodes_of(job) for job in others)
        if why == "room" and not now.background and not wanted:
            yield "no job needs its GPUs, and its nodes stay"
        yield from self._losses(now, was.run, event)

    def _losses(self, job: JobRecord, run: Run, event: Event) -> Problems:
        """Work lost is what no checkpoint holds, and none of a job that saves."""
        lost_s, saved_at = event.data["lost_s"], job.saved_at
        if event.data["saves"] != bool(job.saves and not job.starts_over):
            yield "it has said otherwise of its saving"
        since = run.requested_at if saved_at is None else max(run.requested_at, saved_at)
        if lost_s < 0 or lost_s > max(event.at - since, 0.0) + ROUNDED:
            yield f"only {event.at - since:.0f} s have passed since its checkpoint, or its start"
        if event.data["saves"] and lost_s:
            yield "it saves, and loses nothing"
        asked_at = event.at
        if job.run is not None and job.run.stopping_at is not None:
            asked_at = job.run.stopping_at
        if not (event.data["saves"] or run.done) and lost_s < asked_at - since - ROUNDED:
            yield f"{asked_at - since:.0f} s are in no checkpoint"

    def _waits(self, before: State, after: State, job: JobRecord) -> Problems:
        """Reasons of a job that has no run."""
        if job.run is not None or job.state not in ("waiting", "preempted") or job.held_back:
            return
        said = job.reason
        if said == WAITS["boot"] and not _boots(after):
            yield "no node boots"
        if said == WAITS["no_room"]:
            kinds = [gpu for gpu in self.max_nodes if self._may_rent(after, gpu)]
            if kinds and not _boots(after):
                yield f"another {kinds[0]} node may be rented"
        full = bool(self.gpu_types) and not any(self._may_rent(after, g) for g in self.gpu_types)
        if said == WAITS["worth"] and full:
            yield "no node may be rented, for any money"
        if said.startswith(CAP_WAIT) and self.capped is not None and not self.capped():
            yield "no cap is in force"
        if said == WAITS["turn"] and not (_is_behind(job, before) or _is_behind(job, after)):
            yield "no job that is ahead of it waits for GPUs that it could have"
        if said == WAITS["modest"]:
            if not job.failed_at:
                yield "it has not failed"
            elif job.failed_at[-1] < self._now - LATELY_S:
                yield f"it failed {self._now - job.failed_at[-1]:.0f} s ago"
        if said == WAITS["others"]:
            yield from _leaving(after, job)

    def _may_rent(self, state: State, gpu: GpuName) -> bool:
        most = self.max_nodes.get(gpu, math.inf)
        refused = self._now < self._refused.get(gpu, -math.inf) + ROUNDED
        return not refused and _count(state, gpu) < most

    def _stops(self, before: State, after: State, events: Sequence[Event]) -> Problems:
        """A run that is stopped by decision has an event in the same step, or in the step after the
        run has ended."""
        told = {event.job for event in events if event.kind in SAYS_STOP}
        for job_id, past in self._past.items():
            job = after.jobs.get(job_id)
            if job is None or job_id in told or job.stop_requested or job.held_back:
                past.silent = False
                continue
            run, was = job.run, before.jobs.get(job_id)
            if past.silent and run is None and (was is None or was.run is None):
                past.silent = False
                yield f"job {job_id}: its run was stopped without an event"
            elif run is not None and run.state == "stopping" and run.attempt == past.run.attempt:
                was_run = None if was is None else was.run
                if was_run is not None and was_run.state != "stopping":
                    past.silent = not _leaves(before, after, run)


Rule: TypeAlias = Callable[[Checker, State, State, Event], Iterator[str]]
_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(STARTS, Checker._start),
    "node_rented": Checker._rented,
    "node_released": Checker._released,
    "shortage": Checker._shortage,
    "deadline": Checker._deadline,
    "planned": Checker._planned,
    "preempted": Checker._preempted,
}


def _before(past: _Past | None, data: Mapping[str, Any]) -> Problems:
    """GPUs that it is said to have had are those of its last run."""
    if past is None:
        return
    had = past.run.allocation
    if "before_width" in data and data["before_width"] != had.width:
        yield f"it has had {had.width} GPUs"
    if "before_nodes" in data and set(data["before_nodes"]) != {node for node, _ in had.nodes}:
        yield "it has been on other nodes"


def _figures(past: _Past | None, data: Mapping[str, Any]) -> Problems:
    """A saving is never more than what was left to save, and needs something to compare with."""
    if "saves_s" not in data:
        return
    if past is not None and past.lacked:
        yield "it could not have stayed where it was"
    yield from _at_most(data, "saves_s", "left_s")
    if "left_usd" not in data or -data["extra_usd"] > data["left_usd"] + CLOSE:
        yield "it saves more dollars than it still cost"


def _words(text: str, data: Mapping[str, Any]) -> Problems:
    """Words about money and time follow from the figures."""
    saves_s, extra_usd = data.get("saves_s"), data.get("extra_usd")
    if "cheaper" in text and not (extra_usd is not None and extra_usd < 0):
        yield "it does not cost less"
    if "as fast" in text and (saves_s is None or abs(saves_s) > ROUNDED):
        yield "it is not as fast"
    if "; saves " in text and not (saves_s is not None and saves_s >= 0):
        yield "it saves no time"


_WORTH = re.compile(r"worth <?\$([\d,.]+)/h to jobs, for \$([\d,.]+)/h")


def kept_problems(text: str) -> Problems:
    """Return what is wrong with the reason for which a node is paid for (`of_keeping.kept`)."""
    shown = _WORTH.search(text)
    if shown is None:
        if text.startswith("kept all the same"):
            yield "no worth is shown that could be too small"
        return
    worth, price = (float(amount.replace(",", "")) for amount in shown.groups())
    pays = worth / max(PAYS * price, CLOSE)
    if text.startswith("kept: ") and pays < 0.95:  # both are rounded
        yield "it is worth less than it has to be"
    if text.startswith("kept all the same") and pays > 1.05:
        yield "it is worth as much as it has to be"


def _at_most(data: Mapping[str, Any], name: str, most: str) -> Problems:
    if most not in data or data[name] > data[most] + CLOSE:
        yield "it saves more than was left"


def _is_less(data: Mapping[str, Any]) -> bool:
    """Whether a job has less than planned; older events do not say what was planned."""
    planned = data.get("planned_gpu_type", data["gpu_type"]), data.get("planned_width")
    return planned[1] is None or planned != (data["gpu_type"], data["width"])


def _was(job: JobId, after: State) -> bool:
    """Whether there was such a job: ids are counted."""
    return job.isdecimal() and int(job) < after.next_job


def _usable(state: State) -> set[int]:
    return {node.id for node in state.nodes.values() if is_usable(node)}


def _leaves(before: State, after: State, run: Run) -> bool:
    """Whether a node of a run's is lost, or about to be taken: that has an event of its own."""
    there, was = _usable(after), _usable(before)
    return any(node not in there and node in was for node in run.slots)


def _count(state: State, gpu: GpuName) -> int:
    """Nodes of a type that count against the most that there may be."""
    return sum(node.gpu == gpu for node in state.nodes.values())


def _boots(state: State) -> bool:
    return any(_is_booting(node) for node in state.nodes.values())


def _is_booting(node: NodeRecord) -> bool:
    return node.state == "requested"


def _has_jobs(state: State, node: int | None) -> bool:
    """Whether a run of a job that is paid for is on a node."""
    runs = (job.run for job in state.jobs.values() if not job.background)
    return any(run is not None and node in run.slots for run in runs)


def _rank(job: JobRecord) -> int:
    return -PRIORITIES.index(job.spec.priority)


def _standing(job: JobRecord) -> int:
    """Return a waiting job's rank if it has failed lately: it goes before no normal job then."""
    failed = job.failed_at or job.failures or job.losses > 1 or job.asked > 1
    return min(_rank(job), -PRIORITIES.index("normal")) if failed else _rank(job)


def _nodes_of(job: JobRecord) -> set[NodeId]:
    """Nodes that a job is on, unless its run is leaving, or is to be on."""
    run, given = job.run, job.allocation
    on = set() if run is None or run.state == "stopping" else set(run.slots)
    return on if given is None else on | {node for node, _ in given.nodes}


def _takers(state: State, loser: JobId, held: Allocation, given: Allocation | None) -> set[JobId]:
    """Return other jobs that have GPUs on nodes where one has fewer than before."""
    kept = {} if given is None else dict(given.nodes)
    left = {node for node, count in held.nodes if kept.get(node, 0) < count}
    return {job.id for job in state.jobs.values() if job.id != loser and left & _nodes_of(job)}


def _is_behind(job: JobRecord, state: State) -> bool:
    """Return whether a job ahead of this one waits for GPUs that both could use."""
    mine = set(job.spec.gpus.types)
    for first in state.jobs.values():
        waits = first.run is None and first.allocation is None
        if not waits or first.held_back or first.stop_requested:
            continue
        types = set(first.spec.gpus.types)
        same = not types or not mine or bool(mine & types)
        before = first.submitted_at < job.submitted_at or (first.attempts > 0 and not job.attempts)
        levels = [(a(first), b(job)) for a in (_rank, _standing) for b in (_rank, _standing)]
        if same and any(its > own or (before and its == own) for its, own in levels):
            return True
    return False


def _leaving(state: State, job: JobRecord) -> Problems:
    """A job waits for GPUs that a run is leaving: it has some, and they are not free yet."""
    if job.allocation is None:
        yield "it has no GPUs to wait for"
        return
    busy: Counter[NodeId] = Counter()
    for other in state.jobs.values():
        if other.run is not None and other.id != job.id:
            busy.update({node: len(slots) for node, slots in other.run.slots.items()})
    ready = {node.id: node.gpus for node in state.nodes.values() if node.state == "ready"}
    if all(ready.get(node, 0) - busy[node] >= count for node, count in job.allocation.nodes):
        yield "its GPUs are free"
