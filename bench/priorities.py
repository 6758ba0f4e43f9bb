"""Priorities: what urgent jobs gain, what background jobs get done, and what both cost the others.

Jobs of Sia's newTrace (or of the 85-job traces, `--quick`) are dealt anew: some urgent, the rest
normal, and as many more again as `--background` in the background. Whole nodes are billed and take
two minutes to boot; speeds are known. The same jobs are run without the background ones, and with
all of them normal.

.venv/bin/python bench/priorities.py [--quick] [--draws 3] [--factor 1.8] [--json F]
"""

import argparse
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console

from _bills import BOOT_S, SETTINGS, trace_of
from _table import Measured, show, write
from boa.model.priorities import Priority
from boa.model.trace import Trace, TraceJob
from boa.policy.registry import Knobs, choose
from boa.sim.report import SimulationReport
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings
from boa.solver.planner import frontier

HERE = Path(__file__).resolve().parent


def dealt(trace: Trace, urgent: float, background: float, seed: int) -> Trace:
    """The trace's jobs, some of them urgent, and copies of others that come in the background."""
    rng, jobs = Random(seed), list[TraceJob]()
    for job in trace.jobs:
        said: Priority = "urgent" if rng.random() < urgent else "normal"
        jobs.append(replace(job, priority=said))
        if rng.random() < background:
            at = rng.uniform(0.0, trace.span_s)
            more = replace(job.again(f"{job.name}-background", at), priority="background")
            jobs.append(more)
    return replace(trace, jobs=tuple(sorted(jobs, key=lambda job: job.arrival_s)))


def run(world: World, trace: Trace, budget: float) -> SimulationReport:
    settings = Settings(interval_s=None, provision_s=BOOT_S, learning="perfect", billing="node")
    found = replace(world, trace=trace)
    return simulate(found, choose("boa", Knobs(budget=budget), "node"), settings, keep_jcts=True)


def jct_of(report: SimulationReport, trace: Trace, priority: Priority) -> float:
    named = report.tally.named or {}
    mine = [named[job.name] for job in trace.jobs if job.priority == priority]
    return sum(mine) / len(mine)


def ways(trace: Trace) -> dict[str, Trace]:
    calm = tuple(replace(job, priority="normal") for job in trace.paying.jobs)
    return {
        "all normal": replace(trace, jobs=calm),
        "some urgent": trace.paying,
        "and background": trace,
    }


def main() -> None:
    options = _arguments()
    setting = SETTINGS["85 jobs, T4 nodes of 4" if options.quick else options.setting]
    table = Measured(
        "Urgent, normal and background jobs at one budget",
        note="JCT in s; bill and idle in $/h (idle: GPUs that no paying job held); used: "
        "part of it that background jobs made use of",
    )
    for draw in range(1, options.draws + 1):
        plain = trace_of(setting, draw, options.data)
        trace = dealt(plain, options.urgent, options.background, draw)
        world = world_of(plain, options.data / "sia", setting.gpus, rescale=2.0)
        budget = options.factor * frontier(world.workload).cheapest
        for way, jobs in ways(trace).items():
            table.add(draw=draw, way=way, **figures(run(world, jobs, budget), trace, jobs))
            Console(stderr=True).print(f"draw {draw}: {way}")
    show(table, Console(width=130))
    write(options.json, [table], factor=options.factor, urgent=options.urgent)
    print(f"written to {options.json}")


def figures(report: SimulationReport, dealt_as: Trace, jobs: Trace) -> dict[str, Any]:
    """`dealt_as`: who is urgent, also where nobody is for the policy."""
    used, idle = report.background_per_hour, report.idle_per_hour
    came = sum(job.priority == "background" for job in jobs.jobs)
    ended = report.tally.priorities.get("background", [0.0, 0.0])[0]
    return {
        "urgent_jct_s": round(jct_of(report, dealt_as, "urgent")),
        "normal_jct_s": round(jct_of(report, dealt_as, "normal")),
        "bill": round(report.bill_per_hour, 3),
        "idle": round(idle, 3),
        "used": round(used / idle, 3) if idle else 0.0,
        "background_ended": f"{ended:.0f} of {came}",
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the 85 jobs instead of newTrace")
    parser.add_argument("--setting", choices=list(SETTINGS), default="newTrace, T4 nodes of 4")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--factor", type=float, default=1.8, help="budget over what is needed")
    parser.add_argument("--urgent", type=float, default=0.1, help="part of the jobs")
    parser.add_argument("--background", type=float, default=0.5, help="as many more, in parts")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--json", type=Path, default=HERE / "out" / "priorities.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
