"""One simulation in a process of its own: `newtrace DATA POLICY`, `policy DATA POLICY JOBS` or
`stream DATA JOBS`."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from _worker import _peak_gb
from boa.catalogue.arrivals import spec_like, synthetic_jobs
from boa.catalogue.traces import read_trace
from boa.model.policies import PolicyFacts
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


BUDGET = 140.0
"""Dollars per hour, and so T4s, of what every policy is told to be about as large as."""


def knobs_of(facts: PolicyFacts) -> Knobs:
    """A sensible knob for any policy, on T4s alone."""
    if facts.knob == "knob":
        return Knobs(knob=sorted(facts.knob_values)[len(facts.knob_values) // 2])
    nodes = {"T4": round(BUDGET / 4)}
    values: dict[str, Any] = {"budget": BUDGET, "target": 0.5, "nodes": nodes, "width": 4}
    return Knobs(**{name: value for name, value in values.items() if name == facts.knob})


def _world(data: str, gpus: tuple[str, ...], jobs: int | None = None) -> World:
    trace = read_trace(Path(data) / "sia" / "workloads" / "newtrace" / "workload-1.csv")
    trace = replace(trace, jobs=trace.jobs[:jobs])
    return world_of(trace, Path(data) / "sia" / "traces", gpus)


def newtrace(data: str, policy: str) -> dict[str, Any]:
    """960 jobs of newTrace, reading trace and profiles included."""
    knobs, gpus = CASES[policy]
    began = time.perf_counter()
    known = POLICIES[policy]
    settings = Settings(interval_s=known.interval_s, learning=known.learning, cluster=knobs.nodes)
    report = simulate(_world(data, gpus), choose(policy, knobs), settings)
    return {"seconds": time.perf_counter() - began, **report.document()}


def policy(data: str, name: str, jobs: str) -> dict[str, Any]:
    """The first so many jobs of newTrace (0: all) under any policy; nothing read is counted."""
    facts = POLICIES[name]
    knobs = knobs_of(facts)
    world = _world(data, ("T4",), int(jobs) or None)
    settings = Settings(interval_s=facts.interval_s, learning=facts.learning, cluster=knobs.nodes)
    began, busy = time.perf_counter(), time.process_time()
    report = simulate(world, choose(name, knobs), settings)
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - busy
    told = knobs_told(facts, knobs)
    return {**report.document(), "told": told, "seconds": seconds, "cpu_s": cpu_s}


def knobs_told(facts: PolicyFacts, knobs: Knobs) -> str:
    """The knob as a person would say it."""
    if facts.knob is None:
        return ""
    value = getattr(knobs, facts.knob)
    return f"{facts.knob} {value['T4'] if facts.knob == 'nodes' else value:g}"


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


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "newtrace": newtrace,
    "policy": policy,
    "stream": stream,
}

if __name__ == "__main__":
    print(json.dumps(MEASUREMENTS[sys.argv[1]](*sys.argv[2:])))
