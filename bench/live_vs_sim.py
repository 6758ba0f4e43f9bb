"""The paper's implementation experiment on this machine, in compressed time, against the simulator.

85 jobs of Pollux's workload-1 (ResNet-18, BERT, DeepSpeech2) go through a real `boa serve` as
replay jobs: real processes, started, stopped and moved by the service. The simulator replays the
same trace under the same policies. Target: average JCT and spend within 10 % of each other.

.venv/bin/python bench/live_vs_sim.py [--quick] [--speed 100] [--data ../shared/data] [--json FILE]
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from _planned import until_planned
from _table import Measured, show, write
from boa.client.spawn import OwnService
from boa.model.job import ENDED
from boa.paper.data import Cut, world_for
from boa.policy.registry import POLICIES, Knobs, choose
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.replay_jobs import profiles_of, replay_jobs, write_profiles
from boa.sim.run import World, simulate
from boa.sim.settings import Settings
from boa.solver.planner import frontier

HERE = Path(__file__).resolve().parent
LOADS = (1.15, 1.5, 2.2)
"""BOA: budget over the cheapest there is."""
TARGETS = (0.8, 0.6, 0.4)
"""Pollux with autoscaling: efficiency."""
TARGET = 0.10


@dataclass(frozen=True)
class Case:
    policy: str
    knob: float


def main() -> None:
    options = _arguments()
    console, status = Console(width=None if sys.stdout.isatty() else 150), Console(stderr=True)
    world = _world(options.data, options.hours)
    cases = [Case("boa", load) for load in LOADS] + [Case("pollux-autoscale", c) for c in TARGETS]
    if options.quick:
        cases = [cases[1], cases[4]]
    table = Measured(
        f"{len(world.trace.jobs)} jobs of workload-1, {options.speed:g} times as fast as time",
        note=f"target: live within {TARGET:.0%} of simulated",
    )
    with ThreadPoolExecutor(options.at_once) as pool:
        for row in pool.map(lambda case: _compare(world, case, options, status), cases):
            table.add(**row)
    show(table, console)
    write(options.json, [table])
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one budget of each policy")
    parser.add_argument("--speed", type=float, default=100.0, help="server seconds per second")
    parser.add_argument("--hours", type=float, help="only jobs that arrive this early")
    parser.add_argument("--at-once", type=int, default=3, help="services that run side by side")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--json", type=Path, default=HERE / "out" / "live_vs_sim.json")
    return parser.parse_args()


def _world(data: Path, hours: float | None) -> World:
    cut = Cut(hours=hours)
    return world_for(data, "implementation", cut)


def _compare(
    world: World, case: Case, options: argparse.Namespace, status: Console
) -> dict[str, Any]:
    budget = _budget(world, case)
    simulated = _simulated(world, case, budget)
    status.print(f"{case.policy} {case.knob:g}: simulated; now live ...")
    live = _live(world, case, budget, options.speed)
    status.print(f"{case.policy} {case.knob:g}: done")
    return {
        "policy": case.policy,
        "knob": f"${budget:.1f}/h" if case.policy == "boa" else f"{case.knob:g}",
        "jobs": live["jobs"],
        "simulated_jct_s": simulated["average_jct_s"],
        "live_jct_s": live["jct"],
        "jct_above": live["jct"] / simulated["average_jct_s"] - 1,
        "simulated_spend": simulated["spend_per_hour"],
        "live_spend": live["spend"],
        "spend_above": live["spend"] / simulated["spend_per_hour"] - 1,
        "simulated_rescalings": simulated["rescalings_per_job"],
        "live_rescalings": live["rescalings"],
        "late_steps": live["late_steps"],
    }


def _budget(world: World, case: Case) -> float:
    if case.policy != "boa":
        return 1.0
    settings = Settings(learning="perfect")
    known = Knowledge(world.truths, world.gpu_types, ExpectedArrivals.of(world.trace), settings)
    return frontier(known.workload()).cheapest * case.knob


def _simulated(world: World, case: Case, budget: float) -> dict[str, Any]:
    known = POLICIES[case.policy]
    knobs = Knobs(budget=budget) if case.policy == "boa" else Knobs(target=case.knob)
    settings = Settings(interval_s=known.interval_s, learning="perfect")
    return simulate(world, choose(case.policy, knobs), settings).document()


def _live(world: World, case: Case, budget: float, speed: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="boa-bench-") as scratch:
        folder = Path(scratch)
        jobs = list(replay_jobs(world, folder / "profiles"))
        service = OwnService(folder, _config(world, case, budget, speed, folder))
        with service, service.client() as client:
            if case.policy == "boa":  # the others have none
                until_planned(client)
            began, left, ids = time.monotonic(), list(jobs), []
            while left:
                wait = left[0][0] / speed - (time.monotonic() - began)
                if wait > 0:
                    time.sleep(wait)
                ids.append(client.submit(left.pop(0)[1])["id"])
            while client.jobs(limit=1):
                time.sleep(0.5)
            ended = client.jobs(all=True)
            late = client.metrics().get("boa_late_steps_total", 0.0)
    assert all(job["state"] in ENDED for job in ended)
    failed = [job["id"] for job in ended if job["state"] != "succeeded"]
    assert not failed, f"jobs that failed: {failed}"
    span_h = world.trace.span_s / 3600
    return {
        "jobs": len(ended),
        "jct": sum((j["ended_at"] or 0) - j["submitted_at"] for j in ended) / len(ended),
        "spend": sum(job["cost_usd"] for job in ended) / span_h,
        "rescalings": sum(job["rescalings"] for job in ended) / len(ended),
        "late_steps": late,
    }


def _config(world: World, case: Case, budget: float, speed: float, folder: Path) -> dict[str, Any]:
    files = write_profiles(profiles_of(world), folder / "profiles")
    rates = world.trace.arrivals_per_hour()
    knob = {} if case.policy == "boa" else {"target_efficiency": case.knob}
    return {
        "policy": case.policy,
        **knob,
        "budget_per_hour": budget,
        "speed": speed,
        "gpu_types": {
            gpu: {"price": kind.price, "gpus_per_node": kind.gpus_per_node}
            for gpu, kind in world.gpu_types.items()
        },
        "keep_warm_s": 0,
        "pacing_h": 8760,  # a year: the simulator does not steer either
        "classes": {
            world.truths[app].name: {
                "profile": str(files[app]),
                "arrivals_per_hour": rate,
                "arrivals_weight_h": 1e6,
                "measured_weight": 1e6,
            }
            for app, rate in rates.items()
        },
    }


if __name__ == "__main__":
    main()
