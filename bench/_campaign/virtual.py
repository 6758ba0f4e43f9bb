"""Episodes of `bench/campaign.py --virtual`: small clusters that are short of GPUs.

The real control loop, store and local cloud step through an hour or so on a virtual clock; the jobs
are acted out, with and without checkpoints. An observer keeps books of its own on every stop, every
start and every wait, and holds every decision to the truth (`fairness.py`): what the scheduler says
excuses nothing. An episode follows from its seed and number alone.
"""

import math
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from _campaign import fairness
from _campaign.fairness import Truth, rank
from boa.clouds.local import LocalCloud
from boa.errors import BoaError
from boa.formats.sweep import SweepSpec
from boa.model.budgets import Budget
from boa.model.job import GpuLimits, JobRecord, JobSpec
from boa.model.profile import ClassProfile
from boa.model.records import Event
from boa.model.runs import Launch, RunEvent, RunKey
from boa.model.workload import Billing, GpuType
from boa.scheduler.check_reasons import STARTS, Checker, kept_problems
from boa.scheduler.state import State
from boa.server.render.documents import nodes as shown_nodes
from boa.sim.engine import SAVES, Checkpointing, SimulatedEngine, _Acted, acting_out
from boa.units import Seconds
from live import Live, config, profile

TICK_S: Seconds = 20.0
REPORT_S: Seconds = 5.0
STARVES_S: Seconds = 900.0
"""A job that waits for longer, while others that came later start, starves …"""
OVERTAKEN = 3
"""… once so many have."""
NEAR_TURN_S: Seconds = 300.0
"""A job that has waited for less may be overtaken by jobs that gain more by its GPUs."""
IDLE_S: Seconds = 300.0
"""A job that waits for longer next to empty GPUs that it could run on starves …"""
HIGHER_S: Seconds = 300.0
"""… and one that waits for longer though jobs of a lower priority could make way is passed over."""
GAP_S: Seconds = 1.0
"""A job without GPUs for longer was not just rescaled: it had none."""
UNSEEN_S: Seconds = TICK_S + REPORT_S
"""Seconds by which work lost that is told may differ from the truth."""
RESCALES = 10.0
"""Rescale times between two rescales of a job, at least …"""
LEARNED = 0.9
"""… of those that BOA has learned, which are within a tenth of the true ones."""
PATIENCE_S: Seconds = 12 * 3600.0
"""Seconds after the last request in which every job has to end."""
WEIGHTS_OF_JOBS = (0.5, 1.0, 1.0, 4.0, 50.0)
KINDS = (
    "plain",
    "saves",
    "every",
    "wrapped",
    "crashes",
    "wide",
    "urgent",
    "background",
    "deadline",
    "forgets",
)
WEIGHTS = (5, 4, 3, 3, 1, 2, 2, 1, 1, 1)
SAVING: Mapping[str, Checkpointing] = {
    "plain": Checkpointing(at_stop=False, reports=False),
    "every": Checkpointing(at_stop=False, every_s=60.0),
    "wrapped": Checkpointing(at_stop=False, every_s=30.0, reports=False),
    "forgets": SAVES,
    "loops": SAVES,
    "neighbour": SAVES,
}
LASTING = ("loops", "neighbour")
"""Kinds of jobs that go on until they are stopped, after hours."""
LOOPS_EVERY = 10
"""Episodes for each one with a crash-looping urgent job next to a job that could make way."""
LOOPS_S: Seconds = 5400.0
FAILS_AFTER_S: Seconds = 8.0
LR = ("0.1", "0.01", "0.001")
TROUBLES = (
    *("pause", "resume", "stop", "priority", "priority"),
    *("budget", "cap", "node", "crash", "kill"),
)
BILLINGS: Sequence[Billing] = ("node", "node", "node", "gpu")
CLUSTERS: Sequence[tuple[str, int, int]] = (("1×2", 1, 2), ("2×2", 2, 2), ("1×4", 1, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A class of jobs of an episode."""

    name: str
    kind: str
    saving: Checkpointing
    truth: ClassProfile
    spec: JobSpec


@dataclass(slots=True, kw_only=True)
class Found:
    """Outcome of an episode."""

    number: int
    again: str
    cluster: str
    billing: str = ""
    violations: list[tuple[str, str]] = field(default_factory=list)
    """Kind and words."""
    stops: Counter[str] = field(default_factory=Counter)
    held_gpu_s: float = 0.0
    lost_gpu_s: float = 0.0
    """GPU-seconds of work that were lost to the scheduler's own stops."""
    jobs: int = 0
    events: int = 0
    reasons: int = 0


@dataclass(slots=True, kw_only=True)
class Stop:
    """A stop by decision that cost work."""

    job: str
    at: Seconds
    lost_s: Seconds
    width: int
    forgets: bool
    """It had said that it saves and had never been stopped, so BOA had to believe it."""


class _Engine(SimulatedEngine):
    """Tells the observer of every stop, before and after."""

    world: "World"

    def stop(self, key: RunKey, grace_s: Seconds, then: Launch | None = None) -> None:
        run = self._runs.get(key)
        alive = run is not None and run.ended is None
        if run is not None and alive:
            self._advance(run, self._clock.now())
        alive = run is not None and run.ended is None
        units = sum(run.job.work[: run.job.epoch]) + run.job.done if run is not None else 0.0
        super().stop(key, grace_s, then)
        if run is not None and alive:
            if self.world.kind_of(key.job) == "forgets":  # and it had said that it saves
                run.job.epoch, run.job.done = run.kept
            left = sum(run.job.work[: run.job.epoch]) + run.job.done
            since = run.began if run.saved_at is None else run.saved_at
            lost_s = self._clock.now() - since if left < units - 1e-9 else 0.0
            self.world.stopped(key, lost_s, cannot=not self.keeps_work(run))

    def keeps_work(self, run: _Acted) -> bool:
        """Whether a run has a checkpoint, or writes one when it is stopped."""
        writes = run.saving.at_stop and self.world.kind_of(run.key.job) != "forgets"
        return writes or run.saved_at is not None

    def live(self) -> list[_Acted]:
        return [run for run in self._runs.values() if run.ended is None]

    def _end(self, run: _Acted, event: RunEvent, at: Seconds | None = None) -> None:
        super()._end(run, event, at)
        self.world.ended(run.key, event)


class _Checker(Checker):
    """Keeps what it finds, and holds savings against the truth too."""

    world: "World"

    def violations(self, before: State, after: State, events: Sequence[Event]) -> list[str]:
        found = super().violations(before, after, events)
        for text in found:
            if text not in self.world.wrong_before:  # a reason that stays is one
                kind = "stop without an event" if "without an event" in text else "false reason"
                self.world.wrong(kind, text)
        self.world.wrong_before = set(found)
        self.world.decided(before, after)
        self.world.said(after, events)
        return found


@dataclass
class World(Live):
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    found: Found = field(default_factory=lambda: Found(number=0, again="", cluster=""))
    most: float | None = None
    """Current cap on the total spend, as the campaign set it."""

    def __post_init__(self) -> None:
        self.checker = _Checker(
            self.config.max_nodes, self.config.gpu_types, capped=lambda: self._capped
        )
        self.checker.world = self
        self.wrong_before: set[str] = set()
        self.lossy: list[Stop] = []
        self.waits: dict[str, Seconds] = {}
        self.idle: dict[str, Seconds] = {}
        self.passed_over: dict[str, Seconds] = {}
        self.overtaken: dict[str, set[str]] = {}
        self.starving: set[str] = set()
        self.moved: dict[str, Event] = {}
        self.excused: set[str] = set()
        self.left_at: dict[str, Seconds] = {}
        """Moments at which runs ended."""
        self.failures: dict[str, tuple[Seconds, ...]] = {}
        self.known: set[str] = set()
        """Classes of which a job has ended well."""
        self.lost: set[int] = set()
        """Nodes that the cloud took."""
        self.forgot: set[str] = set()
        """Jobs that a stop has shown to keep nothing."""
        self.kinds_of: dict[str, str] = {}
        self.acting = _Engine(self.clock, acting_out(self.profiles), report_s=REPORT_S)
        self.acting.world = self
        self.engine = self.acting
        self.engine.saving = lambda launch: self.kinds[launch.spec.job_class].saving
        self.engine.breaks = lambda launch: (
            "boom" if self.kinds[launch.spec.job_class].kind == "crashes" else ""
        )
        self.logged: list[str] = []
        self.loop = self._begin()
        self.loop.checker = self.checker

    def crash(self) -> None:
        assert self.store is not None
        self.store.close()
        self.loop = self._begin()
        self.loop.checker = self.checker
        self.settle()

    def kind_of(self, job: str) -> str:
        if job not in self.kinds_of:
            self.kinds_of[job] = self.kinds[self.loop.state.jobs[job].job_class].kind
        return self.kinds_of[job]

    # The observer

    def wrong(self, kind: str, text: str) -> None:
        self.found.violations.append((kind, f"at {self.clock.now() - 1e6:.0f} s: {text}"))

    def ended(self, key: RunKey, event: RunEvent) -> None:
        now = self.clock.now()
        self.left_at[key.job] = now
        job = self.loop.state.jobs.get(key.job)
        if job is not None and event.exit_code == 0 and not event.stopped:
            self.known.add(job.job_class)
        if event.exit_code != 0 and not event.stopped:
            self.failures[key.job] = (*self.failures.get(key.job, ()), now)
            self.excused.add(key.job)

    def stopped(self, key: RunKey, lost_s: Seconds, cannot: bool) -> None:
        job = self.loop.state.jobs.get(key.job)
        if job is None or job.run is None or job.stop_requested or job.held_back:
            self.found.stops["asked for"] += 1
            self.excused.add(key.job)
            return
        if self.lost & job.run.slots.keys():
            self.found.stops["node lost"] += 1
            self.excused.add(key.job)
            return
        if self._over_cap(self.loop.state, job):
            self.found.stops["for a cap that was lowered"] += 1
            self.excused.add(key.job)
            return
        self.found.stops["ours"] += 1
        width = job.run.allocation.width
        if job.background:
            return
        self.found.lost_gpu_s += lost_s * width
        if lost_s > 0:
            self.found.stops["ours, with work lost"] += 1
            believed = self.kind_of(key.job) == "forgets" and key.job not in self.forgot
            at = self.clock.now()
            stop = Stop(job=key.job, at=at, lost_s=lost_s, width=width, forgets=believed)
            self.lossy.append(stop)
            if cannot and not job.spec.preemptible and not believed:
                words = f"job {key.job} ({job.job_class}) lost {lost_s:.0f} s on {width} GPUs"
                self.wrong("work of a job that cannot checkpoint lost", words)
        if cannot and lost_s > UNSEEN_S:  # a stop that loses nothing shows nothing
            self.forgot.add(key.job)

    def decided(self, before: State, after: State) -> None:
        """Hold what a step gives and takes to the truth."""
        if all(
            job.id in before.jobs and before.jobs[job.id].allocation is job.allocation
            for job in after.jobs.values()
        ):
            return
        truth = self._truth(after)
        for text in fairness.taken_wrongly(before, after, truth):
            self.wrong("last GPUs taken for no job of a higher priority", text)
        for text in fairness.displaced(before, after, truth):
            self.wrong("displaced by a retry of a job that fails", text)
        self.excused |= fairness.made_way(before, after)
        if not self._full(before):  # elsewhere every move is weighed against its cost
            self.excused |= fairness.rescaled(before, after)
        for first, job in fairness.overtakers(before, after, truth, self.waits):
            waited = truth.now - self.waits.get(first.id, truth.now)
            if waited > NEAR_TURN_S and first.attempts == 0:
                self.overtaken.setdefault(first.id, set()).add(job.id)
            if truth.full:
                words = f"{_about(job)} starts before {_about(first)}"
                kind = "overtaken after its turn had come"
                if first.attempts:
                    kind = "a newcomer starts before a job that was preempted"
                self.wrong(kind, f"{words}, which has waited for {waited:.0f} s")

    def said(self, after: State, events: Sequence[Event]) -> None:
        self.found.events += len(events)
        for event in events:
            if event.kind == "preempted":
                self._preempted(after, event)
            elif event.kind in STARTS:
                self.found.reasons += 1
                self._started(after, event)

    def _preempted(self, after: State, event: Event) -> None:
        loser, by = after.jobs.get(event.job or ""), after.jobs.get(event.data.get("by_job", ""))
        if loser is not None and by is not None and rank(by) <= rank(loser):
            words = f"{_about(loser)} by {_about(by)}"
            self.wrong("preempted by a job of no higher priority", words)

    def _is_on_new_node(self, after: State, job: JobRecord, last: Event | None) -> bool:
        """Return whether a job has GPUs on a node that was rented since its last rescaling."""
        on = () if job.run is None else job.run.slots
        since = math.inf if last is None else last.at
        return any(node in after.nodes and after.nodes[node].requested_at >= since for node in on)

    def _started(self, after: State, event: Event) -> None:
        job = after.jobs.get(event.job or "")
        if job is None:
            return
        last = self.moved.get(job.id)
        if event.kind == "rescaled" and not job.background:
            least = LEARNED * RESCALES * self.kinds[job.job_class].truth.rescale_s
            none = event.at - self.left_at.get(job.id, event.at) > GAP_S
            free = job.id in self.excused or none or self._is_on_new_node(after, job, last)
            if last is not None and event.at - last.at < least and not free:
                gap_s = event.at - last.at
                words = f"job {job.id} ({job.job_class}) after {gap_s:.0f} of {least:.0f} s"
                self.wrong("rescaled again too soon", f"{words}: {event.text}")
        if event.kind == "rescaled":
            self.moved[job.id] = event
        self.excused.discard(job.id)
        self._hold_to_truth(job, event)

    def _hold_to_truth(self, job: JobRecord, event: Event) -> None:
        """Savings in time that the job does not even have to go, by twice and a minute."""
        acted, data = self.engine.jobs.get(job.id), event.data
        if acted is None or "saves_s" not in data or acted.epoch >= acted.epochs:
            return
        narrowest = self._takes(job, 1)
        if data["saves_s"] > 2 * narrowest + 60.0:
            self.wrong("saves more than there truly is", event.text)

    def settle(self) -> None:
        super().settle()
        if self._fail_again():
            super().settle()
        self._look()

    def _fail_again(self) -> bool:
        """Have runs fail that do so after a while."""
        now = self.clock.now()
        due = [
            run.key
            for run in self.acting.live()
            if self.kind_of(run.key.job) == "loops" and now - run.began >= FAILS_AFTER_S
        ]
        for key in due:
            self.engine.kill(key, exit_code=1)
        return bool(due)

    def _look(self) -> None:
        state, now = self.loop.state, self.clock.now()
        books = (self.waits, self.idle, self.overtaken, self.passed_over)
        waiting = [job for job in state.jobs.values() if fairness.waits(job)]
        for gone in {job for book in books for job in book} - {job.id for job in waiting}:
            for book in books:
                book.pop(gone, None)
        if not waiting:
            return
        truth, left = self._truth(state), fairness.free(state).total()
        for job in waiting:
            since = self.waits.setdefault(job.id, now)
            if truth.barred(job):
                self.waits[job.id] = now
                self.overtaken.pop(job.id, None)
                self.idle.pop(job.id, None)
                self.passed_over.pop(job.id, None)
                continue
            if job.id in self.starving:
                continue
            words = f"{_about(job)} waits"
            passed = self.overtaken.get(job.id, set())
            if now - since > STARVES_S and len(passed) >= OVERTAKEN:
                self.starving.add(job.id)
                later = f"jobs {', '.join(sorted(passed))} came later"
                self.wrong("starves", f"{words} for {now - since:.0f} s; {later}")
            if left < job.spec.gpus.min or fairness.blocked_by(state, job, truth):
                self.idle.pop(job.id, None)
            elif now - self.idle.setdefault(job.id, now) > IDLE_S:
                self.starving.add(job.id)
                text = f"{words} next to {left} empty GPUs: {job.reason}"
                self.wrong("waits next to empty GPUs", text)
            lower = [] if truth.failed(job.id) else fairness.could_take(state, job, truth)
            if not lower:
                self.passed_over.pop(job.id, None)
            elif now - self.passed_over.setdefault(job.id, now) > HIGHER_S:
                self.starving.add(job.id)
                text = f"{words} though jobs {', '.join(lower)} could make way: {job.reason}"
                self.wrong("a higher priority waits behind a lower one", text)

    def look_at_nodes(self) -> None:
        """Hold the reasons for which nodes are paid for to the figures that they show."""
        for node in shown_nodes(self.loop.snapshot):
            for problem in kept_problems(node["why"]):
                self.wrong("false reason", f"node {node['id']}: {problem}: {node['why']!r}")

    # The truth

    @property
    def _capped(self) -> bool:
        return self.most is not None or self.config.sharing is not None

    def _truth(self, state: State) -> Truth:
        return Truth(
            now=self.clock.now(),
            ends={run.key.job: self._ends_at(run) for run in self.acting.live()},
            takes=self._takes,
            stoppable=self._stoppable,
            failures=self.failures,
            lost=frozenset(self.lost),
            known=lambda job: job.job_class in self.known,
            full=self._full(state),
            barred=lambda job: self._barred(state, job),
            over_cap=lambda job: self._over_cap(state, job),
        )

    def _ends_at(self, run: _Acted) -> Seconds:
        return max(run.job.wakes_at(), self.clock.now())

    def _takes(self, job: JobRecord, width: int) -> Seconds:
        """Return the true seconds from a start on the given number of GPUs to the job's end."""
        truth, acted = self.kinds[job.job_class].truth, self.engine.jobs.get(job.id)
        if self.kinds[job.job_class].kind == "crashes":
            return 0.0
        left = sum(truth.work) if acted is None else sum(acted.work[acted.epoch :]) - acted.done
        return left / float(truth.rates["slot"][0, 0, width]) + truth.rescale_s

    def _stoppable(self, job: JobRecord) -> bool:
        if job.spec.preemptible or job.background:
            return True
        runs = [run for run in self.acting.live() if run.key.job == job.id]
        return all(self.acting.keeps_work(run) for run in runs)

    def _full(self, state: State) -> bool:
        """Return whether no other node can be rented, by the configured limits."""
        ((gpu, most),) = self.config.max_nodes.items()
        if len(state.nodes) >= most:
            return True
        kind = self.config.gpu_types[gpu]
        return self.most is not None and (len(state.nodes) + 1) * kind.node_price > self.most

    def _team(self, job: JobRecord) -> Budget | None:
        """The team under a cap that pays for a job."""
        parts = () if self.config.sharing is None else self.config.sharing.parts
        return next((part for part in parts if job.job_class in part.classes), None)

    def _over_cap(self, state: State, job: JobRecord) -> bool:
        nodes = (n for n in state.nodes.values() if n.state in ("requested", "ready"))
        spend = sum(node.price * node.gpus for node in nodes)
        if self.most is not None and spend > self.most + 1e-9:
            return True
        team = self._team(job)
        if team is None or team.max_spend is None:
            return False
        return self._team_holds(state, team, lambda other: True) > team.max_spend + 1e-9

    def _barred(self, state: State, job: JobRecord) -> bool:
        """Whether a cap really leaves a job nothing: on the whole, or on its team, for what jobs
        hold that have a better claim, or ran before it began to wait and need not make way. A job
        that has failed lately displaces none."""
        ((gpu, most_nodes),) = self.config.max_nodes.items()
        kind, least = self.config.gpu_types[gpu], job.spec.gpus.min
        if self.most is not None:
            most_nodes = min(most_nodes, int(self.most / kind.node_price + 1e-9))
            if most_nodes * kind.gpus_per_node < least:
                return True
        team = self._team(job)
        if team is None or team.max_spend is None:
            return False
        waits_since = self.waits.get(job.id, self.clock.now())
        failed = Truth(now=self.clock.now(), failures=self.failures).failed(job.id) > 0

        def before(other: JobRecord) -> bool:
            if failed and other.run is not None:
                return True
            if rank(other) < rank(job) and self._stoppable(other):
                return False
            run = other.run
            ran = run is not None and (run.requested_at <= waits_since or other.attempts > 1)
            return ran or fairness.goes_before(other, job)

        return self._team_holds(state, team, before) + least * kind.price > team.max_spend + 1e-9

    def _team_holds(self, state: State, team: Budget, which: Callable[[JobRecord], bool]) -> float:
        ((_, kind),) = self.config.gpu_types.items()
        members = (job for job in state.jobs.values() if job.job_class in team.classes)
        counted = (job for job in members if not job.background and which(job))
        return kind.price * sum(fairness.held(job).total() for job in counted)

    def close_books(self) -> None:
        """Look for the event of every stop that cost work, and hold it to what was lost."""
        assert self.store is not None
        events: dict[str, list[Event]] = {}
        for stored in self.store.events(limit=100_000):
            if stored.event.job is not None:
                events.setdefault(stored.event.job, []).append(stored.event)
        for stop in self.lossy:
            told = [
                event
                for event in events.get(stop.job, ())
                if stop.at - 1.0 <= event.at <= stop.at + TICK_S
                and event.kind in ("preempted", "rescaled", "restarted")
            ]
            words = f"job {stop.job} lost {stop.lost_s:.0f} s on {stop.width} GPUs"
            words += f" at {stop.at - 1e6:.0f} s"
            if not told:
                self.wrong("work lost without an event", words)
            said_s = max((event.data.get("lost_s", 0.0) for event in told), default=math.inf)
            if said_s < stop.lost_s - UNSEEN_S and not stop.forgets:
                told_of = "; ".join(event.text for event in told)
                self.wrong("more work lost than was told", f"{words}: {told_of}")
        ended = self.store.jobs(ended=True, limit=10_000)
        self.found.jobs = len(ended)
        self.found.held_gpu_s = sum(job.held_gpu_s for job in ended)


def _about(job: JobRecord) -> str:
    return f"job {job.id} ({job.job_class}, {job.spec.priority}, min {job.spec.gpus.min})"


def run(seed: int, number: int) -> Found:
    """Act out an episode and return what was found."""
    folder = Path(tempfile.mkdtemp(prefix="boa-virtual-", dir=_memory()))
    try:
        return _run(random.Random(f"{seed}/{number}"), seed, number, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _run(rng: random.Random, seed: int, number: int, folder: Path) -> Found:
    cluster, nodes, gpus = CLUSTERS[number % len(CLUSTERS)]
    kinds = _kinds(rng, nodes * gpus)
    if number % LOOPS_EVERY == LOOPS_EVERY - 1:
        kinds += [_kind(rng, kind, len(kinds), nodes * gpus) for kind in ("loops", "neighbour")]
    boots = rng.choice((0.0, 0.0, 45.0))
    gpu = GpuType(name="slot", price=1.0, gpus_per_node=gpus)
    capped = rng.random() < 0.25
    billing = rng.choice(BILLINGS)
    settings = config(
        folder,
        gpu_types={"slot": gpu},
        max_nodes={"slot": nodes},
        budget=rng.choice((4.0, 8.0, 20.0)) * nodes * gpus / 2,
        provision_s=boots,
        keep_warm_s=rng.choice((0.0, 600.0)),
        billing=billing,
        sharing=_teams(rng, kinds, nodes * gpus) if capped else None,
    )
    again = f"bench/campaign.py {seed} --virtual --episode {number}"
    world = World(
        settings,
        {kind.name: kind.truth for kind in kinds},
        kinds={kind.name: kind for kind in kinds},
        found=Found(number=number, again=again, cluster=cluster, billing=billing),
    )
    try:
        world.settle()
        _act(world, rng, kinds)
        world.close_books()
    except Exception as problem:  # an episode that cannot go on is a finding too
        world.wrong("crash", f"{type(problem).__name__}: {problem}")
    finally:
        world.close()
    return world.found


def _teams(rng: random.Random, kinds: Sequence[Kind], gpus: int) -> Budget:
    """Teams of several classes under hard caps of half the cluster and of most of it."""
    names = [kind.name for kind in kinds]
    mine = tuple(name for name in names if rng.random() < 0.6) or (names[0],)
    theirs = tuple(name for name in names if name not in mine)
    half = Budget(name="half", max_spend=max(gpus / 2, 2.0), classes=mine)
    most = Budget(name="most", max_spend=max(gpus - 1.0, 2.0), classes=theirs)
    parts = (half, most) if theirs and rng.random() < 0.5 else (half,)
    return Budget(name="all", per_hour=8.0, parts=parts)


def _kinds(rng: random.Random, gpus: int) -> list[Kind]:
    """A few classes, of kinds that the cluster is short for."""
    drawn = rng.choices(KINDS, WEIGHTS, k=rng.randint(3, 5))
    return [_kind(rng, kind, n, gpus) for n, kind in enumerate(drawn)]


def _kind(rng: random.Random, kind: str, n: int, gpus: int) -> Kind:
    name, rescale_s = f"{kind}{n}", rng.choice((2.0, 5.0, 10.0))
    work = math.exp(rng.uniform(math.log(15.0), math.log(900.0)))
    if kind in ("saves", "every") and rng.random() < 0.25:
        work *= 3
    work = 10 * LOOPS_S if kind in LASTING else work
    truth = profile(
        name,
        work=(work,),
        alpha=rng.choice((0.0, 0.6, 0.9)),
        gpus={"slot": 1.0},
        rescale_s=rescale_s,
        widest=max(gpus, 2),
    )
    least = 2 if kind == "wide" else 1
    limits = GpuLimits(min=least, max=rng.choice((least, gpus, gpus)))
    fields: dict[str, Any] = {"gpus": limits, "retries": rng.choice((2, 5))}
    if kind in ("urgent", "background"):
        fields["priority"] = kind
    elif kind == "loops":
        fields |= {"priority": "urgent", "retries": 100_000}
    elif rng.random() < 0.5:
        fields["weight"] = rng.choice(WEIGHTS_OF_JOBS)
    if kind == "deadline":
        fields["deadline_s"] = work * rng.uniform(0.8, 4.0) + 30.0
    saving = SAVING.get(kind) or rng.choice((SAVES, SAVES, *SAVING.values()))
    if kind in ("urgent", "wide", "deadline", "background", "crashes") and rng.random() < 0.4:
        saving = SAVING["plain"]
    spec = JobSpec(job_class=name, run=("true",), launcher="single", **fields)
    return Kind(name=name, kind=kind, saving=saving, truth=truth, spec=spec)


def _act(world: World, rng: random.Random, kinds: Sequence[Kind]) -> None:
    """Submit jobs and make trouble, then wait until every job has ended."""
    lasting = [kind for kind in kinds if kind.kind in LASTING]
    others = [kind for kind in kinds if kind.kind not in LASTING]
    to_stop = [world.submit(kind.spec) for kind in lasting]
    pauses = 5.0 if lasting else 1.0
    for _ in range(rng.randint(12, 24)):
        if rng.random() < 0.7:
            _submit(world, rng, rng.choice(others))
        else:
            _trouble(world, rng)
        world.look_at_nodes()
        world.advance(pauses * rng.expovariate(1 / 60.0), tick=TICK_S)
    for job_id in to_stop:
        _tried(world, world.loop.stop(job_id))
    world.settle()
    world.loop.set_budget(20.0)
    for job in list(world.loop.state.jobs.values()):
        if job.paused:  # some of them late
            world.advance(rng.choice((0.0, 0.0, 300.0, 1200.0)), tick=TICK_S)
            _tried(world, world.loop.resume(job.id))
    world.settle()
    end = world.clock.now() + PATIENCE_S
    while world.loop.snapshot.jobs and world.clock.now() < end:
        world.advance(120.0, tick=TICK_S)
    for job in world.loop.snapshot.jobs.values():
        if not job.background:
            world.wrong("never ends", f"job {job.id} ({job.job_class}): {job.state}: {job.reason}")


def _submit(world: World, rng: random.Random, kind: Kind) -> None:
    spec, sweep = kind.spec, rng.random() < 0.1
    if rng.random() < 0.1:
        spec = replace(spec, preemptible=True)
    try:
        if sweep:
            asked = replace(spec, run=("true", "{lr}"))
            _tried(world, world.loop.submit_sweep(SweepSpec(job=asked, parameters={"lr": LR})))
        else:
            world.submit(spec)
    except BoaError:
        return


def _trouble(world: World, rng: random.Random) -> None:
    jobs = sorted(world.loop.state.jobs.values(), key=lambda job: int(job.id))
    what = rng.choice(TROUBLES)
    job = rng.choice(jobs) if jobs else None
    match what:
        case "pause" if job is not None:
            _tried(world, world.loop.pause(job.id, force=rng.random() < 0.5))
        case "resume":
            for paused in [job for job in jobs if job.paused]:
                _tried(world, world.loop.resume(paused.id))
        case "stop" if job is not None:
            _tried(world, world.loop.stop(job.id))
        case "priority" if job is not None and not job.background:
            changes = rng.choice(({"priority": "urgent"}, {"priority": "normal"}, {"weight": 20.0}))
            _tried(world, world.loop.change(job.id, changes))
        case "budget":
            _tried(world, world.loop.set_budget(rng.choice((2.0, 5.0, 20.0))))
        case "cap":
            gpus = sum(kind.gpus_per_node for kind in world.config.gpu_types.values())
            world.most = rng.choice((float(gpus), 100.0))
            _tried(world, world.loop.set_budget(None, world.most))
        case "node":
            _lose_node(world, rng)
        case "crash":
            world.crash()
        case "kill" if job is not None and job.run is not None:
            key = RunKey(job.id, job.run.attempt)
            if key in world.engine.runs():
                world.engine.kill(key)
    world.settle()


def _tried(world: World, asked: Any) -> None:
    """Requests may be refused: a job has just ended, or a pause would lose work."""
    world.settle()
    asked.exception(timeout=0)


def _lose_node(world: World, rng: random.Random) -> None:
    """The cloud takes a node back without a word."""
    cloud, nodes = world.cloud, [n for n in world.loop.state.nodes.values() if n.state == "ready"]
    if nodes and isinstance(cloud, LocalCloud):
        node = rng.choice(nodes)
        world.lost.add(node.id)
        cloud.release(node.token)
        for job in world.loop.state.jobs.values():
            if job.run is not None and node.id in job.run.slots:
                world.excused.add(job.id)
