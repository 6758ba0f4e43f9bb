"""Runs of `bench/bill.py`: one policy at one knob on one trace, and what it was billed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from boa.catalogue.traces import read_trace
from boa.errors import BudgetTooSmall
from boa.model.trace import Trace
from boa.model.workload import Billing, Workload
from boa.policy.registry import POLICIES, Knobs, choose
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings
from boa.solver.planner import plan

PAPER_85 = ("cifar10", "deepspeech2", "bert")
BOOT_S = 120.0


@dataclass(frozen=True, slots=True)
class Setting:
    """A trace on GPU types."""

    gpus: tuple[str, ...]
    short: bool = False
    """The 85 jobs of the paper's implementation, 8 h, instead of newTrace's 960, 48 h."""
    every: int = 1
    """Every so many-th job."""


SETTINGS: Mapping[str, Setting] = {
    "newTrace, T4 nodes of 4": Setting(("T4",)),
    "85 jobs, T4 nodes of 4": Setting(("T4",), short=True),
    "newTrace, A100 nodes of 8": Setting(("A100",)),
    "every 8th job, A100 nodes of 8": Setting(("A100",), every=8),
    "newTrace, T4, V100 and A100": Setting(("T4", "V100", "A100")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything that a run depends on."""

    setting: str
    draw: int
    rescale_s: float | None
    """None: every model's own, as its authors measured (25–120 s)."""
    reclaim_s: float
    policy: str
    """`market`: BOA where nodes are billed; `boa`: BOA by the GPU."""
    knob: float
    """Budget as a multiple of the cheapest plan's, or the target efficiency."""

    @property
    def key(self) -> str:
        r = "paper" if self.rescale_s is None else f"{self.rescale_s:g}"
        parts = (self.setting, self.draw, r, f"{self.reclaim_s:g}", self.policy, f"{self.knob:g}")
        return " | ".join(map(str, parts))


def trace_of(setting: Setting, draw: int, data: Path) -> Trace:
    if setting.short:
        read = read_trace(data / f"pollux/workloads/workload-{draw}.csv")
        kept = tuple(job for job in read.jobs if job.application in PAPER_85)
        return replace(read, jobs=kept)
    read = read_trace(data / f"sia/workloads/newtrace/workload-{draw}.csv")
    return replace(read, jobs=tuple(read.jobs[:: setting.every]))


@cache
def _world(setting: Setting, draw: int, rescale_s: float | None, data: Path) -> World:
    found = trace_of(setting, draw, data)
    return world_of(found, data / "sia", setting.gpus, rescale=rescale_s)


@cache
def _truth(setting: Setting, draw: int, rescale_s: float | None, data: Path) -> Workload:
    """The trace's own jobs, without boots: what the bound is made from."""
    world = _world(setting, draw, rescale_s, data)
    arrivals = ExpectedArrivals.of(world.trace)
    known = Knowledge(world.truths, world.gpu_types, arrivals, Settings(learning="perfect"))
    return known.workload()


def measured(run: Run, data: Path) -> dict[str, Any]:
    """The bill, the JCT, and the least JCT that anybody could reach at that bill."""
    setting = SETTINGS[run.setting]
    where = (setting, run.draw, run.rescale_s, data)
    world, truth = _world(*where), _truth(*where)
    cheapest = plan(truth, 1e9).cheapest
    report = simulate(world, *_choice(run, cheapest), keep_jcts=False)
    document = report.document()
    bill = document["rented_spend_per_hour"] + document["reclaiming_spend_per_hour"]
    try:
        bound = plan(truth, bill).average_jct
    except BudgetTooSmall:
        bound = None
    asked = run.knob * cheapest if run.policy in ("boa", "market") else None
    return {
        "bill": bill,
        "asked": asked,
        "cheapest": cheapest,
        "jct_s": document["average_jct_s"],
        "bound_jct_s": bound,
        "held": document["spend_per_hour"] / bill,
        "rescalings": document["rescalings_per_job"],
        "completed": document["completed"] / document["jobs"],
        "wall_s": document["wall_s"],
    }


def _choice(run: Run, cheapest: float) -> tuple[Any, Settings]:
    name = "boa" if run.policy == "market" else run.policy
    by_budget = name == "boa"
    knobs = Knobs(budget=run.knob * cheapest) if by_budget else Knobs(target=run.knob)
    billing: Billing = "gpu" if run.policy == "boa" else "node"
    interval = None if run.policy == "boa" else POLICIES[name].interval_s or 60.0
    return choose(name, knobs, billing), Settings(
        interval_s=interval,
        provision_s=BOOT_S,
        reclaim_s=run.reclaim_s,
        learning="perfect",
        billing=billing,
    )
