"""One simulation in a process of its own: `newtrace DATA POLICY` or `stream DATA JOBS`."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _worker import _peak_gb
from boa.catalogue.arrivals import spec_like, synthetic_jobs
from boa.catalogue.traces import read_trace
from boa.policy.boa import Boa
from boa.policy.registry import POLICIES, Knobs, choose
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings
from boa.sim.simulator import QuickSimulation

SIA_CLUSTER = {"T4": 6, "A100": 2, "RTX2080Ti": 3}
CASES: dict[str, tuple[Knobs, tuple[str, ...]]] = {
    "boa": (Knobs(budget=140), ("T4",)),
    "fixed": (Knobs(width=8), ("T4",)),
    "sia": (Knobs(nodes=SIA_CLUSTER), tuple(SIA_CLUSTER)),
    "pollux": (Knobs(nodes={"T4": 40}), ("T4",)),
    "pollux-autoscale": (Knobs(target=0.7), ("T4",)),
    "sia-autoscale": (Knobs(target=0.5), ("T4", "V100", "A100")),
    "reservation": (Knobs(), ("T4",)),
}


def _world(data: str, gpus: tuple[str, ...]) -> World:
    trace = read_trace(Path(data) / "sia" / "workloads" / "newtrace" / "workload-1.csv")
    return world_of(trace, Path(data) / "sia" / "traces", gpus)


def newtrace(data: str, policy: str) -> dict[str, Any]:
    """960 jobs of newTrace, reading trace and profiles included."""
    knobs, gpus = CASES[policy]
    began = time.perf_counter()
    known = POLICIES[policy]
    settings = Settings(interval_s=known.interval_s, learning=known.learning, cluster=knobs.nodes)
    report = simulate(_world(data, gpus), choose(policy, knobs), settings)
    return {"seconds": time.perf_counter() - began, **report.document()}


def stream(data: str, jobs: str) -> dict[str, Any]:
    """So many synthetic jobs of newTrace's mix and rate under BOA, never all in memory."""
    world = _world(data, ("T4",))
    settings = Settings(interval_s=None)
    knowledge = Knowledge(world.truths, world.gpu_types, ExpectedArrivals.of(world.trace), settings)
    spec = spec_like(world.trace, jobs=int(jobs))
    span_s = int(jobs) / spec.arrivals_per_hour * 3600
    arriving = synthetic_jobs(spec, 1)
    began = time.perf_counter()
    report = QuickSimulation(arriving, knowledge, Boa(), settings, span_s=span_s, budget=140).run()
    return {
        "seconds": time.perf_counter() - began,
        "peak_mb": _peak_gb() * 1000,
        **report.document(),
    }


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {"newtrace": newtrace, "stream": stream}

if __name__ == "__main__":
    print(json.dumps(MEASUREMENTS[sys.argv[1]](*sys.argv[2:])))
