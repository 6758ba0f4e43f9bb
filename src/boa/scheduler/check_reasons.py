"""A check that holds every reason which is told against the state before and after a step.

It keeps books of its own on the runs of jobs, so that a wrong reason cannot vouch for itself. Pure:
no clock, no I/O. Tests run it over random episodes (`bench/campaign.py --world virtual`), and a
service does with `BOA_CHECK=1`, where it logs what it finds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from boa.model.cluster import Allocation, JobId
from boa.model.events import EventKind
from boa.model.job import JobRecord, Run
from boa.model.records import Event, NodeRecord
from boa.scheduler.state import State, is_usable
from boa.scheduler.words.of_keeping import WAITS
from boa.units import GpuName

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


@dataclass(slots=True)
class _Past:
    """Facts of a job that were seen while it ran, whatever its own record says of them."""

    run: Run
    """The newest."""
    epoch: int
    """Where it was when that run began."""
    plans: int
    """Plans that had been told by then."""
    lacked: bool = False
    """It has had no GPUs at some moment since."""
    silent: bool = False
    """The run was told to stop by decision, and no event has said so yet."""


@dataclass(slots=True)
class Checker:
    """Books of what was seen from step to step. `max_nodes`: as configured."""

    max_nodes: Mapping[GpuName, int] = field(default_factory=dict)
    _past: dict[JobId, _Past] = field(default_factory=dict)
    _plans: int = 0
    _plan: int = 0
    """Number of the newest plan that was told."""
    _refused: bool = False
    """The cloud has refused a node: fewer than configured can be had."""

    def violations(self, before: State, after: State, events: Sequence[Event]) -> list[str]:
        """Return what is wrong with the reasons of a step, in words; nothing else changes."""
        found: list[str] = []
        for event in events:
            rule = _RULES.get(event.kind)
            problems = [*self._named(before, after, event)]
            problems += () if rule is None else rule(self, before, after, event)
            found += [f"{event.kind}: {problem}: {event.text!r}" for problem in problems]
            self._note(event)
        for job in after.jobs.values():
            said = self._waits(after, job)
            found += [f"job {job.id}: {problem}: {job.reason!r}" for problem in said]
        found += self._stops(before, after, events)
        self._remember(after)
        return found

    # Books

    def _note(self, event: Event) -> None:
        self._plans += event.kind == "planned"
        self._refused |= event.kind == "shortage" and event.data.get("why") == "refused"

    def _remember(self, after: State) -> None:
        for job in after.jobs.values():
            past = self._past.get(job.id)
            if job.run is not None and (past is None or past.run.attempt != job.run.attempt):
                self._past[job.id] = past = _Past(job.run, job.epoch, self._plans)
            if past is not None and job.allocation is None:
                past.lacked = True
        for gone in self._past.keys() - after.jobs.keys():
            del self._past[gone]

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
        if run is None or past is None:
            if why in ("nodes", "returned", "widened", "squeezed", "moved", "room"):
                yield "it has never had GPUs"
            return
        nodes = {node for node, _ in run.nodes}
        if why == "nodes" and nodes == {node for node, _ in given.nodes}:
            yield "it is on the same nodes"
        if why == "returned" and not past.lacked and nodes <= _usable(after):
            yield "it has never been without GPUs"
        if why == "moved" and run.gpu == given.gpu:
            yield "it is on the same GPU type"
        if why == "widened" and not (run.gpu == given.gpu and given.width > run.width):
            yield f"it has had {run.width}×{run.gpu}"
        if why == "squeezed" and not (run.gpu == given.gpu and given.width < run.width):
            yield f"it has had {run.width}×{run.gpu}"
        if why == "epoch" and job.epoch <= past.epoch:
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
        if data["why"] in ("empty", "unwanted") and _on(after, event.node):
            yield "jobs are on it"

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
        was = before.jobs.get(event.job or "")
        if was is None or (was.run is None and event.job in after.jobs):
            yield "it has had no run"

    def _waits(self, after: State, job: JobRecord) -> Problems:
        """Reasons of a job that has no run."""
        if job.run is not None or job.state != "waiting":
            return
        if job.reason == WAITS["boot"] and not _boots(after):
            yield "no node boots"
        if job.reason == WAITS["no_room"] and not self._refused:
            kinds = [gpu for gpu, most in self.max_nodes.items() if _count(after, gpu) < most]
            if kinds and not _boots(after):
                yield f"another {kinds[0]} node may be rented"

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
    if past is None or past.lacked:
        yield "it could not have stayed where it was"
    yield from _at_most(data, "saves_s", "left_s")
    if "left_usd" not in data or -data["extra_usd"] > data["left_usd"] + CLOSE:
        yield "it saves more dollars than it still cost"


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


def _on(state: State, node: int | None) -> bool:
    """Whether a run of a job that is paid for is on a node."""
    runs = (job.run for job in state.jobs.values() if not job.background)
    return any(run is not None and node in run.slots for run in runs)
