"""Small worlds to simulate in milliseconds, and a ledger kept from the events alone.

Every class here is made up: `quick` and `patient` tune their batch size as they train, in a few
epochs of a few minutes; `steady` and `large` make iterations at a pace that only the placement
decides, so what becomes of them can be worked out by hand.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from boa.errors import BudgetTooSmall
from boa.goodput.efficiency import Convergence
from boa.goodput.measured import MeasuredTimes
from boa.goodput.plans import PlanTimes
from boa.goodput.throughput import Throughput, accumulation_time, step_time
from boa.goodput.timing import Curve
from boa.goodput.tuning import Limits
from boa.model.cluster import Shape
from boa.model.trace import Trace, TraceJob
from boa.model.workload import GpuType
from boa.policy.registry import POLICIES, Knobs, Learning
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.physics import AdaptiveTruth, PlanTruth, Truth
from boa.sim.report import SimulationReport
from boa.sim.run import World
from boa.sim.sweep import Asked, run_one
from boa.solver.planner import plan
from boa.units import GpuName, Seconds

Event = Mapping[str, Any]

PER_NODE: tuple[Mapping[GpuName, int], ...] = ({"T4": 4}, {"T4": 2}, {"T4": 4, "V100": 2})
"""GPUs per node of the clusters that random worlds are made of."""
ADAPTIVE, PLANNED = ("quick", "patient"), ("steady", "large")
MODELS = {
    "quick": Throughput.of([0.05, 0.004, 0.06, 0.006, 0.02, 0.002, 1.5]),
    "patient": Throughput.of([0.2, 0.01, 0.3, 0.01, 0.1, 0.01, 1.2]),
}
BATCHES = (32, 64, 128, 256)
WIDTHS = (1, 2, 4, 8)
"""That were measured, on one node and on two."""
SPEED: Mapping[GpuName, float] = {"T4": 1.0, "V100": 1.7}
RESCALE_S: Mapping[str, Seconds] = {"quick": 0.0, "patient": 30.0, "steady": 30.0, "large": 120.0}
STEADY: Mapping[Shape, Seconds] = {(1,): 2.0, (2,): 1.25, (4,): 0.8, (2, 2): 1.0, (1, 1): 1.6}
LARGE: Mapping[Shape, Seconds] = {(2,): 1.0, (4,): 0.6, (2, 2): 0.8, (4, 4): 0.5}
"""Seconds per iteration of plans on a T4; one GPU is too small for the large model."""
NEVER_ALONE = tuple(name for name, facts in POLICIES.items() if not facts.learns_alone)
"""Policies that need to know a job before it has run: it cannot learn alone, from nothing."""


def measured(model: Throughput, speed: float = 1.0) -> MeasuredTimes:
    """What profiling would find of this model on 1 to 8 GPUs, on one node and on two."""
    batches = np.array([4.0, 8.0, 16.0, 32.0, 64.0])

    def curve(nodes: int, gpus: int) -> Curve:
        step = step_time(model, np.float64(nodes), np.float64(gpus), batches)  # type: ignore[arg-type]
        return Curve(batches, step / speed, accumulation_time(model, batches) / speed)

    counts = {n: {k: curve(n, k) for k in WIDTHS if k >= n} for n in (1, 2)}
    return MeasuredTimes({}, counts)


def adaptive(
    name: str, per_node: Mapping[GpuName, int], *, rescale_s: Seconds | None = None
) -> AdaptiveTruth:
    grows = {"quick": (1.0, 2.0), "patient": (0.2, 4.0, 8.0)}[name]
    work = {"quick": (300.0, 200.0), "patient": (150.0, 100.0, 250.0)}[name]
    variance = np.array(grows)[:, None] * np.array([1.0, 1.1, 1.2, 1.4])
    return AdaptiveTruth(
        name=name,
        application=name,
        rescale_s=RESCALE_S[name] if rescale_s is None else rescale_s,
        slowdown=1.25,
        convergence=Convergence(BATCHES, np.cumsum(work), np.ones(variance.shape), variance),
        timings={gpu: measured(MODELS[name], SPEED[gpu]) for gpu in per_node},
        limits={
            gpu: Limits(base_batch=32, max_batch=256, min_local=8, max_local=64) for gpu in per_node
        },
        measured_to=dict.fromkeys(per_node, 8),
        gpus_per_node=per_node,
    )


def planned(
    name: str,
    per_node: Mapping[GpuName, int],
    *,
    rescale_s: Seconds | None = None,
    times: Mapping[Shape, Seconds] | None = None,
) -> PlanTruth:
    seconds = times or {"steady": STEADY, "large": LARGE}[name]
    return PlanTruth(
        name=name,
        application=name,
        rescale_s=RESCALE_S[name] if rescale_s is None else rescale_s,
        slowdown=1.0,
        plans={
            gpu: PlanTimes.of([("best", shape, s / SPEED[gpu]) for shape, s in seconds.items()])
            for gpu in per_node
        },
        gpus_per_node=per_node,
    )


@cache
def _truths(per_node: tuple[tuple[GpuName, int], ...]) -> dict[str, Truth]:
    known = dict(per_node)
    return {
        **{name: adaptive(name, known) for name in ADAPTIVE},
        **{name: planned(name, known) for name in PLANNED},
    }


def world(
    jobs: Sequence[TraceJob],
    per_node: Mapping[GpuName, int],
    truths: Mapping[str, Truth] | None = None,
) -> World:
    """Jobs of the classes above, unless others are given; a T4 costs 1, a V100 2.5 per hour."""
    return World(
        trace=Trace(tuple(sorted(jobs, key=lambda job: job.arrival_s))),
        truths=truths or _truths(tuple(per_node.items())),
        gpu_types={
            gpu: GpuType(name=gpu, price=1.0 if gpu == "T4" else 2.5, gpus_per_node=count)
            for gpu, count in per_node.items()
        },
    )


def job(name: str, arrival_s: Seconds, application: str, **asked: Any) -> TraceJob:
    if application in PLANNED:
        asked = {"steps": 300, **asked}
    return TraceJob(name=name, arrival_s=arrival_s, application=application, **asked)


# One run and what its events say


@dataclass(frozen=True, slots=True)
class Held:
    """GPUs that a job held from one moment to another, making progress from `resume` on."""

    job: str
    gpu: GpuName
    nodes: tuple[tuple[int, int], ...]
    since: Seconds
    resume: Seconds
    until: Seconds

    @property
    def width(self) -> int:
        return sum(count for _, count in self.nodes)

    @property
    def shape(self) -> Shape:
        return tuple(count for _, count in self.nodes)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A report, and the events that led to it in order of time."""

    world: World
    policy: str
    knobs: Knobs
    report: SimulationReport
    told: list[Event] = field(repr=False)
    """As they came."""

    @property
    def events(self) -> list[Event]:
        return sorted(self.told, key=lambda event: event["time_s"])

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["event"] == kind]

    def times(self, kind: str) -> dict[str, Seconds]:
        return {event["job"]: event["time_s"] for event in self.of(kind)}

    @property
    def document(self) -> dict[str, Any]:
        return {key: value for key, value in self.report.document().items() if key != "wall_s"}

    def as_bytes(self) -> bytes:
        """Everything that a run shows, but for the seconds it took."""
        shown = [self.document, self.told, [str(sample) for sample in self.report.series]]
        return json.dumps(shown).encode()

    def held(self) -> list[Held]:
        """Every stretch in which a job held the same GPUs."""
        open_: dict[str, Event] = {}
        found = []
        for event in self.events:
            if event["event"] not in ("start", "rescale", "stop", "finish"):
                continue
            before = open_.pop(event["job"], None)
            if before is not None:
                found.append(_held(before, event["time_s"]))
            if event["event"] in ("start", "rescale"):
                open_[event["job"]] = event
        assert not open_, "GPUs that are never given back"
        return found

    def rented(self) -> dict[int, tuple[GpuName, Seconds, Seconds]]:
        """Node -> type, since, until."""
        since = {event["node"]: event for event in self.of("rent")}
        until = {event["node"]: event["time_s"] for event in self.of("release")}
        assert len(since) == len(self.of("rent")), "a node is rented once"
        assert set(since) == set(until), "every node goes back"
        return {
            node: (event["gpu_type"], event["time_s"], until[node]) for node, event in since.items()
        }


