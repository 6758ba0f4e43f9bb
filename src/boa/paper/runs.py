"""One simulation: what it is, what it is called on disk, and what comes of it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from boa.model.workload import Billing
from boa.paper.data import Cut, Redrawn, trace_of, world_for
from boa.policy.registry import POLICIES, ROUND_S, Knobs, Learning, choose
from boa.policy.rivals.genetic import COMPILED
from boa.sim.bound import bound_jct
from boa.sim.report import ClusterSample, SimulationReport
from boa.sim.run import World, simulate
from boa.sim.settings import Settings
from boa.solver.planner import frontier
from boa.units import Seconds, UsdPerHour

Document: TypeAlias = Mapping[str, Any]
BINS = 240
"""Points of a time series that are kept."""
MONEY = ("spend_per_hour", "rented_spend_per_hour", "bill_per_hour")
"""Figures that runs are held against each other at: each has a bound on the average JCT."""
JOB_COST = {
    "pollux-autoscale": 0.03,
    "sia-autoscale": 0.015,
    "rubick-autoscale": 0.006,
    "rubick-autoscale-by-base": 0.006,
    "rubick-autoscale-queueing": 0.02,
    "optimus-goodput": 0.008,
    "shockwave": 0.02,
    "hesrpt": 0.015,
}
"""Seconds of one core per job, about; anything else takes OTHER_COST."""
OTHER_COST = 0.0015
NODE_COST = 0.04
"""The same of BOA where nodes are billed."""
SOURCES = (".py", ".c", ".h")
SIMULATING = (
    "catalogue",
    "formats",
    "goodput",
    "model",
    "placement",
    "policy",
    "scheduler",
    "sim",
    "solver",
)
"""Rooms, with all below them, whose code decides how a simulation goes …"""
ALONE = ("clouds/local.py", "paper/alike.py", "paper/data.py", "paper/runs.py")
"""… and files of other rooms that do."""
WORLD_COST = 0.5
"""Seconds to read profiles and plan for the first time; other runs may have done so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything that decides how a simulation goes; equal runs are one run."""

    setting: str
    policy: str
    knob: float | None = None
    """BOA: budget over the cheapest spend there is; so the size of a fixed cluster. Autoscaled
    rivals: their target efficiency, or a number of their own."""
    draw: int = 1
    redrawn: Redrawn = None
    hours: float | None = None
    every: int = 1
    learning: Learning = "class"
    noise: float = 0.0
    provision_s: Seconds = 0.0
    cold_s: Seconds = 0.0
    reclaim_s: Seconds = 0.0
    rescale_s: Seconds | None = None
    interval_s: Seconds | None = None
    """Rounds, for a policy that would act at events; None: as the policy does by itself."""
    billing: Billing = "gpu"
    """Count that BOA's budget is held against."""
    epochs: bool = True
    """False: all epochs of a job are like its average one."""
    seed: int = 0

    @property
    def cut(self) -> Cut:
        return Cut(draw=self.draw, redrawn=self.redrawn, hours=self.hours, every=self.every)

    @property
    def key(self) -> str:
        said = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(said.encode("utf-8")).hexdigest()[:20]

    @property
    def label(self) -> str:
        knob = "" if self.knob is None else f" {self.knob:g}"
        return f"{self.setting} draw {self.draw}, {self.policy}{knob}"

    def cost(self, data: Path) -> float:
        """Seconds that it takes, about: for the order, and for what is left."""
        jobs = len(trace_of(data, self.setting, self.cut).jobs)
        if self.billing == "node":
            return WORLD_COST + jobs * NODE_COST
        return WORLD_COST + jobs * JOB_COST.get(self.policy, OTHER_COST)


def execute(run: Run, data: Path) -> dict[str, Any]:
    """Simulate it: the report, what the budget was, and the series in brief."""
    world = world_for(data, run.setting, run.cut, run.rescale_s, run.epochs)
    settings = Settings(
        interval_s=run.interval_s or _interval_s(run),
        learning=run.learning,
        noise=run.noise,
        provision_s=run.provision_s,
        cold_s=run.cold_s,
        reclaim_s=run.reclaim_s,
        billing=run.billing,
        seed=run.seed,
        samples=4 * BINS,
    )
    cheapest = frontier(world.workload).cheapest
    knobs = _knobs(run, cheapest, world)
    choice = choose(run.policy, knobs, run.billing)
    report = simulate(world, choice, replace(settings, cluster=knobs.nodes))
    document = report.document()
    return {
        "run": asdict(run),
        "code": fingerprint(),
        "cheapest_per_hour": cheapest,
        "cv2": world.trace.interarrival_cv2(),
        **document,
        "policy": run.policy,
        "bounds": {money: bound_jct(world, document[money]) for money in MONEY},
        "series": _brief(report),
    }


def _interval_s(run: Run) -> Seconds | None:
    return ROUND_S if run.billing == "node" else POLICIES[run.policy].interval_s


def _knobs(run: Run, cheapest: UsdPerHour, world: World) -> Knobs:
    knob = POLICIES[run.policy].knob
    if knob is None:
        return Knobs(seed=run.seed)
    assert run.knob is not None
    if knob == "budget":
        return Knobs(budget=run.knob * cheapest, seed=run.seed)
    if knob == "knob":
        return Knobs(knob=run.knob, seed=run.seed)
    if knob == "nodes":
        (kind,) = world.gpu_types.values()
        count = max(1, round(run.knob * cheapest / kind.node_price))
        return Knobs(nodes={kind.name: count}, seed=run.seed)
    return Knobs(target=run.knob, seed=run.seed)


def _brief(report: SimulationReport) -> dict[str, list[float | None]]:
    """Means over equal stretches of time, from 0 to the last arrival."""
    end = report.span_s
    bins: list[list[ClusterSample]] = [[] for _ in range(BINS)]
    for sample in report.series:
        if sample.time < end:
            bins[int(sample.time / end * BINS)].append(sample)
    kept = [(n, inside) for n, inside in enumerate(bins) if inside]
    return {
        "time_s": [(n + 0.5) / BINS * end for n, _ in kept],
        "jobs": [_mean([s.jobs for s in inside]) for _, inside in kept],
        "waiting": [_mean([s.waiting for s in inside]) for _, inside in kept],
        "busy_gpus": [_mean([s.busy_gpus for s in inside]) for _, inside in kept],
        "rented_gpus": [_mean([s.rented_gpus for s in inside]) for _, inside in kept],
        "efficiency": [
            _mean([s.efficiency for s in inside if s.efficiency is not None]) for _, inside in kept
        ],
    }


def _mean(values: list[Any]) -> float | None:
    return round(float(np.mean(values)), 4) if values else None


def simulating_files(root: Traversable) -> Iterator[Traversable]:
    """Sources that a simulation's result depends on: beside the package, and in these rooms."""
    for file in sorted(root.iterdir(), key=lambda file: file.name):
        if file.is_file() and file.name.endswith(SOURCES):
            yield file
    for room in SIMULATING:
        yield from _below(root.joinpath(room))
    for name in ALONE:
        yield root.joinpath(name)


def _below(folder: Traversable) -> Iterator[Traversable]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _below(entry)
        elif entry.name.endswith(SOURCES):
            yield entry


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """A hash of the code that simulates: results of two versions are not to be mixed unnoticed."""
    digest = hashlib.sha256()
    for file in simulating_files(resources.files("boa")):
        digest.update(file.read_bytes())
    digest.update(bytes(COMPILED))  # the genetic search draws other numbers in NumPy
    return digest.hexdigest()[:12]
