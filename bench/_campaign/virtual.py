"""Episodes of `bench/campaign.py --virtual`: small clusters that are short of GPUs.

The real control loop, store and local cloud step through an hour or so on a virtual clock; the jobs
are acted out, with and without checkpoints. An observer keeps books of its own on every stop, every
start and every wait. An episode follows from its seed and number alone.
"""

import math
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from boa.clouds.local import LocalCloud
from boa.errors import BoaError
from boa.model.budgets import Budget
from boa.model.job import GpuLimits, JobRecord, JobSpec
from boa.model.profile import ClassProfile
from boa.model.records import Event
from boa.model.runs import Launch, RunKey
from boa.model.workload import GpuType
from boa.scheduler.check_reasons import STARTS, Checker
from boa.scheduler.state import State, is_usable
from boa.scheduler.words.of_keeping import WAITS
from boa.sim.engine import SAVES, Saving, SimulatedEngine, acting_out
from boa.units import Seconds
from live import Live, config, profile

TICK_S: Seconds = 20.0
REPORT_S: Seconds = 5.0
STARVES_S: Seconds = 900.0
"""A job that waits for longer, while others that came later start, starves …"""
OVERTAKEN = 3
"""… once so many have."""
IDLE_S: Seconds = 300.0
"""A job that waits for longer next to empty GPUs that it could run on starves."""
RESCALES = 10.0
"""Rescale times between two rescales of a job, at least."""
PATIENCE_S: Seconds = 12 * 3600.0
"""Seconds after the last request in which every job has to end."""
PRIORITIES = ("background", "normal", "urgent")
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
)
WEIGHTS = (5, 4, 3, 3, 1, 2, 2, 1, 1)
SAVING: Mapping[str, Saving] = {
    "plain": Saving(at_stop=False, reports=False),
    "every": Saving(at_stop=False, every_s=60.0),
    "wrapped": Saving(at_stop=False, every_s=30.0, reports=False),
}
CLUSTERS: Sequence[tuple[str, int, int]] = (("1×2", 1, 2), ("2×2", 2, 2), ("1×4", 1, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A class of jobs of an episode."""

    name: str
    kind: str
    saving: Saving
    truth: ClassProfile
    spec: JobSpec


@dataclass(slots=True, kw_only=True)
class Found:
    """Outcome of an episode."""

    number: int
    again: str
    cluster: str
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
    cannot: bool
    """It had no checkpoint, and saves none when it is stopped."""


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
            left = sum(run.job.work[: run.job.epoch]) + run.job.done
            since = run.began if run.saved_at is None else run.saved_at
            lost_s = self._clock.now() - since if left < units - 1e-9 else 0.0
            cannot = not run.saving.at_stop and run.saved_at is None
            self.world.stopped(key, lost_s, cannot)


class _Checker(Checker):
    """Keeps what it finds, and holds savings against the truth too."""

    world: "World"

    def violations(self, before: State, after: State, events: Sequence[Event]) -> list[str]:
        found = super().violations(before, after, events)
        for text in found:
            kind = "stop without an event" if "without an event" in text else "false reason"
            self.world.found.violations.append((kind, text))
        self.world.said(after, events)
        return found


@dataclass
class World(Live):
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    found: Found = field(default_factory=lambda: Found(number=0, again="", cluster=""))
    capped: bool = False
    """Caps are or were in force: a job may wait for money."""

    def __post_init__(self) -> None:
        self.rng = random.Random(0)
        self.checker = _Checker(self.config.max_nodes)
        self.checker.world = self
        self.lossy: list[Stop] = []
        self.waits: dict[str, Seconds] = {}
        self.idle: dict[str, Seconds] = {}
        self.overtaken: dict[str, set[str]] = {}
        self.starving: set[str] = set()
        self.moved: dict[str, Event] = {}
        self.excused: set[str] = set()
        self.preempted: dict[str, str] = {}
        self.engine = _Engine(self.clock, acting_out(self.profiles), report_s=REPORT_S)
        self.engine.world = self
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

    # The observer

    def wrong(self, kind: str, text: str) -> None:
        self.found.violations.append((kind, f"at {self.clock.now() - 1e6:.0f} s: {text}"))

    def stopped(self, key: RunKey, lost_s: Seconds, cannot: bool) -> None:
        job = self.loop.state.jobs.get(key.job)
        if job is None or job.run is None or job.stop_requested or job.held_back:
            self.found.stops["asked for"] += 1
            self.excused.add(key.job)
            return
        nodes = self.loop.state.nodes
        if any(n not in nodes or not is_usable(nodes[n]) for n in job.run.slots):
            self.found.stops["node lost"] += 1
            self.excused.add(key.job)
            return
        if self.preempted.get(key.job) in ("cap", "ended"):
            self.found.stops["for a cap that was lowered"] += 1
            return
        self.found.stops["ours"] += 1
        width = job.run.allocation.width
        if job.background:
            return
        self.found.lost_gpu_s += lost_s * width
        if lost_s > 0:
            self.found.stops["ours, with work lost"] += 1
            stop = Stop(job=key.job, at=self.clock.now(), lost_s=lost_s, width=width, cannot=cannot)
            self.lossy.append(stop)
            if cannot and not job.spec.preemptible:
                words = f"job {key.job} ({job.job_class}) lost {lost_s:.0f} s on {width} GPUs"
                self.wrong("work of a job that cannot checkpoint lost", words)

    def said(self, after: State, events: Sequence[Event]) -> None:
        self.found.events += len(events)
        for event in events:
            if event.job is None:
                continue
            kind: str = event.kind
            if kind == "preempted":
                self.excused.add(event.job)
                self.preempted[event.job] = event.data.get("why", "")
            if event.kind in STARTS:
                self.preempted.pop(event.job, None)
                self.found.reasons += 1
                self._started(after, event)

    def _started(self, after: State, event: Event) -> None:
        job = after.jobs.get(event.job or "")
        if job is None:
            return
        if event.kind == "started":
            for other, since in self.waits.items():
                waiting = after.jobs.get(other)
                if waiting is None or other == job.id or job.background:
                    continue
                later = job.submitted_at > waiting.submitted_at and event.at >= since
                if later and _rank(job) <= _rank(waiting):
                    self.overtaken.setdefault(other, set()).add(job.id)
        last = self.moved.get(job.id)
        if event.kind == "rescaled" and not job.background:
            least = RESCALES * self.kinds[job.job_class].truth.rescale_s
            urgent = after.jobs.get(event.data.get("for_job", ""))
            higher = urgent is not None and _rank(urgent) > _rank(job)
            back = event.data.get("why") == "returned"
            free = job.id in self.excused or higher or back
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
        left = sum(acted.work[acted.epoch :]) - acted.done
        narrowest = left / max(self.kinds[job.job_class].truth.rates["slot"][0, 0, 1], 1e-9)
        if data["saves_s"] > 2 * narrowest + 60.0:
            self.wrong("saves more than there truly is", event.text)

    def settle(self) -> None:
        super().settle()
        self._look()

    def _look(self) -> None:
        state, now = self.loop.state, self.clock.now()
        free = self._free(state)
        for job in state.jobs.values():
            waits = (
                job.run is None
                and not job.held_back
                and not job.stop_requested
                and job.retry_at is None
                and not job.background
            )
            if not waits:
                for book in (self.waits, self.idle, self.overtaken):
                    book.pop(job.id, None)
                continue
            since = self.waits.setdefault(job.id, now)
            if self.capped or job.id in self.starving:
                continue
            passed = self.overtaken.get(job.id, set())
            if now - since > STARVES_S and len(passed) >= OVERTAKEN:
                self.starving.add(job.id)
                words = f"job {job.id} ({job.job_class}, {job.spec.priority}, min"
                words += f" {job.spec.gpus.min}) waits for {now - since:.0f} s"
                self.wrong("starves", f"{words}; jobs {', '.join(sorted(passed))} came later")
            if free < job.spec.gpus.min or job.reason == WAITS["turn"]:
                self.idle.pop(job.id, None)
            elif now - self.idle.setdefault(job.id, now) > IDLE_S:
                self.starving.add(job.id)
                words = f"job {job.id} ({job.job_class}, {job.spec.priority}, min"
                words += f" {job.spec.gpus.min}) waits next to {free} empty GPUs"
                self.wrong("waits next to empty GPUs", f"{words}: {job.reason}")

    def _free(self, state: State) -> int:
        """GPUs of ready nodes that no run has."""
        used: Counter[int] = Counter()
        for run in (job.run for job in state.jobs.values() if job.run is not None):
            used.update({node: len(slots) for node, slots in run.slots.items()})
        ready = (n for n in state.nodes.values() if n.state == "ready" and is_usable(n))
        return sum(max(node.gpus - used[node.id], 0) for node in ready)

    def close_books(self) -> None:
        """Look for the event of every stop that cost work."""
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
            if not told:
                words = f"job {stop.job} lost {stop.lost_s:.0f} s on {stop.width} GPUs"
                self.wrong("work lost without an event", f"{words} at {stop.at - 1e6:.0f} s")
        ended = self.store.jobs(ended=True, limit=10_000)
        self.found.jobs = len(ended)
        self.found.held_gpu_s = sum(job.held_gpu_s for job in ended)


def _rank(job: JobRecord) -> tuple[int, float]:
    """Priority, and the weight that its user gave it."""
    return PRIORITIES.index(job.spec.priority), job.spec.weight


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
    boots = rng.choice((0.0, 0.0, 45.0))
    gpu = GpuType(name="slot", price=1.0, gpus_per_node=gpus)
    capped = cluster == "2×2" and rng.random() < 0.3
    settings = config(
        folder,
        gpu_types={"slot": gpu},
        max_nodes={"slot": nodes},
        budget=rng.choice((4.0, 8.0, 20.0)) * nodes * gpus / 2,
        provision_s=boots,
        keep_warm_s=rng.choice((0.0, 600.0)),
        billing=rng.choice(("node", "node", "node", "gpu")),
        sharing=_teams(rng, kinds) if capped else None,
    )
    again = f"bench/campaign.py {seed} --virtual --episode {number}"
    world = World(
        settings,
        {kind.name: kind.truth for kind in kinds},
        kinds={kind.name: kind for kind in kinds},
        found=Found(number=number, again=again, cluster=cluster),
        capped=capped,
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


def _teams(rng: random.Random, kinds: Sequence[Kind]) -> Budget:
    """Two teams, one of them under a hard cap."""
    names = [kind.name for kind in kinds]
    mine = tuple(name for name in names if rng.random() < 0.5) or (names[0],)
    capped = Budget(name="capped", max_spend=2.0, classes=mine)
    return Budget(name="all", per_hour=8.0, parts=(capped,))


def _kinds(rng: random.Random, gpus: int) -> list[Kind]:
    """A few classes, of kinds that the cluster is short for."""
    found = []
    for n, kind in enumerate(rng.choices(KINDS, WEIGHTS, k=rng.randint(3, 5))):
        name = f"{kind}{n}"
        rescale_s = rng.choice((2.0, 5.0, 10.0))
        work = math.exp(rng.uniform(math.log(15.0), math.log(900.0)))
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
        if kind == "deadline":
            fields["deadline_s"] = work * rng.uniform(0.8, 4.0) + 30.0
        saving = SAVING.get(kind) or rng.choice((SAVES, SAVES, *SAVING.values()))
        spec = JobSpec(job_class=name, run=("true",), launcher="single", **fields)
        found.append(Kind(name=name, kind=kind, saving=saving, truth=truth, spec=spec))
    return found


def _act(world: World, rng: random.Random, kinds: Sequence[Kind]) -> None:
    """Submit jobs and make trouble, then wait until every job has ended."""
    for _ in range(rng.randint(12, 24)):
        if rng.random() < 0.7:
            _submit(world, rng, rng.choice(kinds))
        else:
            _trouble(world, rng)
        world.advance(rng.expovariate(1 / 60.0), tick=TICK_S)
    for job in list(world.loop.state.jobs.values()):
        if job.paused:
            world.loop.resume(job.id)
    world.loop.set_budget(20.0)
    world.settle()
    end = world.clock.now() + PATIENCE_S
    while world.loop.snapshot.jobs and world.clock.now() < end:
        world.advance(120.0, tick=TICK_S)
    for job in world.loop.snapshot.jobs.values():
        if not job.background:
            world.wrong("never ends", f"job {job.id} ({job.job_class}): {job.state}: {job.reason}")


def _submit(world: World, rng: random.Random, kind: Kind) -> None:
    spec = kind.spec
    if rng.random() < 0.1:
        spec = replace(spec, preemptible=True)
    try:
        world.submit(spec)
    except BoaError:
        return


def _trouble(world: World, rng: random.Random) -> None:
    jobs = sorted(world.loop.state.jobs.values(), key=lambda job: int(job.id))
    what = rng.choice(("pause", "resume", "stop", "budget", "cap", "node", "crash", "kill"))
    job = rng.choice(jobs) if jobs else None
    match what:
        case "pause" if job is not None:
            _tried(world, world.loop.pause(job.id))
        case "resume":
            for paused in [job for job in jobs if job.paused]:
                _tried(world, world.loop.resume(paused.id))
        case "stop" if job is not None:
            _tried(world, world.loop.stop(job.id))
        case "budget":
            _tried(world, world.loop.set_budget(rng.choice((2.0, 5.0, 20.0))))
        case "cap":
            gpus = sum(kind.gpus_per_node for kind in world.config.gpu_types.values())
            world.capped = True
            most = rng.choice((float(gpus), 100.0))
            _tried(world, world.loop.set_budget(None, most))
        case "node":
            _lose_node(world, rng)
        case "crash":
            world.crash()
        case "kill" if job is not None and job.run is not None:
            key = RunKey(job.id, job.run.attempt)
            if key in world.engine.runs():
                world.engine.kill(key)
                world.excused.add(job.id)
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
        cloud.release(node.token)
        for key in list(world.engine.runs()):
            job = world.loop.state.jobs.get(key.job)
            if job is not None and job.run is not None and node.id in job.run.slots:
                world.excused.add(job.id)
