"""The paper's implementation experiment on this machine, in compressed time, against the simulator.

85 jobs of Pollux's workload-1 (ResNet-18, BERT, DeepSpeech2) go through a real `boa serve` as
replay jobs: real processes, started, stopped and moved by the service. The simulator replays the
same trace under the same policies. BOA runs by the GPU, without boots as in the paper, and by the
node, with boots of two minutes and the whole bill. Target: average JCT and spend within 10 % of
each other, within 3 % where nodes are billed.

.venv/bin/python bench/live_vs_sim.py [--quick] [--speed 100] [--data ../shared/data] [--json FILE]
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from _planned import until_planned
from _table import Measured, show, write
from boa.client.spawn import OwnService
from boa.model.job import ENDED
from boa.model.workload import Billing
from boa.paper.data import Cut, world_for
from boa.policy.registry import POLICIES, ROUND_S, Knobs, choose
from boa.scheduler.money.ledger import at as bill_at
from boa.scheduler.state import State
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.replay_jobs import profiles_of, replay_jobs, write_profiles
from boa.sim.run import World, simulate
from boa.sim.scheduled import ScheduledSimulation
from boa.sim.settings import Settings
from boa.solver.planner import frontier
from boa.units import SECONDS_PER_HOUR

HERE = Path(__file__).resolve().parent
LOADS = (1.15, 1.5, 2.2)
"""BOA: budget over the cheapest there is."""
TARGETS = (0.8, 0.6, 0.4)
"""Pollux with autoscaling: efficiency."""
TARGET = 0.10
BOOT_S = 120.0
"""Of nodes that are billed."""


@dataclass(frozen=True)
class Case:
    policy: str
    knob: float
    billing: Billing = "gpu"

    def __str__(self) -> str:
        return f"{self.policy} {self.knob:g} by the {self.billing}"


def main() -> None:
    options = _arguments()
    console, status = Console(width=None if sys.stdout.isatty() else 150), Console(stderr=True)
    world = _world(options.data, options.hours)
    by_billing = {
        "node": [Case("boa", load, "node") for load in LOADS],
        "gpu": [Case("boa", load) for load in LOADS]
        + [Case("pollux-autoscale", target) for target in TARGETS],
    }
    cases = [case for billing in options.billing for case in by_billing[billing]]
    if options.quick:
        cases = cases[1::3]
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
    parser.add_argument(
        "--billing", nargs="+", choices=("node", "gpu"), default=["node", "gpu"], help="which cases"
    )
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
    status.print(f"{case}: simulated; now live ...")
    live = _live(world, case, budget, options.speed)
    status.print(f"{case}: done")
    return {
        "policy": case.policy,
        "by the": case.billing,
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
    choice = choose(case.policy, knobs, case.billing)
    if case.billing == "gpu":
        return simulate(world, choice, settings).document()
    settings = replace(settings, interval_s=ROUND_S, provision_s=BOOT_S, billing="node")
    arrivals = ExpectedArrivals.of(world.trace)
    knowledge = Knowledge(world.truths, world.gpu_types, arrivals, settings)
    simulation = ScheduledSimulation(  # without an end: the service knows of none either
        world.trace.jobs, knowledge, choice.policy, settings, span_s=0.0, budget=budget
    )
    found = simulation.run().document()
    spent = _billed(simulation.state, simulation.clock.now())
    return {**found, "spend_per_hour": spent / (world.trace.span_s / SECONDS_PER_HOUR)}


def _billed(state: State, now: float) -> float:
    return bill_at(state.totals, state.nodes.values(), state.holds.values(), now).total


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
            while case.billing == "node" and client.nodes():
                time.sleep(0.5)  # what they cost belongs to the bill
            ended, cost = client.jobs(all=True), client.cost()
            late = client.metrics().get("boa_late_steps_total", 0.0)
    assert all(job["state"] in ENDED for job in ended)
    failed = [job["id"] for job in ended if job["state"] != "succeeded"]
    assert not failed, f"jobs that failed: {failed}"
    span_h = world.trace.span_s / SECONDS_PER_HOUR
    spent = sum(job["cost_usd"] for job in ended)
    return {
        "jobs": len(ended),
        "jct": sum((j["ended_at"] or 0) - j["submitted_at"] for j in ended) / len(ended),
        "spend": (cost["total_usd"] if case.billing == "node" else spent) / span_h,
        "rescalings": sum(job["rescalings"] for job in ended) / len(ended),
        "late_steps": late,
    }


def _config(world: World, case: Case, budget: float, speed: float, folder: Path) -> dict[str, Any]:
    files = write_profiles(profiles_of(world), folder / "profiles")
    rates = world.trace.arrivals_per_hour()
    knob = {} if case.policy == "boa" else {"target_efficiency": case.knob}
    steering: dict[str, Any] = {"local": {"provision_s": BOOT_S}}
    if case.billing == "gpu":
        steering = {"pacing_h": 8760}  # a year: the simulator does not steer either
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
        "billing": case.billing,
        **steering,
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