def _held(start: Event, until: Seconds) -> Held:
    return Held(
        job=start["job"],
        gpu=start["gpu_type"],
        nodes=tuple((node, count) for node, count in start["nodes"]),
        since=start["time_s"],
        resume=start["resume_s"],
        until=until,
    )


def replay(of: World, policy: str, knobs: Knobs, asked: Asked | None = None) -> Replay:
    told: list[Event] = []
    report = run_one(of, policy, knobs, asked or Asked(), listener=told.append, keep_jcts=True)
    return Replay(world=of, policy=policy, knobs=knobs, report=report, told=told)


def cheapest(of: World, asked: Asked) -> float:
    """The least budget that BOA could start with."""
    settings = asked.settings("boa", None)
    knowledge = Knowledge(of.truths, of.gpu_types, ExpectedArrivals.of(of.trace), settings)
    try:
        plan(knowledge.workload(), 1e-9)
    except BudgetTooSmall as problem:
        return problem.needed
    raise AssertionError("nothing is for free")


# Random ones


@st.composite
def traces(
    draw: st.DrawFn, classes: Sequence[str] = ADAPTIVE + PLANNED, max_jobs: int = 6
) -> list[TraceJob]:
    """A handful of jobs within half an hour, the last after time 0; arrivals on a 5 s grid, so
    that some come just when a round begins."""
    found = []
    for n in range(draw(st.integers(1, max_jobs))):
        app = draw(st.sampled_from(classes))
        arrival = 5.0 * draw(st.integers(1 if n == 0 else 0, 360))
        widths = (2, 4) if app == "large" else (1, 2, 4)
        asked: dict[str, Any] = {"gpus": draw(st.sampled_from(widths))}
        if app in PLANNED:
            asked["steps"] = draw(st.integers(1, 500))
            asked["guaranteed"] = draw(st.booleans())
        else:
            asked["batch_size"] = draw(st.sampled_from(BATCHES))
        found.append(job(f"{app}-{n}", arrival, app, **asked))
    return found


@dataclass(frozen=True, kw_only=True)
class Setup:
    """One run that could be made; its repr is short enough to read."""

    jobs: Sequence[TraceJob]
    per_node: Mapping[GpuName, int]
    policy: str
    knobs: Knobs
    asked: Asked

    def replay(self) -> Replay:
        return replay(world(self.jobs, self.per_node), self.policy, self.knobs, self.asked)


@st.composite
def physics(draw: st.DrawFn, policy: str) -> Asked:
    """All that may be asked of the world: how policies learn, and what nodes and jobs take."""
    learnings: list[Learning] = [POLICIES[policy].learning, "class", "perfect"]
    if policy not in NEVER_ALONE:
        learnings.append("job")
    rounds = [None, 60.0, 45.0] + [0.0] * (policy in ("boa", "fixed"))
    learning = draw(st.sampled_from(learnings))
    seconds = st.sampled_from([0.0, 0.0, 20.0, 90.0])
    return Asked(
        interval_s=draw(st.sampled_from(rounds)),
        learning=learning,
        noise=draw(st.sampled_from([0.0, 0.3])) if learning == "perfect" else 0.0,
        provision_s=draw(seconds),
        reclaim_s=draw(seconds),
        cold_s=draw(seconds),
        interference=draw(st.sampled_from([0.0, 0.0, 0.4])),
        seed=draw(st.integers(0, 3)),
    )


@st.composite
def knobs_for(draw: st.DrawFn, policy: str, of: World, asked: Asked) -> Knobs:
    """What the policy needs to be told, so that every job can run."""
    knob, also = POLICIES[policy].knob, POLICIES[policy].also
    if knob == "budget":
        return Knobs(budget=cheapest(of, asked) * draw(st.sampled_from([1.001, 1.5, 4.0, 100.0])))
    if knob == "target":
        return Knobs(target=draw(st.sampled_from([0.2, 0.5, 0.8])), seed=asked.seed)
    if knob == "knob":
        return Knobs(knob=draw(st.sampled_from(POLICIES[policy].knob_values)), seed=asked.seed)
    if knob == "width":
        return Knobs(width=draw(st.sampled_from([2, 3, 4, 8])))
    if knob == "nodes" or ("nodes" in also and draw(st.booleans())):
        enough = {gpu: -(-4 // kind.gpus_per_node) for gpu, kind in of.gpu_types.items()}
        nodes = {gpu: draw(st.integers(least, least + 2)) for gpu, least in enough.items()}
        symmetric = POLICIES[policy].takes_turns and draw(st.booleans())
        return Knobs(nodes=nodes, seed=asked.seed, symmetric=symmetric)
    return Knobs(seed=asked.seed)


@st.composite
def setups(draw: st.DrawFn, policy: str, *, classes: Sequence[str] = ADAPTIVE + PLANNED) -> Setup:
    jobs = draw(traces(classes))
    several = POLICIES[policy].several_types
    per_node = draw(st.sampled_from([p for p in PER_NODE if len(p) == 1 or several]))
    asked = draw(physics(policy))
    knobs = draw(knobs_for(policy, world(jobs, per_node), asked))
    return Setup(jobs=jobs, per_node=per_node, policy=policy, knobs=knobs, asked=asked)


def in_steps(events: Sequence[Event]) -> list[list[Event]]:
    """Events of the same moment together: what happens at once has no order."""
    return [list(same) for _, same in itertools.groupby(events, key=lambda e: e["time_s"])]
